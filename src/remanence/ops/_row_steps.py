"""Which step of its row each step of a batch is, and the order in which a reverse scan sees it."""

from __future__ import annotations

import torch
from torch import Tensor


def row_positions(step: Tensor, length: int, reset: Tensor | None = None) -> Tensor:
    """The row's own step count before each step of a run, counted from the row's last start: ``(T, B)`` int64.

    Args:
        step: ``(B,)`` int64, steps before the run.
        length: ``T``.
        reset: ``(T, B)`` bool or ``None``.

    Example:
        >>> reset = torch.tensor([[False], [False], [True], [False]])
        >>> row_positions(torch.tensor([7]), 4, reset)[:, 0].tolist()
        [7, 8, 0, 1]
    """
    time = torch.arange(length, device=step.device)[:, None]
    carried = step + time
    if reset is None:
        return carried
    # The time of the last reset so far; -1 before the first one.
    last_start = torch.where(reset, time, -1).cummax(dim=0).values
    return torch.where(last_start < 0, carried, time - last_start)


def last_of_rows(tensor: Tensor, lengths: Tensor | None) -> Tensor:
    """What ``tensor`` ``(T, B)`` holds at each row's last step, ``(B,)``; without ``lengths`` that is step T."""
    if lengths is None:
        return tensor[-1]
    return tensor.gather(0, lengths[None] - 1)[0]


def reverse_rows(tensor: Tensor, lengths: Tensor | None) -> Tensor:
    """Each row of ``(T, B, ...)`` backwards in time, padding left at the end; ``lengths`` ``(B,)`` int64 or ``None``.

    Example:
        >>> reverse_rows(torch.tensor([[1, 1], [2, 2], [3, 0]]), torch.tensor([3, 2])).tolist()
        [[3, 2], [2, 1], [1, 0]]
    """
    if lengths is None:
        return tensor.flip(0)
    time = torch.arange(tensor.shape[0], device=tensor.device)[:, None]
    index = torch.where(time < lengths, lengths - 1 - time, time)
    return tensor.gather(0, index.reshape(index.shape + (1,) * (tensor.dim() - 2)).expand_as(tensor))


def reverse_reset(reset: Tensor, lengths: Tensor | None) -> Tensor:
    """The starts that a reverse scan sees: a start before step ``t`` empties it before step ``t - 1``.

    Args:
        reset: ``(T, B)`` bool.
        lengths: ``(B,)`` int64 or ``None``.

    Example:
        >>> reverse_reset(torch.tensor([[False], [False], [True]]), None)[:, 0].tolist()
        [False, True, False]
    """
    ends = torch.cat([reset[1:], torch.zeros_like(reset[:1])])
    if lengths is not None:
        ends = ends & (torch.arange(reset.shape[0], device=reset.device)[:, None] + 1 < lengths)
    return reverse_rows(ends, lengths)
