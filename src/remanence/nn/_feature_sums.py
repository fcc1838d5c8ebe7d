"""The arithmetic under linear attention: means of values per feature, over all keys or over a running past.

:mod:`remanence.nn._linear_attention` says what features are. Nothing here checks its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

CHUNK = 64
"""Steps whose pairs are formed at a time by the causal forms; a power of two."""


class FeatureSums(NamedTuple):
    """Running sums of the causal forms over the keys seen so far: the whole past, in fixed size."""

    peak: Tensor
    """``(..., m)``: greatest key logit per feature (no gradient: the results do not depend on it)."""
    mass: Tensor
    """``(..., m)``: sum of ``exp(logit - peak)``."""
    total: Tensor
    """``(..., m, d)``: the same sum of the values."""


def attend_all(query_logits: Tensor, key_logits: Tensor, value: Tensor, *, by_mass: bool) -> Tensor:
    """Every query sees every key; gives ``(..., T, d)``.

    Args:
        query_logits: ``(..., T, m)``.
        key_logits: ``(..., S, m)``.
        value: ``(..., S, d)``.
        by_mass: whether the weight of a feature also carries the mass of its keys (random features do).
    """
    if by_mass:
        query_logits = query_logits + key_logits.logsumexp(-2, keepdim=True)
    means = key_logits.softmax(-2).mT @ value.to(key_logits.dtype)
    return (query_logits.softmax(-1) @ means).to(value.dtype)


def attend_past(
    query_logits: Tensor, key_logits: Tensor, value: Tensor, sums: FeatureSums, *, by_mass: bool
) -> tuple[Tensor, FeatureSums]:
    """As :func:`attend_all`, but every query sees the keys up to its own position and those in the running sums.

    Returns:
        ``(..., T, d)`` and the sums with the new keys.
    """
    steps = value.shape[-2]
    dtype = value.dtype
    # A power of two, since `_levels` halves a chunk down to single steps.
    chunk = min(CHUNK, 1 << (steps - 1).bit_length())
    query_logits, key_logits, value = _fill_up(query_logits, key_logits, value, chunk)
    # The greatest logit so far: every exponent below is at most 0. It cancels, so it needs no gradient.
    peak = torch.maximum(key_logits.detach().cummax(-2).values, sums.peak.unsqueeze(-2))
    starts, sums = _sums_before_chunks(key_logits, value, peak, sums, chunk)

    own = (key_logits - peak).exp()
    levels = list(_levels(key_logits, peak, chunk))
    fading = (starts.peak.unsqueeze(-2) - _split(peak, chunk)).exp()
    mass = own + (fading * starts.mass.unsqueeze(-2)).flatten(-3, -2)
    for early, late in levels:
        mass = mass + _late_only(late * early.sum(-2, keepdim=True))

    weights = _feature_weights(query_logits, peak, mass, by_mass)
    output = (weights * own).sum(-1, keepdim=True) * value
    output = output + ((_split(weights, chunk) * fading) @ starts.total).flatten(-3, -2)
    for early, late in levels:
        early_value, _ = _halves(value, early.shape[-2])
        _, late_weights = _halves(weights, early.shape[-2])
        output = output + _late_only((late_weights * late) @ early.mT @ early_value)
    return output[..., :steps, :].to(dtype), sums


def floor(dtype: torch.dtype) -> float:
    """The logit of what is not there: so low that its share is exactly 0, yet finite, so that differences exist.

    Example:
        >>> floor(torch.float32) < -1e37
        True
    """
    return torch.finfo(dtype).min / 4


def hide_padding(key_logits: Tensor, value: Tensor, padded: Tensor) -> tuple[Tensor, Tensor]:
    """Gives padded keys the least logit and no value, so that they add nothing even where nothing else is seen.

    Keys are ``(..., S, m)``, values ``(..., S, d)``, the padding ``(..., S)`` bool.
    """
    padded = padded.unsqueeze(-1)
    return key_logits.masked_fill(padded, floor(key_logits.dtype)), value.masked_fill(padded, 0.0)


def _feature_weights(query_logits: Tensor, peak: Tensor, mass: Tensor, by_mass: bool) -> Tensor:
    # The peak's own key counts 1 towards the mass, so neither denominator can be below 1.
    if not by_mass:
        return query_logits.softmax(-1) / mass
    logits = query_logits + peak
    weights = (logits - logits.detach().amax(-1, keepdim=True)).exp()
    return weights / (weights * mass).sum(-1, keepdim=True)


def _sums_before_chunks(
    key_logits: Tensor, value: Tensor, peak: Tensor, sums: FeatureSums, chunk: int
) -> tuple[FeatureSums, FeatureSums]:
    before = []
    for keys, values, peaks in zip(*(_split(x, chunk).unbind(-3) for x in (key_logits, value, peak)), strict=True):
        before.append(sums)
        end = peaks[..., -1, :]
        fading = (sums.peak - end).exp()
        share = (keys - end.unsqueeze(-2)).exp()
        mass = fading * sums.mass + share.sum(-2)
        sums = FeatureSums(end, mass, fading.unsqueeze(-1) * sums.total + share.mT @ values)
    peaks, masses, totals = zip(*before, strict=True)
    return FeatureSums(torch.stack(peaks, -2), torch.stack(masses, -2), torch.stack(totals, -3)), sums


def _levels(key_logits: Tensor, peak: Tensor, chunk: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Splits every pair ``j < i`` of a chunk at exactly one level, where ``j`` is in an early and ``i`` in a late half.

    Through the peak at the end of the early half, ``exp(logit_j - peak_i)`` is a product of two factors of at most 1,
    so all pairs of a level are one matrix product and nothing can overflow.
    """
    block = 1
    while block < chunk:
        early_peak, late_peak = _halves(peak, block)
        pivot = early_peak[..., -1:, :]
        yield (_halves(key_logits, block)[0] - pivot).exp(), (pivot - late_peak).exp()
        block *= 2


def _split(x: Tensor, size: int) -> Tensor:
    return x.unflatten(-2, (-1, size))


def _halves(x: Tensor, block: int) -> tuple[Tensor, ...]:
    return x.unflatten(-2, (-1, 2, block)).unbind(-3)


def _late_only(x: Tensor) -> Tensor:
    return torch.stack([torch.zeros_like(x), x], dim=-3).flatten(-4, -2)


def _fill_up(query_logits: Tensor, key_logits: Tensor, value: Tensor, chunk: int) -> tuple[Tensor, Tensor, Tensor]:
    below = (0, 0, 0, -value.shape[-2] % chunk)
    return (
        functional.pad(query_logits, below),
        functional.pad(key_logits, below, value=floor(key_logits.dtype)),
        functional.pad(value.to(key_logits.dtype), below),
    )
