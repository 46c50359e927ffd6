"""The bound for several locations and dimensions against the best pair that is found."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag

from trailveil.errors import InvalidValue
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.guarantee import paper_bound, tight_bound

SEEDS = st.integers(0, 2**32 - 1)


def best_found(losses: Sequence[FloatArray], radius: float, seed: int) -> float:
    """The greatest sum of delta_a^T L_a delta_a over dimensions a, by ascent from random starts.

    Of pairs whose displacement at each location, over all dimensions, is within the radius.
    """
    rng, count, size = np.random.default_rng(seed), len(losses), losses[0].shape[0]
    whole, best = block_diag(*losses), 0.0
    for _ in range(20):
        delta = rng.normal(size=(count, size))
        for _ in range(200):
            delta = delta / np.linalg.norm(delta, axis=0) * radius
            delta = (whole @ delta.ravel()).reshape(delta.shape)  # rises, L being positive
        delta = delta / np.linalg.norm(delta, axis=0) * radius
        best = max(best, float(delta.ravel() @ whole @ delta.ravel()))
    return best


@given(SEEDS, st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=25)
def test_the_tight_bound_holds_for_every_pair(seed: int, locations: int, dimensions: int) -> None:
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(dimensions, locations, locations))
    losses = [root @ root.T for root in roots]
    bound, best = tight_bound(losses, 2.0), best_found(losses, 2.0, seed)
    largest = max(np.linalg.eigvalsh(loss)[-1] for loss in losses)
    assert best <= bound * (1 + 1e-9)
    assert bound <= locations * 4.0 * largest * (1 + 1e-9)
    if locations == 1:  # the maximum itself
        assert best == pytest.approx(bound, rel=1e-3)


def test_dimensions_share_one_certificate() -> None:
    """10.01 in each coordinate, and 20 in truth: the larger of the two would be wrong."""
    each = [np.diag([10.0, 0.01]), np.diag([0.01, 10.0])]
    assert [tight_bound([loss], 1.0) for loss in each] == pytest.approx([10.01, 10.01])
    assert tight_bound(each, 1.0) == pytest.approx(20.0)
    assert best_found(each, 1.0, 0) == pytest.approx(20.0)
    assert paper_bound(each, 1.0) == pytest.approx(20.0)
    # For one location the larger is exact.
    single = [np.array([[3.0]]), np.array([[5.0]])]
    assert tight_bound(single, 2.0) == best_found(single, 2.0, 0) == pytest.approx(20.0)


def test_losses_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(InvalidValue, match="at least one dimension"):
        tight_bound([], 1.0)
    with pytest.raises(InvalidValue, match="all have one shape"):
        tight_bound([np.eye(2), np.eye(3)], 1.0)
    with pytest.raises(InvalidValue, match="must be finite"):
        tight_bound([np.full((1, 1), np.inf)], 1.0)
