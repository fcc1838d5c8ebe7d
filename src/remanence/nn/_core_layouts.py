"""What the attending and convolving cores share: layouts of sequences, and states that are plain values.

Inside these cores a sequence is ``(B, T, ...)`` and a state field ``(depth, B, ...)``; the functions here lead
there from what a caller may hand over, and back.
"""

from __future__ import annotations

from typing import Any, TypeVar

import torch
from torch import Tensor

from remanence._validate import message, shape
from remanence.nn._sequence import Layout, SequenceInput, enter, leave
from remanence.ops.states import add_row

AnyState = TypeVar("AnyState", bound=tuple[Tensor, ...])


def enter_rows(input: SequenceInput, core: Any, weight: Tensor) -> tuple[Tensor, Tensor | None, Layout]:
    """Checks a core's input and brings it to the inner layout.

    Args:
        input: what the caller gave.
        core: the layer, with `input_size` and `batch_first`.
        weight: a parameter, for dtype and device.

    Returns:
        ``(B, T, input_size)``; for a packed input ``(B, T)`` bool, True where there is no step; and the layout.
    """
    x, lengths, layout = enter(input, core.input_size, core.batch_first, weight)
    if lengths is None:
        return x.transpose(0, 1), None, layout
    padded = torch.arange(x.shape[0], device=x.device) >= lengths.unsqueeze(1)
    return x.transpose(0, 1), padded, layout


def leave_rows(output: Tensor, layout: Layout) -> SequenceInput:
    """The output as the caller wants it.

    Args:
        output: ``(B, T, size)``.
        layout: how the caller laid out the input.
    """
    return leave(output.transpose(0, 1), layout)


def enter_mask(name: str, mask: Tensor, values: Tensor, layout: Layout) -> Tensor:
    """Checks a mask in the layout of its sequence and brings it to the inner one.

    Args:
        name: The argument as the user writes it.
        mask: ``(T, B)``, ``(B, T)`` with `batch_first`, or ``(T,)``, bool.
        values: ``(B, T, size)``, the sequence in the inner layout.
        layout: how the caller laid it out.

    Returns:
        ``(B, T)`` bool.
    """
    shape(name, mask, layout.outer(values.transpose(0, 1)).shape[:-1])
    if mask.dtype != torch.bool:
        raise TypeError(message(name, "be a bool tensor", str(mask.dtype), "True leaves a position out"))
    return layout.inner(mask).transpose(0, 1)


def enter_state(state: Any, empty: AnyState, layout: Layout, *, growing: int | None = None) -> AnyState:
    """Checks a state against an empty one of the same layer and batch, and gives it a batch dimension.

    Args:
        state: what the caller handed over.
        empty: a state with the right class, shapes and dtypes, batched.
        layout: how the caller laid out the input.
        growing: dimension that may have any size because the memory grows; None if there is none.

    Returns:
        The state, every field ``(depth, B, ...)``.
    """
    if type(state) is not type(empty):
        hint = "Take it from this layer's own `initial_state` or an earlier call"
        raise TypeError(message("state", f"be a {type(empty).__name__}", type(state).__name__, hint))
    for name, field, like in zip(empty._fields, state, empty, strict=True):  # type: ignore[attr-defined]
        sizes: list[int | str] = ["slots" if dim == growing else size for dim, size in enumerate(like.shape)]
        shape(f"state.{name}", field, sizes if layout.batched else sizes[:1] + sizes[2:])
        if (field.dtype, field.device) != (like.dtype, like.device):
            expected, got = (f"{x.dtype} on {x.device}" for x in (like, field))
            raise ValueError(message(f"state.{name}", f"be {expected}", got, "Move it with state.to(...)"))
    return state if layout.batched else add_row(state)


def step_of(core: Any, input_t: Tensor, state: Any) -> tuple[Tensor, Any]:
    """One step of a stream through a core that knows whole sequences.

    Args:
        core: the layer.
        input_t: ``(B, size)``, or ``(size,)`` unbatched.
        state: the state so far; None at the start.
    """
    batched = isinstance(input_t, Tensor) and input_t.dim() != 1
    shape("input_t", input_t, ("B", core.input_size) if batched else (core.input_size,))
    time = 1 if batched and core.batch_first else 0
    output, state = core(input_t.unsqueeze(time), state)
    return output.squeeze(time), state
