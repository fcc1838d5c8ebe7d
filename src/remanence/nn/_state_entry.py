"""A state at the border of a layer: what may be handed in, and whether it fits."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from remanence._validate import message
from remanence.ops import ScanSpec, State
from remanence.ops.reference import empty_state, state_shapes

StateLike: TypeAlias = State | Tensor | tuple[Tensor, Tensor] | None
"""What a caller may hand in: a state, torch's ``hx``, or nothing."""

COUNTS = ("relevant_step", "step")
"""Fields of whole numbers, whatever the layer's dtype."""


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
    growing = spec.rule.growing
    expected = state_shapes(spec, hidden, batch).items()
    for (name, shape), have in zip(expected, state, strict=True):
        dtype = torch.int64 if name in COUNTS else like.dtype
        check_field(name, have, shape, dtype, like.device, name in growing)
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


def check_field(
    name: str, have: Tensor, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device, grows: bool
) -> None:
    """Compare one field of a given state with what this layer carries."""
    if not isinstance(have, Tensor):
        raise TypeError(message(f"state.{name}", "be a tensor", type(have).__name__))
    if have.shape != shape and not (grows and _differs_in_slots(name, have.shape, shape)):
        hint = "Does the state come from another layer or another batch size?"
        raise ValueError(message(f"state.{name}", f"have shape {shape}", str(tuple(have.shape)), hint))
    if have.dtype != dtype and not torch.is_autocast_enabled(have.device.type):
        raise ValueError(message(f"state.{name}", f"have dtype {dtype}", str(have.dtype), "Use state.to(...)"))
    if have.device != device:
        raise ValueError(message(f"state.{name}", f"be on {device}", str(have.device), "Use state.to(...)"))


def _differs_in_slots(name: str, have: tuple[int, ...], want: tuple[int, ...]) -> bool:
    """Whether two shapes agree but for how many slots there are."""
    if len(have) != len(want):
        return False
    slots = len(want) - 1
    if name in ("recent", "relevant"):  # states, (..., slots, n)
        slots -= 1
    return all(
        size == expected for place, (size, expected) in enumerate(zip(have, want, strict=True)) if place != slots
    )
