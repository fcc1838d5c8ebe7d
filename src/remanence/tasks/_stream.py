"""Random streams of a task: training, validation and test never share a seed, and any batch can be drawn on its own."""

from __future__ import annotations

import hashlib
from typing import Literal, get_args

import torch

from remanence import _validate

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

# torch's CPU generator uses only the lowest 32 bits of a seed: two of them name the split, thirty the batch.
_BATCH_BITS = 30
_BATCHES = 1 << _BATCH_BITS
_ODD_MULTIPLIERS = (0x2545F491, 0x1B873593)


def stream(split: Split, seed: int, position: int = 0, *, salt: str = "") -> torch.Generator:
    """Makes the generator of one batch.

    Two splits never share a generator seed, whatever the seeds and positions; within one split and seed the first
    2**30 positions all differ. The global random state is neither read nor changed.

    Args:
        split: "train", "validation" or "test".
        seed: The experiment's seed, any int >= 0.
        position: Number of the batch in its split, from 0.
        salt: Keeps apart streams with different uses, for instance the drawing and the shuffling of a data set.

    Returns:
        A fresh CPU generator.

    Example:
        >>> a, b = stream("train", 0), stream("test", 0)
        >>> a.initial_seed() == b.initial_seed(), a.initial_seed() == stream("train", 0).initial_seed()
        (False, True)
    """
    _validate.one_of("split", split, SPLITS)
    _validate.positive_int("seed", seed, minimum=0)
    _validate.positive_int("position", position, minimum=0)
    digest = hashlib.sha256(f"{salt}:{seed}".encode()).digest()
    start = int.from_bytes(digest[:4], "little")
    number = _scramble((start + position) % _BATCHES)
    return torch.Generator().manual_seed((SPLITS.index(split) << _BATCH_BITS) | number)


def _scramble(number: int) -> int:
    """Maps 30 bits one-to-one onto 30 bits, so that neighbouring batches get seeds that are far apart."""
    for multiplier in _ODD_MULTIPLIERS:
        number = (number * multiplier) % _BATCHES
        number ^= number >> (_BATCH_BITS // 2)
    return number
