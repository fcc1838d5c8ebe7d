"""A state at the border of a layer: what may be handed in, and whether it fits."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from remanence._validate import message
from remanence.ops import ScanSpec, State

StateLike: TypeAlias = State | Tensor | tuple[Tensor, Tensor] | None
"""What a caller may hand in: a state, torch's ``hx``, or nothing."""


def enter_state(state: object, expected: State, spec: ScanSpec) -> State:
    """A :class:`State` or torch's ``hx``, checked against the layer's empty state for this batch, or unbatched."""
    if not isinstance(state, State):
        state = state_of_hx(state, expected)
    for name, have, want in zip(State._fields, state, expected, strict=True):
        check_field(name, have, want, name in spec.rule.growing)
    return state


def state_of_hx(hx: object, empty: State) -> State:
    """An ``hx`` of torch as a state with an empty memory at step 0."""
    names = ["s"]
    torchs = "h_0"
    if empty.c.shape[-1]:
        names = ["s", "c"]
        torchs = "(h_0, c_0)"
    parts: list[Any] = [hx]
    if isinstance(hx, tuple | list):
        parts = list(hx)
    if len(parts) != len(names) or not all(isinstance(part, Tensor) for part in parts):
        raise TypeError(message("state", f"be a State or torch's {torchs}", f"{type(hx).__name__} of {len(parts)}"))
    given = dict(zip(names, parts, strict=True))
    if empty.h.shape[-1]:
        given["h"] = parts[0]
    if empty.chain.shape[-1]:
        given["chain"] = torch.cat(list(given.values()), dim=-1)
    return empty._replace(**given)


def check_field(name: str, have: Tensor, want: Tensor, grows: bool) -> None:
    """Compare one field of a given state with what this layer carries."""
    if not isinstance(have, Tensor):
        raise TypeError(message(f"state.{name}", "be a tensor", type(have).__name__))
    have_shape = list(have.shape)
    want_shape = list(want.shape)
    if grows and len(have_shape) == len(want_shape):
        slots = -1
        if name in ("recent", "relevant"):  # states, (..., slots, n)
            slots = -2
        have_shape[slots] = want_shape[slots]
    if have_shape != want_shape:
        hint = "Does the state come from another layer or another batch size?"
        raise ValueError(message(f"state.{name}", f"have shape {tuple(want.shape)}", str(tuple(have.shape)), hint))
    if have.dtype != want.dtype and not torch.is_autocast_enabled(have.device.type):
        raise ValueError(message(f"state.{name}", f"have dtype {want.dtype}", str(have.dtype), "Use state.to(...)"))
    if have.device != want.device:
        raise ValueError(message(f"state.{name}", f"be on {want.device}", str(have.device), "Use state.to(...)"))
