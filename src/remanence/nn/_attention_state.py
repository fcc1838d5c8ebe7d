"""What causal attention carries from one call to the next, and how the cache of softmax attention is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from remanence.ops import states
from remanence.ops.states import cat, register_state

EMPTY = -1
"""Position of a slot that holds nothing."""


class CacheState(NamedTuple):
    """What causal softmax attention carries: keys and values of the past.

    **It grows with the sequence** unless the layer has a `context`; then its size is fixed. Every field is
    ``(depth, B, slots, ...)``, without ``B`` when unbatched.

    Example:
        >>> from remanence.nn._multi_head_attention import MultiHeadAttention
        >>> attention = MultiHeadAttention(8, 2, causal=True)
        >>> _, state = attention(torch.randn(5, 3, 8))
        >>> state.key.shape, state.select([0]).position.tolist()
        (torch.Size([1, 3, 5, 2, 4]), [[[0, 1, 2, 3, 4]]])
    """

    key: Tensor
    """``(..., slots, heads, head_size)``."""
    value: Tensor
    """``(..., slots, heads, head_size)``."""
    position: Tensor
    """``(..., slots)`` int64: the row's step that a slot holds, -1 if it is empty."""
    step: Tensor
    """``(...)`` int64: steps since the row's start."""

    nbytes = property(states.nbytes)
    detach = states.detach
    to = states.to
    select = states.select

    @staticmethod
    def cat(states: Sequence[CacheState]) -> CacheState:
        """The rows of several states in one batch; shorter caches are padded with empty slots."""
        return cat(states, {"key": 0, "value": 0, "position": EMPTY})


class RunningState(NamedTuple):
    """What causal linear attention carries: sums over the past, of fixed size.

    Every field is ``(depth, B, ...)``, without ``B`` when unbatched.

    Example:
        >>> from remanence.nn._multi_head_attention import MultiHeadAttention
        >>> attention = MultiHeadAttention(8, 2, kind="separable", causal=True)
        >>> attention.initial_state(3).total.shape
        torch.Size([1, 3, 2, 4, 4])
    """

    peak: Tensor
    """``(..., heads, features)``: greatest key logit (no gradient)."""
    mass: Tensor
    """``(..., heads, features)``: sum of ``exp(logit - peak)``."""
    total: Tensor
    """``(..., heads, features, head_size)``: the same sum of the values."""
    step: Tensor
    """``(...)`` int64: steps since the row's start."""

    nbytes = property(states.nbytes)
    detach = states.detach
    to = states.to
    select = states.select
    cat = staticmethod(states.cat)


AttentionState: TypeAlias = CacheState | RunningState
register_state(CacheState, "remanence.nn.CacheState")
register_state(RunningState, "remanence.nn.RunningState")


def step_numbers(step: Tensor, length: int, padded: Tensor | None) -> Tensor:
    """The number of the last true step of the row at or before each position, ``(B, T)`` int64.

    Args:
        step: ``(B,)`` int64, steps already taken.
        length: number of positions, ``T``.
        padded: ``(B, T)`` bool, or None if all rows are full.
    """
    counts = torch.arange(1, length + 1, device=step.device)
    if padded is not None:
        counts = (~padded).cumsum(1)
    return step.unsqueeze(1) + counts - 1


def extend_cache(past: CacheState, key: Tensor, value: Tensor, padded: Tensor | None) -> tuple[CacheState, Tensor]:
    """The cache of one layer with new keys and values, ``(B, T, heads, head_size)``, and their :func:`step_numbers`."""
    clock = position = step_numbers(past.step[0], key.shape[1], padded)
    if padded is not None:
        position = clock.masked_fill(padded, EMPTY)
    pairs = zip(past, (key, value, position), strict=False)
    key, value, position = (torch.cat([old, new.unsqueeze(0)], dim=2) for old, new in pairs)
    return CacheState(key, value, position, clock[:, -1].unsqueeze(0) + 1), clock


def visible(clock: Tensor, position: Tensor, context: int | None) -> Tensor:
    """Which slots each step may see, ``(B, T, slots)``: filled ones, not later than it, and not older than the context.

    Args:
        clock: ``(B, T)`` int64, steps of the queries.
        position: ``(B, slots)`` int64, steps of the keys.
        context: number of steps that may be seen, or None for all.
    """
    age = clock.unsqueeze(2) - position.unsqueeze(1)
    seen = (position != EMPTY).unsqueeze(1) & (age >= 0)
    if context is not None:
        seen = seen & (age < context)
    return seen


def newest(cache: CacheState, slots: int) -> CacheState:
    """Keeps the newest steps of every row; rows may differ in which slots those are."""
    index = cache.position.topk(slots, dim=2).indices
    key, value = (torch.take_along_dim(x, index[..., None, None], dim=2) for x in (cache.key, cache.value))
    return CacheState(key, value, cache.position.gather(2, index), cache.step)
