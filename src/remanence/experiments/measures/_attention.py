"""What a trained model attends to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from remanence import probes
from remanence.nn import SequenceModel
from remanence.tasks import Batch, Task
from remanence.train import Run, build_model

BLOCKS = 32


def attention(run: Path, rows: int, weights: str = "last") -> dict[str, Any]:
    """What the steps of some test sequences read, averaged.

    Args:
        run: folder of a run that is done, of a model with a memory.
        rows: sequences.
        weights: ``"best"`` by validation, or ``"last"``.

    Returns:
        ``steps`` of a sequence; ``map``, attention over blocks of (reader, read) steps, at most 32 each way;
        ``effective``, how many states an answering step reads, as the exponential of the entropy of its weights,
        ``available``, how many it could read, and ``untrained``, the former before training; ``farthest``, the greatest
        distance over which any step reads; of Copy and Denoise ``on_symbols``, the share of the answering steps'
        attention on the steps that show a symbol, and ``even``, the share that these are of all that could be read.
    """
    model, fresh, task = before_and_after(run, weights)
    batch = task.batch(0, rows, split="test")
    return {"untrained": attended(fresh, batch)["effective"], **attended(model, batch)}


def before_and_after(run: Path, weights: str) -> tuple[SequenceModel, SequenceModel, Task]:
    """A trained model, the same model before training, and its task.

    Args:
        run: folder of a run that is done.
        weights: of the trained one, ``"best"`` by validation, or ``"last"``.
    """
    found = Run.open(run)
    model, task = found.load(weights)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(found.config.seed)
        fresh = build_model(found.config, task)
    return model, fresh, task


def maps_by_row(model: torch.nn.Module, batch: Batch) -> list[np.ndarray]:
    """Attention of each row, ``(T, T)``, rows are readers.

    Args:
        model: with one memory.
        batch: of inputs ``(T, B)`` or ``(T, B, ...)``.
    """
    rows = range(batch.inputs.shape[1])
    return [probes.attention_map(model, batch.inputs[:, row : row + 1]).maps[0] for row in rows]


def attended(model: torch.nn.Module, batch: Batch) -> dict[str, Any]:
    """What the steps of some sequences read, averaged.

    Args:
        model: with one memory.
        batch: of inputs ``(T, B)`` or ``(T, B, ...)``; one-hot symbols, blank first and marker last, if on_symbols is
            to be known.
    """
    maps = maps_by_row(model, batch)
    readable = np.any([found > 0 for found in maps], axis=(0, 1))  # steps that are stored at all
    found = [_read(weights, batch, row, readable) for row, weights in enumerate(maps)]
    steps = len(maps[0])
    names = [name for name in found[0] if name != "farthest"]
    facts = {name: round(float(np.mean([one[name] for one in found])), 4) for name in names}
    facts["farthest"] = int(max(one["farthest"] for one in found))
    mean = in_blocks(np.mean(maps, axis=0), -(-steps // BLOCKS))
    return {"steps": steps, **facts, "map": mean.round(3).tolist()}


def in_blocks(weights: np.ndarray, size: int) -> np.ndarray:
    """Means over blocks of readers of sums over blocks of read steps; the last blocks may be smaller.

    Args:
        weights: ``(T, T)``, rows are readers.
        size: of a block each way.

    Example:
        >>> in_blocks(np.eye(3), 2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    starts = np.arange(0, len(weights), size)
    readers = np.minimum(size, len(weights) - starts)
    rows = np.add.reduceat(weights, starts, axis=0) / readers[:, None]
    return np.add.reduceat(rows, starts, axis=1)


def _read(weights: np.ndarray, batch: Batch, row: int, readable: np.ndarray) -> dict[str, float]:
    mask = batch.mask[:, row].numpy()
    answers = weights[mask & (weights.sum(axis=1) > 0)]
    shares = answers / answers.sum(axis=1, keepdims=True)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    reader, read = np.nonzero(weights)
    could = np.tril(np.ones_like(weights))[mask] * readable
    facts = {
        "effective": float(np.exp(-(shares * logs).sum(axis=1)).mean()),
        "available": float(could.sum(axis=1).mean()),
        "farthest": float((reader - read).max()),
    }
    if batch.inputs.dim() == 3 and batch.inputs.shape[2] > 2 and mask.sum() > 1:
        symbol = (batch.inputs[:, row, 1:-1].sum(dim=-1) > 0).numpy()
        facts |= {"on_symbols": shares[:, symbol].sum(axis=1).mean(), "even": (could * symbol).sum() / could.sum()}
    return facts
