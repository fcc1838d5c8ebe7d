"""The memories of the scan, in plain torch: what they hold, who enters, and how they are read.

A memory lives for one call of the scan. It starts from the fields of a :class:`State`, is advanced once per step, and
gives its fields back at the end. Discrete choices (who enters, who leaves) go into a log and carry no gradient; the
read is differentiable given those choices.
"""

from __future__ import annotations

import math
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from ._slots import choose_slot, displaced_step, mark_slot, write_slot
from ._types import BEFORE_START, EMPTY, Full, Screened, State, Strided, Weights


class MemoryMachine(Protocol):
    """What the scan asks of a memory; ``position`` ``(B,)`` is the row's step, ``active`` the rows that advance."""

    weights: Tensor
    scores: Tensor
    slot: Tensor
    displaced: Tensor

    def forget(self, rows: Tensor) -> None:
        """Empty the memory of some rows, by selection."""
        ...

    def cut(self, rows: Tensor) -> None:
        """Cut the gradient into what is held now, for some rows."""
        ...

    def attend(self, h: Tensor, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> Tensor:
        """Read the memory: ``(B, n)``. ``h`` is the new state, ``s`` the previous macro-state."""
        ...

    def store(self, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        """Take in the new macro-state, if this memory stores macro-states."""
        ...

    def held_steps(self, position: Tensor) -> Tensor:
        """The row's step that each slot holds, -1 for none: ``(B, slots)``."""
        ...

    def fields(self, final: Tensor, lengths: Tensor | None) -> dict[str, Tensor]:
        """The memory's fields of the final state, given the rows' final step counts."""
        ...


def _where_rows(rows: Tensor, chosen: Tensor, other: Tensor) -> Tensor:
    return torch.where(rows.reshape(rows.shape + (1,) * (other.dim() - 1)), chosen, other)


def _empty_rows(rows: Tensor, tensor: Tensor, value: float = 0.0) -> Tensor:
    """``tensor`` with some rows set to ``value`` by selection, so that a NaN does not survive."""
    return _where_rows(rows, tensor.new_tensor(value), tensor)


class Buffer:
    """Short-term buffer and relevant set: :class:`Screened` and :class:`Full`.

    The buffer is kept oldest first, all rows aligned at their newest entry; what is older than the row is masked.
    """

    def __init__(
        self, memory: Screened | Full, weights: Weights, state: State, fresh: bool, lengths: Tensor | None
    ) -> None:
        assert weights.query is not None
        assert weights.key is not None
        self.size, self.weights_of = memory.recent, weights
        self.relevant, self.relevant_score = state.relevant, state.relevant_score
        self.relevant_step, self.recent_score = state.relevant_step, state.recent_score
        self.recent = state.recent[:, :0] if fresh else _unroll(state.recent, state.step)
        if not fresh and self.recent_score.shape[1]:
            self.recent_score = _unroll(self.recent_score, state.step)
        self.recent_key, self.relevant_key = F.linear(self.recent, weights.key), F.linear(self.relevant, weights.key)
        self.gaps, self.keep_clean, self.ragged = not fresh, False, lengths is not None
        self.capacity = self.size if self.size is not None else state.recent.shape[1]
        # Rows of unequal length end at different steps: only then must older entries be kept until the end.
        self.history = [self.recent] if lengths is not None else None
        self.carried = self.recent.shape[1]
        self.slot = self.displaced = torch.full_like(state.step, EMPTY)

    def forget(self, rows: Tensor) -> None:
        self.gaps = self.keep_clean = True  # masks hide the old buffer entries; `attend` selects them away
        self.relevant, self.relevant_key = _empty_rows(rows, self.relevant), _empty_rows(rows, self.relevant_key)
        self.relevant_score = _empty_rows(rows, self.relevant_score)
        self.recent_score = _empty_rows(rows, self.recent_score)
        self.relevant_step = _empty_rows(rows, self.relevant_step, EMPTY)

    def cut(self, rows: Tensor) -> None:
        key = self.weights_of.key
        assert key is not None
        self.recent = _where_rows(rows, self.recent.detach(), self.recent)
        self.relevant = _where_rows(rows, self.relevant.detach(), self.relevant)
        # The key matrix still learns from later reads, as it does from a state that was detached between calls.
        self.recent_key = _where_rows(rows, F.linear(self.recent.detach(), key), self.recent_key)
        if self.history is not None:
            held = torch.cat(self.history, dim=1)
            self.history = [_where_rows(rows, held.detach(), held)]
        self.relevant_key = _where_rows(rows, F.linear(self.relevant.detach(), key), self.relevant_key)

    def attend(self, h: Tensor, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> Tensor:
        assert self.weights_of.key is not None
        if self.size is None:
            self.capacity += 1
        elif self.recent.shape[1] == self.size:
            self._screen_oldest(position, active, forced)
        self.recent = torch.cat([self.recent, h[:, None]], dim=1)
        self.recent_key = torch.cat([self.recent_key, F.linear(h, self.weights_of.key)[:, None]], dim=1)
        if self.history is not None:
            self.history.append(h[:, None])
        empty = self._find_empty(position)
        keys = torch.cat([self.recent_key, self.relevant_key], dim=1)
        self.scores = self._score(keys, s).masked_fill(empty, -math.inf)
        self.weights = self.scores.softmax(dim=1)
        self._collect_relevance(active)
        return torch.bmm(self.weights[:, None], torch.cat([self.recent, self.relevant], dim=1))[:, 0]

    def store(self, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        """Nothing to do: this memory holds ``h``, which entered before the read."""

    def held_steps(self, position: Tensor) -> Tensor:
        recent = position[:, None] - self._age()
        return torch.cat([recent.clamp(min=EMPTY), self.relevant_step], dim=1)

    def fields(self, final: Tensor, lengths: Tensor | None) -> dict[str, Tensor]:
        entries = self.recent if self.history is None else torch.cat(self.history, dim=1)
        end = torch.full_like(final, entries.shape[1])
        if lengths is not None:
            end = self.carried + lengths
        score_end = torch.full_like(final, self.recent_score.shape[1])
        return {
            "recent": _roll(entries, final, end, self.capacity),
            "recent_score": _roll(self.recent_score, final, score_end, self.recent_score.shape[1]),
            "relevant": self.relevant,
            "relevant_score": self.relevant_score,
            "relevant_step": self.relevant_step,
        }

    def _find_empty(self, position: Tensor) -> Tensor:
        """The slots that hold nothing, ``(B, slots)``."""
        free = self.relevant_step == EMPTY
        if not self.gaps:
            return F.pad(free, (self.recent.shape[1], 0))
        older = self._age() > position[:, None]
        if self.keep_clean:
            self.recent = torch.where(older[..., None], 0.0, self.recent)
            self.recent_key = torch.where(older[..., None], 0.0, self.recent_key)
        return torch.cat([older, free], dim=1)

    def _age(self) -> Tensor:
        """Steps since each buffer entry: ``(L,)``, oldest first, 0 for the newest."""
        return torch.arange(self.recent.shape[1] - 1, -1, -1, device=self.recent.device)

    def _score(self, keys: Tensor, s: Tensor) -> Tensor:
        assert self.weights_of.query is not None
        query = F.linear(s, self.weights_of.query)
        if self.weights_of.score is None:
            return torch.einsum("bkn,bn->bk", keys, query) / math.sqrt(query.shape[1])
        return (query[:, None] + keys).tanh() @ self.weights_of.score

    def _screen_oldest(self, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        """The oldest entry leaves the buffer; it enters the relevant set if its relevance is great enough."""
        oldest, oldest_key = self.recent[:, 0], self.recent_key[:, 0]
        self.recent, self.recent_key = self.recent[:, 1:], self.recent_key[:, 1:]
        if not self.relevant.shape[1]:
            return
        beta, step = self.recent_score[:, 0], position - self.recent_score.shape[1]
        due = active & (step >= 0)
        self.slot = choose_slot(beta, self.relevant_score, self.relevant_step, due) if forced is None else forced
        self.displaced = displaced_step(self.relevant_step, self.slot)
        place = mark_slot(self.slot, self.relevant.shape[1])
        self.relevant = write_slot(self.relevant, place, oldest)
        self.relevant_key = write_slot(self.relevant_key, place, oldest_key)
        self.relevant_score = write_slot(self.relevant_score, place, beta)
        self.relevant_step = write_slot(self.relevant_step, place, step)

    def _collect_relevance(self, active: Tensor) -> None:
        """Add this step's weights to the relevance of the buffer's entries, newest last."""
        if not self.recent_score.shape[1]:
            return
        received = self.weights[:, : self.recent.shape[1]].detach()
        moved = F.pad(self.recent_score[:, 1:], (0, 1))
        if received.shape[1] < moved.shape[1]:
            received = F.pad(received, (moved.shape[1] - received.shape[1], 0))
        grown = moved + received
        self.recent_score = _where_rows(active, grown, self.recent_score) if self.ragged else grown


def _unroll(ring: Tensor, step: Tensor) -> Tensor:
    """Ring ``(B, R, ...)``, step ``i`` in slot ``i mod R``, to oldest first."""
    if not ring.shape[1]:
        return ring
    index = (step[:, None] + torch.arange(ring.shape[1], device=ring.device)) % ring.shape[1]
    return _take_slots(ring, index)


def _roll(entries: Tensor, step: Tensor, end: Tensor, size: int) -> Tensor:
    """The ring of ``size`` slots after ``step`` steps; the row's newest entry is ``entries[end - 1]``."""
    if not size:
        return entries[:, :0]
    place = (torch.arange(size, device=entries.device) - step[:, None]) % size
    index = end[:, None] - size + place
    held = (size - place <= step[:, None]) & (index >= 0)
    taken = _take_slots(entries, index.clamp(min=0))
    return torch.where(held.reshape(held.shape + (1,) * (taken.dim() - 2)), taken, 0.0)


def _take_slots(tensor: Tensor, index: Tensor) -> Tensor:
    index = index.reshape(index.shape + (1,) * (tensor.dim() - 2)).expand(-1, -1, *tensor.shape[2:])
    return tensor.gather(1, index)


class Stride:
    """Every ``every``-th macro-state, read through a threshold at the ``top_k``-th score: :class:`Strided`."""

    normaliser_floor = 1e-7  # as in the authors' code: all weights may be zero

    def __init__(
        self, memory: Strided, weights: Weights, state: State, fresh: bool, lengths: Tensor | None, steps: int
    ) -> None:
        self.memory, self.weights_of, self.total_steps = memory, weights, steps
        self.ragged = not fresh or lengths is not None
        self.values, self.steps = state.relevant, state.relevant_step
        if memory.slots is None:
            room = steps // memory.every + 1
            self.values = F.pad(self.values, (0, 0, 0, room))
            self.steps = F.pad(self.steps, (0, room), value=EMPTY)
        self.keys = self._key(self.values)
        self.slot = self.displaced = torch.full_like(state.step, EMPTY)

    def forget(self, rows: Tensor) -> None:
        self.ragged = True
        self.values, self.keys = _empty_rows(rows, self.values), _empty_rows(rows, self.keys)
        self.steps = _where_rows(rows, empty_steps(self.memory, self.steps), self.steps)

    def cut(self, rows: Tensor) -> None:
        self.values = _where_rows(rows, self.values.detach(), self.values)
        self.keys = _where_rows(rows, self._key(self.values.detach()), self.keys)

    def attend(self, h: Tensor, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> Tensor:
        held = self.steps != EMPTY
        present, scores = self._score(h)
        absolute, values = scores + present, self.values
        if self.memory.sparse == "backward":
            best = scores >= self._threshold(scores, held)
            weights = self._dense(scores, present, held, best)
            values = torch.where(best[..., None], values, values.detach())
        else:
            weights = self._sparse(scores, held)
        if self.memory.underfull == "raw":
            stored = position // self.memory.every + (self.memory.start == "zero")
            weights = _where_rows(stored <= self.memory.top_k, absolute.masked_fill(~held, 0.0), weights)
        self.scores, self.weights = absolute.masked_fill(~held, -math.inf), weights
        return torch.bmm(weights[:, None], values)[:, 0]

    def store(self, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        due = active & ((position + 1) % self.memory.every == 0)
        key = self._key(s)
        self.slot = self._choose(key, position, due) if forced is None else forced
        self.displaced = displaced_step(self.steps, self.slot)
        place = mark_slot(self.slot, self.values.shape[1])
        self.values = write_slot(self.values, place, s)
        self.keys = write_slot(self.keys, place, key)
        self.steps = write_slot(self.steps, place, position)

    def held_steps(self, position: Tensor) -> Tensor:
        return self.steps

    def by_index(self, slots: int) -> Tensor:
        """The weights of the last read by order of storing, ``(B, slots)``: what Eq. 5 of the document reads out."""
        first = int(self.memory.start == "zero")
        index = torch.div(self.steps + 1, self.memory.every, rounding_mode="floor") - 1 + first
        index = torch.where(self.steps < 0, 0, index)
        weights = self.weights.masked_fill(self.steps == EMPTY, 0.0)
        return weights.new_zeros(len(weights), slots).scatter_add(1, index, weights)

    def fields(self, final: Tensor, lengths: Tensor | None) -> dict[str, Tensor]:
        slots = self.values.shape[1]
        if self.memory.slots is None:
            longest = int(final.max()) if self.ragged else self.total_steps
            slots = longest // self.memory.every + (self.memory.start == "zero")
        return {"relevant": self.values[:, :slots], "relevant_step": self.steps[:, :slots]}

    def _key(self, values: Tensor) -> Tensor:
        """What can be said of a state before the query is known: its score, or its part of the mlp's hidden layer."""
        key = self.weights_of.key
        assert key is not None
        if self.memory.score == "mlp":
            return F.linear(values, key)
        return (values.tanh() if self.memory.score == "tanh" else values) @ key

    def _score(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """What the present state adds to all scores alike, ``(B, 1)``, and the rest, ``(B, K)``.

        The first cancels wherever scores are compared: for the affine and tanh scores it holds all of the query.
        """
        query, score = self.weights_of.query, self.weights_of.score
        assert query is not None
        if self.memory.score == "mlp":
            assert score is not None
            return h.new_zeros(len(h), 1), (F.linear(h, query)[:, None] + self.keys).tanh() @ score
        present = (h.tanh() if self.memory.score == "tanh" else h) @ query
        return (present if score is None else present + score)[:, None], self.keys

    def _threshold(self, scores: Tensor, held: Tensor) -> Tensor:
        """The score of rank ``min(rank, number held)``: ``(B, 1)``; 0 where nothing is held."""
        rank = min(self.memory.rank, scores.shape[1])
        if not rank:
            return scores.new_zeros(len(scores), 1)
        order = scores.masked_fill(~held, -math.inf).topk(rank, dim=1).indices
        place = (held.sum(dim=1, keepdim=True).clamp(max=rank) - 1).clamp(min=0)
        threshold = scores.gather(1, order.gather(1, place))
        return torch.where(held.any(dim=1, keepdim=True), threshold, 0.0)

    def _sparse(self, scores: Tensor, held: Tensor) -> Tensor:
        weights = (scores - self._threshold(scores, held)).relu().masked_fill(~held, 0.0)
        return (
            weights / (weights.sum(dim=1, keepdim=True) + self.normaliser_floor) if self.memory.normalise else weights
        )

    def _dense(self, scores: Tensor, present: Tensor, held: Tensor, best: Tensor) -> Tensor:
        scores = torch.where(best, scores, scores.detach())
        if not self.memory.normalise:
            return (scores + present).masked_fill(~held, 0.0)
        # A finite stand-in for -inf: a row that holds nothing yet must not become NaN.
        weights = scores.masked_fill(~held, torch.finfo(scores.dtype).min).softmax(dim=1)
        return weights.masked_fill(~held, 0.0)

    def _choose(self, key: Tensor, position: Tensor, due: Tensor) -> Tensor:
        if self.memory.slots is not None:
            return choose_slot(key, self.keys, self.steps, due)
        index = (position + 1) // self.memory.every - 1 + (self.memory.start == "zero")
        return torch.where(due, index, EMPTY)


def empty_steps(memory: Strided, steps: Tensor) -> Tensor:
    """``relevant_step`` of a memory at the start of a row, shaped like ``steps`` ``(..., K)``."""
    empty = torch.full_like(steps, EMPTY)
    if memory.start == "zero":
        empty[..., 0] = BEFORE_START
    return empty
