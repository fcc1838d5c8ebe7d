"""The reads: how a memory is scored and summed, which of it counts, and how the sum meets the state."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from remanence._validate import one_of

from ._weights import OwnParameter, Weights

Combine: TypeAlias = Literal["sum", "half", "concat"]
ScoreName: TypeAlias = Literal["additive", "dot"]


class Held(NamedTuple):
    """What a memory holds when it is read."""

    keys: Tensor
    """``(B, slots, ...)`` of :meth:`Read.keys`."""
    values: Tensor
    """``(B, slots, n)``."""
    empty: Tensor
    """``(B, slots)`` bool: where nothing is held."""
    stored: Tensor
    """``(B,)`` int64: how many states were stored so far."""


class Reading(NamedTuple):
    """What one read of a memory gave."""

    summary: Tensor
    """``(B, n)``: the weighted sum of what is held."""
    weights: Tensor
    """``(B, slots)``."""
    scores: Tensor
    """``(B, slots)``: before the softmax or the threshold; -inf where nothing is held."""


@dataclass(frozen=True)
class Read(ABC):
    """How a memory is scored and summed for a querying state, and how the sum is combined with that state.

    Derive from it, as a frozen dataclass, and give yours as ``Screened(recent, relevant, score=...)``: it runs on the
    reference.

    Args:
        combine: how state ``h`` and summary ``r`` make the macro-state: ``"sum"``, ``h + r``; ``"half"``,
            ``(h + r) / 2``; ``"concat"``, ``[h; r]``.

    Example:
        >>> from remanence.ops import ScanSpec, Screened
        >>> ScanSpec("lstm", Screened(4, 2), combine="half").read
        SoftmaxRead(combine='half', score='additive')
    """

    combines: ClassVar[tuple[Combine, ...]] = ("sum", "half", "concat")
    """Values of ``combine`` that a layer with it may have."""

    combine: Combine = field(default="sum", kw_only=True)

    @abstractmethod
    def own_parameters(self, hidden_size: int, macro_size: int) -> dict[str, OwnParameter]:
        """The parameters that it needs, by name; one without a field in :class:`Weights` is ``weights.own(name)``."""

    @abstractmethod
    def keys(self, weights: Weights, values: Tensor) -> Tensor:
        """What can be said of the states ``(..., n)`` before anyone asks: computed once, when they enter."""

    @abstractmethod
    def read(self, weights: Weights, state: Tensor, held: Held, log_gates: Tensor | None = None) -> Reading:
        """Read the memory.

        Args:
            weights: parameters of the layer.
            state: ``(B, n)``, what asks.
            held: what the memory holds.
            log_gates: ``(B, slots)``, what a screen adds to the scores: a gate multiplies what a softmax would give.
        """

    def join(self, h: Tensor, summary: Tensor) -> Tensor:
        """The macro-state ``(B, m)`` of state and summary, both ``(B, n)``."""
        if self.combine == "concat":
            return torch.cat([h, summary], dim=1)
        if self.combine == "half":
            return (h + summary) / 2
        return h + summary

    def macro_size(self, hidden_size: int) -> int:
        """Size of the macro-state, m."""
        return hidden_size * (1 + (self.combine == "concat"))


def check_score(score: ScoreName | Read) -> None:
    """Refuse what is neither the name of a score of :class:`SoftmaxRead` nor a read."""
    if not isinstance(score, Read):
        one_of("score", score, ("additive", "dot"))


@dataclass(frozen=True)
class SoftmaxRead(Read):
    """All that is held, weighted by a softmax of its scores.

    Args:
        score: ``"additive"`` (Bahdanau), ``v . tanh(W s + U m)``, or ``"dot"`` (scaled dot product).

    Example:
        >>> list(SoftmaxRead("dot").own_parameters(8, 8))
        ['weight_query', 'weight_key']
    """

    score: ScoreName = "additive"

    def own_parameters(self, hidden_size: int, macro_size: int) -> dict[str, OwnParameter]:
        """Query and key matrices; the additive score has a vector too."""
        needed = {
            "weight_query": OwnParameter((hidden_size, macro_size)),
            "weight_key": OwnParameter((hidden_size, hidden_size)),
        }
        if self.score == "additive":
            needed["weight_score"] = OwnParameter((hidden_size,))
        return needed

    def keys(self, weights: Weights, values: Tensor) -> Tensor:
        """``U m``, ``(..., n)``."""
        assert weights.key is not None
        return F.linear(values, weights.key)

    def read(self, weights: Weights, state: Tensor, held: Held, log_gates: Tensor | None = None) -> Reading:
        """See :meth:`Read.read`; the newest state is among the values, so none is ever read from nothing."""
        assert weights.query is not None
        query = F.linear(state, weights.query)  # W_a s
        if self.score == "dot":
            scores = torch.einsum("bkn,bn->bk", held.keys, query) / math.sqrt(query.shape[1])
        else:
            assert weights.score is not None
            scores = (query[:, None] + held.keys).tanh() @ weights.score
        if log_gates is not None:
            scores = scores + log_gates
        scores = scores.masked_fill(held.empty, -math.inf)
        shares = scores.softmax(dim=1)
        return Reading(torch.bmm(shares[:, None], held.values)[:, 0], shares, scores)


@dataclass(frozen=True)
class ThresholdRead(Read):
    """What scores above a threshold, the score of a given rank (Sparse Attentive Backtracking).

    :class:`remanence.ops.Strided` explains the arguments; ``rank`` is that of the threshold.

    Example:
        >>> from remanence.ops import Strided
        >>> Strided(top_k=5, score="tanh").read.is_static
        True
    """

    rank: int
    top_k: int
    score: Literal["affine", "tanh", "mlp"]
    normalise: bool
    underfull: Literal["threshold", "raw"]
    sparse: Literal["forward", "backward"]

    combines = ("sum",)
    normaliser_floor = 1e-7  # as in the authors' code: all weights may be zero

    @property
    def is_static(self) -> bool:
        """Whether the present state adds the same to all scores, and so cancels wherever they are compared."""
        return self.score != "mlp"

    def own_parameters(self, hidden_size: int, macro_size: int) -> dict[str, OwnParameter]:
        """Vectors for the static scores, with a bias for the affine one; matrices and a vector for the mlp."""
        if not self.is_static:
            square = OwnParameter((hidden_size, hidden_size))
            return {"weight_query": square, "weight_key": square, "weight_score": OwnParameter((hidden_size,))}
        weak = OwnParameter((hidden_size,), partial(nn.init.normal_, std=0.01))  # as in the authors' code
        needed = {"weight_query": weak, "weight_key": weak}
        if self.score == "affine":
            needed["weight_score"] = OwnParameter((1,))
        return needed

    def keys(self, weights: Weights, values: Tensor) -> Tensor:
        """The score of each state, ``(...)``, or its part of the mlp's hidden layer, ``(..., n)``."""
        assert weights.key is not None
        if not self.is_static:
            return F.linear(values, weights.key)
        if self.score == "tanh":
            values = values.tanh()
        return values @ weights.key

    def read(self, weights: Weights, state: Tensor, held: Held, log_gates: Tensor | None = None) -> Reading:
        """See :meth:`Read.read`."""
        _, values, empty, stored = held
        present, scores = self._score(weights, state, held.keys)
        if log_gates is not None:
            scores = scores + log_gates
        # What cancels in every comparison is added only where a score itself is asked for.
        absolute = scores + present
        # All states are read, and only the best of them, by state and by score, are sent gradient.
        if self.sparse == "backward":
            best = scores >= self._threshold(scores, empty)
            shares = self._dense(scores, present, empty, best)
            values = torch.where(best[..., None], values, values.detach())
        else:
            shares = self._sparse(scores, empty)
        if self.underfull == "raw":
            few = (stored <= self.top_k)[:, None]
            shares = torch.where(few, absolute.masked_fill(empty, 0.0), shares)
        summary = torch.bmm(shares[:, None], values)[:, 0]
        return Reading(summary, shares, absolute.masked_fill(empty, -math.inf))

    def touch(self, weights: Weights, keys: Tensor) -> Tensor:
        """``keys`` with the same bits, so that a query that cancels gets a gradient of zeros and not none at all.

        Optimisers and processes that share gradients expect one for every parameter.
        """
        if not self.is_static:
            return keys
        assert weights.query is not None
        unused = weights.query.sum()
        if weights.score is not None:
            unused = unused + weights.score.sum()
        never = torch.zeros((), dtype=torch.bool, device=keys.device)
        return torch.where(never, unused, keys)

    def _score(self, weights: Weights, state: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """What the present state adds to all scores alike, ``(B, 1)``, and the rest, ``(B, slots)``.

        The first cancels wherever scores are compared: for the static scores it holds all of the query.
        """
        assert weights.query is not None
        if not self.is_static:
            assert weights.score is not None
            hidden = (F.linear(state, weights.query)[:, None] + keys).tanh()
            return state.new_zeros(state.shape[0], 1), hidden @ weights.score
        if self.score == "tanh":
            state = state.tanh()
        present = state @ weights.query
        if weights.score is not None:
            present = present + weights.score
        return present[:, None], keys

    def _threshold(self, scores: Tensor, empty: Tensor) -> Tensor:
        """The score of rank ``min(rank, number held)``: ``(B, 1)``; 0 where nothing is held."""
        rank = min(self.rank, scores.shape[1])
        if not rank:
            return scores.new_zeros(len(scores), 1)
        order = scores.masked_fill(empty, -math.inf).topk(rank, dim=1).indices
        held = (~empty).sum(dim=1, keepdim=True)
        place = (held.clamp(max=rank) - 1).clamp(min=0)
        threshold = scores.gather(1, order.gather(1, place))
        return torch.where(held > 0, threshold, 0.0)

    def _sparse(self, scores: Tensor, empty: Tensor) -> Tensor:
        shares = (scores - self._threshold(scores, empty)).relu().masked_fill(empty, 0.0)
        if not self.normalise:
            return shares
        return shares / (shares.sum(dim=1, keepdim=True) + self.normaliser_floor)

    def _dense(self, scores: Tensor, present: Tensor, empty: Tensor, best: Tensor) -> Tensor:
        scores = torch.where(best, scores, scores.detach())
        if not self.normalise:
            return (scores + present).masked_fill(empty, 0.0)
        # A finite stand-in for -inf: a row that holds nothing yet must not become NaN.
        shares = scores.masked_fill(empty, torch.finfo(scores.dtype).min).softmax(dim=1)
        return shares.masked_fill(empty, 0.0)
