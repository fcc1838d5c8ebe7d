"""A run folder as typed values. Everything that is damaged is named, and the rest is read all the same."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from remanence.report._measured_weights import MeasuredWeights
from remanence.report._numbers import as_number, only_if
from remanence.report._page import Problem
from remanence.runs import (
    DamagedFileError,
    History,
    Measurement,
    ResultError,
    Run,
    RunError,
    Settings,
    read_file,
    read_json,
)

SOLVED = 0.99
"""Accuracy from which on a task counts as solved."""
PROBES = "probes.json"
"""Name of the file in a run's folder that holds what was measured on its best weights."""

Value = TypeVar("Value")
Record = TypeVar("Record", bound="RunFiles")


@dataclass(frozen=True)
class RunFiles:
    """What the files of any run say: settings as nested tables and as text, status, manifest and all measurements.

    Example:
        >>> RunFiles(Path("mine"), {"model": {"name": "GRU"}, "seed": 3}).model
        'GRU'
    """

    folder: Path
    config: Settings = field(default_factory=dict)
    settings: str = ""
    state: Settings = field(default_factory=dict)
    manifest: Settings = field(default_factory=dict)
    history: History = field(default_factory=History)

    def table(self, name: str) -> Settings:
        """One table of the settings; empty if there is none."""
        return _table(self.config, name)

    @property
    def status(self) -> str:
        """``"new"``, ``"running"``, ``"done"``, ``"interrupted"``, ``"failed"``, ``"killed"`` or ``"unknown"``."""
        return str(self.state.get("status", "unknown"))

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self.table("model").get("name", "unknown model"))

    @property
    def label(self) -> str:
        """What its model is called: as the run says itself, or by its name."""
        return str(self.config.get("label") or self.model)

    @property
    def seed(self) -> int | None:
        """Of the run."""
        seed = self.config.get("seed")
        if not isinstance(seed, int):
            return None
        return seed

    def _last(self, name: str) -> float | None:
        """The last training line's number of a name."""
        if not self.history.training:
            return None
        return as_number(self.history.training[-1].get(name))


@dataclass(frozen=True)
class RunRecord(RunFiles):
    """What the files of a run say whose model learns a task, and what was measured on its best weights.

    Example:
        >>> run = RunRecord(Path("mine"), {"task": {"name": "copy", "options": {"length": 9}}, "seed": 3})
        >>> run.task, run.length, run.seed, run.model
        ('copy', 9, 3, 'unknown model')
    """

    weights: MeasuredWeights | None = None

    @property
    def task(self) -> str:
        """Name of the task."""
        return str(self.table("task").get("name", "unknown task"))

    @property
    def task_options(self) -> dict[str, object]:
        """Options of the task but its length."""
        return {key: value for key, value in _table(self.table("task"), "options").items() if key != "length"}

    @property
    def length(self) -> int | None:
        """T of the task; None if the settings leave it to the task."""
        return _whole(_table(self.table("task"), "options").get("length"))

    @property
    def update(self) -> int:
        """The last update that anything is known of."""
        return max(_whole(self.state.get("update")) or 0, self.history.update)

    @property
    def budget(self) -> int | None:
        """Updates that the run may make; None if the settings speak of epochs and it has not ended."""
        return _whole(self.state.get("budget")) or _whole(self.table("budget").get("updates"))

    @property
    def best(self) -> Measurement | None:
        """The validation at which the best weights were kept."""
        return self.history.best

    @property
    def accuracy(self) -> float | None:
        """Validation accuracy of the best weights."""
        return self.reached("accuracy")

    @property
    def loss(self) -> float | None:
        """Validation loss of the best weights."""
        return self.reached("loss")

    def reached(self, name: str) -> float | None:
        """A number of the validation at which the best weights were kept."""
        if self.best is None:
            return None
        return as_number(self.best.get(name))

    @property
    def unit(self) -> str:
        """The unit in which the task is usually reported apart from loss and accuracy, as ``"bits_per_character"``."""
        if self.best is None:
            return ""
        known = ("loss", "asked_loss", "accuracy")
        return next((name for name, value in self.best.values.items() if name not in known and value), "")

    @property
    def aims_at_accuracy(self) -> bool:
        """Whether the settings say that an accuracy is the end of the task."""
        return as_number(self.table("budget").get("accuracy")) is not None

    @property
    def by_accuracy(self) -> bool:
        """Whether the settings say that weights are the better the greater their accuracy, not the less their loss."""
        return self.table("evaluation").get("metric") == "accuracy"

    @property
    def judged_by(self) -> float | None:
        """What the best weights are compared by, the greater the better: accuracy, or the loss with its sign turned."""
        if self.by_accuracy:
            return self.accuracy
        if self.loss is None:
            return None
        return -self.loss

    @property
    def solved_at(self) -> tuple[int, float | None] | None:
        """Update, and seconds of training, at which a validation first reached 99 %; None if none did."""
        update = self.history.solved_at(SOLVED)
        if update is None:
            return None
        clock = [line.get("seconds") for line in self.history.training if line.update <= update]
        return update, next((seconds for seconds in reversed(clock) if seconds), None)

    @property
    def updates_per_second(self) -> float | None:
        """Of the whole training so far."""
        return self._last("updates_per_second")

    @property
    def batch_size(self) -> int | None:
        """Rows of a training batch."""
        return _whole(self.table("task").get("batch_size"))

    @property
    def has_curriculum(self) -> bool:
        """Whether the length grew during the training."""
        return as_number(self.table("curriculum").get("start")) is not None

    @property
    def is_measured(self) -> bool:
        """Whether the best weights were measured, and have not changed since."""
        return self.weights is not None and self.weights.update == self.best_update

    @property
    def best_update(self) -> int | None:
        """At which the best weights were kept."""
        return getattr(self.best, "update", None)


def _table(table: Settings, name: str) -> Settings:
    found = table.get(name)
    if not isinstance(found, Mapping):
        return {}
    return found


def _whole(value: object) -> int | None:
    number = as_number(value)
    if number is None or not math.isfinite(number):
        return None
    return int(number)


def read_run(folder: Path, problems: list[Problem]) -> RunRecord:
    """Reads the folder of a run, with a ``config.toml``. No code that it names is imported.

    Example:
        >>> problems = []
        >>> read_run(Path("no such folder"), problems).status, [problem.place for problem in problems]
        ('new', ['no such folder/config.toml'])
    """
    record = read_files(RunRecord, folder, problems)
    path = folder / PROBES
    if not path.exists():
        return record
    table = attempt(lambda: read_json(path), {}, path, problems)
    if not table:
        return record
    weights, damaged = MeasuredWeights.read(table)
    problems += [Problem(str(path), text) for text in damaged]
    return replace(record, weights=weights)


def read_files(kind: type[Record], folder: Path, problems: list[Problem]) -> Record:
    """Reads what all runs have; what could not be read is added to the problems."""
    run = Run(folder)
    path = run.config_path
    config: Settings = {}
    text = attempt(lambda: _settings(path), "", path, problems)
    if text:
        config = attempt(lambda: run.settings, {}, path, problems)
    return kind(
        folder=folder,
        config=config,
        settings=text,
        state=_facts(run, "status.json", lambda: run.status, problems),
        manifest=_facts(run, "manifest.json", lambda: run.manifest, problems),
        history=_history(run, problems),
    )


def _settings(path: Path) -> str:
    text = read_file(path).decode("utf-8", "replace")
    if not text.strip():
        raise DamagedFileError(f"{path} is empty")
    return text


def _facts(run: Run, name: str, read: Callable[[], Settings], problems: list[Problem]) -> Settings:
    """What a file of facts says; what left checkpoints left this file, too."""
    path = run.folder / name
    if run.checkpoints.exists() and not os.path.lexists(path):
        problems.append(Problem(str(path), "is missing"))
    return attempt(read, {}, path, problems)


def _history(run: Run, problems: list[Problem]) -> History:
    path = run.metrics.path
    lines, damaged = attempt(run.metrics.read_and_check, ([], []), path, problems)
    if damaged:
        listed = ", ".join(map(str, damaged[:5])) + only_if(len(damaged) > 5, ", …")
        problems.append(Problem(str(path), f"line {listed} cannot be read and is left out"))
    return History.from_lines(lines)


def attempt(read: Callable[[], Value], otherwise: Value, path: Path, problems: list[Problem]) -> Value:
    """What a file holds, or something else if it cannot be read; the problems then say why.

    Example:
        >>> problems = []
        >>> attempt(lambda: read_json(Path("a.json")), {}, Path("a.json"), problems), problems[0].text
        ({}, 'cannot be read: it is missing')
    """
    try:
        return read()
    except (RunError, ResultError) as error:
        words = str(error).removeprefix(f"{path}: ").replace(f"{path} ", "it ", 1)
        problems.append(Problem(str(path), f"cannot be read: {words}"))
        return otherwise
