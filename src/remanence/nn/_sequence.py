"""The shapes of sequences at the border of a layer: every accepted layout in, one inner layout, the same layout out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from remanence._validate import message
from remanence.ops.packed import pack_like, pad
from remanence.ops.states import add_row, drop_row

SequenceInput = Tensor | PackedSequence
AnyState = TypeVar("AnyState")


@dataclass(frozen=True)
class CallLayout:
    """How the caller laid out a sequence; the inner layout is always ``(T, B, ...)``."""

    batched: bool
    batch_first: bool
    packed: PackedSequence | None = None

    @property
    def time(self) -> int:
        """Dimension of the steps in the caller's tensors."""
        return int(self.batched and self.batch_first and self.packed is None)

    def inner(self, tensor: Tensor) -> Tensor:
        """The caller's ``tensor`` as ``(T, B, ...)``."""
        if not self.batched:
            return tensor.unsqueeze(1)
        if self.time:
            return tensor.transpose(0, 1)
        return tensor

    def outer(self, tensor: Tensor) -> Tensor:
        """``(T, B, ...)`` as the caller wants it."""
        if not self.batched:
            return tensor.squeeze(1)
        if self.time:
            return tensor.transpose(0, 1)
        return tensor

    def inner_state(self, state: AnyState) -> AnyState:
        """The caller's state, every field ``(depth, B, ...)``."""
        if self.batched:
            return state
        return add_row(state)

    def outer_state(self, state: AnyState) -> AnyState:
        """A state of fields ``(depth, B, ...)`` as the caller wants it."""
        if self.batched:
            return state
        return drop_row(state)


def enter(
    input: SequenceInput, input_size: int, batch_first: bool, like: Tensor
) -> tuple[Tensor, Tensor | None, CallLayout]:
    """Check a layer's input against its sizes and a parameter, and bring it to the inner layout.

    Returns:
        ``x`` ``(T, B, input_size)``, the rows' lengths ``(B,)`` for a packed input, and the layout.
    """
    if isinstance(input, PackedSequence):
        padded, lengths = pad(input)
        check(padded, input_size, like)
        return padded, lengths, CallLayout(True, batch_first, input)
    if not isinstance(input, Tensor):
        raise TypeError(message("input", "be a tensor or a PackedSequence", type(input).__name__))
    if input.dim() not in (2, 3):
        shapes = "(B, T, input_size)" if batch_first else "(T, B, input_size)"
        raise ValueError(
            message("input", f"have shape {shapes}, or (T, input_size) unbatched", str(tuple(input.shape)))
        )
    layout = CallLayout(input.dim() == 3, batch_first)
    x = layout.inner(input)
    check(x, input_size, like)
    return x, None, layout


def check(x: Tensor, input_size: int, like: Tensor) -> None:
    """Whether a layer can take ``x`` ``(T, B, input_size)``; says what is wrong if not."""
    if x.shape[-1] != input_size:
        expected = f"have {input_size} features (input_size) in its last dimension"
        raise ValueError(message("input", expected, f"{x.shape[-1]}"))
    if not x.shape[0] or not x.shape[1]:
        raise ValueError(
            message("input", "hold at least one step and one row", f"{x.shape[0]} steps, {x.shape[1]} rows")
        )
    if x.dtype != like.dtype and not torch.is_autocast_enabled(x.device.type):
        hint = f"Cast one of them: input.to({like.dtype}) or layer.to({x.dtype})"
        raise ValueError(message("input", f"have the layer's dtype {like.dtype}", str(x.dtype), hint))
    if x.device != like.device:
        hint = f"Move one of them: input.to('{like.device}') or layer.to('{x.device}')"
        raise ValueError(message("input", f"be on the layer's device {like.device}", str(x.device), hint))


def leave(output: Tensor, layout: CallLayout) -> SequenceInput:
    """The output ``(T, B, ...)`` as the caller wants it: packed if the input was."""
    if layout.packed is None:
        return layout.outer(output)
    return pack_like(output, layout.packed)


def enter_reset(
    reset: Tensor | None, layout: CallLayout, length: int, batch: int, device: torch.device
) -> Tensor | None:
    """Check ``reset`` and bring it to ``(T, B)``."""
    if reset is None:
        return None
    if not isinstance(reset, Tensor):
        raise TypeError(message("reset", "be a bool tensor", type(reset).__name__))
    shape: tuple[int, ...] = (length, batch)
    if not layout.batched:
        shape = (length,)
    elif layout.time:
        shape = (batch, length)
    if tuple(reset.shape) != shape:
        raise ValueError(message("reset", f"have the input's layout {shape}", str(tuple(reset.shape))))
    if reset.dtype != torch.bool:
        raise ValueError(message("reset", "have dtype torch.bool", str(reset.dtype), "Pass reset.bool()"))
    if reset.device != device:
        raise ValueError(message("reset", f"be on the input's device {device}", str(reset.device)))
    return layout.inner(reset)
