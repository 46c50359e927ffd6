"""Designing the noise: closed forms, baselines, the paper's programs. See DESIGN sections in docs/paper.md."""
