"""A state at the border of a layer: what may be handed in, and whether it fits."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from remanence._validate import message
from remanence.ops import ScanSpec, State
from remanence.ops.states import add_row

StateLike: TypeAlias = State | Tensor | tuple[Tensor, Tensor] | None
"""What a caller may hand in: a state, torch's ``hx``, or nothing."""


def enter_state(state: Any, expected: State, spec: ScanSpec, *, batched: bool) -> State:
    """A given state, checked, its fields ``(layers, B, ...)``.

    Args:
        state: a :class:`State`, or torch's ``hx``.
        expected: the empty state of the layer for this batch, or unbatched.
        spec: what kind of layer it is.
        batched: whether there is a batch dimension; if not, it is added.
    """
    given = state if isinstance(state, State) else state_of_hx(state, expected)
    growing = () if spec.memory is None else spec.memory.growing
    for name, have, want in zip(State._fields, given, expected, strict=True):
        check_field(name, have, want, name in growing)
    return given if batched else add_row(given)


def state_of_hx(hx: Any, empty: State) -> State:
    """An ``hx`` of torch as a state with an empty memory at step 0."""
    lstm = empty.c.shape[-1] > 0
    parts: tuple[Any, ...] = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
    expected = "be a State or torch's (h_0, c_0)" if lstm else "be a State or torch's h_0"
    if len(parts) != 1 + lstm or not all(isinstance(part, Tensor) for part in parts):
        raise TypeError(message("state", expected, f"{type(hx).__name__} of {len(parts)}"))
    given = {"s": parts[0]}
    if lstm:
        given["c"] = parts[1]
    if empty.h.shape[-1]:
        given["h"] = parts[0]
    if empty.chain.shape[-1]:
        given["chain"] = torch.cat(list(given.values()), dim=-1)
    return empty._replace(**given)


def check_field(name: str, have: Tensor, want: Tensor, grows: bool) -> None:
    """Compare one field of a given state with what this layer carries."""
    if not isinstance(have, Tensor):
        raise TypeError(message(f"state.{name}", "be a tensor", type(have).__name__))
    slots = want.dim() - (2 if name == "recent" or name == "relevant" else 1)
    have_shape = list(have.shape)
    want_shape = list(want.shape)
    if grows and len(have_shape) == len(want_shape):
        have_shape[slots] = want_shape[slots] = -1
    if have_shape != want_shape:
        hint = "Does the state come from another layer or another batch size?"
        raise ValueError(message(f"state.{name}", f"have shape {tuple(want.shape)}", str(tuple(have.shape)), hint))
    if have.dtype != want.dtype and not torch.is_autocast_enabled(have.device.type):
        raise ValueError(message(f"state.{name}", f"have dtype {want.dtype}", str(have.dtype), "Use state.to(...)"))
    if have.device != want.device:
        raise ValueError(message(f"state.{name}", f"be on {want.device}", str(have.device), "Use state.to(...)"))
