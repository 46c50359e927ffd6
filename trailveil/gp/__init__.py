"""Gaussian processes: kernels, state space, filtering, linear algebra, more digits."""
