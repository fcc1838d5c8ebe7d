"""What trained models attend to: the heat maps of figures 1, 7 and 9 to 11 of document 000 and figure 3 of 001.

The stored result ``attention`` has, under ``results``:

- ``arms``: by name: the ``figure``, the ``task``, the ``model`` and the ``command`` that trains it; then
  ``remanence probe RUN --output page.html`` draws the map.
- ``runs``: a list, one entry an arm: ``arm``, ``updates`` made, best validation ``accuracy``, ``steps``, and from the
  maps of single test sequences, averaged:

  - ``map``: attention over blocks of (reader, read) steps, at most 32 each way;
  - ``effective``: how many states an answering step reads, as the exponential of the entropy of its weights, and
    ``available``, how many it could read; ``untrained``: the former before training;
  - ``farthest``: the greatest distance over which any step reads;
  - ``on_symbols``: of Copy and Denoise, the share of the answering steps' attention on the steps that show a symbol,
    and ``even``, the share that these are of all steps that could be read.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from remanence import probes
from remanence.experiments._arms import ended_runs, run_arms
from remanence.experiments._stored import save_stored
from remanence.tasks import Batch
from remanence.train import Cell, Run, build_model, plan_grid, recipe, with_settings

ROWS = 8
BLOCKS = 32
UPDATES = 2000  # on text and pictures
STAGES = (1000, 6000, 24_000)  # of figure 3 of 001

_SHORT = ("task.options.length=40", "task.options.items=5", "task.options.symbols=4", "budget.accuracy=0.99")
_LEARNING = ("optimiser.name='adam'", "optimiser.learning_rate=3e-3", "curriculum.start=10", "curriculum.accuracy=0.9")
_RECALL = (*_SHORT, *_LEARNING, "model.options.hidden_size=64", "evaluation.every=250")
_BUFFER = ("model.options.relevant=0", "model.options.recent=10", "budget.updates=1000")
_TEXT = (
    "model.options.hidden_size=64",
    "task.options.length=125",
    "task.options.drop_state=1.0",
    "budget.epochs='none'",
    f"budget.updates={UPDATES}",
    "evaluation.every=500",
    "evaluation.batches=10",
    "loop.clip_norm=1.0",
)
_PICTURES = (
    "model.options.hidden_size=64",
    "task.options.group=7",
    "budget.epochs='none'",
    f"budget.updates={UPDATES}",
    "evaluation.every=500",
    "evaluation.batches=10",
    "loop.clip_norm=1.0",
)
_SAB = (
    "task.options.length=50",
    "model.options.hidden_size=64",
    "model.options.top_k=10",
    "model.options.truncate=10",
    "model.options.normalise=true",
    *_LEARNING,
    "evaluation.every=1000",
)


@dataclass(frozen=True)
class Arm:
    """One map.

    Args:
        figure: of the documents.
        task: its name.
        model: its name.
        settings: what differs from the recipe.
        stage: a word for arms that differ in the budget alone.

    Example:
        >>> Arm("000, figure 10", "copy", "RelRNN", ()).name
        'copy-RelRNN'
    """

    figure: str
    task: str
    model: str
    settings: tuple[str, ...]
    stage: str = ""

    @property
    def name(self) -> str:
        """Task and model; also the folder of its run."""
        return "-".join(filter(None, (self.task, self.model, self.stage)))

    @property
    def command(self) -> str:
        """What trains it on the command line."""
        options = " ".join(f"--set {setting}" for setting in self.settings)
        return f"remanence train {self.task} --model {self.model} {options}"

    def cells(self, folder: str | Path) -> list[Cell]:
        """Its run, made or found again below a folder.

        Args:
            folder: of all arms.
        """
        config = with_settings(recipe(self.task, self.model), self.settings)
        return plan_grid({self.model: config}, Path(folder) / self.name)


GRID: tuple[Arm, ...] = (
    Arm("000, figure 1 left", "copy", "MemRNN", (*_RECALL, "budget.updates=2000")),
    Arm("000, figure 1 right", "denoise", "MemRNN", (*_RECALL, "budget.updates=2000")),
    Arm("000, figure 7", "ptb-char", "MemRNN", _TEXT),
    Arm("000, figure 9", "pixel-mnist", "MemRNN", _PICTURES),
    Arm("000, figure 10", "copy", "RelRNN", (*_RECALL, *_BUFFER)),
    Arm("000, figure 11", "denoise", "RelRNN", (*_RECALL, *_BUFFER)),
    *(
        Arm("001, figure 3", "copy", "SABLSTM", (*_SAB, f"budget.updates={updates}"), f"{updates}")
        for updates in STAGES
    ),
)


def collect(folder: str | Path, arms: Sequence[Arm] = GRID) -> dict[str, Any]:
    """Reads all runs that are done and maps their attention.

    Args:
        folder: that :func:`run_arms`, or the commands of the arms, left.
        arms: which ones.

    Returns:
        The record, as the module describes it.

    Example:
        >>> collect("nowhere", arms=[Arm("7", "ptb-char", "MemRNN", ())])["results"]["runs"]
        []
    """
    runs = [summary(arm, run) for arm, run in ended_runs(folder, arms)]
    facts = {arm.name: {"figure": arm.figure, "task": arm.task, "model": arm.model} for arm in arms}
    return {
        "what": "attention of trained models on Copy, Denoise, letters of the Penn Treebank and MNIST",
        "command": "python -m remanence.experiments attention RUNS",
        "scaled_down": (
            "width 64, Copy and Denoise of figures 1, 10 and 11 at T = 40 with 5 items of 4 symbols, "
            f"{UPDATES:,} updates on text and on pictures, one seed; figure 3 of 001 at T = 50 in batches of 10, short "
            "sequences first"
        ),
        "machine": f"{platform.machine()}, one core",
        "results": {"arms": {arm.name: {**facts[arm.name], "command": arm.command} for arm in arms}, "runs": runs},
    }


def summary(arm: Arm, run: Run) -> dict[str, Any]:
    """What one run came to, and what its best weights attend to.

    Args:
        arm: that it belongs to.
        run: that is done.
    """
    judged = [line["accuracy"] for line in run.metrics.read() if line["kind"] == "validation"]
    model, task = run.load("last")
    batch = task.batch(0, ROWS, split="test")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.config.seed)
        fresh = build_model(run.config, task)
    facts = {"arm": arm.name, "updates": run.status["update"], "accuracy": max(judged)}
    return {**facts, "untrained": attended(fresh, batch)["effective"], **attended(model, batch)}


def attended(model: torch.nn.Module, batch: Batch) -> dict[str, Any]:
    """What the steps of some sequences read, averaged.

    Args:
        model: with one memory.
        batch: of inputs ``(T, B)`` or ``(T, B, ...)``; one-hot symbols, blank first and marker last, if on_symbols is
            to be known.
    """
    rows = range(batch.inputs.shape[1])
    maps = [probes.attention_map(model, batch.inputs[:, row : row + 1]).maps[0] for row in rows]
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


def run_attention(folder: Path) -> Path:
    """Trains what is missing, one run at a time, and writes the stored result.

    Args:
        folder: where the runs are.
    """
    run_arms(folder, GRID)
    return save_stored("attention", collect(folder))
