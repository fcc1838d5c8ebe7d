"""The screens: who stays when a bounded memory has no room for all.

A :class:`Screened` memory of a layer and the key-value cache of a decoder (:mod:`remanence.kv`) take the same ones. The
choice itself carries no gradient. A screen with parameters learns through the weight that it gives, by its gate, to the
states that were admitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import torch.nn.functional as F
from torch import Tensor

from remanence._validate import positive_int

from ._slots import choose_slot
from ._weights import OwnParameter, Weights


class Judged(NamedTuple):
    """The states that a screen compares, ``K`` of each row; in a cache they are keys, ``K`` of each row and head."""

    score: Tensor
    """``(..., K)``: the attention collected so far."""
    step: Tensor
    """``(..., K)`` int64: their steps."""
    age: Tensor
    """``(..., K)`` int64: how many queries have seen them."""
    states: Tensor
    """``(..., K, n)``; a cache gives the norm of the value as a state of one feature."""


@dataclass(frozen=True)
class Screen:
    """Which states stay: attention is collected while a state is in the buffer, and relevance compared when it leaves.

    Derive from it, as a frozen dataclass, and define :meth:`relevance`. A screen keeps nothing of its own: all that it
    judges by is in the state of the layer or the cache, so chunks, single steps and replays make the same choices.

    Example:
        >>> @dataclass(frozen=True)
        ... class Oldest(Screen):
        ...     def relevance(self, judged, weights=None):
        ...         return judged.age.to(judged.score)
        >>> Oldest()
        Oldest()
    """

    follows: ClassVar[bool] = False
    """Whether attention is collected after admission too; if not, the score is frozen then."""
    reads_attention: ClassVar[bool] = True
    """Whether a cache must find out the attention weights; without them a step is cheaper."""
    keeps_recent: ClassVar[bool] = True
    """Whether a cache keeps its newest keys whatever their relevance. A layer always has its buffer."""
    sinks: ClassVar[int] = 0
    """How many of the first keys a cache keeps whatever their relevance, unless the user says otherwise."""
    shares_heads: ClassVar[bool] = False
    """Whether all key heads of a cache keep the same keys, by their mean attention."""

    def relevance(self, judged: Judged, weights: Weights | None = None) -> Tensor:
        """What the states are compared by, ``(..., K)``: the greatest stay.

        Args:
            judged: the states.
            weights: parameters of the layer; a cache has none.
        """
        return judged.score

    def collect(self, score: Tensor, received: Tensor) -> Tensor:
        """The scores after some queries: the sum of what was received so far.

        Args:
            score: ``(..., K)`` before them; 0 for a new state.
            received: ``(..., queries, K)``, the weights that they gave.
        """
        return score + received.sum(-2)

    def place(self, relevance: Tensor, held: Tensor, steps: Tensor, due: Tensor) -> Tensor:
        """The slot that a state takes: the first free one, else that of the least relevance if it is strictly beaten.

        Args:
            relevance: ``(B,)`` of the state that leaves the buffer.
            held: ``(B, relevant)``, the relevance of those in the set.
            steps: ``(B, relevant)`` int64, their steps; -1 where a slot is free.
            due: ``(B,)`` bool, whether there is such a state.

        Returns:
            ``(B,)`` int64, -1 where it is forgotten.
        """
        return choose_slot(relevance, held, steps, due)

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        """The parameters that it needs, by name; any but ``weight_gate`` and ``bias_gate`` is ``weights.own(name)``."""
        return {}

    def log_gate(self, states: Tensor, weights: Weights) -> Tensor | None:
        """What is added to the scores of admitted states when they are read, or ``None``.

        Args:
            states: ``(B, K, n)``.
            weights: parameters of the layer.
        """
        return None


@dataclass(frozen=True)
class Attention(Screen):
    """Relevance is the attention that a state received while in the buffer (beta of Kerg et al., 2020).

    The first states collect more than later ones, because they shared it with few while the buffer filled.

    Example:
        >>> from torch import tensor
        >>> Attention().collect(tensor([[0.5, 0.0]]), tensor([[[0.25, 0.75]]])).tolist()
        [[0.75, 0.75]]
    """


@dataclass(frozen=True)
class MeanAttention(Screen):
    """Relevance is the mean attention per query since a state was stored, in the relevant set too.

    A start is fair: the lead of the first states, which shared attention with few, wears off.

    Example:
        >>> import torch
        >>> states = torch.ones(1, 2, 3)
        >>> judged = Judged(torch.tensor([[2.0, 1.0]]), torch.tensor([[0, 8]]), torch.tensor([[10, 2]]), states)
        >>> MeanAttention().relevance(judged)
        tensor([[0.2000, 0.5000]])
    """

    follows = True
    sinks = 4

    def relevance(self, judged: Judged, weights: Weights | None = None) -> Tensor:
        """The score over the number of queries."""
        return judged.score / judged.age


@dataclass(frozen=True)
class ValueWeighted(Screen):
    """Relevance is the attention received in the buffer, times the norm of the state: a state near 0 changes no read.

    Example:
        >>> import torch
        >>> states = torch.tensor([[[3.0, 4.0], [0.0, 0.1]]])
        >>> judged = Judged(torch.tensor([[0.5, 1.0]]), torch.tensor([[0, 8]]), torch.tensor([[10, 2]]), states)
        >>> ValueWeighted().relevance(judged)
        tensor([[2.5000, 0.1000]])
    """

    def relevance(self, judged: Judged, weights: Weights | None = None) -> Tensor:
        """The score times the Euclidean norm."""
        return judged.score * judged.states.detach().norm(dim=-1)


@dataclass(frozen=True)
class Learned(Screen):
    """Relevance is a trained gate on the state itself.

    The gate is ``g = sigmoid(w . m + b)``. Admission is soft: an admitted state of score ``e`` is read with the weight
    ``g exp(e)`` in place of ``exp(e)``; a gate of 0 is like a free slot. Given who was admitted, the gradient is the
    derivative. A state that is read to good use raises its gate, and with it the chance of those like it to be
    admitted.

    Example:
        >>> list(Learned().own_parameters(8))
        ['weight_gate', 'bias_gate']
    """

    def relevance(self, judged: Judged, weights: Weights | None = None) -> Tensor:
        """The gate before the sigmoid, without gradient: larger is larger."""
        return _gate_input(judged.states, weights).detach()

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        """A vector and a bias."""
        return {"weight_gate": OwnParameter((hidden_size,)), "bias_gate": OwnParameter((1,))}

    def log_gate(self, states: Tensor, weights: Weights) -> Tensor | None:
        """``ln g``, ``(B, K)``."""
        return F.logsigmoid(_gate_input(states, weights))


def _gate_input(states: Tensor, weights: Weights | None) -> Tensor:
    assert weights is not None
    assert weights.gate is not None
    assert weights.gate_bias is not None
    return states @ weights.gate + weights.gate_bias


@dataclass(frozen=True)
class Random(Screen):
    """A control: every state that has left the buffer is equally likely to be held.

    Its relevance is a hash of its step, so chunks, single steps and replays choose alike. All rows of a batch hold the
    same steps: a row knows nothing of its place among the others.

    Args:
        seed: another one makes other choices.

    Example:
        >>> Random(3)
        Random(seed=3)
    """

    reads_attention = False
    seed: int = 0

    def __post_init__(self) -> None:
        positive_int("seed", self.seed, minimum=0)

    def relevance(self, judged: Judged, weights: Weights | None = None) -> Tensor:
        """24 bits of the hash: whole numbers that float32 holds exactly."""
        mixed = _hash(_hash(judged.step) ^ (self.seed & UINT32))
        return (mixed >> 8).float()


UINT32 = 0xFFFFFFFF


def _hash(number: Tensor) -> Tensor:
    """32 bits, mixed: no product leaves int64, since both multipliers are below 2^31."""
    number = number & UINT32
    number = ((number ^ (number >> 16)) * 0x7FEB352D) & UINT32
    number = ((number ^ (number >> 15)) * 0x5BD1E995) & UINT32
    return number ^ (number >> 16)


@dataclass(frozen=True)
class Newest(Screen):
    """A control: the relevant set holds the newest states that have left the buffer, as a longer buffer would.

    Example:
        >>> Newest()
        Newest()
    """

    reads_attention = False

    def relevance(self, judged: Judged, weights: Weights | None = None) -> Tensor:
        """The younger the more relevant."""
        return -judged.age.to(judged.score)


SCREENS: dict[str, Screen] = {
    "attention": Attention(),
    "mean": MeanAttention(),
    "value": ValueWeighted(),
    "learned": Learned(),
    "random": Random(),
    "newest": Newest(),
}
"""The screens that have a name, in the order of ``Screen`` in the kernel."""

ScreenLike: TypeAlias = str | Screen
