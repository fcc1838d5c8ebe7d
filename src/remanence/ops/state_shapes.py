"""The empty state of a layer: its shapes, whether a given state has them, and rows that start from it again."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from remanence._validate import MOST_STEPS, message

from ._spec import ScanSpec
from ._state import BEFORE_START, EMPTY, EMPTY_SLOT, State
from ._weights import Weights
from .states import where_rows

COUNTS = ("relevant_step", "step")
"""Fields of whole numbers, whatever the layer's dtype."""


def initial_state(spec: ScanSpec, weights: Weights, batch: int) -> State:
    """The empty state of one layer, fields ``(B, ...)``: all zero, nothing in memory, step 0."""
    return empty_state(spec, spec.cell.hidden_size(weights), (batch,), weights.hh)


def empty_state(spec: ScanSpec, hidden: int, batch: tuple[int, ...], like: Tensor) -> State:
    """The empty state with leading dimensions ``batch``, with dtype and device of ``like``."""
    *numbers, relevant_step, step = state_shapes(spec, hidden, batch).values()
    steps = torch.full(relevant_step, EMPTY, dtype=torch.int64, device=like.device)
    return State(
        *[like.new_zeros(shape) for shape in numbers],
        relevant_step=spec.rule.empty_steps(steps),
        step=torch.zeros(step, dtype=torch.int64, device=like.device),
    )


def state_shapes(spec: ScanSpec, hidden: int, batch: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Shapes of the fields of the empty state with leading dimensions ``batch``, in the order of :class:`State`.

    Example:
        >>> list(state_shapes(ScanSpec("lstm"), 4, (1, 2)).values())[:2]
        [(1, 2, 4), (1, 2, 4)]
    """
    slots = spec.rule.slots_at_start()
    macro = spec.macro_size(hidden)
    cell = hidden * spec.cell.has_c
    leak = hidden * spec.keeps_leak
    return {
        "s": (*batch, macro),
        "c": (*batch, cell),
        "h": (*batch, leak),
        "chain": (*batch, (macro + cell + leak) * spec.rule.doubles_chain),
        "recent": (*batch, slots.recent, hidden),
        "recent_score": (*batch, slots.recent_score),
        "relevant": (*batch, slots.relevant, hidden),
        "relevant_score": (*batch, slots.relevant_score),
        "relevant_step": (*batch, slots.relevant),
        "step": batch,
    }


def check_state(state: State, spec: ScanSpec, hidden: int, batch: tuple[int, ...], like: Tensor) -> None:
    """Compares a given state with the empty one of leading dimensions ``batch``, dtype and device of ``like``.

    Raises:
        TypeError: a field is no tensor.
        ValueError: a field has another shape, dtype or device.
    """
    for (name, shape), have in zip(state_shapes(spec, hidden, batch).items(), state, strict=True):
        if not isinstance(have, Tensor):
            raise TypeError(message(f"state.{name}", "be a tensor", type(have).__name__))
        if have.shape != shape and not (name in spec.rule.growing and _differs_in_slots(name, have.shape, shape)):
            hint = "Does the state come from another layer or another batch size?"
            raise ValueError(message(f"state.{name}", f"have shape {shape}", str(tuple(have.shape)), hint))
        dtype = like.dtype
        if name in COUNTS:
            dtype = torch.int64
        if have.dtype != dtype and not casts(have.device):
            raise ValueError(message(f"state.{name}", f"have dtype {dtype}", str(have.dtype), "Use state.to(...)"))
        if have.device != like.device:
            raise ValueError(message(f"state.{name}", f"be on {like.device}", str(have.device), "Use state.to(...)"))
        if have.layout != like.layout:
            raise ValueError(message(f"state.{name}", f"be {like.layout}", str(have.layout), "Use .to_dense()"))
    if state.relevant.shape[:-1] != state.relevant_step.shape:
        got = str(tuple(state.relevant_step.shape))
        raise ValueError(message("state.relevant_step", f"have shape {tuple(state.relevant.shape[:-1])}", got))


def casts(device: torch.device) -> bool:
    """Whether autocast is at work: then dtypes may differ. On some devices, such as "meta", there is none."""
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def _differs_in_slots(name: str, have: tuple[int, ...], want: tuple[int, ...]) -> bool:
    """Whether two shapes agree but for how many slots there are."""
    if len(have) != len(want):
        return False
    slots = len(want) - 1
    if name in ("recent", "relevant"):  # states, (..., slots, n)
        slots -= 1
    return have[:slots] == want[:slots] and have[slots + 1 :] == want[slots + 1 :]


def check_counts(step: Tensor) -> None:
    """Refuses counts of steps that cannot go on, where the numbers can be looked at.

    Raises:
        ValueError: a row has taken less than no step, or so many that to count on would overflow.
    """
    if not readable(step) or not step.numel():
        return
    low, high = (int(bound) for bound in step.aminmax())
    if low < 0:
        raise ValueError(message("state.step", "not be negative", low))
    if high > MOST_STEPS:
        raise ValueError(message("state.step", "be at most 2^62", high))


def check_held(relevant_step: Tensor, step: Tensor) -> None:
    """Refuses steps of held states that lie in the future, or before any row begins, where they can be looked at.

    Raises:
        ValueError: there is such a step.
    """
    if not readable(relevant_step) or not relevant_step.numel():
        return
    low, high = (int(bound) for bound in relevant_step.aminmax())
    if low < BEFORE_START or high >= max(0, int(step.max())):
        got = f"steps from {low} to {high}"
        raise ValueError(message("state.relevant_step", "hold steps before `state.step`, -1 in empty slots", got))


def readable(tensor: Tensor) -> bool:
    """Whether numbers can be looked at: not while a transform or a compiler traces the scan, nor on another device."""
    traced = torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()
    return not traced and type(tensor) is Tensor and tensor.device.type == "cpu"


def check_chain(chain: Tensor, s: Tensor) -> None:
    """Checks the field that the kernel is not given, because what it runs has none: an empty one beside ``s``."""
    if isinstance(chain, Tensor) and chain.shape == (*s.shape[:-1], 0) and _kind(chain) == _kind(s):
        return
    expected = f"be {_shown(s)} and of shape {(*s.shape[:-1], 0)}"
    got = type(chain).__name__
    if isinstance(chain, Tensor):
        got = f"{_shown(chain)} of shape {tuple(chain.shape)}"
    raise ValueError(message("state.chain", expected, got, "Does the state come from another layer?"))


def _kind(tensor: Tensor) -> tuple[object, ...]:
    return tensor.dtype, tensor.device, tensor.layout


def _shown(tensor: Tensor) -> str:
    return f"{tensor.dtype} on {tensor.device} ({tensor.layout})"


def start_afresh(state: State, rows: Tensor, empty: State) -> State:
    """The state with some rows empty, by selection: not even a key is computed from what they held."""
    fields = []
    for name, have, none in zip(State._fields, state, empty, strict=True):
        if name in EMPTY_SLOT and none.shape != have.shape:  # a growing memory
            missing = (0,) * 2 * (none.dim() - 2) + (0, have.shape[1] - none.shape[1])
            none = F.pad(none, missing, value=EMPTY_SLOT[name])
        fields.append(where_rows(rows, none, have))
    return State(*fields)
