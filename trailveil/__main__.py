"""`python -m trailveil` is the command line."""

from trailveil.cli import main

main()
