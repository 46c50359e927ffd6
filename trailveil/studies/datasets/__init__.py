"""Data to try things on: simulated here, so that none of it is anybody's."""

from trailveil.studies.datasets.day import Day, Stay, day_plan, simulated_day

__all__ = ["Day", "Stay", "day_plan", "simulated_day"]
