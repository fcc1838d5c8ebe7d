"""Whether a bounded memory holds the states that the task needs."""

from __future__ import annotations

from torch import Tensor

from remanence._validate import message, shape
from remanence.ops import Trace


def share_held(trace: Trace, needed: Tensor, at: int) -> float:
    """The share of needed states that a memory holds at a step, in the buffer or in the relevant set.

    Args:
        trace: of one layer, ``(T, B, slots)``, from ``layer.trace(input)`` on rows that start there.
        needed: ``(T, B)`` bool, the steps whose states are needed, such as those that show a symbol to be recalled.
            Steps after ``at`` do not count.
        at: the step, from 0; a task's last step before it asks.

    Returns:
        From 0 to 1, over all rows.

    Raises:
        ValueError: no step up to ``at`` is needed, or ``needed`` does not fit the trace.

    Example:
        >>> import torch, remanence
        >>> layer = remanence.nn.RelRNN(2, 4, recent=3, relevant=2)
        >>> (trace,) = layer.trace(torch.randn(10, 1, 2))
        >>> needed = torch.zeros(10, 1, dtype=torch.bool)
        >>> needed[[2, 7, 8, 9]] = True
        >>> share_held(trace, needed, at=9)
        0.75
    """
    length, batch = trace.steps.shape[:2]
    shape("needed", needed, (length, batch))
    if not 0 <= at < length:
        raise ValueError(message("at", f"be a step from 0 to {length - 1}", at))
    wanted = int(needed[: at + 1].sum())
    if not wanted:
        raise ValueError(message("needed", f"mark at least one step up to `at` = {at}", "none"))
    steps = trace.steps[at]
    found = needed.T.gather(1, steps.clamp(min=0)) & (steps >= 0)
    return int(found.sum()) / wanted
