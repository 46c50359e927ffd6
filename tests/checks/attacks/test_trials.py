"""What an attack is tried as: the best of each adversary that a release was made against."""

from dataclasses import replace

from tests.checks.attacks.designs import bumps, designed
from tests.rides import ride
from trailveil.checks.attacks import suite
from trailveil.checks.attacks.trials import of_the_set
from trailveil.gp.kernels import IntegratedOU
from trailveil.privacy.exposure import Exposure
from trailveil.privacy.knowledge import Knowledge
from trailveil.privacy.movement import Movement


def test_an_adversary_of_another_pace_alone_is_tried_as_a_stranger_of_that_pace() -> None:
    trace = ride(121, 30.0, still=(50, 70))
    (scene,) = suite._scenes(designed(trace, 50, 70, bumps(trace.seconds, 1800.0)), None, ())
    usual = of_the_set(scene)
    strolls = Knowledge("somebody who strolls", Movement(0.25, 60.0))
    more = replace(
        scene,
        knowledge=(*scene.knowledge, strolls),
        exposures=(*scene.exposures, Exposure.of_loss(strolls.name, 1e-4)),
    )
    moving, still = of_the_set(more)[len(usual) :]
    assert (moving.deviation, still.deviation) == (100.0, 100.0)
    assert not moving.still
    assert still.still
    for trial in (moving, still):
        assert trial.who.kernel is not None
        terms = trial.who.kernel.terms()
        (pace,) = (term for term in terms if isinstance(term, IntegratedOU))
        assert pace.std == 0.25
