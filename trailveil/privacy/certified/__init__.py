"""Guarantees recomputed in ball arithmetic: bounds that are proofs, whatever rounding does."""
