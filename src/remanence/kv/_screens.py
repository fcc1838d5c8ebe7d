"""Screens in a cache of keys: those of other papers and those of the layers, and which key is evicted.

Everything here is a pure function of tensors and knows no model. The last dimension of every tensor is the slots of
one key head; what comes before it (rows, heads) is carried along. A screen does two things: it adds the attention
weights of new queries to the scores of the slots, and it turns scores into relevance. What is least relevant goes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from remanence._validate import message, one_of
from remanence.ops import Attention, Judged, MeanAttention, Newest, Screen, ValueWeighted


@dataclass(frozen=True)
class Window(Newest):
    """The first keys and the newest, as StreamingLLM (Xiao et al., 2023); keys keep their true positions here.

    Example:
        >>> Window().sinks, Window().keeps_recent
        (4, False)
    """

    keeps_recent = False
    sinks = 4


@dataclass(frozen=True)
class HeavyHitter(Screen):
    """H2O (Zhang et al., 2023): all attention that a key has received. The sum never stops growing, so old keys win.

    Example:
        >>> HeavyHitter().follows
        True
    """

    follows = True


@dataclass(frozen=True)
class TOVA(Screen):
    """TOVA (Oren et al., 2024): the last query's attention alone, the mean over the layer's heads.

    Example:
        >>> TOVA().collect(torch.zeros(2), torch.tensor([[0.2, 0.8], [0.4, 0.6]]))  # two queries, two slots
        tensor([0.4000, 0.6000])
    """

    follows = True
    keeps_recent = False
    shares_heads = True

    def collect(self, score: Tensor, received: Tensor) -> Tensor:
        """What the last query gave."""
        return received[..., -1, :].expand_as(score)


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
        ValueError: no screen has that name, or it has parameters, which a cache cannot train.

    Example:
        >>> as_screen("mean")
        MeanAttention()
    """
    if isinstance(screen, Screen):
        if screen.own_parameters(1):
            raise ValueError(message("screen", "have no parameters: a cache trains none", screen))
        return screen
    if not isinstance(screen, str):
        raise TypeError(message("screen", "be a Screen or the name of one", screen, "Names: " + ", ".join(SCREENS)))
    return SCREENS[one_of("screen", screen, SCREENS)]()


def collected(screen: Screen, score: Tensor, weights: Tensor, age: Tensor | None, recent: int) -> Tensor:
    """The scores after new queries; what a key receives outside the recent window counts if the screen follows it.

    Args:
        screen: decides which keys stay.
        score: of every slot so far, ``(..., heads, slots)``.
        weights: attention weights of the new queries, ``(..., heads, queries, slots)``; 0 where a query does not look.
        age: steps from a key to a query, as `weights`, negative where the key comes later; a screen that follows its
            keys needs none.
        recent: size of the recent window.

    Returns:
        The new scores, ``(..., heads, slots)``.

    Example:
        >>> weights, age = torch.tensor([[[0.2, 0.8]]]), torch.tensor([[[4, 0]]])
        >>> collected(Attention(), torch.zeros(1, 2), weights, age, recent=4)
        tensor([[0.0000, 0.8000]])
    """
    if screen.follows:
        counted = weights
    else:
        assert age is not None
        counted = torch.where(age < recent, weights, 0.0)
    if screen.shares_heads:
        counted = counted.mean(-3, keepdim=True)
    return screen.collect(score, counted)


def relevance(screen: Screen, score: Tensor, index: Tensor, age: Tensor, norm: Tensor) -> Tensor:
    """What the slots are compared by.

    Args:
        screen: decides which keys stay.
        score: as collected, ``(..., slots)``.
        index: tokens before a key in the stream, ``(..., slots)``.
        age: steps from a key to the newest query, ``(..., slots)``.
        norm: Euclidean norm of a slot's value, ``(..., slots)``.

    Example:
        >>> score, age = torch.tensor([1.0, 0.5]), torch.tensor([9, 0])
        >>> relevance(MeanAttention(), score, 9 - age, age, torch.ones(2))
        tensor([0.1000, 0.5000])
    """
    # The query of its own step has seen a key too.
    return screen.relevance(Judged(score, index, age + 1, norm[..., None]))


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
    """Finds the slot to evict: the least relevant, and of equals the youngest.

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
    # From the oldest on, so that the stable sort leaves the older of equals in front.
    from_old = age.argsort(-1, descending=True)
    by_rank = relevance.gather(-1, from_old).sort(dim=-1, descending=True, stable=True).indices
    return from_old.gather(-1, by_rank[..., :count].sort(-1).values)
