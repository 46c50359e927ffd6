"""What the numbers of a recording are like: the grid they lie on, and structure that is exact."""
