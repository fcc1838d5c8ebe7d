"""Copy and Denoise at T = 100 by the models that ``recall`` has not: orthogonal ones, GORU, MemRNN and SAB.

The stored result ``others`` has the ``arms`` and ``runs`` of the stored result ``recall`` under ``results``, without
their clocks; ``elsewhere`` is the accuracy of the best weights alone, by length, as text.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from remanence.experiments._arms import ended_runs, run_arms, untrained
from remanence.experiments._printed import printed_accuracy
from remanence.experiments._recall import CURRICULUM, Arm, learning_curve
from remanence.experiments._stored import save_stored
from remanence.nn import SequenceModel
from remanence.tasks import Task
from remanence.train import Run

LENGTH = 100
TRANSFER = (100, 200, 400, 2000)
SEQUENCES = 50
UPDATES = 6000
SOLVED = 0.99

# The rates of RelRNN and RelLSTM for the models with their cells; those of the document for the others.
_FULL = ("model.options.recurrent_init='random'", "optimiser.learning_rate=2e-3", *CURRICULUM)
_SPARSE = ("model.options.top_k=10", "model.options.normalise=true", "optimiser.learning_rate=3e-3", *CURRICULUM)
_GORU = ("optimiser.name='rmsprop'", "optimiser.learning_rate=1e-3", "optimiser.smoothing=0.9")


def _arms(task: str) -> tuple[Arm, ...]:
    return (
        Arm(task, "MemRNN", UPDATES, _FULL),
        Arm(task, "SABLSTM", UPDATES, _SPARSE),
        Arm(task, "OrthRNN", UPDATES),
        Arm(task, "ExpRNN", UPDATES),
        Arm(task, "GORU", UPDATES, _GORU),
    )


GRID: tuple[Arm, ...] = (*_arms("copy"), *_arms("denoise"))


def collect(folder: str | Path, arms: Sequence[Arm] = GRID) -> dict[str, Any]:
    """Reads all runs that are done and measures them at other lengths.

    Args:
        folder: that :func:`run_arms` left.
        arms: which ones.

    Returns:
        The record, as the module describes it.

    Example:
        >>> collect("nowhere", arms=[Arm("copy", "GORU", 10)])["results"]["runs"]
        []
    """
    runs = [summary(arm, run) for arm, run in ended_runs(folder, arms)]
    return {
        "what": "Copy and Denoise at T = 100, learnt by orthogonal models, GORU, MemRNN and SAB, then asked elsewhere",
        "command": "python -m remanence.experiments others RUNS",
        "scaled_down": f"at most {UPDATES:,} updates of 10 sequences, where document 000's code makes 200,000; "
        f"other lengths on {SEQUENCES} sequences, where it takes 10,000{untrained(arms, runs)}",
        "machine": f"{platform.machine()}, one core",
        "results": {"arms": {arm.name: _description(arm) for arm in arms}, "runs": runs},
    }


def _description(arm: Arm) -> dict[str, Any]:
    cells = {length: printed_accuracy(arm.task, arm.model, LENGTH, length) for length in TRANSFER}
    printed = {str(length): cell.accuracy for length, cell in cells.items() if cell is not None}
    facts = {"task": arm.task, "model": arm.model, "curriculum": arm.curriculum, "command": arm.command()}
    return {**facts, "document": printed}


def summary(arm: Arm, run: Run) -> dict[str, Any]:
    """What one run came to.

    Args:
        arm: that it belongs to.
        run: that is done.
    """
    judged = [line for line in run.metrics.read() if line["kind"] == "validation"]
    solved = next((line["update"] for line in judged if line["accuracy"] >= SOLVED), None)
    return {
        "arm": arm.name,
        "seed": run.config.seed,
        "updates": run.status["update"],
        "reason": run.status["reason"],
        "best_accuracy": max(line["accuracy"] for line in judged),
        "updates_to_99": solved,
        "elsewhere": elsewhere(run),
        "curve": learning_curve(judged),
    }


def elsewhere(run: Run) -> dict[str, float]:
    """Accuracy of a run's best weights by length, as text; kept in its folder, as it takes time.

    Args:
        run: that is done.
    """
    path = run.folder / "answers.json"
    if not path.is_file():
        model, task = run.load()
        found = {str(length): _accuracy(model, task.with_length(length)) for length in TRANSFER}
        run.write("answers.json", json.dumps(found))
    return json.loads(path.read_text(encoding="utf-8"))


@torch.no_grad()
def _accuracy(model: SequenceModel, task: Task) -> float:
    batch = task.batch(0, SEQUENCES, split="test")
    return round(task.accuracy(model(batch.inputs)[0], batch).item(), 5)


def run_others(folder: Path) -> Path:
    """Trains what is missing, one run at a time, and writes the stored result.

    Args:
        folder: where the runs are.
    """
    run_arms(folder, GRID)
    return save_stored("others", collect(folder))
