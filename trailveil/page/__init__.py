"""A page on this machine alone: choose what to protect, see what it costs, save the release."""
