"""What a release promises, as text for people and as JSON for programs."""

from trailveil.report.brief import brief, brief_readings
from trailveil.report.record import record
from trailveil.report.text import text

__all__ = ["brief", "brief_readings", "record", "text"]
