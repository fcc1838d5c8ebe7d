"""Which distances to try between those that were tried: where an effect falls below a share, and where one hides."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from ._steps import HALF, HARDLY

Effect = Callable[[Sequence[int]], float]
"""Size of the effect if the steps at some distances are changed together."""


def fill_gaps(found: dict[int, float], floor: float, effect: Effect) -> None:
    """Adds the distances to a table of effects at which something happens between those that it holds.

    Args:
        found: effects by distance; more are added.
        floor: an effect up to this is none.
        effect: measures one.

    Example:
        >>> found = {0: 0.0, 4: 0.0, 16: 0.0}
        >>> fill_gaps(found, 0.0, lambda steps: float(7 in steps))
        >>> found[7]
        1.0
    """
    tried = sorted(found)
    for near, far in itertools.pairwise(tried):
        if not found[far] > floor:
            _find_hidden(found, range(near + 1, far), floor, effect)
    reference = found[0] if found[0] > floor else max(found.values())
    for share in (HALF, HARDLY):
        _find_edge(found, max(share * reference, floor), effect)


def _find_hidden(found: dict[int, float], steps: range, floor: float, effect: Effect) -> None:
    """Adds the farthest of some steps that has an effect, if all of them together have one."""
    if not steps or not effect(steps) > floor:
        return
    while len(steps) > 1:
        middle = len(steps) // 2
        farther = steps[middle:]
        steps = farther if effect(farther) > floor else steps[:middle]
    found[steps[0]] = effect(steps)


def _find_edge(found: dict[int, float], limit: float, effect: Effect) -> None:
    """Halves the gap behind the farthest distance with so much effect, until there is none."""
    enough = [distance for distance, size in found.items() if size >= limit]
    if not enough:
        return
    near = max(enough)
    far = min((distance for distance in found if distance > near), default=near)
    while far - near > 1:
        middle = (near + far) // 2
        found[middle] = effect([middle])
        if found[middle] >= limit:
            near = middle
        else:
            far = middle
