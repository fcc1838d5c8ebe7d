"""A packed sequence through the scan: the kernel takes real steps only, so nothing is padded on the way."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from ._log import Log
from .states import Tree, map_tensors


def packed_lengths(packed: PackedSequence) -> Tensor:
    """Lengths of the rows in packed order, longest first: ``(B,)`` int64.

    Example:
        >>> rows = [torch.zeros(3, 1), torch.zeros(1, 1)]
        >>> packed_lengths(torch.nn.utils.rnn.pack_sequence(rows)).tolist()
        [3, 1]
    """
    rows = torch.arange(int(packed.batch_sizes[0]))
    return (packed.batch_sizes[:, None] > rows).sum(dim=0)


def like_packed(packed: PackedSequence, data: Tensor) -> PackedSequence:
    """Other data, ``(N, ...)``, for the same rows."""
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)


def pad(packed: PackedSequence) -> tuple[Tensor, Tensor]:
    """``(T, B, ...)`` in the caller's order of rows, and their lengths ``(B,)``."""
    padded, lengths = pad_packed_sequence(packed)
    return padded, lengths.to(padded.device)


def pack_like(padded: Tensor, packed: PackedSequence) -> PackedSequence:
    """``(T, B, ...)`` in the caller's order of rows, packed as ``packed`` is."""
    if packed.sorted_indices is not None:
        padded = padded.index_select(1, packed.sorted_indices)
    return like_packed(packed, pack_padded_sequence(padded, packed_lengths(packed)).data)


def pack_log(log: Log, packed: PackedSequence) -> Log:
    """A log ``(T, B)`` in packed order, ``(N,)``."""
    return Log(pack_like(log.slot, packed).data, pack_like(log.displaced, packed).data)


def take_rows(state: Tree, rows: Tensor | None) -> Tree:
    """A state with fields ``(B, ...)`` in another order of rows; in the same one if that is ``None``."""
    if rows is None:
        return state
    return map_tensors(lambda field: field[rows], state)
