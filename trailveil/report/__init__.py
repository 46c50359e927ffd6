"""What a release promises, as text for people and as JSON for programs."""

from trailveil.report.record import record
from trailveil.report.text import text

__all__ = ["record", "text"]
