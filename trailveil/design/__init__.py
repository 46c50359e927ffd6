"""Designing the noise: closed forms, baselines, the paper's programs; `design` chooses."""

from trailveil.design.designer import LARGEST_GAP, Certificate, Kind, Outcome, design

__all__ = ["LARGEST_GAP", "Certificate", "Kind", "Outcome", "design"]
