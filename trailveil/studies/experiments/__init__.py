"""The paper's figures, each by one short file on the public functions of the package."""
