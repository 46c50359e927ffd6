"""Live releases: fixes in, one at a time, and out what may be released of them."""
