"""The seed of every forward pass in training."""

from __future__ import annotations

from remanence.tasks import stream


def update_seed(seed: int, update: int, piece: int, part: int) -> int:
    """The seed of one forward pass's dropout and gradient cuts: a pure function, so a kill loses nothing of it.

    Args:
        seed: Of the run.
        update: Number of the batch.
        piece: Number of the piece of its steps.
        part: Number of the part of its rows.

    Example:
        >>> update_seed(0, 1, 0, 0) == update_seed(0, 1, 0, 0), update_seed(0, 1, 0, 0) == update_seed(0, 2, 0, 0)
        (True, False)
    """
    return stream("train", seed, update, salt=f"update:{piece}:{part}").initial_seed()
