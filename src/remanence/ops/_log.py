"""What a scan reports of its memory: who entered when, and what was attended to."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from .states import register_state


class Log(NamedTuple):
    """Which state entered the memory when: the discrete choices of a scan, apart from its arithmetic.

    ``scan(..., forced_log=log)`` takes these choices instead of making its own, so that gradients can be compared given
    the same choices.
    """

    slot: Tensor
    """``(T, B)`` int64: slot of the relevant set that was written at this step, -1 for none."""
    displaced: Tensor
    """``(T, B)`` int64: the step that stood there before, -1 for none."""


class Trace(NamedTuple):
    """What one layer attended to, step by step.

    ``slots`` are the short-term buffer, oldest first, then the relevant set.
    """

    weights: Tensor
    """``(T, B, slots)``: weights of the read; 0 where nothing is stored."""
    steps: Tensor
    """``(T, B, slots)`` int64: the row's step that each slot holds, -1 for none."""
    scores: Tensor
    """``(T, B, slots)``: scores before the softmax or the threshold; -inf where nothing is stored."""
    entered: Tensor
    """``(T, B)`` int64: the step that entered the relevant set now, -1 for none."""
    displaced: Tensor
    """``(T, B)`` int64: the step that it displaced, -1 for none."""


register_state(Log, "remanence.ops.Log")
