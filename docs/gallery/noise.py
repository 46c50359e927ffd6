"""The same day, moved by noise.

No time is missing, but a street map can undo the shape of what is moved.
"""

import trailveil as tv

day = tv.datasets.simulated_day()
plan = tv.protect(day, between=[("08:39", "09:21")], tz="UTC", mechanism="noise")
tv.publish(plan, "noise.gpx")
axes = tv.plots.trace(day, tv.read("noise.gpx"))
figure = axes.figure
