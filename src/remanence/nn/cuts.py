"""Gradient cuts: where the gradient through time stops, on any layer.

A cut is a pair of masks over (step, row), made before the scan: one for the path through ``s`` (cell input, query and
leak), one for the path through ``c``. Reads of the memory stay open unless ``reads="cut"``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from remanence._validate import one_of, positive_int, probability

CutMasks: TypeAlias = tuple[Tensor | None, Tensor | None]


@dataclass(frozen=True)
class TruncatedBPTT:
    """Cuts the gradient through ``s`` and ``c`` before the row's steps k, 2k, ...

    Steps are counted by ``state.step``, so cutting a sequence into chunks changes nothing.

    Args:
        k: distance between cuts.
        offset: moves all cuts; -1 gives the rule of Sparse Attentive Backtracking, ``(t + 1) % k == 0``.
        reads: ``"open"`` leaves the memory readable across the cut, ``"cut"`` also cuts the gradient into what the
            memory holds at that moment.

    Example:
        >>> h, c = TruncatedBPTT(2).masks(torch.arange(5)[:, None], training=True)
        >>> h[:, 0].tolist()
        [False, False, True, False, True]
    """

    k: int
    offset: int = 0
    reads: Literal["open", "cut"] = "open"

    def __post_init__(self) -> None:
        positive_int("k", self.k)
        one_of("reads", self.reads, ("open", "cut"))

    def masks(self, positions: Tensor, training: bool) -> CutMasks:
        """Masks for ``s`` and ``c``, ``(T, B)`` bool, given the rows' steps ``(T, B)``."""
        shifted = positions - self.offset
        mask = (shifted % self.k == 0) & (shifted >= self.k)
        return mask, mask


@dataclass(frozen=True)
class HDetach:
    """Cuts the gradient through ``s``, never through ``c``, before random steps, in training mode only (h-detach).

    One draw per step, layer and call for the whole batch, from torch's default generator, as dropout does.

    Args:
        p: probability of a cut.

    Example:
        >>> h, c = HDetach(1.0).masks(torch.arange(3)[:, None], training=True)
        >>> h[:, 0].tolist(), c
        ([True, True, True], None)
    """

    p: float = 0.25

    def __post_init__(self) -> None:
        probability("p", self.p)

    def masks(self, positions: Tensor, training: bool) -> CutMasks:
        """Masks for ``s`` and ``c``, ``(T, B)`` bool and ``None``."""
        if not training or self.p == 0:
            return None, None
        draws = torch.rand(positions.shape[0], 1, device=positions.device) < self.p
        return draws.expand(positions.shape), None


Cuts: TypeAlias = TruncatedBPTT | HDetach | None
