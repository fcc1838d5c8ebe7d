"""What a cache knows of the keys that it holds, and how slots are written, joined and picked."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Slots(NamedTuple):
    """What is known of the held keys; every field is ``(B, key heads, slots)``, keys and values with a size behind."""

    keys: Tensor
    values: Tensor
    index: Tensor  # tokens before it in the stream, padding counted
    score: Tensor
    norm: Tensor

    def first(self, count: int) -> Slots:
        """Views of the first slots."""
        return Slots(*(field[:, :, :count] for field in self))

    def write(self, at: int, other: Slots) -> None:
        """Overwrites slots from `at` on."""
        for mine, new in zip(self, other, strict=True):
            mine[:, :, at : at + new.shape[2]] = new

    def join(self, other: Slots) -> Slots:
        """Both, one after the other, in new memory."""
        return Slots(*(torch.cat(pair, dim=2) for pair in zip(self, other, strict=True)))

    def pick(self, slots: Tensor) -> Slots:
        """The slots of those numbers, ``(B, key heads, n)``, in new memory."""
        heads = torch.arange(slots.shape[0] * slots.shape[1], device=slots.device).view(*slots.shape[:2], 1)
        places = (heads * self.index.shape[2] + slots).flatten()
        # Whole keys are copied at once; `gather` would look at an index for each of their numbers.
        picked = (field.flatten(0, 2).index_select(0, places) for field in self)
        return Slots(*(field.view(*slots.shape, *field.shape[1:]) for field in picked))

    def move(self, source: int, target: Tensor) -> None:
        """Copies one slot over another, which each head names by itself, ``(B, key heads, 1)``."""
        for field in self:
            field.scatter_(2, _like(target, field), field[:, :, source : source + 1].clone())


def _like(slots: Tensor, field: Tensor) -> Tensor:
    return slots if field.dim() == 3 else slots[..., None].expand(-1, -1, -1, field.shape[-1])
