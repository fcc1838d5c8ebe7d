"""Recall over 100 steps: which models learn Copy and Denoise, how soon, and at which other lengths they then answer.

The stored result ``recall`` has, under ``results``:

- ``arms``: by its name, such as ``"denoise-RelLSTM-curriculum"``: the ``task``, the ``model``, whether it was trained
  with a ``curriculum``, the ``command`` that trains it, and what the ``document`` prints: ``accuracy`` at T = 100 and
  ``transfer``, by length (None where it prints nothing).
- ``runs``: a list, one entry a seed:

  - ``arm``, ``seed``, ``settings`` (the whole configuration);
  - ``updates`` made, ``minutes``, ``cpu_minutes`` (time that its one core worked, whatever else the machine did), and
    the ``reason`` why it ended;
  - ``final_accuracy`` and ``best_accuracy`` by validation; ``updates_to_99``, ``minutes_to_99`` and
    ``cpu_minutes_to_99``, None if 99 % was not reached;
  - ``elsewhere``: by length, as text, the ``accuracy`` on test sequences of the best weights by validation loss (of an
    LSTM these may answer less than ``best_accuracy``, the fairer number), and what else :func:`elsewhere` says;
  - ``held_by_place``: of the first, second, ... symbol, how often the memory has it at T = 100 when the question comes;
  - ``lengths``: when the curriculum went on, and to which length;
  - ``curve``: ``updates``, ``accuracy`` and ``loss``, validated at T = 100.
"""

from __future__ import annotations

import dataclasses
import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from remanence.experiments._arms import ended_runs, run_arms
from remanence.experiments._stored import save_stored
from remanence.nn import SequenceModel
from remanence.tasks import Task
from remanence.train import Cell, Run, plan_grid, recipe, with_settings

LENGTH = 100
TRANSFER = (100, 200, 400, 1000, 2000, 5000)
SEQUENCES = 50
SOLVED = 0.99
POINTS = 100
CURRICULUM = ("curriculum.start=10", "curriculum.accuracy=0.9")


@dataclass(frozen=True)
class Arm:
    """One model on one task, trained in one way.

    Args:
        task: its name.
        model: its name.
        updates: budget of a run; it ends earlier at an accuracy of 99 %.
        settings: what differs from the recipe.
        printed: accuracy that the document prints at T = 100, in per cent.
        printed_transfer: and at other lengths, for a model trained at T = 100.
        seeds: how many runs.
        variant: a word for settings that another arm of the same model does not have.

    Example:
        >>> Arm("copy", "LSTM", 1000).name
        'copy-LSTM-fixed'
    """

    task: str
    model: str
    updates: int
    settings: tuple[str, ...] = ()
    printed: int | None = None
    printed_transfer: dict[int, int] = dataclasses.field(default_factory=dict)
    seeds: int = 3
    variant: str = ""

    @property
    def curriculum(self) -> bool:
        """Whether it begins with short sequences."""
        return any(setting.startswith("curriculum.start") for setting in self.settings)

    @property
    def name(self) -> str:
        """Task, model and way of training; also the folder of its runs."""
        way = "curriculum" if self.curriculum else "fixed"
        return "-".join(filter(None, (self.task, self.model, way, self.variant)))

    @property
    def all_settings(self) -> list[str]:
        """Settings, with the budget."""
        return [f"budget.updates={self.updates}", f"budget.accuracy={SOLVED}", "evaluation.every=250", *self.settings]

    def command(self, folder: str | Path = "RUNS") -> str:
        """What trains it on the command line."""
        options = " ".join(f"--set {setting}" for setting in self.all_settings)
        grid = f"--models {self.model} --lengths {LENGTH} --seeds {self.seeds}"
        return f"remanence compare {self.task} {grid} {options} --folder {folder}/{self.name}"

    def cells(self, folder: str | Path) -> list[Cell]:
        """Its runs, made or found again below a folder.

        Args:
            folder: of all arms.
        """
        config = with_settings(recipe(self.task, self.model), self.all_settings)
        return plan_grid({self.model: config}, Path(folder) / self.name, [LENGTH], self.seeds)


REL_TRANSFER = {100: 100, 200: 99, 400: 99, 2000: 99, 5000: 99}
LSTM_TRANSFER = {100: 99, 200: 64, 400: 48, 2000: 19, 5000: 14}
H_DETACH_TRANSFER = {100: 100, 200: 91, 400: 77, 2000: 51, 5000: 42}

# Document 000 prints Table 5 (Copy), Table 1 (transfer of Copy) and a table of Denoise; it has no curriculum.
GRID = (
    Arm("copy", "RelLSTM", 10_000, CURRICULUM, 100, REL_TRANSFER),
    Arm("denoise", "RelLSTM", 6000, CURRICULUM, 100, seeds=5),
    Arm("copy", "RelRNN", 6000, CURRICULUM, 100, REL_TRANSFER),
    Arm("denoise", "RelRNN", 6000, CURRICULUM, 100, seeds=5),
    Arm("denoise", "LSTM", 6000, (), 82),
    Arm("copy", "LSTM", 6000, (), 100, LSTM_TRANSFER),
    Arm("denoise", "RelRNN", 10_000, (), 100),
    Arm("denoise", "RelLSTM", 10_000, (), 100),
    Arm("denoise", "HDetachLSTM", 6000),
    Arm("copy", "HDetachLSTM", 6000, (), 100, H_DETACH_TRANSFER),
    Arm(
        "denoise",
        "RelLSTM",
        6000,
        ("model.options.forget_bias=-4.0", *CURRICULUM),
        100,
        seeds=5,
        variant="forgets-less",
    ),
    Arm("denoise", "RelLSTM", 6000, ("model.options.forget_bias=0", *CURRICULUM), 100, variant="keeps"),
    Arm("copy", "RelRNN", 10_000, (), 100, REL_TRANSFER),
    Arm("copy", "RelLSTM", 10_000, (), 100, REL_TRANSFER),
    Arm("denoise", "LSTM", 6000, ("optimiser.learning_rate=3e-3", *CURRICULUM), 82),
    Arm("copy", "LSTM", 6000, ("optimiser.learning_rate=3e-3", *CURRICULUM), 100, LSTM_TRANSFER),
)
"""All arms, the most telling first."""


def collect(folder: str | Path, arms: Sequence[Arm] = GRID) -> dict[str, Any]:
    """Reads all runs that are done and measures them at other lengths.

    Args:
        folder: that :func:`run_arms`, or the commands of the arms, left.
        arms: which ones.

    Returns:
        The record, as the module describes it.

    Example:
        >>> collect("nowhere", arms=[Arm("copy", "LSTM", 10)])["results"]["runs"]
        []
    """
    runs = [summary(arm, run) for arm, run in ended_runs(folder, arms)]
    return {
        "what": "Copy and Denoise at T = 100, learnt by four models from several seeds, then asked at other lengths",
        "command": "python -m remanence.experiments recall RUNS",
        "scaled_down": "at most 10,000 updates of 10 sequences, where document 000's code makes 200,000; "
        f"other lengths on {SEQUENCES} sequences, where it takes 10,000",
        "machine": f"{platform.machine()}, one core a run, shared with other work: see cpu_minutes, not minutes",
        "results": {"arms": {arm.name: _description(arm) for arm in arms}, "runs": runs},
    }


def _description(arm: Arm) -> dict[str, Any]:
    printed = {"accuracy": arm.printed, "transfer": {str(key): value for key, value in arm.printed_transfer.items()}}
    facts = {"task": arm.task, "model": arm.model, "curriculum": arm.curriculum, "command": arm.command()}
    return {**facts, "document": printed}


def summary(arm: Arm, run: Run) -> dict[str, Any]:
    """What one run came to.

    Args:
        arm: that it belongs to.
        run: that is done.
    """
    lines, status = run.metrics.read(), run.status
    judged = [line for line in lines if line["kind"] == "validation"]
    clocks = {line["update"]: line for line in lines if line["kind"] == "train"}
    solved = next((line["update"] for line in judged if line["accuracy"] >= SOLVED), None)
    return {
        "arm": arm.name,
        "seed": run.config.seed,
        "settings": dataclasses.asdict(run.config),
        "updates": status["update"],
        "minutes": round(status["seconds"] / 60, 2),
        "cpu_minutes": round(status.get("cpu_seconds", 0.0) / 60, 2),
        "reason": status["reason"],
        "final_accuracy": judged[-1]["accuracy"],
        "best_accuracy": max(line["accuracy"] for line in judged),
        "updates_to_99": solved,
        "minutes_to_99": None if solved is None else round(clocks[solved]["seconds"] / 60, 2),
        "cpu_minutes_to_99": None if solved is None else round(clocks[solved].get("cpu_seconds", 0.0) / 60, 2),
        "elsewhere": elsewhere(run),
        "held_by_place": held_by_place(run),
        "lengths": [[line["update"], line["length"]] for line in lines if line["kind"] == "curriculum"],
        "curve": learning_curve(judged),
    }


def learning_curve(judged: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    """Validations as columns, at most 100 of them, the last among them.

    Args:
        judged: lines of a run's metrics.

    Example:
        >>> learning_curve([{"update": 500, "accuracy": 0.5, "loss": 1.25}])
        {'updates': [500], 'accuracy': [0.5], 'loss': [1.25]}
    """
    stride = -(-len(judged) // POINTS)
    kept = judged[:: -stride or None][::-1]
    columns = (("updates", "update"), ("accuracy", "accuracy"), ("loss", "loss"))
    return {name: [round(line[key], 5) for line in kept] for name, key in columns}


def elsewhere(run: Run, lengths: Iterable[int] | None = None) -> dict[str, dict[str, float]]:
    """Asks a run's best weights at other lengths, without more training; kept in its folder, as it takes time.

    Args:
        run: that is done.
        lengths: to ask at; None takes those of the experiment.

    Returns:
        By length, as text: ``accuracy``; ``largest_state``, the greatest absolute value in the state (the cell's, if it
        has one) when the question comes; and ``held``, the share of symbols whose state the memory then has.
    """
    path = run.folder / "elsewhere.json"
    found: dict[str, dict[str, float]] = json.loads(path.read_text()) if path.is_file() else {}
    model, task = run.load()
    for length in lengths or TRANSFER:
        if str(length) not in found:
            found[str(length)] = _answers(model, task.with_length(length))
    run.write("elsewhere.json", json.dumps(found))
    return found


@torch.no_grad()
def _answers(model: SequenceModel, task: Task) -> dict[str, float]:
    batch = task.batch(0, SEQUENCES, split="test")
    question = int(batch.mask[:, 0].nonzero()[0])
    _, state = model(batch.inputs[:question])
    logits, _ = model(batch.inputs[question:], state)
    answered = batch._replace(targets=batch.targets[question:], mask=batch.mask[question:])
    facts = {"accuracy": task.accuracy(logits, answered).item(), "largest_state": _largest(state)}
    facts["held"] = _held(batch.inputs[: question - 1], state).double().mean().item()
    return {name: round(value, 5) for name, value in facts.items()}


def _largest(state: Any) -> float:
    return (state.hx[1] if isinstance(state.hx, tuple) else state.hx).abs().max().item()


def _held(shown: Tensor, state: Any) -> Tensor:
    """Which symbols ``(B, symbols)`` have their state in the relevant set, or still in the short-term buffer."""
    row, step = (shown[:, :, 0] == 0).T.nonzero(as_tuple=True)  # inputs are one-hot, and class 0 is blank
    relevant = (state.relevant_step[0][row] == step[:, None]).any(dim=1)
    recent = step > len(shown) - state.recent.shape[2]
    return (relevant | recent).view(shown.shape[1], -1)


@torch.no_grad()
def held_by_place(run: Run) -> list[float]:
    """Of the first symbol shown, of the second, and so on: how often the memory has it when the question comes.

    Args:
        run: that is done, of any model; one without a memory holds nothing.
    """
    model, task = run.load()
    batch = task.batch(0, SEQUENCES, split="test")
    question = int(batch.mask[:, 0].nonzero()[0])
    _, state = model(batch.inputs[:question])
    return [round(share, 5) for share in _held(batch.inputs[: question - 1], state).double().mean(dim=0).tolist()]


def run_recall(folder: Path) -> Path:
    """Trains what is missing, one run at a time, and writes the stored result.

    To store what is done so far, without training: ``save_stored("recall", collect(folder))``.

    Args:
        folder: where the runs are.
    """
    run_arms(folder, GRID)
    return save_stored("recall", collect(folder))
