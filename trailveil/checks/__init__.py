"""Checks of a released file: leaks, attacks, proofs, utility."""
