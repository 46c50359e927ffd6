"""`python -m trailveil` is the command line."""

from trailveil.cli import main

if __name__ == "__main__":  # worker processes import it, under another name
    main()
