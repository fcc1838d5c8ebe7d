"""What a trained model attends to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from remanence import probes
from remanence.nn import SequenceModel
from remanence.runs import Values
from remanence.tasks import Batch, Copy, Denoise, Task
from remanence.train import Run, RunConfig, build_model

BLOCKS = 32


def attention(run: Path, rows: int, weights: str = "last") -> Values:
    """What the steps of some test sequences read, averaged.

    Returns:
        ``steps`` of a sequence; ``map``, attention over blocks of (reader, read) steps, at most 32 each way;
        ``effective``, how many states an answering step reads, as the exponential of the entropy of its weights,
        ``available``, how many it could read, and ``untrained``, the former before training; ``farthest``, the greatest
        distance over which any step reads; of Copy and Denoise ``on_symbols``, the share of the answering steps'
        attention on the steps that show a symbol, and ``even``, the share that these are of all that could be read.
    """
    model, fresh, task = before_and_after(run, weights)
    batch = task.batch(0, rows, split="test")
    return {"untrained": attended(fresh, task, batch)["effective"], **attended(model, task, batch)}


def before_and_after(run: Path, weights: str) -> tuple[SequenceModel, SequenceModel, Task]:
    """A trained model, the same model before training, and its task."""
    found = Run.open(run)
    model, task = found.load(weights)
    return model, untrained(found.config, task), task


def untrained(config: RunConfig, task: Task) -> SequenceModel:
    """The model of a run as it is before the first update: the run's own seed draws the same weights again."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return build_model(config, task)


def maps_by_row(model: torch.nn.Module, batch: Batch) -> list[np.ndarray]:
    """Attention of each row, ``(T, T)``, rows are readers."""
    rows = range(batch.inputs.shape[1])
    return [probes.attention_map(model, batch.inputs[:, row : row + 1]).maps[0] for row in rows]


def attended(model: torch.nn.Module, task: Task, batch: Batch) -> Values:
    """What the steps of some sequences of a task read, averaged."""
    maps = maps_by_row(model, batch)
    readable = np.any([found > 0 for found in maps], axis=(0, 1))  # steps that are stored at all
    symbols = None
    if isinstance(task, Copy | Denoise):
        symbols = task.shows_symbol(batch.inputs)
    found = []
    for row, weights in enumerate(maps):
        shown = None if symbols is None else symbols[:, row].numpy()
        found.append(_read(weights, batch.mask[:, row].numpy(), shown, readable))
    steps = len(maps[0])
    names = [name for name in found[0] if name != "farthest"]
    facts = {name: round(float(np.mean([one[name] for one in found])), 4) for name in names}
    facts["farthest"] = int(max(one["farthest"] for one in found))
    mean = in_blocks(np.mean(maps, axis=0), -(-steps // BLOCKS))
    return {"steps": steps, **facts, "map": mean.round(3).tolist()}


def in_blocks(weights: np.ndarray, size: int) -> np.ndarray:
    """Means over blocks of readers (rows) of sums over blocks of read steps; the last blocks may be smaller.

    Example:
        >>> in_blocks(np.eye(3), 2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    starts = np.arange(0, len(weights), size)
    readers = np.minimum(size, len(weights) - starts)
    rows = np.add.reduceat(weights, starts, axis=0) / readers[:, None]
    return np.add.reduceat(rows, starts, axis=1)


def _read(weights: np.ndarray, asked: np.ndarray, shown: np.ndarray | None, readable: np.ndarray) -> dict[str, float]:
    """What one sequence reads at the steps that are asked for an answer; ``shown`` are the steps that show a symbol."""
    answers = weights[asked & (weights.sum(axis=1) > 0)]
    shares = answers / answers.sum(axis=1, keepdims=True)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    reader, read = np.nonzero(weights)
    could = np.tril(np.ones_like(weights))[asked] * readable
    facts = {
        "effective": float(np.exp(-(shares * logs).sum(axis=1)).mean()),
        "available": float(could.sum(axis=1).mean()),
        "farthest": float((reader - read).max()),
    }
    if shown is not None:
        facts |= {"on_symbols": shares[:, shown].sum(axis=1).mean(), "even": (could * shown).sum() / could.sum()}
    return facts
