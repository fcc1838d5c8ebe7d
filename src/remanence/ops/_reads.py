"""The reads: how a memory is scored and summed, and how the sum meets the state."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from ._weights import Weights

Combine: TypeAlias = Literal["sum", "half", "concat"]


class Reading(NamedTuple):
    """What one read of a memory gave."""

    summary: Tensor
    """``(B, n)``: the weighted sum of what is held."""
    weights: Tensor
    """``(B, slots)``."""
    scores: Tensor
    """``(B, slots)``: before the softmax or the threshold; -inf where nothing is held."""


class Read(ABC):
    """How a memory is scored and summed, given the state that asks.

    Example:
        >>> from remanence.ops import ScanSpec, Screened
        >>> ScanSpec("lstm", Screened(4, 2)).read
        SoftmaxRead(score='additive')
    """

    initial_std: float | None = None
    """Standard deviation of query and key at first; ``None`` leaves them to the layer's own rule."""

    @abstractmethod
    def shapes(self, hidden_size: int, macro_size: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters that it needs."""

    @abstractmethod
    def keys(self, weights: Weights, values: Tensor) -> Tensor:
        """What can be said of the states ``(..., n)`` before anyone asks: computed once, when they enter."""

    @abstractmethod
    def read(
        self, weights: Weights, state: Tensor, keys: Tensor, values: Tensor, empty: Tensor, stored: Tensor
    ) -> Reading:
        """Read the memory.

        Args:
            weights: parameters of the layer.
            state: ``(B, n)``, what asks.
            keys: ``(B, slots, ...)`` of :meth:`keys`.
            values: ``(B, slots, n)``, what is held.
            empty: ``(B, slots)`` bool, where nothing is held.
            stored: ``(B,)`` int64, how many states were stored so far.
        """


def combine_state(combine: Combine, h: Tensor, summary: Tensor | None) -> Tensor:
    """The macro-state ``(B, m)`` of state and read; without a read the state itself.

    Args:
        combine: ``"sum"``, ``"half"`` or ``"concat"``.
        h: ``(B, n)``.
        summary: ``(B, n)``.
    """
    if summary is None:
        return h
    if combine == "concat":
        return torch.cat([h, summary], dim=1)
    return h + summary if combine == "sum" else (h + summary) / 2


@dataclass(frozen=True)
class SoftmaxRead(Read):
    """All that is held, weighted by a softmax of its scores.

    Args:
        score: ``"additive"`` (Bahdanau), ``v . tanh(W s + U m)``, or ``"dot"`` (scaled dot product).

    Example:
        >>> SoftmaxRead("dot").shapes(8, 8)
        {'weight_query': (8, 8), 'weight_key': (8, 8)}
    """

    score: Literal["additive", "dot"] = "additive"

    def shapes(self, hidden_size: int, macro_size: int) -> dict[str, tuple[int, ...]]:
        """Query and key matrices; the additive score has a vector too."""
        shapes: dict[str, tuple[int, ...]] = {
            "weight_query": (hidden_size, macro_size),
            "weight_key": (hidden_size, hidden_size),
        }
        if self.score == "additive":
            shapes["weight_score"] = (hidden_size,)
        return shapes

    def keys(self, weights: Weights, values: Tensor) -> Tensor:
        """``U m``, ``(..., n)``."""
        assert weights.key is not None
        return F.linear(values, weights.key)

    def read(
        self,
        weights: Weights,
        state: Tensor,
        keys: Tensor,
        values: Tensor,
        empty: Tensor,
        stored: Tensor,
        log_gates: Tensor | None = None,
    ) -> Reading:
        """See :meth:`Read.read`; the newest state is among the values, so none is ever read from nothing.

        ``log_gates`` ``(B, slots)`` is added to the scores: a gate multiplies what the softmax would give.
        """
        assert weights.query is not None
        query = F.linear(state, weights.query)
        if weights.score is None:
            scores = torch.einsum("bkn,bn->bk", keys, query) / math.sqrt(query.shape[1])
        else:
            scores = (query[:, None] + keys).tanh() @ weights.score
        if log_gates is not None:
            scores = scores + log_gates
        scores = scores.masked_fill(empty, -math.inf)
        shares = scores.softmax(dim=1)
        return Reading(torch.bmm(shares[:, None], values)[:, 0], shares, scores)


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

    normaliser_floor = 1e-7  # as in the authors' code: all weights may be zero

    @property
    def is_static(self) -> bool:
        """Whether the present state adds the same to all scores, and so cancels wherever they are compared."""
        return self.score != "mlp"

    @property
    def initial_std(self) -> float | None:  # type: ignore[override]
        """As in the authors' code: weak reads at first."""
        return 0.01 if self.is_static else None

    def shapes(self, hidden_size: int, macro_size: int) -> dict[str, tuple[int, ...]]:
        """Vectors for the static scores, with a bias for the affine one; matrices and a vector for the mlp."""
        n = hidden_size
        if not self.is_static:
            return {"weight_query": (n, n), "weight_key": (n, n), "weight_score": (n,)}
        shapes: dict[str, tuple[int, ...]] = {"weight_query": (n,), "weight_key": (n,)}
        if self.score == "affine":
            shapes["weight_score"] = (1,)
        return shapes

    def keys(self, weights: Weights, values: Tensor) -> Tensor:
        """The score of each state, ``(...)``, or its part of the mlp's hidden layer, ``(..., n)``."""
        assert weights.key is not None
        if not self.is_static:
            return F.linear(values, weights.key)
        if self.score == "tanh":
            values = values.tanh()
        return values @ weights.key

    def read(
        self, weights: Weights, state: Tensor, keys: Tensor, values: Tensor, empty: Tensor, stored: Tensor
    ) -> Reading:
        """See :meth:`Read.read`."""
        present, scores = self._score(weights, state, keys)
        absolute = scores + present
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
