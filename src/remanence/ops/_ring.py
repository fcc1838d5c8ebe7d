"""A ring of slots, as a state stores a buffer, and its entries from the oldest to the newest, as a read takes them."""

from __future__ import annotations

import torch
from torch import Tensor


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
    place = (torch.arange(size, device=entries.device) - step[:, None]) % size
    index = end[:, None] - size + place
    held = (size - place <= step[:, None]) & (index >= 0)
    taken = _take_slots(entries, index.clamp(min=0))
    return torch.where(held.reshape(held.shape + (1,) * (taken.dim() - 2)), taken, 0.0)


def _take_slots(tensor: Tensor, index: Tensor) -> Tensor:
    index = index.reshape(index.shape + (1,) * (tensor.dim() - 2)).expand(-1, -1, *tensor.shape[2:])
    return tensor.gather(1, index)
