"""Noise of one version of a recording that goes with the noise of another.

A coarser version has the noise of the finer one plus independent noise, so that both together tell
what the finer one tells. `widened` makes a design so: it adds what its covariance has more, in the
directions where that is more, and nothing elsewhere. `narrowed` finds a finer version of noise that
is published: a share of its covariance, the least that keeps the promise. `mixed` finds one between
two that are published: of what the coarser has more, the least share that keeps the promise.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

from trailveil.designer.random_curves import WindowNoise
from trailveil.designer.window import is_enough, proved, shortened
from trailveil.errors import NumericalError, Refused
from trailveil.gp.gaussian import FloatArray
from trailveil.privacy.false_tracks import Knots
from trailveil.privacy.knowledge import Knowledge
from trailveil.privacy.nesting import nests

Asked = tuple[float, int, Sequence[Knowledge], float]
"""What noise of a window is asked for: seconds, sides, adversaries, bound."""

# The least that is added in every direction, as a share of all that is added to it; by how much it
# grows until the difference is proved to be positive, and so often at most.
_SPARE, _MORE, _TIMES = 1e-7, 4.0, 10
# Deviations of a finer version are whole multiples of this share of the published ones: exact in
# floating point.
_SHARES = 256


def widened(finer: WindowNoise, design: WindowNoise, asked: Asked) -> WindowNoise:
    """The noise of a coarser version: that of the finer one plus independent noise, with its proof.

    design: the least noise for what is asked of the coarser one alone.
    """
    knots = Knots(tuple(sorted({*finer.knots.seconds, *design.knots.seconds})))
    spare = _SPARE
    for _ in range(_TIMES):
        parts = [
            _covering(
                _embedded(finer, less, knots, i),
                _embedded(design, more, knots, i),
                _form(knots, asked, i),
                spare,
            )
            for i, (less, more) in enumerate(zip(_factors(finer), _factors(design), strict=True))
        ]
        even, odd = shortened(parts[0], parts[1] if len(parts) > 1 else None)
        noise = WindowNoise(knots, even, odd, {}, float("nan"))
        if _is_wider(noise, finer) and (whole := proved(even, odd, knots, asked)) is not None:
            return _with_gap(whole, design, asked)
        spare *= _MORE
    raise NumericalError("noise of a version must be proved to hold, got noise that is not")


def narrowed(
    published: Sequence[WindowNoise], designs: Sequence[WindowNoise], asked: Sequence[Asked]
) -> tuple[list[WindowNoise], float]:
    """The noises of a finer version of published ones, with their proofs, and the share.

    With published noise G of covariance K, the finer noise is c G + sqrt(c (1 - c)) G', G' of the
    same law and independent: its covariance is c K, and G less it is independent of it. c is the
    least that keeps what is asked for every part. designs: the least noises for that. Raises
    Refused where no share below 1 does.
    """
    noises, share = _least_part(
        lambda share: (_part(noise, share) for noise in published), published, designs, asked
    )
    return noises, (share / _SHARES) ** 2


def mixed(
    finer: Sequence[WindowNoise],
    coarser: Sequence[WindowNoise],
    designs: Sequence[WindowNoise],
    asked: Sequence[Asked],
) -> tuple[list[WindowNoise], float]:
    """The noises of a version between two, with their proofs, and the share of the coarser one.

    With published noises G of covariance K and G + H, H independent of G, of covariance D, the
    noise between is G + c H + sqrt(c (1 - c)) H', H' of the law of H and independent. Its
    covariance is K + c D; what it has more than G, and what the coarser has more than it, are
    independent of each other and of G. Shares are sought, designs given and refused as by
    `narrowed`. That both differences are positive is proved, too.
    """

    def parts(share: int) -> Iterator[tuple[FloatArray, FloatArray | None]]:
        return (
            _mixture(less, more, share / _SHARES) for less, more in zip(finer, coarser, strict=True)
        )

    noises, share = _least_part(parts, coarser, designs, asked)
    for less, noise, more in zip(finer, noises, coarser, strict=True):
        if not (_is_wider(noise, less) and _is_wider(more, noise)):
            raise NumericalError("noise between two must be proved to nest, got noise that is not")
    return noises, share / _SHARES


def _mixture(
    less: WindowNoise, more: WindowNoise, share: float
) -> tuple[FloatArray, FloatArray | None]:
    """The factors of K + share D, as of `mixed`."""
    parts = []
    for i, (below, above) in enumerate(zip(_factors(less), _factors(more), strict=True)):
        part = _embedded(less, below, more.knots, i)
        gram = (1 - share) * part @ part.T + share * above @ above.T
        parts.append(np.asarray(cholesky(gram, lower=True)))
    return parts[0], parts[1] if len(parts) > 1 else None


def _least_part(
    parts: Callable[[int], Iterable[tuple[FloatArray, FloatArray | None]]],
    published: Sequence[WindowNoise],
    designs: Sequence[WindowNoise],
    asked: Sequence[Asked],
) -> tuple[list[WindowNoise], int]:
    """The least part of published noises that is proved to hold, and its share of `_SHARES`.

    parts: the factors of each noise for a share. It begins near the least in floating point.
    """
    pairs = list(zip(published, asked, strict=True))
    for noise, (_, _, adversaries, _) in pairs:
        edges = {edge for each in adversaries for edge in (each.steady, each.path or 0)}
        if not edges <= {*noise.knots.seconds}:
            raise Refused(
                "a finer version must assume what the one that is published does, got another "
                "--steady-for, --slow-for or --uncertain: state the same"
            )

    def enough(share: int) -> bool:
        each = zip(parts(share), pairs, strict=True)
        return all(is_enough(*part, noise.knots, what) for part, (noise, what) in each)

    for share in range(bisect_left(range(1, _SHARES), True, key=enough) + 1, _SHARES):
        each = zip(parts(share), pairs, strict=True)
        noises = [proved(*part, noise.knots, what) for part, (noise, what) in each]
        whole = [noise for noise in noises if noise is not None]
        if len(whole) == len(noises):
            triples = zip(whole, designs, asked, strict=True)
            return [_with_gap(*triple) for triple in triples], share
    raise Refused(
        "a finer version must have less noise than the one that is published, got one that needs "
        "as much: ask for a smaller --radius or a larger --epsilon"
    )


def _part(noise: WindowNoise, share: int) -> tuple[FloatArray, FloatArray | None]:
    """The factors of a share of a noise."""
    scale = share / _SHARES
    return noise.even * scale, None if noise.odd is None else noise.odd * scale


def _with_gap(noise: WindowNoise, design: WindowNoise, asked: Asked) -> WindowNoise:
    """The same, with how far above the least noise it is, relative, as designs are measured."""
    sizes = [_size(each, asked[0]) for each in (noise, design)]
    return replace(noise, gap=sizes[0] / sizes[1] * (1 + design.gap) - 1)


def _size(noise: WindowNoise, seconds: float) -> float:
    """What noise is measured by: its variance, over the window and both sides of it."""
    form = noise.knots.forms()[0]
    odd = noise.odd
    sides = 1 if odd is None else 2
    even = sides * np.sum(noise.even * (form @ noise.even)) + seconds * np.sum(noise.even[0] ** 2)
    return float(even + (0.0 if odd is None else 2 * np.sum(odd * (form[1:, 1:] @ odd))))


def added(coarser: WindowNoise, finer: WindowNoise) -> WindowNoise:
    """The independent noise by which a coarser noise of `widened` differs from the finer one."""
    parts = [
        cholesky(more @ more.T - part @ part.T, lower=True)
        for i, (more, less) in enumerate(zip(_factors(coarser), _factors(finer), strict=True))
        for part in [_embedded(finer, less, coarser.knots, i)]
    ]
    odd = parts[1] if len(parts) > 1 else None
    return WindowNoise(coarser.knots, parts[0], odd, {}, float("nan"))


def _factors(noise: WindowNoise) -> list[FloatArray]:
    """Of the sum of both sides and, where there are two, of their difference."""
    return [noise.even] if noise.odd is None else [noise.even, noise.odd]


def _is_wider(coarser: WindowNoise, finer: WindowNoise) -> bool:
    """Whether noise is that of the finer version and independent noise besides: exact."""
    return all(
        nests(
            (finer.knots.seconds, less.tolist()), (coarser.knots.seconds, more.tolist()), odd=i > 0
        )
        for i, (more, less) in enumerate(zip(_factors(coarser), _factors(finer), strict=True))
    )


def _embedded(noise: WindowNoise, factor: FloatArray, knots: Knots, first: int) -> FloatArray:
    """A factor of a noise on more knots than its own, without the first rows that it lacks."""
    inner = knots.seconds[1:-1]
    rows = np.zeros((knots.size, noise.knots.size))
    rows[0, 0] = 1.0
    rows[1::2], rows[2::2] = noise.knots.rows(inner), noise.knots.rows(inner, slopes=True)
    return np.asarray(rows[first:, first:] @ factor)


def _form(knots: Knots, asked: Asked, first: int) -> FloatArray:
    """What the variance of noise is measured by, on each side."""
    form = knots.forms()[0]
    form[0, 0] += asked[0] / asked[1]
    return np.asarray(form[first:, first:])


def _covering(less: FloatArray, more: FloatArray, form: FloatArray, spare: float) -> FloatArray:
    """A lower triangular factor of the least covariance that is no less than either of two.

    less, more: factors of both. Least in the trace with a form: where that is R^T R, what is added
    to the first is the positive part of the difference, R D R^T. spare: the share that is added in
    each direction.
    """
    root = cholesky(form)
    below, above = root @ less, root @ more
    sizes, axes = eigh(above @ above.T - below @ below.T)
    least = spare * float(np.sum(above**2)) / len(sizes)
    fresh = solve_triangular(root, axes * np.sqrt(np.maximum(sizes, 0.0) + least))
    return np.asarray(cholesky(less @ less.T + fresh @ fresh.T, lower=True))
