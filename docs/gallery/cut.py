"""What you publish of a day.

The stay at the clinic is cut out, with the least time around it. All else is exactly as recorded.
This picture is for you alone: `trace(None, released)` shows what others see.
"""

import trailveil as tv

day = tv.datasets.simulated_day()
plan = tv.protect(day, between=[("08:39", "09:21")], tz="UTC", activity="ride")
tv.publish(plan, "cut.gpx")
axes = tv.plots.trace(day, tv.read("cut.gpx"))
figure = axes.figure
