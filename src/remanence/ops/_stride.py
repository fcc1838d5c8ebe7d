"""A memory of every so many states, of which the best are read: Sparse Attentive Backtracking."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from remanence._validate import MOST_STEPS, dimension, one_of, positive_int

from ._memory import MemoryRule, MemoryRun, SlotCounts
from ._reads import Held, Read, ThresholdRead
from ._slots import choose_slot, displaced_step, empty_slots, mark_slot, write_slot
from ._state import BEFORE_START, EMPTY, State
from ._weights import Weights
from .states import empty_rows, where_rows


@dataclass(frozen=True)
class Strided(MemoryRule):
    """Every ``every``-th state is stored and the ``top_k`` best are read (Sparse Attentive Backtracking).

    With a static score (``"affine"``, ``"tanh"``) and a sparse forward pass the state holds ``top_k`` entries whatever
    the length; otherwise all stored states are kept and **the state grows with the sequence**.

    Args:
        top_k: rank of the score that serves as threshold (k_top).
        every: stride at which states are stored (k_att).
        keep: ``"k-1"`` takes the k-th largest score as threshold, as printed, which leaves k-1 positive weights;
            ``"k"`` takes the next one, which leaves k.
        score: ``"affine"`` (Ke et al. 2017), ``"tanh"`` (the authors' code) or ``"mlp"`` (depends on the query).
        normalise: divide the weights by their sum plus 1e-7, so that equal scores give an empty read; with
            ``sparse="backward"``, softmax over the scores.
        underfull: weights while at most ``top_k`` states are stored: ``"threshold"`` takes the least stored score as
            threshold, ``"raw"`` takes the scores themselves (the authors' code). Nothing bounds those: a read that
            overflows makes its row infinite or NaN until a reset, and no other row.
        sparse: ``"forward"`` reads the best states only; ``"backward"`` reads all and sends gradient to the best.
        hops: ``"many"`` lets the gradient of a read go on through the reads of the state it reaches; ``"one"`` stops it
            there ("one skip-step", section 7.2 of Ke et al. 2017).
        start: ``"empty"``, or ``"zero"`` for the authors' all-zero first entry.

    Example:
        >>> Strided(top_k=5, every=2).slots
        5
    """

    outputs = ("macro", "hidden", "summary", "weights")

    top_k: int = 5
    every: int = 2
    keep: Literal["k-1", "k"] = "k-1"
    score: Literal["affine", "tanh", "mlp"] = "affine"
    normalise: bool = False
    underfull: Literal["threshold", "raw"] = "threshold"
    sparse: Literal["forward", "backward"] = "forward"
    hops: Literal["many", "one"] = "many"
    start: Literal["empty", "zero"] = "empty"

    def __post_init__(self) -> None:
        dimension("top_k", self.top_k)
        positive_int("every", self.every, maximum=MOST_STEPS)
        one_of("keep", self.keep, ("k-1", "k"))
        one_of("score", self.score, ("affine", "tanh", "mlp"))
        one_of("underfull", self.underfull, ("threshold", "raw"))
        one_of("sparse", self.sparse, ("forward", "backward"))
        one_of("hops", self.hops, ("many", "one"))
        one_of("start", self.start, ("empty", "zero"))

    @property
    def rank(self) -> int:
        """Rank of the score that serves as threshold."""
        return self.top_k + (self.keep == "k")

    @property
    def slots(self) -> int | None:
        """Entries of the state; ``None`` when it grows."""
        if self.score == "mlp" or self.sparse == "backward":
            return None
        return self.rank

    @property
    def first(self) -> int:
        """Entries that are there before the first step."""
        return int(self.start == "zero")

    @property
    def read(self) -> ThresholdRead:
        """What scores above the threshold."""
        return ThresholdRead(self.rank, self.top_k, self.score, self.normalise, self.underfull, self.sparse)

    def takes(self, read: Read) -> bool:
        """Its own alone, however that is combined with the state: who is stored depends on the scores."""
        return replace(read, combine=self.read.combine) == self.read

    @property
    def doubles_chain(self) -> bool:  # type: ignore[override]
        """Gradients of one hop need the recurrence without its reads."""
        return self.hops == "one"

    @property
    def growing(self) -> tuple[str, ...]:  # type: ignore[override]
        """The stored states, where all are kept."""
        if self.slots is None:
            return ("relevant", "relevant_step")
        return ()

    def slots_at_start(self) -> SlotCounts:
        """The best states so far, or all of them: then none but the all-zero one."""
        return SlotCounts(relevant=self.slots or self.first)

    def empty_steps(self, steps: Tensor) -> Tensor:
        """``relevant_step`` at the start of a row: -2 marks the all-zero state."""
        empty = super().empty_steps(steps)
        if self.start == "zero":
            empty[..., 0] = BEFORE_START
        return empty

    def stored_by(self, steps: int) -> int:
        """States stored in a row of so many steps."""
        return steps // self.every + self.first

    def begin(
        self, read: Read, weights: Weights, state: State, fresh: bool, lengths: Tensor | None, length: int
    ) -> Stride:
        """See :meth:`MemoryRule.begin`."""
        return Stride(self, weights, state, ragged=not fresh or lengths is not None, length=length)


class Stride(MemoryRun):
    """The stored states during a call of ``length`` steps; rows of a ``ragged`` one may have taken fewer or more."""

    def __init__(self, memory: Strided, weights: Weights, state: State, *, ragged: bool, length: int) -> None:
        self.memory = memory
        self.read = memory.read
        self.parameters = weights
        self.length = length
        self.ragged = ragged
        self.values = empty_slots(state.relevant_step == EMPTY, state.relevant)
        self.steps = state.relevant_step
        if memory.slots is None:
            # All that can be stored in this call, allocated once; `fields` gives back what was not used.
            room = length // memory.every + 1
            self.values = F.pad(self.values, (0, 0, 0, room))
            self.steps = F.pad(self.steps, (0, room), value=EMPTY)
        self.keys = self.read.touch(weights, self.read.keys(weights, self.values))
        self.slot = self.displaced = torch.full_like(state.step, EMPTY)

    def forget(self, rows: Tensor) -> None:
        self.ragged = True
        self.values = empty_rows(rows, self.values)
        self.keys = empty_rows(rows, self.keys)
        self.steps = where_rows(rows, self.memory.empty_steps(self.steps), self.steps)

    def cut(self, rows: Tensor) -> None:
        self.values = where_rows(rows, self.values.detach(), self.values)
        self.keys = where_rows(rows, self.read.keys(self.parameters, self.values.detach()), self.keys)

    def attend(self, h: Tensor, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> Tensor:
        stored = position // self.memory.every + self.memory.first
        held = Held(self.keys, self.values, self.steps == EMPTY, stored)
        summary, self.weights, self.scores = self.read.read(self.parameters, h, held)
        return summary

    def store(self, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        due = active & ((position + 1) % self.memory.every == 0)
        key = self.read.keys(self.parameters, s)
        if forced is None:
            forced = self._choose(key, position, due)
        self.slot = forced
        self.displaced = displaced_step(self.steps, self.slot)
        place = mark_slot(self.slot, self.values.shape[1])
        self.values = write_slot(self.values, place, s)
        self.keys = write_slot(self.keys, place, key)
        self.steps = write_slot(self.steps, place, position)

    def held_steps(self, position: Tensor) -> Tensor:
        return self.steps

    def weights_by_age(self, slots: int) -> Tensor:
        """What Eq. 5 of Ke et al. 2017 reads out."""
        # The first stored state of a row is step `every - 1`; the all-zero one, if there is one, comes before it.
        index = torch.div(self.steps + 1, self.memory.every, rounding_mode="floor") - 1 + self.memory.first
        index = torch.where(self.steps < 0, 0, index)
        weights = self.weights.masked_fill(self.steps == EMPTY, 0.0)
        return weights.new_zeros(len(weights), slots).scatter_add(1, index, weights)

    def fields(self, final: Tensor, lengths: Tensor | None) -> dict[str, Tensor]:
        slots = self.memory.slots
        if slots is None:
            longest = self.length
            # Rows of a ragged call have stored different numbers of states: the longest row decides.
            if self.ragged:
                longest = int(final.max())
            slots = self.memory.stored_by(longest)
        return {"relevant": self.values[:, :slots], "relevant_step": self.steps[:, :slots]}

    def _choose(self, key: Tensor, position: Tensor, due: Tensor) -> Tensor:
        """The slot for a new state: that of the worst if only the best are kept, else the next one."""
        if self.memory.slots is not None:
            return choose_slot(key, self.keys, self.steps, due)
        index = (position + 1) // self.memory.every - 1 + self.memory.first
        return torch.where(due, index, EMPTY)
