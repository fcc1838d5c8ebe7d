"""The recurrent core of a policy: which layers can be one, and what becomes of its memory from call to call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias, cast, get_args

import torch
from torch import Tensor, nn

from remanence._validate import message
from remanence.nn import (
    LRU,
    CarriedState,
    DeltaRule,
    MinGRU,
    MinLSTM,
    RecurrentLayer,
    State,
    Strided,
    get_model,
    make_core,
)
from remanence.ops import MemoryRule
from remanence.runs import Values

HIDDEN = 64
CORES = (RecurrentLayer, MinGRU, MinLSTM, LRU, DeltaRule)
"""Layers that can be reset row by row and whose state is an explicit value."""

MemoryUse: TypeAlias = Literal["kept", "emptied", "emptied_acting"]
"""What happens to the attended memory during an episode."""
MEMORY_USES: tuple[str, ...] = get_args(MemoryUse)

CoreState: TypeAlias = State | CarriedState
"""What a core carries from step to step."""


class Core(Protocol):
    """What a policy asks of its core, one of `CORES`."""

    @property
    def output_size(self) -> int:
        """Numbers that it gives at a step."""
        ...

    def __call__(
        self, input: Tensor, state: CoreState | None = None, *, reset: Tensor | None = None
    ) -> tuple[Tensor, CoreState]:
        """Runs over whole sequences, ``(T, B, width)``."""
        ...

    def step(self, input: Tensor, state: CoreState, /) -> tuple[Tensor, CoreState]:
        """Takes one step, ``(B, width)``."""
        ...

    def initial_state(self, batch_size: int, /) -> CoreState:
        """The empty state of so many rows."""
        ...


def core_of(core: nn.Module | str, width: int, options: Values) -> Core:
    """A core by its name, or a given one, checked: it runs over ``(T, B, width)``, and its state has a fixed size.

    Raises:
        ValueError: it cannot be reset row by row, or its state grows.

    Example:
        >>> core_of("MinGRU", 3, {}).output_size
        64
    """
    if isinstance(core, str):
        options = {"hidden_size": HIDDEN, **options}
        if not issubclass(get_model(core), CORES):
            raise _refused(core)
    made = make_core(core, width, options, 0.0)
    if not isinstance(made, CORES) or made.batch_first or getattr(made, "bidirectional", False):
        raise _refused(type(made).__name__)
    memory = memory_of(made)
    if isinstance(memory, Strided) and memory.slots is None:
        expected = "have a state of fixed size: rows of different age stand side by side"
        hint = "Take score='affine' or 'tanh' with sparse='forward'"
        raise ValueError(message("core", expected, f"{type(made).__name__} that keeps all stored states", hint))
    return cast(Core, made)


def memory_of(core: object) -> MemoryRule | None:
    """The attended memory of a core, None if it has none.

    Example:
        >>> memory_of(core_of("LSTM", 3, {})) is memory_of(core_of("MinGRU", 3, {}))
        True
    """
    if isinstance(core, RecurrentLayer):
        return core.spec.memory
    return None


def grows(core: object) -> bool:
    """Whether a core keeps every state of an episode, without a limit.

    Example:
        >>> grows(core_of("MemLSTM", 3, {})), grows(core_of("MemLSTM", 3, {"limit": 10}))
        (True, False)
    """
    memory = memory_of(core)
    return memory is not None and bool(memory.growing)


def run_core(
    core: Core, features: Tensor, state: CoreState | None, reset: Tensor | None, use: MemoryUse
) -> tuple[Tensor, CoreState]:
    """Runs a core over whole sequences.

    Args:
        core: from :func:`core_of`.
        features: ``(T, B, width)``.
        state: before the first step; None starts empty.
        reset: bool ``(T, B)``, True where a row is reset.
        use: what becomes of the memory: ``"kept"``, ``"emptied"`` before every step, or ``"emptied_acting"``: before
            every call, which is a step while the policy acts and a chunk while it learns.

    Returns:
        The output ``(T, B, output_size)`` and the state after the last step.
    """
    state = entering(core, state, use)
    if use != "emptied" or memory_of(core) is None:
        return core(features, state, reset=reset)
    resets = [None] * len(features)
    if reset is not None:
        resets = reset.split(1)
    outputs = []
    for now, starts in zip(features.split(1), resets, strict=True):
        output, state = core(now, entering(core, state, use), reset=starts)
        outputs.append(output)
    assert state is not None
    return torch.cat(outputs), state


def step_core(
    core: Core, features: Tensor, state: CoreState, begins: Tensor | None, use: MemoryUse
) -> tuple[Tensor, CoreState]:
    """Runs a core one step on: the same numbers as :func:`run_core`, sooner.

    Args:
        core: from :func:`core_of`.
        features: ``(B, width)``.
        state: before the step.
        begins: bool ``(B,)``, True where a row is reset; None resets none.
        use: as in :func:`run_core`.

    Returns:
        The output ``(B, output_size)`` and the state after it.
    """
    if grows(core):
        # An empty state has fewer slots than one that has grown: only the scan can reset a row of it.
        reset = begins
        if reset is not None:
            reset = reset.unsqueeze(0)
        output, after = run_core(core, features.unsqueeze(0), state, reset, use)
        return output[0], after
    if use != "kept":
        state = emptied(core, state)
    # Most steps begin nowhere, and an empty state for all rows costs as much as the step.
    if begins is not None and True in begins.tolist():
        state = _begun(core, state, begins)
    return core.step(features, state)


def _begun(core: Core, state: CoreState, begins: Tensor) -> CoreState:
    """The state with some rows empty, chosen by ``(B,)`` bool."""
    empty = core.initial_state(len(begins))
    fields = []
    for before, nothing in zip(state, empty, strict=True):
        mask = begins.view(1, -1, *[1] * (before.dim() - 2))
        fields.append(torch.where(mask, nothing, before))
    return type(state)(*fields)


def checked_state(core: Core, found: object, rows: int) -> CoreState:
    """A state that was saved, if the core can go on from it.

    Args:
        core: from :func:`core_of`.
        found: what a file has for the state.
        rows: B.

    Raises:
        ValueError: if a field is missing, or of another type or size.

    Example:
        >>> core = core_of("LSTM", 3, {"hidden_size": 4})
        >>> checked_state(core, core.initial_state(2), 3)
        Traceback (most recent call last):
        ValueError: `s` of the core's state must be torch.float32 of size (1, 3, 4); got torch.float32 of size (1, 2, 4)
    """
    empty = core.initial_state(rows)
    if not isinstance(found, type(empty)):
        raise ValueError(f"the core's state must be a {type(empty).__name__}; got a {type(found).__name__}")
    for name, have, wanted in zip(empty._fields, found, empty, strict=True):
        lead = wanted.dim()
        if grows(core):
            lead = 2  # a memory that grows has more slots with every step
        fits = isinstance(have, Tensor) and have.dtype == wanted.dtype and have.dim() == wanted.dim()
        if not fits or have.shape[:lead] != wanted.shape[:lead]:
            raise ValueError(f"`{name}` of the core's state must be {_described(wanted)}; got {_described(have)}")
    return found


def _described(part: object) -> str:
    if isinstance(part, Tensor):
        return f"{part.dtype} of size {tuple(part.shape)}"
    return repr(part)


def join_rows(states: Sequence[CoreState]) -> CoreState:
    """The rows of several states in one batch."""
    kind = cast(type[State], type(states[0]))  # all are of one core, so of one type
    return kind.cat(cast(Sequence[State], states))


def entering(core: Core, state: CoreState | None, use: MemoryUse) -> CoreState | None:
    """The state that a call starts from: with nothing in its memory unless it is kept."""
    if use == "kept" or state is None:
        return state
    return emptied(core, state)


def emptied(core: Core, state: CoreState) -> CoreState:
    """The state with nothing in its attended memory; the recurrent state stays."""
    if not isinstance(state, State) or memory_of(core) is None:
        return state
    empty = core.initial_state(state.s.shape[1])
    return empty._replace(s=state.s, c=state.c, h=state.h, chain=state.chain)


def _refused(name: str) -> ValueError:
    expected = "be a recurrent layer of remanence.nn that runs forward over (T, B, features)"
    return ValueError(message("core", expected, name, "Name one: LSTM, MemLSTM, RelLSTM, MinGRU, ..."))
