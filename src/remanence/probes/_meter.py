"""Counting the bytes of tensors that are alive at once, and operations that torch does not count."""

from __future__ import annotations

import dataclasses
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode


class _Meter(TorchDispatchMode):
    """Follows the storages that operations make until they are freed; what existed before does not count."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.peak = self.total = 0
        self.seen: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
        before = {_storage(x) for x in _pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        for made in _pytree.tree_leaves(result):
            if isinstance(made, torch.Tensor) and _storage(made) not in before:
                self._follow(made)
        return result

    def _follow(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        size = storage.nbytes()
        if key in self.seen:
            return
        self.seen.add(key)
        self.now += size
        self.total += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self.seen.discard(key)
        self.now -= size


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


@dataclasses.dataclass(frozen=True)
class Bytes:
    """What the tensors take that a function makes."""

    peak: int
    """Most bytes alive at once."""
    total: int
    """Bytes of all of them, whenever they lived."""


def count_bytes(run: Callable[[], object]) -> Bytes:
    """Bytes of the tensors that a function makes, its result among them; what existed before it does not count.

    Example:
        >>> count_bytes(lambda: (torch.zeros(10) + 1).sum())
        Bytes(peak=80, total=84)
    """
    with _Meter() as meter:
        result = run()
        found = Bytes(meter.peak, meter.total)
        del result
    return found


def peak_bytes(run: Callable[[], object]) -> int:
    """The most bytes alive at once among the tensors that a function makes, its result among them.

    Args:
        run: what to measure; what existed before it does not count.

    Example:
        >>> peak_bytes(lambda: torch.zeros(10, dtype=torch.float64) + 1)
        160
    """
    return count_bytes(run).peak


def _attention_operations(query: Sequence[int], key: Sequence[int], *others: object, **options: object) -> int:
    """Of the two products of an attention, by the shapes ``(..., T, d)`` of queries and keys."""
    return 4 * math.prod(query) * key[-2]


def _recurrent_operations(
    inputs: Sequence[int], weight_ih: Sequence[int], weight_hh: Sequence[int], *others: object, **options: object
) -> int:
    """Of one layer and direction, by the shapes ``(T, B, n)`` of its inputs and of its weights."""
    return 2 * inputs[0] * inputs[1] * (math.prod(weight_ih) + math.prod(weight_hh))


UNCOUNTED = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_operations,
    torch.ops.aten.mkldnn_rnn_layer: _recurrent_operations,
}
"""Operations with matrix products inside that torch's counter does not know."""
