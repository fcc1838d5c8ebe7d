"""What training costs in memory by the length of the sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from remanence import nn, probes
from remanence.nn import RecurrentLayer

INPUTS = 10


def training_bytes(layer: RecurrentLayer, length: int) -> int:
    """Most bytes of tensors alive at once in a forward and a backward pass over one sequence.

    Args:
        layer: any of ours.
        length: of the sequence.

    Example:
        >>> layer = nn.RNN(10, 4)
        >>> training_bytes(layer, 200) > training_bytes(layer, 100)
        True
    """
    return probes.cost(layer, [max(1, length // 2), length], repeats=1).peak_bytes[-1]


def training_memory(
    run: Path, model: str, options: Mapping[str, Any], width: int, lengths: Sequence[int]
) -> dict[str, Any]:
    """Peak memory of a forward and a backward pass by the length of the sequence.

    Args:
        run: not looked at.
        model: name of a layer.
        options: of it.
        width: of it.
        lengths: T, rising.

    Returns:
        ``lengths``, ``peak_bytes`` (they depend on no chance and on no machine), ``megabytes`` at the last length,
        ``state_bytes``, and the ``order`` of growth.
    """
    found = probes.cost(nn.get_model(model)(INPUTS, width, **options), lengths, repeats=1)
    facts = {"peak_bytes": list(found.peak_bytes), "state_bytes": list(found.state_bytes)}
    return {
        "lengths": list(lengths),
        **facts,
        "megabytes": found.peak_bytes[-1] / 1e6,
        "exponent": round(found.growth["peak_bytes"].exponent, 3),
        "order": found.order("peak_bytes"),
    }
