"""Tasks whose every step counts: the letters of the Penn Treebank and permuted MNIST (Table 3, figure 8 of 000).

The stored result ``dense`` has, under ``results``:

- ``arms``: by name, such as ``"pixel-mnist-RelLSTM"``: the ``task``, the ``model``, its ``hidden_size`` and number of
  ``parameters``, the ``command`` that trains it, and what the ``document`` prints (``accuracy`` and, of text,
  ``bits``; None where it prints nothing).
- ``runs``: a list, one entry a seed: ``arm``, ``seed``, ``updates`` made, the ``reason`` why it ended (``failed`` if a
  number was no longer finite), ``accuracy`` and, of text, ``bits`` a letter on the test split (None if it failed), and
  the ``curve`` of validations: ``updates``, ``accuracy``, ``loss``.
"""

from __future__ import annotations

import functools
import json
import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remanence.experiments._arms import ended_runs, run_arms, untrained
from remanence.experiments._recall import learning_curve
from remanence.experiments._stored import save_stored
from remanence.nn import SequenceModel
from remanence.train import (
    Cell,
    EvaluationConfig,
    Run,
    RunConfig,
    evaluate,
    plan_grid,
    recipe,
    with_settings,
)

SEEDS = 2
PARAMETERS = {"ptb-char": 100_000, "pixel-mnist": 70_000}
PASSES = {"ptb-char": 3, "pixel-mnist": 5}
LETTERS, PIXELS, DIGITS = 50, 7, 10
"""Symbols of the treebank, pixels a step and classes of MNIST, so that widths are known without the data."""

_COMMON = ("optimiser.name='adam'", "schedule.name='constant'", "loop.clip_norm=1.0")
SETTINGS: dict[str, tuple[str, ...]] = {
    "ptb-char": (
        *_COMMON,
        "task.options.length=100",
        "model.options.embedding_size=32",
        "optimiser.learning_rate=2e-3",
        f"budget.epochs={PASSES['ptb-char']}",
        "evaluation.every=500",
        "evaluation.batches=20",
    ),
    "pixel-mnist": (
        *_COMMON,
        "task.options.permuted=true",
        f"task.options.group={PIXELS}",
        "optimiser.learning_rate=1e-3",
        f"budget.epochs={PASSES['pixel-mnist']}",
        "evaluation.every=250",
        "evaluation.batches=10",
    ),
}
_TANH = ("model.options.nonlinearity='tanh'",)
_MODRELU = ("model.options.nonlinearity='modrelu'", "model.options.recurrent_init='henaff'")

_MEAN = ("model.options.normalise=true",)  # as the authors' code does; the printed sum overflows on the pictures


@dataclass(frozen=True)
class Arm:
    """One model on one task.

    Args:
        task: its name.
        model: its name.
        bits: a letter that the document prints.
        accuracy: that it prints, in per cent.
        settings: of the model.

    Example:
        >>> Arm("pixel-mnist", "LSTM").hidden_size
        126
    """

    task: str
    model: str
    bits: float | None = None
    accuracy: float | None = None
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Task and model; also the folder of its runs."""
        return f"{self.task}-{self.model}"

    @property
    def hidden_size(self) -> int:
        """The greatest width with no more parameters than all models of the task may have."""
        return _width(self)

    @property
    def all_settings(self) -> list[str]:
        """Settings, with the width."""
        return [*SETTINGS[self.task], *self.settings, f"model.options.hidden_size={self.hidden_size}"]

    def command(self, folder: str | Path = "RUNS") -> str:
        """What trains it on the command line."""
        options = " ".join(f"--set {setting}" for setting in self.all_settings)
        grid = f"--models {self.model} --seeds {SEEDS}"
        return f"remanence compare {self.task} {grid} {options} --folder {folder}/{self.name}"

    def config(self, settings: Sequence[str]) -> RunConfig:
        """Its configuration with some settings."""
        return with_settings(recipe(self.task, self.model), settings)

    def cells(self, folder: str | Path) -> list[Cell]:
        """Its runs, made or found again below a folder.

        Args:
            folder: of all arms.
        """
        return plan_grid({self.model: self.config(self.all_settings)}, Path(folder) / self.name, seeds=SEEDS)

    def parameters(self, hidden_size: int) -> int:
        """Number of parameters with a width.

        Args:
            hidden_size: the width.
        """
        options = self.config([*SETTINGS[self.task], *self.settings]).model.options | {"hidden_size": hidden_size}
        inputs, outputs = (LETTERS, LETTERS) if self.task == "ptb-char" else (PIXELS, DIGITS)
        model = SequenceModel(inputs, self.model, outputs, **{"encoder": "dense", **options, "device": "meta"})
        return sum(parameter.numel() for parameter in model.parameters())


@functools.lru_cache(maxsize=64)
def _width(arm: Arm) -> int:
    low, high = 1, 2048
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if arm.parameters(middle) <= PARAMETERS[arm.task] else (low, middle)
    return low


# Table 3, by our names of the models; "tanh" and "modrelu" as in Tables 8 and 9.
GRID: tuple[Arm, ...] = (
    Arm("ptb-char", "RNN", 1.56, 66),
    Arm("ptb-char", "OrthRNN", 1.53, 66, _TANH),
    Arm("ptb-char", "ExpRNN", 1.49, 68, _TANH),
    Arm("ptb-char", "RelRNN", 1.43, 69, ("model.options.relevant=5",)),
    Arm("ptb-char", "LSTM", 1.36, 73),
    Arm("ptb-char", "SABLSTM", 1.37, None, _MEAN),
    Arm("ptb-char", "RelLSTM", 1.36, 73, ("model.options.relevant=5",)),
    Arm("pixel-mnist", "RNN", None, 90.4),
    Arm("pixel-mnist", "OrthRNN", None, 93.4),
    Arm("pixel-mnist", "ExpRNN", None, 96.6),
    Arm("pixel-mnist", "RelRNN", None, 92.8, _MODRELU),
    Arm("pixel-mnist", "LSTM", None, 91.1),
    Arm("pixel-mnist", "HDetachLSTM", None, 92.3),
    Arm("pixel-mnist", "SABLSTM", None, 94.2, _MEAN),
    Arm("pixel-mnist", "RelLSTM", None, 94.3),
)


def collect(folder: str | Path, arms: Sequence[Arm] = GRID) -> dict[str, Any]:
    """Reads all runs that have ended and measures them on the test split.

    Args:
        folder: that :func:`run_arms` left.
        arms: which ones.

    Returns:
        The record, as the module describes it.

    Example:
        >>> collect("nowhere", arms=[Arm("ptb-char", "LSTM")])["results"]["runs"]
        []
    """
    runs = [summary(arm, run) for arm, run in ended_runs(folder, arms, ("done", "failed"))]
    return {
        "what": "letters of the Penn Treebank and permuted MNIST, learnt by models of equal numbers of parameters",
        "command": "python -m remanence.experiments dense RUNS",
        "scaled_down": (
            f"{PARAMETERS['ptb-char']:,} and {PARAMETERS['pixel-mnist']:,} parameters, {PASSES['ptb-char']} passes "
            f"over the text and {PASSES['pixel-mnist']} over the pictures, {PIXELS} pixels a step, one rate for all "
            "models of a task; the document's have hundreds of units, one pixel a step, rates of their own and about a "
            "hundred passes" + untrained(arms, runs)
        ),
        "machine": f"{platform.machine()}, one core",
        "results": {
            "arms": {arm.name: _description(arm) for arm in arms},
            "runs": runs,
        },
    }


def _description(arm: Arm) -> dict[str, Any]:
    sizes = {"hidden_size": arm.hidden_size, "parameters": arm.parameters(arm.hidden_size)}
    printed = {"bits": arm.bits, "accuracy": None if arm.accuracy is None else round(arm.accuracy / 100, 3)}
    return {"task": arm.task, "model": arm.model, **sizes, "command": arm.command(), "document": printed}


def summary(arm: Arm, run: Run) -> dict[str, Any]:
    """What one run came to.

    Args:
        arm: that it belongs to.
        run: that has ended.
    """
    judged = [line for line in run.metrics.read() if line["kind"] == "validation"]
    facts = {"arm": arm.name, "seed": run.config.seed, "updates": run.status.get("update"), "reason": "failed"}
    found: dict[str, float | None] = {"accuracy": None, **({"bits": None} if arm.task == "ptb-char" else {})}
    if run.is_done:
        facts["reason"] = run.status["reason"]
        found = _tested(run)
    return {**facts, **found, "curve": learning_curve(judged)}


def _tested(run: Run) -> dict[str, float | None]:
    path = run.folder / "test.json"
    if not path.is_file():
        model, task = run.load()
        score = evaluate(model, task, EvaluationConfig(batches=0, batch_size=50), "test")
        found = {"accuracy": round(score["accuracy"], 5)}
        if task.name == "ptb-char":
            found["bits"] = round(score["loss"] / math.log(2), 5)
        run.write("test.json", json.dumps(found))
    return json.loads(path.read_text(encoding="utf-8"))


def run_dense(folder: Path) -> Path:
    """Trains what is missing, one run at a time, and writes the stored result.

    Args:
        folder: where the runs are.
    """
    run_arms(folder, GRID)
    return save_stored("dense", collect(folder))
