"""A state at the border of a layer: what may be handed in, and whether it fits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from remanence._validate import message
from remanence.ops import State


def state_of_hx(hx: Any, empty: State) -> State:
    """An ``hx`` of torch as a state with an empty memory at step 0."""
    lstm = empty.c.shape[-1] > 0
    parts: tuple[Any, ...] = tuple(hx) if isinstance(hx, tuple | list) else (hx,)
    expected = "be a State or torch's (h_0, c_0)" if lstm else "be a State or torch's h_0"
    if len(parts) != 1 + lstm or not all(isinstance(part, Tensor) for part in parts):
        raise TypeError(message("state", expected, f"{type(hx).__name__} of {len(parts)}"))
    h, chain = parts[0], [parts[0], *parts[1:]]
    given = {"s": h} | ({"c": parts[1]} if lstm else {}) | ({"h": h} if empty.h.shape[-1] else {})
    if empty.chain.shape[-1]:
        given["chain"] = torch.cat(chain + ([h] if empty.h.shape[-1] else []), dim=-1)
    return empty._replace(**given)


def check_field(name: str, have: Tensor, want: Tensor, grows: bool) -> None:
    """Compare one field of a given state with what this layer carries."""
    if not isinstance(have, Tensor):
        raise TypeError(message(f"state.{name}", "be a tensor", type(have).__name__))
    slots = want.dim() - (2 if name == "recent" or name == "relevant" else 1)
    have_shape, want_shape = list(have.shape), list(want.shape)
    if grows and len(have_shape) == len(want_shape):
        have_shape[slots] = want_shape[slots] = -1
    if have_shape != want_shape:
        hint = "Does the state come from another layer or another batch size?"
        raise ValueError(message(f"state.{name}", f"have shape {tuple(want.shape)}", str(tuple(have.shape)), hint))
    if have.dtype != want.dtype and not torch.is_autocast_enabled(have.device.type):
        raise ValueError(message(f"state.{name}", f"have dtype {want.dtype}", str(have.dtype), "Use state.to(...)"))
    if have.device != want.device:
        raise ValueError(message(f"state.{name}", f"be on {want.device}", str(have.device), "Use state.to(...)"))


def stack_states(finals: list[State]) -> State:
    """The states of all layers as one; that of a single layer without a copy."""
    if len(finals) == 1:
        return State(*(field.unsqueeze(0) for field in finals[0]))
    return State(*(torch.stack(fields) for fields in zip(*finals, strict=True)))
