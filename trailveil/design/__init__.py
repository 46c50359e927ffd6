"""Designing the noise: closed forms, baselines, the paper's programs; `design` chooses."""

from trailveil.design.designer import Certificate, Kind, Outcome, design

__all__ = ["Certificate", "Kind", "Outcome", "design"]
