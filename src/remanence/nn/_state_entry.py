"""A state at the border of a layer: what may be handed in, and whether it fits."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from remanence._validate import message
from remanence.ops import ScanSpec, State
from remanence.ops.state_shapes import check_state, empty_state

StateLike: TypeAlias = State | Tensor | tuple[Tensor, Tensor] | None
"""What a caller may hand in: a state, torch's ``hx``, or nothing."""


def enter_state(state: object, spec: ScanSpec, hidden: int, batch: tuple[int, ...], like: Tensor) -> State:
    """A :class:`State` or torch's ``hx``, checked against the shapes of a layer's empty state.

    Args:
        state: what was handed in.
        spec: what kind of layer this is.
        hidden: n.
        batch: leading dimensions of every field.
        like: a parameter of the layer.
    """
    if not isinstance(state, State):
        state = state_of_hx(state, empty_state(spec, hidden, batch, like))
    check_state(state, spec, hidden, batch, like)
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
