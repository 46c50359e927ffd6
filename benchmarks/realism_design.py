"""Does noise made against the adversaries of a release hold against slower people?

    python -m benchmarks.realism_design

An hour with a fix every 20 s; secret is one moment, or a stay of ten minutes, in the middle. Noise
of the least trace at radius 200 m, epsilon 1, order 5, against the set of `trailveil protect` with
these speeds beside that of the prior; first, as it does, with the prior of one mode and no other
speeds. Printed: its root mean square, and epsilon and the deviation left against
people of other speeds and time constants; what matters is epsilon over 1.
"""

import time
from collections.abc import Sequence

import numpy as np

from benchmarks._realism_cases import moving
from trailveil.designer import design
from trailveil.errors import TrailveilError
from trailveil.gp.kernels import Kernel
from trailveil.privacy import adversaries
from trailveil.privacy.adversaries import at_speed
from trailveil.privacy.adversary import PLAIN, Adversary, exposure
from trailveil.privacy.guarantee import loss_bound_for
from trailveil.privacy.prior import Prior
from trailveil.privacy.priors import BUILT_IN
from trailveil.privacy.secrets import Secret

BOUND = loss_bound_for(1.0, 200.0)
TIMES = np.arange(0.0, 3601.0, 20.0)
MIDDLE = (1500.0, 2100.0)
SETS = ((1.0, 10.0), (0.3, 10.0), (0.1, 10.0))
OTHERS: dict[str, Kernel] = {
    **{
        f"{s:g} m/s, {c:g} s": moving((s, c))
        for s in (0.03, 0.1, 0.3, 1.0)
        for c in (15.0, 60.0, 240.0)
    },
    "walk": BUILT_IN["walk"].kernel,
    "drive": BUILT_IN["drive"].kernel,
}


def against(
    kernel: Kernel, speeds: Sequence[float], windows: Sequence[tuple[float, float]]
) -> list[Adversary]:
    """The set of a release with this prior, and these speeds beside that of the prior."""
    still = [Adversary.sees_stillness(windows)] if windows else []
    known = [PLAIN, Adversary.knows_point(), Adversary.knows_path()]
    adversaries = [*known, *(adversary & seen for adversary in known for seen in still)]
    for speed in speeds:
        other = at_speed(kernel, speed)
        assert other is not None
        adversary = Adversary.believes(f"knows that the speed is {speed:g} m/s", other)
        adversaries += [adversary, *(adversary & seen for seen in still)]
    return adversaries


def show(
    name: str,
    secret: Secret,
    windows: Sequence[tuple[float, float]] = (),
    mode: str = "default",
    sets: Sequence[tuple[float, ...]] = SETS,
) -> None:
    """Print one secret under noise made for a built-in prior against each set."""
    kernel = BUILT_IN[mode].kernel
    prior = Prior(kernel, TIMES)
    for speeds in sets:
        begun = time.perf_counter()
        own = tuple(against(kernel, speeds, windows))
        made, _ = design(prior, [secret], bounds=[BOUND], adversaries=own)
        rms = float(np.sqrt(made.noise_trace / TIMES.size))
        text = ", ".join(f"{speed:g}" for speed in speeds) or "none"
        taken = time.perf_counter() - begun
        print(f"{name}; {mode}, other speeds: {text}: {rms:.0f} m rms ({taken:.0f} s)")
        for who, other in OTHERS.items():
            adversary = Adversary.believes(who, other)
            for each in [
                adversary,
                *([adversary & Adversary.sees_stillness(windows)] if windows else []),
            ]:
                try:
                    found = exposure(prior, secret, made, each)
                except TrailveilError as error:
                    print(f"    {each.name}: {error}")
                    continue
                print(
                    f"    {each.name:34} epsilon {found.loss / BOUND:6.2f}, knew it to "
                    f"{found.prior:6.0f} m, to {found.posterior:6.0f} m after"
                )


def main() -> None:
    """Print all."""
    print("the set of protect:", ", ".join(f"{speed:g}" for speed in adversaries.SPEEDS), "m/s")
    show("a moment", Secret.at(1800.0), mode="drive", sets=((),))
    show("a moment", Secret.at(1800.0))
    show("a stay", Secret.stay(*MIDDLE), (MIDDLE,))


if __name__ == "__main__":
    main()
