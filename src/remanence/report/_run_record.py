"""A run folder as plain values. Everything that is damaged is named, and the rest is read all the same."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remanence.report._measured_weights import MeasuredWeights
from remanence.report._numbers import as_number
from remanence.report._page import Problem
from remanence.runs import Run

SOLVED = 0.99
"""Accuracy from which on a task counts as solved."""
PROBES = "probes.json"
"""Name of the file in a run's folder that holds what was measured on its best weights."""

Line = dict[str, Any]


@dataclass(frozen=True)
class RunRecord:
    """What the files of a run say.

    Args:
        folder: of the run.
        config: nested tables as in ``config.toml``.
        settings: the text of ``config.toml``.
        status: ``"new"``, ``"running"``, ``"done"``, ``"interrupted"``, ``"failed"``, ``"killed"`` or ``"unknown"``.
        state: what else ``status.json`` says.
        manifest: versions, machine, command.
        training: lines of ``metrics.jsonl`` about training.
        validation: lines of ``metrics.jsonl`` about validation.
        clock: updates, and the seconds of training that they took.
        updates_per_second: of the whole training so far.
        weights: what was measured on the best weights; None if nothing was.

    Example:
        >>> run = RunRecord(Path("mine"), {"task": {"name": "copy", "options": {"length": 9}}, "seed": 3})
        >>> run.task, run.length, run.seed, run.model
        ('copy', 9, 3, 'unknown model')
    """

    folder: Path
    config: dict[str, Any] = field(default_factory=dict)
    settings: str = ""
    status: str = "unknown"
    state: dict[str, Any] = field(default_factory=dict)
    manifest: dict[str, Any] = field(default_factory=dict)
    training: tuple[Line, ...] = ()
    validation: tuple[Line, ...] = ()
    clock: tuple[tuple[int, float], ...] = ()
    updates_per_second: float | None = None
    weights: MeasuredWeights | None = None

    def _table(self, name: str) -> dict[str, Any]:
        table = self.config.get(name)
        return table if isinstance(table, dict) else {}

    @property
    def task(self) -> str:
        """Name of the task."""
        return str(self._table("task").get("name", "unknown task"))

    @property
    def task_options(self) -> dict[str, Any]:
        """Options of the task but its length."""
        options = self._table("task").get("options", {})
        return {key: value for key, value in options.items() if key != "length"} if isinstance(options, dict) else {}

    @property
    def length(self) -> int | None:
        """T of the task; None if the settings leave it to the task."""
        options = self._table("task").get("options", {})
        length = as_number(options.get("length")) if isinstance(options, dict) else None
        return None if length is None or not math.isfinite(length) else int(length)

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self._table("model").get("name", "unknown model"))

    @property
    def seed(self) -> int | None:
        """Of the run."""
        seed = self.config.get("seed")
        return seed if isinstance(seed, int) else None

    @property
    def update(self) -> int:
        """The last update that anything is known of."""
        measured = [int(line["update"]) for line in (*self.training, *self.validation)]
        return max([int(as_number(self.state.get("update")) or 0), *measured])

    @property
    def budget(self) -> int | None:
        """Updates that the run may make; None if the settings speak of epochs and it has not ended."""
        budget = as_number(self.state.get("budget")) or as_number(self._table("budget").get("updates"))
        return None if budget is None else int(budget)

    @property
    def best(self) -> Line | None:
        """The validation at which the best weights were kept."""
        return next((line for line in reversed(self.validation) if line.get("best") is True), None)

    @property
    def accuracy(self) -> float | None:
        """Validation accuracy of the best weights."""
        return None if self.best is None else as_number(self.best.get("accuracy"))

    @property
    def loss(self) -> float | None:
        """Validation loss of the best weights."""
        return None if self.best is None else as_number(self.best.get("loss"))

    @property
    def unit(self) -> str | None:
        """The unit in which the task is usually reported beside loss and accuracy, as ``"bits_per_character"``."""
        known = {"kind", "update", "loss", "accuracy", "best"}
        return next((name for name, value in (self.best or {}).items() if name not in known and as_number(value)), None)

    @property
    def aims_at_accuracy(self) -> bool:
        """Whether the settings say that an accuracy is the end of the task."""
        return as_number(self._table("budget").get("accuracy")) is not None

    @property
    def solved_at(self) -> tuple[int, float | None] | None:
        """Update, and seconds of training, at which a validation first reached 99 %; None if none did."""
        for line in self.validation:
            if (as_number(line.get("accuracy")) or 0.0) >= SOLVED:
                before = [seconds for update, seconds in self.clock if update <= line["update"]]
                return int(line["update"]), before[-1] if before else None
        return None

    @property
    def batch_size(self) -> int | None:
        """Rows of a training batch."""
        size = as_number(self._table("task").get("batch_size"))
        return None if size is None else int(size)

    @property
    def has_curriculum(self) -> bool:
        """Whether the length grew during the training."""
        return as_number(self._table("curriculum").get("start")) is not None

    @property
    def is_measured(self) -> bool:
        """Whether the best weights were measured, and have not changed since."""
        return self.weights is not None and self.weights.update == (self.best or {}).get("update")


def read_run(folder: Path, problems: list[Problem]) -> RunRecord:
    """Reads a run's folder. No code that a run names is imported.

    Args:
        folder: with a ``config.toml``.
        problems: gets what could not be read.

    Example:
        >>> problems = []
        >>> read_run(Path("no such folder"), problems).status, [problem.place for problem in problems]
        ('new', ['no such folder/config.toml'])
    """
    settings, config = read_settings(folder / "config.toml", problems)
    lines = read_lines(folder / "metrics.jsonl", problems)
    training = tuple(line for line in lines if line["kind"] == "train")
    state = read_status(folder, problems)
    return RunRecord(
        folder=folder,
        config=config,
        settings=settings,
        status=str(state.get("status", "unknown")),
        state=state,
        manifest=read_table(folder / "manifest.json", problems),
        training=training,
        validation=tuple(line for line in lines if line["kind"] == "validation"),
        clock=tuple((line["update"], seconds) for line in training if (seconds := as_number(line.get("seconds")))),
        updates_per_second=as_number(training[-1].get("updates_per_second")) if training else None,
        weights=_measured(folder / PROBES, problems),
    )


def _measured(path: Path, problems: list[Problem]) -> MeasuredWeights | None:
    table = read_table(path, problems)
    if not table:
        return None
    weights, damaged = MeasuredWeights.read(table)
    problems += [Problem(str(path), text) for text in damaged]
    return weights


def read_settings(path: Path, problems: list[Problem]) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file, and what it says.

    Args:
        path: the file.
        problems: gets why it could not be read.

    Example:
        >>> read_settings(Path("no such file"), [])
        ('', {})
    """
    text = ""
    try:
        text = _text_of(path)
        return text, tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        problems.append(Problem(str(path), _words_of(error)))
        return text, {}


def _text_of(path: Path, errors: str = "strict") -> str:
    """A pipe would never end, so only regular files are read."""
    if path.exists() and not path.is_file():
        raise OSError("it is no regular file")
    return path.read_text(encoding="utf-8", errors=errors)


def read_table(path: Path, problems: list[Problem]) -> dict[str, Any]:
    """A JSON object; empty if the file is missing or cannot be read.

    Args:
        path: the file.
        problems: gets why it could not be read.

    Example:
        >>> read_table(Path("no such file"), [])
        {}
    """
    try:
        table = json.loads(_text_of(path)) if path.exists() else {}
        if isinstance(table, dict):
            return table
        problems.append(Problem(str(path), "cannot be read: a JSON object was expected"))
    except (OSError, ValueError, RecursionError) as error:
        problems.append(Problem(str(path), _words_of(error)))
    return {}


def _words_of(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "is not UTF-8 text"
    if isinstance(error, FileNotFoundError):
        return "is missing"
    return f"cannot be read: {error}"


def read_status(folder: Path, problems: list[Problem]) -> dict[str, Any]:
    """The status; a run that says that it is running and holds no lock was killed.

    Args:
        folder: of the run.
        problems: gets why it could not be read.

    Example:
        >>> read_status(Path("no such folder"), [])["status"]
        'new'
    """
    before = len(problems)
    table = read_table(folder / "status.json", problems)
    if len(problems) > before:
        return {"status": "unknown"}
    if table and "status" not in table:
        return table
    return {**table, "status": Run(folder).status.get("status", "unknown")}


def read_lines(path: Path, problems: list[Problem]) -> list[Line]:
    """All whole measurements. A torn last line is what a kill leaves; any other that cannot be read is named.

    Args:
        path: of a ``metrics.jsonl``.
        problems: gets the lines that could not be read.

    Example:
        >>> read_lines(Path("no such file"), [])
        []
    """
    if not path.exists():
        return []
    found: list[Line] = []
    torn: list[int] = []
    try:
        text = _text_of(path, errors="replace")
    except OSError as error:
        problems.append(Problem(str(path), _words_of(error)))
        return []
    for number, line in enumerate(text.splitlines(), start=1):
        parsed = _measurement(line)
        if parsed is None:
            torn.append(number)
        else:
            found.append(parsed)
    if torn and (torn[:-1] or text.endswith("\n")):
        listed = ", ".join(map(str, torn[:5])) + (", …" if len(torn) > 5 else "")
        problems.append(Problem(str(path), f"line {listed} cannot be read and is left out"))
    return found


def _measurement(text: str) -> Line | None:
    try:
        line = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return None
    whole = isinstance(line, dict) and isinstance(line.get("update"), int) and isinstance(line.get("kind"), str)
    return line if whole else None
