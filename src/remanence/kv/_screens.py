"""Screens: rules that say which of the keys held so far stay when there is no room for all.

Everything here is a pure function of tensors and knows no model. The last dimension of every tensor is the slots of
one key head; what comes before it (rows, heads) is carried along. A screen does two things: it adds the attention
weights of new queries to the scores of the slots, and it turns scores into relevance. What is least relevant goes.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from remanence._validate import message, one_of


class Screen:
    """Says who stays; the base of all screens.

    Attributes:
        reads_attention: whether the score needs attention weights; without them a step is cheaper.
        keeps_recent: whether the newest keys are safe from it, whatever their score.
        sinks: how many of the first keys are safe from it unless the user says otherwise.

    Example:
        >>> Attention().reads_attention, Window().sinks
        (True, 4)
    """

    reads_attention: ClassVar[bool] = True
    keeps_recent: ClassVar[bool] = True
    sinks: ClassVar[int] = 0

    def collect(self, score: Tensor, weights: Tensor, age: Tensor, recent: int) -> Tensor:
        """Adds what new queries attended to.

        Args:
            score: of every slot so far, ``(..., slots)``.
            weights: attention weights of the new queries, ``(..., queries, slots)``; 0 where a query does not look.
            age: steps from a key to a query, ``(..., queries, slots)``, negative where the key comes later.
            recent: size of the recent window.

        Returns:
            The new scores, ``(..., slots)``.
        """
        return score + weights.sum(-2)

    def relevance(self, score: Tensor, age: Tensor, norm: Tensor) -> Tensor:
        """Turns scores into what the slots are compared by.

        Args:
            score: as collected, ``(..., slots)``.
            age: steps from a key to the newest query, ``(..., slots)``.
            norm: Euclidean norm of a slot's value, ``(..., slots)``.

        Returns:
            ``(..., slots)``; the greatest stay.
        """
        return score

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Attention(Screen):
    """Beta of Kerg et al. (2020): the attention that a key received in the recent window; frozen when it leaves it.

    Every key is judged by the same number of queries, those of its first `recent` steps.

    Example:
        >>> weights, age = torch.tensor([[0.2, 0.8]]), torch.tensor([[4, 0]])
        >>> Attention().collect(torch.zeros(2), weights, age, recent=4)
        tensor([0.0000, 0.8000])
    """

    def collect(self, score: Tensor, weights: Tensor, age: Tensor, recent: int) -> Tensor:
        return score + torch.where(age < recent, weights, 0.0).sum(-2)


class MeanAttention(Screen):
    """The mean attention per query since a key came, never frozen: old keys win no lead by their age.

    Example:
        >>> MeanAttention().relevance(torch.tensor([1.0, 0.5]), torch.tensor([9, 0]), torch.ones(2))
        tensor([0.1000, 0.5000])
    """

    sinks: ClassVar[int] = 4

    def relevance(self, score: Tensor, age: Tensor, norm: Tensor) -> Tensor:
        return score / (age + 1)


class ValueWeighted(Attention):
    """Beta times the norm of the value: attention to a value near 0 changes nothing.

    Example:
        >>> ValueWeighted().relevance(torch.tensor([1.0, 0.5]), torch.tensor([9, 0]), torch.tensor([0.1, 4.0]))
        tensor([0.1000, 2.0000])
    """

    def relevance(self, score: Tensor, age: Tensor, norm: Tensor) -> Tensor:
        return score * norm


class Window(Screen):
    """The first keys and the newest, as StreamingLLM (Xiao et al., 2023); keys keep their true positions here.

    Example:
        >>> Window().relevance(torch.zeros(2), torch.tensor([9, 1]), torch.ones(2))
        tensor([-9., -1.])
    """

    reads_attention: ClassVar[bool] = False
    keeps_recent: ClassVar[bool] = False
    sinks: ClassVar[int] = 4

    def relevance(self, score: Tensor, age: Tensor, norm: Tensor) -> Tensor:
        return -age.to(score.dtype)


class HeavyHitter(Screen):
    """H2O (Zhang et al., 2023): the attention that a key ever received. It sums for ever, so old keys win.

    Example:
        >>> HeavyHitter().collect(torch.tensor([3.0]), torch.tensor([[0.5]]), torch.tensor([[99]]), recent=4)
        tensor([3.5000])
    """


class TOVA(Screen):
    """TOVA (Oren et al., 2024): the last query's attention alone, the mean over the layer's heads.

    Heads are the dimension before the slots; all of them keep the same keys.

    Example:
        >>> weights = torch.tensor([[[0.2, 0.8]], [[0.4, 0.6]]])  # two heads, one query, two slots
        >>> TOVA().collect(torch.zeros(2, 2), weights, torch.zeros(2, 1, 2), recent=0)
        tensor([[0.3000, 0.7000],
                [0.3000, 0.7000]])
    """

    keeps_recent: ClassVar[bool] = False

    def collect(self, score: Tensor, weights: Tensor, age: Tensor, recent: int) -> Tensor:
        return weights[..., -1, :].mean(-2, keepdim=True).expand_as(score)


SCREENS: dict[str, type[Screen]] = {
    "attention": Attention,
    "mean": MeanAttention,
    "value": ValueWeighted,
    "window": Window,
    "h2o": HeavyHitter,
    "tova": TOVA,
}
"""The screens by the names that `ScreenedCache` and the command line take."""


def as_screen(screen: Any) -> Screen:
    """Takes a screen, or makes the one of that name.

    Raises:
        TypeError: it is neither a screen nor a name.
        ValueError: no screen has that name.

    Example:
        >>> as_screen("mean")
        MeanAttention()
    """
    if isinstance(screen, Screen):
        return screen
    if not isinstance(screen, str):
        raise TypeError(message("screen", "be a Screen or the name of one", screen, "Names: " + ", ".join(SCREENS)))
    return SCREENS[one_of("screen", screen, SCREENS)]()


def guarded(relevance: Tensor, age: Tensor, position: Tensor, recent: int, sinks: int) -> Tensor:
    """Puts the recent window and the sinks out of reach, and padding first in line to go.

    Args:
        relevance: of every slot, ``(..., slots)``.
        age: steps from a key to the newest query, ``(..., slots)``.
        position: place of a key in its row's text, ``(..., slots)``; negative for padding.
        recent: size of the recent window.
        sinks: how many first keys of a row are safe.

    Returns:
        Relevance, infinite for what must stay and minus infinite for what must go.

    Example:
        >>> guarded(torch.zeros(4), torch.arange(3, -1, -1), torch.arange(-1, 3), recent=1, sinks=1)
        tensor([-inf, inf, 0., inf])
    """
    safe = (age < recent) | (position < sinks)
    return relevance.masked_fill(safe, math.inf).masked_fill(position < 0, -math.inf)


def weakest(relevance: Tensor, age: Tensor) -> Tensor:
    """Finds the slot that goes: the least relevant, of several such the youngest.

    Args:
        relevance: of every slot, ``(..., slots)``.
        age: steps from a key to the newest query, ``(..., slots)``.

    Returns:
        One slot for each head, ``(..., 1)``.

    Example:
        >>> weakest(torch.tensor([0.5, 0.1, 0.1]), torch.tensor([2, 1, 0]))
        tensor([2])
    """
    least = relevance == relevance.amin(-1, keepdim=True)
    return age.masked_fill(~least, torch.iinfo(age.dtype).max).argmin(-1, keepdim=True)


def strongest(relevance: Tensor, age: Tensor, count: int) -> Tensor:
    """Finds the slots that stay when several go at once; `weakest` again and again would leave the same.

    Args:
        relevance: of every slot, ``(..., slots)``.
        age: steps from a key to the newest query, ``(..., slots)``; no two of a head alike.
        count: how many stay.

    Returns:
        Their slots, the oldest first, ``(..., count)``.

    Example:
        >>> strongest(torch.tensor([0.5, 0.1, 0.1]), torch.tensor([2, 1, 0]), count=2)
        tensor([0, 1])
    """
    from_old = age.argsort(-1, descending=True)
    by_rank = relevance.gather(-1, from_old).sort(dim=-1, descending=True, stable=True).indices
    return from_old.gather(-1, by_rank[..., :count].sort(-1).values)
