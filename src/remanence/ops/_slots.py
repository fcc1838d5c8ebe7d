"""The slots of a memory, in plain torch: who takes which one, and writing into it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._state import BEFORE_START, EMPTY


def choose_slot(score: Tensor, scores: Tensor, steps: Tensor, due: Tensor) -> Tensor:
    """The slot that a candidate takes: the first free one, else that of the least score if it is strictly beaten.

    Of several equal least scores the youngest goes, so that among equals the older state stays; -1 if nothing enters.

    Args:
        score: ``(B,)`` of the candidate.
        scores: ``(B, K)`` of what is held.
        steps: ``(B, K)`` int64, -1 where a slot is free.
        due: ``(B,)`` whether there is a candidate.

    Example:
        >>> held = torch.tensor([[0.5, 0.2, 0.2]])
        >>> choose_slot(torch.tensor([0.3]), held, torch.tensor([[0, 1, 2]]), torch.tensor([True]))
        tensor([2])
    """
    free = steps == EMPTY
    scores = scores.detach().masked_fill(free, -math.inf)
    least = scores.amin(dim=1, keepdim=True)
    priority = steps.masked_fill(free, torch.iinfo(torch.int64).max).masked_fill(scores > least, BEFORE_START - 1)
    least = least[:, 0]
    enters = due & ((score.detach() > least) | (least == -math.inf))
    return torch.where(enters, priority.argmax(dim=1), EMPTY)  # the first of several equal ones


def mark_slot(slot: Tensor, slots: int) -> Tensor:
    """Where a row writes: ``(B, slots)`` bool, nowhere in rows whose slot is -1."""
    return torch.arange(slots, device=slot.device) == slot[:, None]


def write_slot(held: Tensor, place: Tensor, new: Tensor) -> Tensor:
    """A copy of ``held`` ``(B, K, ...)`` with ``new`` ``(B, ...)`` in the places of :func:`mark_slot`."""
    if held.dim() > 2:
        place = place[..., None]
    return torch.where(place, new[:, None], held)


def displaced_step(steps: Tensor, slot: Tensor) -> Tensor:
    """The step that stands in ``slot``, -1 where nothing enters."""
    return torch.where(slot == EMPTY, EMPTY, steps.gather(1, slot.clamp(min=0)[:, None])[:, 0])
