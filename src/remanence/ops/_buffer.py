"""Memories with a short-term buffer: all of the past, or its newest states and the relevant ones among the older."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from remanence._validate import LARGEST_SIZE, dimension, message, one_of

from ._memory import MemoryRule, MemoryRun, SlotCounts
from ._reads import Held, Read, ScoreName, SoftmaxRead, check_score
from ._screens import SCREENS, Judged, Screen, ScreenLike
from ._slots import displaced_step, empty_slots, mark_slot, roll, unroll, write_slot
from ._state import EMPTY, State
from ._weights import OwnParameter, Weights
from .states import empty_rows, where_rows


class BufferRule(MemoryRule):
    """What memories with a short-term buffer share."""

    recent: int | None
    """Size of the buffer; ``None`` means unbounded."""
    score: ScoreName | Read

    @property
    def screening(self) -> Screen:
        """Who stays among the relevant."""
        return SCREENS["attention"]

    @property
    def read(self) -> Read:
        """Softmax over all that is held, unless `score` is a read."""
        if isinstance(self.score, Read):
            return self.score
        return SoftmaxRead(self.score)

    @property
    def entry_delay(self) -> int:  # type: ignore[override]
        """A state is screened when it leaves the buffer."""
        return self.recent or 0

    def begin(
        self, read: Read, weights: Weights, state: State, fresh: bool, lengths: Tensor | None, length: int
    ) -> Buffer:
        """See :meth:`MemoryRule.begin`."""
        return Buffer(self, read, weights, state, fresh, ragged=lengths is not None)


@dataclass(frozen=True)
class Full(BufferRule):
    """Every past state may be attended (MemRNN, MemLSTM); the state of the layer **grows with the sequence**.

    Args:
        limit: keep only the newest ``limit`` states, in a ring of fixed size; ``None`` keeps all.
        score: ``"additive"`` (Bahdanau), ``"dot"`` (scaled dot product), or a :class:`remanence.ops.Read`.

    Example:
        >>> Full(limit=100).recent
        100
    """

    limit: int | None = None
    score: ScoreName | Read = "additive"

    def __post_init__(self) -> None:
        if self.limit is not None:
            dimension("limit", self.limit)
        check_score(self.score)

    @property
    def recent(self) -> int | None:  # type: ignore[override]
        """Size of the short-term buffer; ``None`` means unbounded."""
        return self.limit

    @property
    def relevant(self) -> int:
        """Size of the relevant set: there is none."""
        return 0

    @property
    def growing(self) -> tuple[str, ...]:  # type: ignore[override]
        """The buffer, if it has no limit."""
        if self.limit is None:
            return ("recent",)
        return ()

    def slots_at_start(self) -> SlotCounts:
        """The ring, which is there from the start."""
        return SlotCounts(recent=self.limit or 0)


@dataclass(frozen=True)
class Screened(BufferRule):
    """The newest ``recent`` states and the ``relevant`` most attended of the older ones (RelRNN, RelLSTM).

    ``recent >= T`` is :class:`Full`; ``recent = relevant = 0`` is no memory at all.

    Args:
        recent: size of the short-term buffer (the paper's nu).
        relevant: size of the relevant set (the paper's rho); needs ``recent >= 1``.
        screen: decides which states stay in the relevant set: ``"attention"``, ``"mean"``, ``"value"``, ``"learned"``,
            ``"random"``, ``"newest"``, or a :class:`remanence.ops.Screen`. Named ones run in the fused kernel.
        score: ``"additive"`` (Bahdanau), ``"dot"`` (scaled dot product), or a :class:`remanence.ops.Read`.

    Example:
        >>> Screened(recent=10, relevant=5)
        Screened(recent=10, relevant=5, screen='attention', score='additive')
    """

    recent: int = 10
    relevant: int = 10
    screen: ScreenLike = "attention"
    score: ScoreName | Read = "additive"

    def __post_init__(self) -> None:
        dimension("recent", self.recent, minimum=0)
        dimension("relevant", self.relevant, minimum=0)
        if not isinstance(self.screen, Screen):
            one_of("screen", self.screen, tuple(SCREENS))
        check_score(self.score)
        if self.recent + self.relevant > LARGEST_SIZE:
            expected = f"be at most {LARGEST_SIZE - self.recent} with recent={self.recent}"
            raise ValueError(message("relevant", expected, self.relevant))
        if self.relevant and not self.recent:
            because = "be 0 when `recent` is 0, because states are screened as they leave the buffer"
            got = f"relevant={self.relevant}, recent=0"
            raise ValueError(message("relevant", because, got, "Give `recent` at least 1"))

    @property
    def screening(self) -> Screen:
        """The screen itself, not its name."""
        if isinstance(self.screen, Screen):
            return self.screen
        return SCREENS[self.screen]

    @property
    def holds_nothing(self) -> bool:  # type: ignore[override]
        """Without a buffer nothing can be attended."""
        return self.recent == 0

    @property
    def collects(self) -> bool:  # type: ignore[override]
        """Relevance is collected wherever there is a buffer."""
        return self.recent > 0

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        """Those of the screen, where there is something to screen."""
        if not self.relevant:
            return {}
        return self.screening.own_parameters(hidden_size)

    def slots_at_start(self) -> SlotCounts:
        """Buffer and relevant set, with their scores: all of a fixed size."""
        return SlotCounts(self.recent, self.recent, self.relevant, self.relevant)


class Buffer(MemoryRun):
    """Short-term buffer S and relevant set R of Algorithm 1, during a call.

    The buffer is kept oldest first, all rows aligned at their newest entry; what is older than the row is masked. It is
    empty where a call starts ``fresh``; rows of a ``ragged`` call differ in length. Every state has its key beside it,
    ``U_a m``, computed once.
    """

    def __init__(
        self, rule: BufferRule, read: Read, weights: Weights, state: State, fresh: bool, *, ragged: bool
    ) -> None:
        self.size = rule.recent
        self.screen = rule.screening
        self.read = read
        self.parameters = weights
        free = state.relevant_step == EMPTY  # whatever stands there: a weight of 0 would let a NaN through
        self.relevant = empty_slots(free, state.relevant)
        self.relevant_score = empty_slots(free, state.relevant_score)
        self.relevant_step = state.relevant_step
        self.recent_score = state.recent_score
        self.recent = state.recent[:, :0]
        if not fresh:
            self.recent = unroll(state.recent, state.step)
            self.recent_score = unroll(state.recent_score, state.step)
            not_yet = self._age() >= state.step[:, None]
            self.recent = empty_slots(not_yet, self.recent)
            if self.recent_score.shape[1]:
                self.recent_score = empty_slots(not_yet, self.recent_score)
        # Keys are not part of the state: an optimiser step between two calls would leave them stale.
        self.recent_key = read.keys(weights, self.recent)
        self.relevant_key = read.keys(weights, self.relevant)
        # Only where rows began before the call, or in it, may some be younger than their part of the buffer.
        self.rows_may_be_young = not fresh
        self.rows_were_reset = False
        self.ragged = ragged
        # Rows of unequal length end at different steps: only then must older entries be kept until the end.
        self.history: list[Tensor] | None = None
        if ragged:
            self.history = [self.recent]
        self.given = self.recent.shape[1]
        self.slot = self.displaced = torch.full_like(state.step, EMPTY)

    def forget(self, rows: Tensor) -> None:
        # The old entries of the buffer are older than the row from now on: `attend` selects them away.
        self.rows_may_be_young = True
        self.rows_were_reset = True
        self.relevant = empty_rows(rows, self.relevant)
        self.relevant_key = empty_rows(rows, self.relevant_key)
        self.relevant_score = empty_rows(rows, self.relevant_score)
        self.recent_score = empty_rows(rows, self.recent_score)
        self.relevant_step = empty_rows(rows, self.relevant_step, EMPTY)

    def cut(self, rows: Tensor) -> None:
        self.recent = where_rows(rows, self.recent.detach(), self.recent)
        self.relevant = where_rows(rows, self.relevant.detach(), self.relevant)
        # The key matrix still learns from later reads, as it does from a state that was detached between calls.
        self.recent_key = where_rows(rows, self.read.keys(self.parameters, self.recent.detach()), self.recent_key)
        self.relevant_key = where_rows(rows, self.read.keys(self.parameters, self.relevant.detach()), self.relevant_key)
        if self.history is not None:
            held = torch.cat(self.history, dim=1)
            self.history = [where_rows(rows, held.detach(), held)]

    def attend(self, h: Tensor, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> Tensor:
        if self.recent.shape[1] == self.size:
            self._screen_oldest(position, active, forced)  # lines 4 to 7
        self.recent = torch.cat([self.recent, h[:, None]], dim=1)  # line 3: screened first, S never exceeds its size
        self.recent_key = torch.cat([self.recent_key, self.read.keys(self.parameters, h)[:, None]], dim=1)
        if self.history is not None:
            self.history.append(h[:, None])
        empty = self._find_empty(position)
        keys = torch.cat([self.recent_key, self.relevant_key], dim=1)
        values = torch.cat([self.recent, self.relevant], dim=1)  # line 8
        gates = self._log_gates()
        held = Held(keys, values, empty, position)
        summary, self.weights, self.scores = self.read.read(self.parameters, s, held, gates)  # lines 9 to 12
        self._collect_relevance(active)
        return summary

    def store(self, s: Tensor, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        """Nothing to do: this memory holds ``h``, which entered before the read."""

    def held_steps(self, position: Tensor) -> Tensor:
        recent = position[:, None] - self._age()
        return torch.cat([recent.clamp(min=EMPTY), self.relevant_step], dim=1)

    def fields(self, final: Tensor, lengths: Tensor | None) -> dict[str, Tensor]:
        entries = self.recent
        if self.history is not None:
            entries = torch.cat(self.history, dim=1)
        # One past a row's newest entry; in a row that ended early that is not the last.
        slots = self.size
        if slots is None:
            slots = entries.shape[1]
        end = torch.full_like(final, entries.shape[1])
        if lengths is not None:
            end = self.given + lengths
        # Scores have all slots from the start and move on in active rows alone: the newest is always the last.
        score_end = torch.full_like(final, self.recent_score.shape[1])
        return {
            "recent": roll(entries, final, end, slots),
            "recent_score": roll(self.recent_score, final, score_end, self.recent_score.shape[1]),
            "relevant": self.relevant,
            "relevant_score": self.relevant_score,
            "relevant_step": self.relevant_step,
        }

    def _find_empty(self, position: Tensor) -> Tensor:
        """The slots that hold nothing, ``(B, slots)``."""
        free = self.relevant_step == EMPTY
        if not self.rows_may_be_young:
            return F.pad(free, (self.recent.shape[1], 0))
        older = self._age() > position[:, None]
        if self.rows_were_reset:  # a weight of 0 would not do away with a NaN
            self.recent = torch.where(older[..., None], 0.0, self.recent)
            self.recent_key = torch.where(older[..., None], 0.0, self.recent_key)
        return torch.cat([older, free], dim=1)

    def _age(self) -> Tensor:
        """Steps since each buffer entry: ``(L,)``, oldest first, 0 for the newest."""
        return torch.arange(self.recent.shape[1] - 1, -1, -1, device=self.recent.device)

    def _screen_oldest(self, position: Tensor, active: Tensor, forced: Tensor | None) -> None:
        """The oldest entry leaves the buffer; it enters the relevant set if the screen, C(i), gives it a slot."""
        oldest = self.recent[:, 0]
        oldest_key = self.recent_key[:, 0]
        self.recent = self.recent[:, 1:]
        self.recent_key = self.recent_key[:, 1:]
        if not self.relevant.shape[1]:
            return
        score = self.recent_score[:, 0]
        # The entry that leaves is as old as the buffer is long; in a row younger than that nothing leaves.
        step = position - self.recent_score.shape[1]
        due = active & (step >= 0)
        if forced is None:
            relevance = self._judge(score[:, None], step[:, None], oldest[:, None], position)[:, 0]
            held = self._judge(self.relevant_score, self.relevant_step, self.relevant, position)
            self.slot = self.screen.place(relevance, held, self.relevant_step, due)
        else:
            self.slot = forced
        self.displaced = displaced_step(self.relevant_step, self.slot)
        place = mark_slot(self.slot, self.relevant.shape[1])
        self.relevant = write_slot(self.relevant, place, oldest)
        self.relevant_key = write_slot(self.relevant_key, place, oldest_key)
        self.relevant_score = write_slot(self.relevant_score, place, score)
        self.relevant_step = write_slot(self.relevant_step, place, step)

    def _judge(self, score: Tensor, step: Tensor, states: Tensor, position: Tensor) -> Tensor:
        """The relevance of some states before the read at ``position``."""
        judged = Judged(score, step, position[:, None] - step, states)
        return self.screen.relevance(judged, self.parameters)

    def _log_gates(self) -> Tensor | None:
        """What the screen adds to the scores, ``(B, slots)``: nothing for the buffer, which is not screened."""
        if not self.relevant.shape[1]:
            return None
        gates = self.screen.log_gate(self.relevant, self.parameters)
        if gates is None:
            return None
        return F.pad(gates, (self.recent.shape[1], 0))

    def _collect_relevance(self, active: Tensor) -> None:
        """Add this step's weights to beta; the scores of the buffer's entries are kept newest last."""
        if not self.recent_score.shape[1]:
            return
        received, received_later = self.weights.detach().tensor_split([self.recent.shape[1]], dim=1)
        if self.screen.follows:
            followed = self.screen.collect(self.relevant_score, received_later[:, None])
            followed = empty_slots(self.relevant_step == EMPTY, followed)  # the weights of a NaN are NaN everywhere
            self.relevant_score = self._advance(active, followed, self.relevant_score)
        # The oldest score left with its state; the newest state starts at 0.
        moved = F.pad(self.recent_score[:, 1:], (0, 1))
        # A buffer that is still filling has fewer entries than scores, which are aligned at the newest.
        if received.shape[1] < moved.shape[1]:
            received = F.pad(received, (moved.shape[1] - received.shape[1], 0))
        grown = self.screen.collect(moved, received[:, None])
        self.recent_score = self._advance(active, grown, self.recent_score)

    def _advance(self, active: Tensor, new: Tensor, old: Tensor) -> Tensor:
        """The new values, the old ones in rows that have ended."""
        if not self.ragged:
            return new
        return where_rows(active, new, old)
