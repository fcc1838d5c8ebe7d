"""Gradients and attention of trained models: figures 1 to 3 of document 000 on a smaller task.

The stored result ``gradients`` has, under ``results``:

- ``arms``: by name: the ``task``, the ``model``, its ``options``, and the ``figure`` of the document it belongs to.
- ``runs``: a list, one entry a seed: ``arm``, ``seed``, ``updates`` made, best validation ``accuracy`` at the trained
  length, and, for arms of figures 2 and 3, ``reach``: by length, as text, ``distance`` from the last step and
  ``log_norm`` of dL/dh there (None where nothing arrives), L being the cross entropy of the answers; for figure 2 also
  ``tradeoff``: by length the ``mean_log_norm`` over all steps, as far as anything arrives, and ``peak_bytes`` of a
  forward and a backward pass over one sequence in plain torch, as the document's code runs; for the others
  ``attention``: how much of what the answering steps read lies on steps that show a symbol (``on_symbols``), what an
  even read of the same steps would give (``even``), and the mean ``map`` over blocks of (reader, read) steps.
"""

from __future__ import annotations

import copy
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from remanence import probes
from remanence.experiments._arms import ended_runs, run_arms
from remanence.experiments._memory import training_bytes
from remanence.experiments._stored import save_stored
from remanence.nn import SABLSTM, RecurrentLayer
from remanence.ops import Strided
from remanence.tasks import Batch
from remanence.train import Cell, Run, plan_grid, recipe, with_settings

LENGTH = 200
LONGER = 1000
TRADED = (400, 600, 800)
UPDATES = 6000
SEEDS = 3
ROWS = 10
POINTS = 200
BLOCKS = 20
SETTINGS = (
    "budget.accuracy=0.99",
    "task.options.items=5",
    "task.options.symbols=4",
    "model.options.hidden_size=64",
)
CURRICULUM = ("curriculum.start=10", "curriculum.accuracy=0.9")
_OPTIONS = {"RelLSTM": {"forget_bias": 0.0}}  # as the document's; the recipe has a cell that forgets
ADAM = ("optimiser.name='adam'", "optimiser.learning_rate=0.003")


@dataclass(frozen=True)
class Arm:
    """One model on one task.

    Args:
        task: its name.
        model: its name.
        figure: of the document.
        options: of the model.
        optimiser: settings of it; without them those of the recipe, which has document 000's.
        curriculum: whether it begins with short sequences; the document's models do not.
        updates: budget of a run; it ends earlier at an accuracy of 99 %.

    Example:
        >>> Arm("denoise", "RelLSTM", "3 left", {"recent": 15, "relevant": 3}).name
        'denoise-RelLSTM-recent15-relevant3'
    """

    task: str
    model: str
    figure: str
    options: dict[str, Any] = field(default_factory=dict)
    optimiser: tuple[str, ...] = ADAM
    curriculum: bool = True
    updates: int = UPDATES

    @property
    def name(self) -> str:
        """Task, model and options; also the folder of its runs."""
        options = [f"{key}{value}" for key, value in self.options.items()]
        return "-".join([self.task, self.model, *options, *([] if self.curriculum else ["fixed"])])

    def cells(self, folder: str | Path) -> list[Cell]:
        """Its runs, made or found again below a folder.

        Args:
            folder: of all arms.
        """
        options = {**_OPTIONS.get(self.model, {}), **self.options}
        chosen = [f"model.options.{name}={value!r}" for name, value in options.items()]
        lengths = CURRICULUM if self.curriculum else ()
        settings = [f"budget.updates={self.updates}", *SETTINGS, *lengths, *self.optimiser, *chosen]
        config = with_settings(recipe(self.task, self.model), settings)
        return plan_grid({self.model: config}, Path(folder) / self.name, [LENGTH], SEEDS)


def _screened(recent: int, relevant: int, figure: str) -> Arm:
    return Arm("denoise", "RelLSTM", figure, {"recent": recent, "relevant": relevant})


GRID: tuple[Arm, ...] = (
    Arm("denoise", "RNN", "2"),
    Arm("denoise", "OrthRNN", "2", optimiser=(), curriculum=False),
    Arm("denoise", "LSTM", "2", curriculum=False),
    Arm("denoise", "LSTM", "2"),
    Arm("denoise", "MemRNN", "2"),
    Arm("denoise", "SABLSTM", "2"),
    _screened(15, 15, "2"),
    Arm("copy", "MemRNN", "1"),
    *(_screened(15, relevant, "3 left") for relevant in (3, 8, 18, 25)),
    *(_screened(recent, 15, "3 right") for recent in (3, 8, 18, 25)),
)
"""All arms, the most telling first."""


def collect(folder: str | Path, arms: Sequence[Arm] = GRID) -> dict[str, Any]:
    """Reads all runs that are done and looks into their models.

    Args:
        folder: that :func:`run_arms` left.
        arms: which ones.

    Returns:
        The record, as the module describes it.

    Example:
        >>> collect("nowhere", arms=[Arm("copy", "LSTM", "2")])["results"]["runs"]
        []
    """
    runs = [summary(arm, run) for arm, run in ended_runs(folder, arms)]
    described = {arm.name: {"task": arm.task, "model": arm.model, "options": arm.options} for arm in arms}
    return {
        "what": f"gradients and attention of models trained on Denoise and Copy at T = {LENGTH}",
        "command": "python -m remanence.experiments gradients RUNS",
        "scaled_down": (
            f"T = {LENGTH}, 5 items of 4 symbols, width 64, {UPDATES:,} updates and {SEEDS} seeds at most, short "
            "sequences first but in the arms called fixed; document 000 has T = 1000, 10 items of 8, width 128"
        ),
        "machine": f"{platform.machine()}, one core",
        "results": {
            "arms": {arm.name: {**described[arm.name], "figure": arm.figure} for arm in arms},
            "runs": runs,
        },
    }


def summary(arm: Arm, run: Run) -> dict[str, Any]:
    """What one run came to, and what its best weights do.

    Args:
        arm: that it belongs to.
        run: that is done.
    """
    judged = [line["accuracy"] for line in run.metrics.read() if line["kind"] == "validation"]
    facts = {"arm": arm.name, "seed": run.config.seed, "updates": run.status["update"], "accuracy": max(judged)}
    return {**facts, **looked_into(arm, run)}


def looked_into(arm: Arm, run: Run) -> dict[str, Any]:
    """What a run's best weights do; kept in its folder, as it takes time.

    Args:
        arm: that it belongs to.
        run: that is done.
    """
    path = run.folder / "gradients.json"
    if not path.is_file():
        run.write("gradients.json", json.dumps(_measured(arm, *run.load())))
    return json.loads(path.read_text(encoding="utf-8"))


def _measured(arm: Arm, model: Any, task: Any) -> dict[str, Any]:
    if arm.figure == "1":
        return {"attention": attention(model, task.with_length(LENGTH))}
    found: dict[str, Any] = {"reach": {str(t): reach(model, task.with_length(t)) for t in (LENGTH, LONGER)}}
    if arm.figure == "2":
        found["tradeoff"] = {str(t): traded(model, task.with_length(t)) for t in TRADED}
    return found


def _batch(task: Any) -> Batch:
    return task.sample(ROWS, task.stream("test", seed=0))


def answer_loss(output: Tensor, batch: Batch) -> Tensor:
    """Mean cross entropy of the answers alone: gradients of other steps' losses would hide how far it reaches.

    Args:
        output: ``(T, B, classes)``.
        batch: with ``mask`` ``(T, B)``.
    """
    return torch.nn.functional.cross_entropy(output[batch.mask], batch.targets[batch.mask])


def reach(model: torch.nn.Module, task: Any) -> dict[str, list[float | None]]:
    """Log norm of dL/dh_t at up to 200 distances from the last step.

    Args:
        model: trained.
        task: at the length to look at.
    """
    found = probes.gradient_reach(model, _batch(task), answer_loss)
    chosen = np.unique(np.linspace(0, len(found.distance) - 1, POINTS).round().astype(int))
    norms = [round(float(value), 4) if np.isfinite(value) else None for value in found.log_norm[chosen]]
    return {"distance": found.distance[chosen].tolist(), "log_norm": norms}


def traded(model: Any, task: Any) -> dict[str, float]:
    """Mean log norm of dL/dh_t, over the steps that anything of it reaches, and the memory that training takes.

    Args:
        model: trained.
        task: at the length to look at.
    """
    norms = probes.gradient_reach(model, _batch(task), answer_loss).log_norm
    mean = float(norms[np.isfinite(norms)].mean())
    return {"mean_log_norm": round(mean, 4), "peak_bytes": training_bytes(plain(model.core), task.total_steps)}


def plain(layer: RecurrentLayer) -> RecurrentLayer:
    """A layer of the same kind and size as the document's code runs it: plain torch, SAB scoring all that is stored.

    Args:
        layer: trained; it stays as it is.
    """
    memory = layer.spec.memory
    if isinstance(memory, Strided):
        options: dict[str, Any] = {"top_k": memory.top_k, "every": memory.every, "backend": "reference"}
        return SABLSTM(layer.input_size, layer.hidden_size, score="mlp", **options)
    made = copy.deepcopy(layer)
    made.backend = "reference"
    return made


def attention(model: torch.nn.Module, task: Any) -> dict[str, Any]:
    """Where the answering steps look.

    Args:
        model: trained, with a memory.
        task: with one-hot input, blank first and marker last.
    """
    batch = _batch(task)
    shares, evens, maps = [], [], []
    for row in range(ROWS):
        found = probes.attention_map(model, batch.inputs[:, row : row + 1]).maps[0]
        symbol = (batch.inputs[:, row, 1:-1].sum(dim=-1) > 0).numpy()
        answers = found[batch.mask[:, row].numpy()]
        shares.append(answers[:, symbol].sum() / answers.sum())
        evens.append(((answers > 0) & symbol).sum() / (answers > 0).sum())
        maps.append(blocks(found, BLOCKS))
    return {
        "on_symbols": round(float(np.mean(shares)), 4),
        "even": round(float(np.mean(evens)), 4),
        "map": np.mean(maps, axis=0).round(5).tolist(),
    }


def blocks(weights: np.ndarray, count: int) -> np.ndarray:
    """Sums over blocks of read steps, means over blocks of readers: ``(count, count)``.

    Args:
        weights: ``(T, T)``, rows are readers.
        count: of blocks each way.

    Example:
        >>> blocks(np.eye(4), 2).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    rows = np.array_split(weights, count, axis=0)
    return np.array([[part.sum(axis=1).mean() for part in np.array_split(row, count, axis=1)] for row in rows])


def run_gradients(folder: str | Path) -> None:
    """Trains what is missing below a folder, and writes the stored result.

    Args:
        folder: where the runs are.
    """
    run_arms(folder, GRID)
    save_stored("gradients", collect(folder))
