"""What a memory is to the scan: a rule, which is a value, and its run, which lives for one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from ._reads import Read
from ._state import EMPTY, State
from ._weights import OwnParameter, Weights


class SlotCounts(NamedTuple):
    """Slots of an empty state: the sizes of its fields of these names."""

    recent: int = 0
    recent_score: int = 0
    relevant: int = 0
    relevant_score: int = 0


class MemoryRule(ABC):
    """Which past states may be attended. Derive from it, as a frozen dataclass, to make a memory of your own.

    :class:`Full`, :class:`Screened` and :class:`Strided` are in the fused kernel too; any other runs on the reference.
    """

    outputs: ClassVar[tuple[str, ...]] = ("macro", "hidden")
    """Values of ``output`` that a layer with it may have."""
    collects: bool = False
    """Whether the weights that states receive are collected in ``recent_score``."""
    holds_nothing: bool = False
    """Whether nothing can ever be attended, as with a size of 0."""
    doubles_chain: bool = False
    """Whether the recurrence runs a second time with its reads cut off, for gradients of one hop."""
    entry_delay: int = 0
    """Steps between that of a state and that at which it may enter the relevant set."""
    growing: tuple[str, ...] = ()
    """Fields of the state that have more slots the longer the sequence was."""

    @property
    @abstractmethod
    def read(self) -> Read:
        """How it is read, unless a :class:`ScanSpec` says otherwise."""

    def takes(self, read: Read) -> bool:
        """Whether it can be read so."""
        return True

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        """The parameters that it needs apart from those of its read, by name."""
        return {}

    @abstractmethod
    def slots_at_start(self) -> SlotCounts:
        """Slots of the empty state."""

    @abstractmethod
    def begin(
        self, read: Read, weights: Weights, state: State, fresh: bool, lengths: Tensor | None, length: int
    ) -> MemoryRun:
        """Begin a call of the scan.

        Args:
            read: how it is read.
            weights: parameters of the layer.
            state: where the call starts, fields ``(B, ...)``.
            fresh: whether that is the empty state, so that the buffer holds nothing.
            lengths: ``(B,)`` int64, steps of each row, or ``None`` if all have ``length``.
            length: steps of the call.
        """

    def empty_steps(self, steps: Tensor) -> Tensor:
        """``relevant_step`` at the start of a row, shaped like ``steps`` ``(..., slots)``."""
        return torch.full_like(steps, EMPTY)

    def stored_by(self, steps: int) -> int:
        """States stored in a row of so many steps, for ``output="weights"``."""
        raise NotImplementedError


class MemoryRun(ABC):
    """A memory during one call of the scan.

    It starts from the fields of a :class:`State`, is advanced once per step, and gives its fields back at the end.
    Discrete choices (who enters, who leaves) go into ``slot`` and ``displaced`` and carry no gradient; the read is
    differentiable given those choices. ``position`` ``(B,)`` is the row's step, ``active`` the rows that advance.
    """

    weights: Tensor
    """``(B, slots)`` of the last read."""
    scores: Tensor
    """``(B, slots)`` of the last read."""
    slot: Tensor
    """``(B,)`` int64: slot that was written last, -1 for none."""
    displaced: Tensor
    """``(B,)`` int64: the step that stood there, -1 for none."""

    @abstractmethod
    def forget(self, rows: Tensor) -> None:
        """Empty the memory of some rows, by selection."""

    @abstractmethod
    def cut(self, rows: Tensor) -> None:
        """Cut the gradient into all slots as they are now, for some rows."""

    @abstractmethod
    def attend(self, h: Tensor, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> Tensor | None:
        """Read the memory: ``(B, n)``. ``h`` is the new state, ``s`` the previous macro-state.

        ``None`` comes from no memory alone: then the macro-state is ``h``.
        """

    @abstractmethod
    def store(self, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        """Take in the new macro-state, if this memory stores macro-states."""

    @abstractmethod
    def held_steps(self, position: Tensor) -> Tensor:
        """The row's step that each slot holds, -1 for none: ``(B, slots)``."""

    @abstractmethod
    def fields(self, final: Tensor, lengths: Tensor | None) -> dict[str, Tensor]:
        """The memory's fields of the final state, given the rows' final step counts."""

    def weights_by_age(self, slots: int) -> Tensor:
        """The weights of the last read by order of storing, ``(B, slots)``, for ``output="weights"``."""
        raise NotImplementedError


class NoMemory(MemoryRule):
    """What a layer without a memory has in its place, so that nobody has to ask: it holds nothing."""

    holds_nothing = True

    @property
    def read(self) -> Read:
        """There is nothing to read."""
        raise NotImplementedError

    def slots_at_start(self) -> SlotCounts:
        """None of any kind."""
        return SlotCounts()

    def begin(
        self, read: Read, weights: Weights, state: State, fresh: bool, lengths: Tensor | None, length: int
    ) -> MemoryRun:
        """There is no read to begin with."""
        raise NotImplementedError


class NothingHeld(MemoryRun):
    """What a scan without a memory has in place of its run."""

    def __init__(self, state: State) -> None:
        self.weights = self.scores = state.s[:, :0].detach()
        self.slot = self.displaced = torch.full_like(state.step, EMPTY)

    def forget(self, rows: Tensor) -> None:
        """Nothing to forget."""

    def cut(self, rows: Tensor) -> None:
        """Nothing to cut."""

    def attend(self, h: Tensor, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        """Nothing to read."""

    def store(self, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        """Nothing is stored."""

    def held_steps(self, position: Tensor) -> Tensor:
        return position[:, None][:, :0]

    def fields(self, final: Tensor, lengths: Tensor | None) -> dict[str, Tensor]:
        return {}
