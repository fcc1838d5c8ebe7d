"""Runs of one task side by side: cells of equal settings, over their seeds, and what each of them reached."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from remanence import train
from remanence._wording import bracketed, number_of
from remanence.experiments import Printed, printed_accuracy
from remanence.report._labels import model_labels
from remanence.report._measured_weights import MeasuredWeights
from remanence.report._numbers import as_number, shortened, the_only
from remanence.report._run_record import RunRecord

LONGEST = 60
"""Letters of a model in a sentence; tables show all."""
Source = tuple[Path, train.Comparison]
"""What ``remanence compare`` left, and the folder that it was found in."""
UNFINISHED = ("new", "running", "interrupted", "killed", "unknown")
VERSIONS = ("remanence", "torch", "python", "numpy", "backend", "instruction_set", "platform")


@dataclass(frozen=True)
class Spread:
    """One number of several seeds, of those that have it.

    Example:
        >>> spread = Spread((0.5, 1.0))
        >>> spread.mean, spread.least, spread.most
        (0.75, 0.5, 1.0)
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float | None:
        """None if there is nothing."""
        if not self.values:
            return None
        return statistics.fmean(self.values)

    @property
    def least(self) -> float | None:
        """The worst seed, where more is better."""
        return min(self.values, default=None)

    @property
    def most(self) -> float | None:
        """The best seed, where more is better."""
        return max(self.values, default=None)


@dataclass(frozen=True)
class Transfer:
    """A trained model, by its run's folder, measured at another length; 0 sequences if the file says no number."""

    length: int
    accuracy: float | None
    sequences: int
    run: str


@dataclass(frozen=True)
class SeedRuns:
    """The runs of one model with the same settings at one length, over their seeds; the best of them at other lengths.

    The label is the model, and what tells it from others of its name; a length of None is the task's own.

    Example:
        >>> SeedRuns("LSTM", 100, ()).name
        'LSTM, T = 100'
    """

    label: str
    length: int | None
    runs: tuple[RunRecord, ...]
    transfer: tuple[Transfer, ...] = ()

    @property
    def name(self) -> str:
        """Model and length."""
        if self.length is None:
            return self.short
        return f"{self.short}, T = {self.length:,}"

    @property
    def model(self) -> str:
        """The model without what tells it from others of its name."""
        names = [run.model for run in self.runs] or [self.label]
        return shortened(names[0], LONGEST)

    @property
    def short(self) -> str:
        """The model, for sentences."""
        return shortened(self.label, LONGEST)

    @property
    def accuracy(self) -> Spread:
        """Validation accuracy of the best weights."""
        return self._reached("accuracy")

    @property
    def loss(self) -> Spread:
        """Validation loss of the best weights."""
        return self._reached("loss")

    @property
    def unit(self) -> str:
        """The unit of the task apart from loss and accuracy, if all of its runs have the same; else empty."""
        return the_only({run.unit for run in self.runs if run.best is not None}) or ""

    @property
    def in_unit(self) -> Spread:
        """What the best weights reach in that unit."""
        return self._reached(self.unit)

    def _reached(self, name: str) -> Spread:
        found = (run.reached(name) for run in self.runs)
        return Spread(tuple(value for value in found if value is not None))

    @property
    def can_be_solved(self) -> bool:
        """Whether there is an accuracy to reach: the settings name one, or a run got to 99 %."""
        return bool(self.solved) or any(run.aims_at_accuracy for run in self.runs)

    @property
    def solved(self) -> list[tuple[int, float | None]]:
        """Update and seconds at which each seed that got there reached 99 %."""
        return [run.solved_at for run in self.runs if run.solved_at is not None]

    @property
    def unfinished(self) -> list[RunRecord]:
        """Runs that have not come to their end."""
        return [run for run in self.runs if run.status in UNFINISHED]

    @property
    def failed(self) -> list[RunRecord]:
        """Runs that ended in a failure."""
        return [run for run in self.runs if run.status == "failed"]

    @property
    def budget(self) -> int | None:
        """The most updates that any of its runs may make."""
        return max((run.budget for run in self.runs if run.budget is not None), default=None)

    @property
    def probed(self) -> RunRecord | None:
        """The run whose weights were measured: the best of those that were."""
        return best_of([run for run in self.runs if run.weights is not None])

    @property
    def weights(self) -> MeasuredWeights:
        """What was measured on the weights of :attr:`probed`; empty if nothing was."""
        if self.probed is None or self.probed.weights is None:
            return MeasuredWeights()
        return self.probed.weights

    @property
    def steps_per_second(self) -> float | None:
        """Steps of sequences that the training worked through in a second, over all rows; None with a curriculum."""
        steps = self.weights.steps
        rates = [
            run.updates_per_second * run.batch_size * steps
            for run in self.runs
            if run.updates_per_second and run.batch_size and steps and not run.has_curriculum
        ]
        return Spread(tuple(rates)).mean

    def printed(self, measured_at: int | None = None) -> Printed | None:
        """What a document prints for this cell, or for its transfer to another length."""
        if not self.runs or self.length is None:
            return None
        return printed_accuracy(self.runs[0].task, self.runs[0].model, self.length, measured_at)


@dataclass(frozen=True)
class TaskComparison:
    """All runs of one task.

    Args:
        task: its name.
        options: of the task, but its length.
        cells: by model, then by length.
        commands: that made it, as far as known.

    Example:
        >>> TaskComparison("copy", {"items": 3}, ()).title
        'Copy (items = 3)'
    """

    task: str
    options: dict[str, object]
    cells: tuple[SeedRuns, ...]
    commands: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The task in words."""
        chosen = shortened(", ".join(_option(key, value) for key, value in self.options.items()), LONGEST)
        name = shortened(self.task[:1].upper() + self.task[1:], LONGEST)
        return bracketed(name, chosen)

    @property
    def runs(self) -> list[RunRecord]:
        """Of all cells."""
        return [run for cell in self.cells for run in cell.runs]

    @property
    def labels(self) -> list[str]:
        """The models."""
        return list(dict.fromkeys(cell.label for cell in self.cells))

    @property
    def lengths(self) -> list[int | None]:
        """The lengths of training, rising."""
        return sorted({cell.length for cell in self.cells}, key=lambda length: length or 0)

    @property
    def chance(self) -> float | None:
        """Accuracy of a predictor that sees nothing, where every measured model says the same."""
        return the_only({cell.weights.chance for cell in self.cells if cell.probed is not None})

    @property
    def mixed(self) -> dict[str, list[str]]:
        """Versions in which the runs differ, and their values."""
        found = {
            name: sorted({str(run.manifest[name]) for run in self.runs if name in run.manifest}) for name in VERSIONS
        }
        return {name: values for name, values in found.items() if len(values) > 1}


def compare(runs: Sequence[RunRecord], sources: Sequence[Source] = ()) -> list[TaskComparison]:
    """Sorts runs into comparisons, one for each task with its options, by the task's name, the model's and the length.

    Some of the runs may belong to ``sources``.
    """
    by_task: dict[tuple[str, str], list[RunRecord]] = {}
    for run in runs:
        by_task.setdefault((run.task, json.dumps(run.task_options, sort_keys=True, default=str)), []).append(run)
    return [_comparison(found, sources) for _, found in sorted(by_task.items(), key=lambda item: item[0])]


def _comparison(runs: list[RunRecord], sources: Sequence[Source]) -> TaskComparison:
    cells: dict[tuple[str, int], list[RunRecord]] = {}
    labels = model_labels(runs)
    for run in runs:
        cells.setdefault((labels[run.folder], run.length or 0), []).append(run)
    made = tuple(
        SeedRuns(label, length or None, tuple(sorted(found, key=_by_seed)), _transfers(found, sources))
        for (label, length), found in sorted(cells.items())
    )
    return TaskComparison(runs[0].task, runs[0].task_options, made, _commands(runs, sources))


def _by_seed(run: RunRecord) -> tuple[bool, int, str]:
    return run.seed is not None, run.seed or 0, str(run.folder)


def _near(run: RunRecord, sources: Sequence[Source]) -> list[train.Comparison]:
    """The comparisons in whose folders a run lies."""
    return [source for folder, source in sources if folder.resolve() in run.folder.resolve().parents]


def _transfers(runs: Sequence[RunRecord], sources: Sequence[Source]) -> tuple[Transfer, ...]:
    found: dict[int, Transfer] = {}
    for run in runs:
        for row in (row for source in _near(run, sources) for row in source.transfer):
            length = as_number(row.get("measured_at"))
            # A comparison names the run's folder as it was then; it may have been moved with its runs.
            if length is None or Path(str(row.get("run", ""))).name != run.folder.name:
                continue
            sequences = int(as_number(row.get("sequences")) or 0)
            found[int(length)] = Transfer(int(length), as_number(row.get("accuracy")), sequences, str(run.folder))
    return tuple(found[length] for length in sorted(found))


def _commands(runs: Sequence[RunRecord], sources: Sequence[Source]) -> tuple[str, ...]:
    """The command of every comparison that holds one of the runs; of the other runs their own."""
    commands: dict[str, None] = {}
    for run in runs:
        given = next((source.command for source in _near(run, sources) if source.command), run.manifest.get("command"))
        if isinstance(given, list):
            given = " ".join(map(str, given))
        command = str(given or "")
        if command:
            commands[command] = None
    return tuple(commands)


def best_of(runs: Sequence[RunRecord]) -> RunRecord | None:
    """The best run by validation: by the metric of its settings, by default the loss."""
    judged = [run for run in runs if run.best is not None]
    if not judged:
        return next(iter(runs), None)
    known = [run for run in judged if run.judged_by is not None] or judged
    return max(known, key=lambda run: run.judged_by or 0.0)


def seeds_of(cell: SeedRuns) -> str:
    """How many runs a cell has, and what has become of them.

    Example:
        >>> seeds_of(SeedRuns("LSTM", 5, (RunRecord(Path("a")), RunRecord(Path("b")))))
        '2 seeds, 2 unknown'
    """
    states = [run.status for run in cell.runs if run.status != "done"]
    parts = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
    return ", ".join([number_of(len(cell.runs), "seed"), *parts])


def _option(key: str, value: object) -> str:
    """An option of a task in words; of a file only the name."""
    if key == "path":
        return Path(str(value)).name
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return f"{key} = {value}"
