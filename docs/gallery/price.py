"""What a larger radius costs.

The minutes that a cut leaves out, for four radii and four paces.
"""

from matplotlib.figure import Figure

import trailveil as tv

day = tv.datasets.simulated_day()
stay = {"between": [("08:39", "09:21")], "tz": "UTC", "ends": False}
radii = [25, 50, 100, 120]
figure = Figure(figsize=(4, 2.6), layout="constrained")
axes = figure.add_subplot(xlabel="radius (m)", ylabel="minutes left out")
for activity in ("walk", "run", "ride", "drive"):
    minutes = []
    for radius in radii:
        plan = tv.protect(day, activity=activity, radius=radius, **stay)
        minutes.append((len(day) - plan.mechanism.rows.size) * day.duration / len(day) / 60)
    axes.plot(radii, minutes, "o-", label=activity)
axes.legend(frameon=False)
