"""Distances in plain words: how many steps back something is left of what there is at the last."""

from __future__ import annotations

import math

import numpy as np

from remanence._wording import number_of

HALF = 0.5
HARDLY = 0.01
FAINT = 0.05
MANIFOLD = 2.0
"""Share from which on it is given as a multiple."""
SPREAD = math.log(4)
"""Of logarithms that count as about the same."""
FLOAT_NOISE = 1e-5
"""Share of the last step's size that float32 hardly tells from rounding."""


def farthest(log_size: np.ndarray, share: float, distance: np.ndarray | None = None) -> int:
    """The farthest distance at which a share of the size at the last step is left; -1 if nothing is anywhere.

    Args:
        log_size: ``(K,)`` natural logarithms, from the last step backwards; -inf for nothing.
        share: above 0; of the greatest size where the last step has none.
        distance: ``(K,)``, rising; ``None`` for 0, 1, 2, ...

    Example:
        >>> farthest(np.log([1.0, 0.6, 0.1]), 0.5)
        1
    """
    left = np.flatnonzero(np.isfinite(log_size) & (log_size >= _reference(log_size) + math.log(share) - 1e-12))
    if not len(left):
        return -1
    if distance is None:
        return int(left[-1])
    return int(distance[left[-1]])


def _reference(log_size: np.ndarray) -> float:
    """Size at the last step, or the greatest where that has none; inf if nothing is anywhere."""
    finite = log_size[np.isfinite(log_size)]
    if not len(finite):
        return math.inf
    if np.isfinite(log_size[0]):
        return float(log_size[0])
    return float(finite.max())


def last_steps(count: int) -> str:
    """The end of a run, in words.

    Example:
        >>> last_steps(1), last_steps(14)
        ('the last step', 'the last 14 steps')
    """
    if count == 1:
        return "the last step"
    return f"the last {number_of(count, 'step')}"


def seen_words(log_size: np.ndarray, what: str, left: str, distance: np.ndarray | None = None) -> str:
    """How many steps are seen, where half and a hundredth is left, and where there is a gap.

    Args:
        log_size: ``(K,)`` natural logarithms, from the last step backwards.
        what: of which shares are told, such as "the gradient at the last step".
        left: "is left", or what else a share does.
        distance: ``(K,)``, rising; ``None`` for 0, 1, 2, ...

    Example:
        >>> seen_words(np.log(0.5) * np.arange(20), "the gradient at the last step", "is left")
        'about 6 steps: of the gradient at the last step, 50 % is left 1 step back, 1 % 6 back'
    """
    places = np.arange(len(log_size))
    if distance is not None:
        places = distance
    last = int(places[-1])
    hardly = farthest(log_size, HARDLY, places)
    if not np.isfinite(log_size[0]):
        first = int(places[np.isfinite(log_size)][0])
        return f"{number_of(hardly, 'step')} back; nothing nearer than {number_of(first, 'step')}"
    before = farthest(log_size[:-1], HARDLY, places)
    if last > 1 and before < last / 2:
        hardly = before  # the first step alone, to which many Transformers always attend, is not a long reach
    everything = f"all {number_of(last + 1, 'step')}"
    at_end = _amount(_share(log_size, -1))
    half = farthest(log_size, HALF, places)
    if half == last and _share(log_size, -1) >= MANIFOLD:
        return f"{everything}: {number_of(last, 'step')} back it is {at_end} {what}{_gap(log_size, places, last)}"
    if half == last:
        return f"{everything}: of {what}, {at_end} {left} {number_of(last, 'step')} back{_gap(log_size, places, last)}"
    near = f"50 % {left} {number_of(half, 'step')} back"
    if half == 0:
        near = f"{_amount(_share(log_size, 1))} {left} {number_of(int(places[1]), 'step')} back"
    if _is_flat(log_size):
        return f"{everything}, but each of them faintly: of {what}, {near}, {at_end} {last} back"
    if hardly == last:
        return f"{everything}: of {what}, {near}, {at_end} {last} back{_gap(log_size, places, last)}"
    # What stays on without falling is said, lest a hundredth seem the end.
    rest = ""
    if _share(log_size, -1) > HARDLY / 10:
        rest = f", {at_end} {last} back"
    if hardly == 0:
        return f"hardly more than the present step: of {what}, {near}{rest}"
    return (
        f"about {number_of(hardly, 'step')}: of {what}, {near}, 1 % {hardly} back{rest}{_gap(log_size, places, hardly)}"
    )


def _share(log_size: np.ndarray, index: int) -> float:
    return math.exp(min(float(log_size[index] - log_size[0]), 700.0))


def _is_flat(log_size: np.ndarray) -> bool:
    """Whether all earlier steps have about the same small share, as under attention that is spread evenly."""
    earlier = log_size[1:] - log_size[0]
    low, middle = np.percentile(earlier, (5, 50), method="lower")
    is_even = low > middle - SPREAD and earlier[0] < middle + SPREAD
    return is_even and math.log(FLOAT_NOISE) < middle < math.log(FAINT)


def _gap(log_size: np.ndarray, places: np.ndarray, reach: int) -> str:
    """Which steps within the reach are not seen, in words; empty if they are less than half of it."""
    seen = np.flatnonzero((places <= reach) & (log_size >= log_size[0] + math.log(HARDLY)))
    before = int(np.diff(seen).argmax())
    hidden = places[seen[before] + 1 : seen[before + 1]]
    if not len(hidden) or hidden[-1] - hidden[0] < reach / 2:
        return ""
    return f", but less than 1 % from {hidden[0]} to {hidden[-1]} back"


def _amount(share: float) -> str:
    """A share in percent, with two digits where it is small; as a multiple where it is large."""
    if share >= 1000:
        return f"{float(f'{share:.2g}'):,.0f} times"
    if share >= MANIFOLD:
        return f"{share:.3g} times"
    if share >= 0.1:
        return f"{100 * share:.0f} %"
    return f"{100 * share:.2g} %"
