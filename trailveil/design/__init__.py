"""Designing the noise: closed forms, baselines, the paper's programs, and `design`, which chooses."""

from trailveil.design.designer import Certificate, Kind, Outcome, design

__all__ = ["Certificate", "Kind", "Outcome", "design"]
