"""How often each pair of symbols stands at a distance: counted in the compiled kernel, or with torch alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from remanence._require import is_required
from remanence._validate import message, one_of, positive_int

from ._kernel_tensors import one_device
from ._library import library
from ._slow_path import warn_once

LARGEST_ALPHABET = 256


def count_pairs(
    symbols: Tensor,
    lags: Sequence[int] | Tensor,
    alphabet: int,
    *,
    starts: Tensor | None = None,
    groups: Tensor | None = None,
    backend: Literal["auto", "reference", "fused"] = "auto",
) -> Tensor:
    """Counts the pairs ``(symbols[t], symbols[t + lag])`` that lie within one sequence.

    Args:
        symbols: uint8 ``(N,)``, all sequences one after the other, every symbol below ``alphabet``.
        lags: ``(K,)`` distances, at least 0.
        alphabet: number of symbols, at most 256.
        starts: int64 ``(S + 1,)``, where each sequence begins, from 0 to N; ``None`` for one sequence.
        groups: int64 ``(G + 1,)``, from 0 to N: pairs are counted apart by the group in which their first symbol lies;
            ``None`` for one group.
        backend: ``"fused"`` for the compiled kernel, threads over lags and groups; ``"reference"`` for torch alone;
            ``"auto"`` for the kernel where it is.

    Returns:
        int64 ``(K, G, alphabet, alphabet)``.

    Raises:
        ValueError: if symbols reach ``alphabet``, or starts or groups do not rise from 0 to N.
        RuntimeError: if the kernel is asked for by name or required, and is not there.

    Example:
        >>> count_pairs(torch.tensor([0, 1, 0, 1], dtype=torch.uint8), [1], alphabet=2)[0, 0]
        tensor([[0, 2],
                [1, 0]])
    """
    positive_int("alphabet", alphabet)
    one_of("backend", backend, ("auto", "reference", "fused"))
    if alphabet > LARGEST_ALPHABET:
        raise ValueError(message("alphabet", f"be at most {LARGEST_ALPHABET}", alphabet))
    if symbols.dtype != torch.uint8 or symbols.dim() != 1 or len(symbols) == 0:
        got = f"{symbols.dtype} {tuple(symbols.shape)}"
        raise ValueError(message("symbols", "be uint8 of shape (N,), N >= 1", got))
    if (largest := int(symbols.max())) >= alphabet:
        raise ValueError(message("symbols", f"be below the alphabet's size {alphabet}", largest))
    distances = torch.as_tensor(lags, dtype=torch.int64).contiguous()
    if distances.dim() != 1 or bool((distances < 0).any()):
        raise ValueError(message("lags", "be a list of whole numbers >= 0", lags))
    edges = (_edges("starts", starts, len(symbols)), _edges("groups", groups, len(symbols)))
    if _fused(backend):
        return torch.ops.remanence.pair_counts(symbols.contiguous(), distances, *edges, alphabet)
    return _reference(symbols, distances, *edges, alphabet)


def _edges(name: str, edges: Tensor | None, places: int) -> Tensor:
    if edges is None:
        return torch.tensor([0, places])
    rising = edges.dim() == 1 and len(edges) >= 2 and bool((edges[1:] >= edges[:-1]).all())
    if not rising or int(edges[0]) != 0 or int(edges[-1]) != places:
        raise ValueError(message(name, f"rise from 0 to {places}", edges.tolist()))
    return edges.to(torch.int64).contiguous()


def _fused(backend: str) -> bool:
    found = library()
    if found.problem is None:
        return backend != "reference"
    if backend == "fused" or (backend == "auto" and (found.stale or is_required("kernel"))):
        raise RuntimeError(f"the compiled kernel is needed, but {found.problem}. {found.remedy}")
    if backend == "auto":
        warn_once(found.problem, found.remedy)
    return False


def _reference(symbols: Tensor, lags: Tensor, starts: Tensor, groups: Tensor, alphabet: int) -> Tensor:
    """The specification: a histogram of ``first * alphabet + second`` for every lag and group."""
    values = symbols.numpy()
    last = np.repeat(starts[1:].numpy(), np.diff(starts.numpy()))  # where each place's sequence ends
    counts = np.zeros((len(lags), len(groups) - 1, alphabet * alphabet), dtype=np.int64)
    for k, lag in enumerate(lags.tolist()):
        for g, (begin, end) in enumerate(zip(groups[:-1].tolist(), groups[1:].tolist(), strict=True)):
            first = np.arange(begin, end)
            first = first[first + lag < last[begin:end]]
            codes = values[first].astype(np.int64) * alphabet + values[first + lag]
            counts[k, g] = np.bincount(codes, minlength=alphabet * alphabet)
    return torch.from_numpy(counts).unflatten(2, (alphabet, alphabet))


def _fake(symbols: Tensor, lags: Tensor, starts: Tensor, groups: Tensor, alphabet: int) -> Tensor:
    one_device((symbols, lags, starts, groups))
    return starts.new_empty((len(lags), len(groups) - 1, alphabet, alphabet))


if library().problem is None:
    torch.library.register_fake("remanence::pair_counts")(_fake)
