"""The slots of a memory, in plain torch: who takes which one, writing into it, and slots as a ring."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._state import BEFORE_START, EMPTY


def choose_slot(score: Tensor, scores: Tensor, steps: Tensor, due: Tensor) -> Tensor:
    """The slot that a candidate takes: the first free one, else that of the least score if it is strictly beaten.

    Of several equal least scores the youngest goes, so that among equals the older state stays; -1 if nothing enters.
    Nothing beats a NaN, but a free slot is free beside one.

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
    # Who goes: a free slot before all others, then the youngest of the least; whoever scores more comes last.
    priority = steps.masked_fill(free, torch.iinfo(torch.int64).max).masked_fill(scores > least, BEFORE_START - 1)
    least = least[:, 0]
    enters = due & ((score.detach() > least) | free.any(dim=1))
    return torch.where(enters, priority.argmax(dim=1), EMPTY)  # the first of several equal ones


def mark_slot(slot: Tensor, slots: int) -> Tensor:
    """Where a row writes: ``(B, slots)`` bool, nowhere in rows whose slot is -1."""
    return torch.arange(slots, device=slot.device) == slot[:, None]


def write_slot(held: Tensor, place: Tensor, new: Tensor) -> Tensor:
    """A copy of ``held`` ``(B, K, ...)`` with ``new`` ``(B, ...)`` in the places of :func:`mark_slot`."""
    if held.dim() > 2:
        place = place[..., None]
    return torch.where(place, new[:, None], held)


def empty_slots(place: Tensor, held: Tensor) -> Tensor:
    """``held`` ``(B, K, ...)`` with 0 in some places ``(B, K)``, by selection: a NaN does not survive."""
    return torch.where(place.reshape(place.shape + (1,) * (held.dim() - 2)), 0.0, held)


def displaced_step(steps: Tensor, slot: Tensor) -> Tensor:
    """The step that stands in ``slot``, -1 where nothing enters."""
    return torch.where(slot == EMPTY, EMPTY, steps.gather(1, slot.clamp(min=0)[:, None])[:, 0])


def unroll(ring: Tensor, step: Tensor) -> Tensor:
    """Ring ``(B, R, ...)``, step ``i`` in slot ``i mod R``, to oldest first."""
    if not ring.shape[1]:
        return ring
    index = (step[:, None] + torch.arange(ring.shape[1], device=ring.device)) % ring.shape[1]
    return _take_slots(ring, index)


def roll(entries: Tensor, step: Tensor, end: Tensor, size: int) -> Tensor:
    """The ring of ``size`` slots after ``step`` steps; the row's newest entry is ``entries[end - 1]``."""
    if not size:
        return entries[:, :0]
    # `place` is the age rank of a slot: 0 for the one that is overwritten next, `size - 1` for the newest.
    place = (torch.arange(size, device=entries.device) - step[:, None]) % size
    index = end[:, None] - size + place
    held = (size - place <= step[:, None]) & (index >= 0)
    taken = _take_slots(entries, index.clamp(min=0))
    return torch.where(held.reshape(held.shape + (1,) * (taken.dim() - 2)), taken, 0.0)


def _take_slots(tensor: Tensor, index: Tensor) -> Tensor:
    """What stands in some slots ``(B, R)`` of a tensor ``(B, slots, ...)``."""
    index = index.reshape(index.shape + (1,) * (tensor.dim() - 2)).expand(-1, -1, *tensor.shape[2:])
    return tensor.gather(1, index)
