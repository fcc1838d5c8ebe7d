"""A run folder as plain values. Everything that is damaged is named, and the rest is read all the same."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remanence.report._words import as_number
from remanence.train import Run

SOLVED = 0.99
"""Accuracy from which on a task counts as solved."""
PROBES = "probes.json"
"""Name of the file in a run's folder that holds what was measured on its best weights."""

Line = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """Something that could not be read.

    Args:
        place: the file.
        text: what is wrong with it.

    Example:
        >>> Problem("a.json", "is no JSON").place
        'a.json'
    """

    place: str
    text: str


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
        probes: what was measured on the weights; None if nothing was.

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
    probes: dict[str, Any] | None = None

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
                before = [t for t in self.training if t["update"] <= line["update"]]
                return int(line["update"]), as_number(before[-1].get("seconds")) if before else None
        return None

    @property
    def updates_per_second(self) -> float | None:
        """Of the whole training so far."""
        return as_number(self.training[-1].get("updates_per_second")) if self.training else None

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
    def probes_are_stale(self) -> bool:
        """Whether the best weights have changed since they were measured."""
        return self.probes is not None and self.probes.get("update") != (self.best or {}).get("update")


def read_run(folder: Path) -> tuple[RunRecord, list[Problem]]:
    """Reads a run's folder.

    Args:
        folder: with a ``config.toml``.

    Returns:
        What it says, and what could not be read.

    Example:
        >>> run, problems = read_run(Path("no such folder"))
        >>> run.status, [problem.place for problem in problems]
        ('new', ['no such folder/config.toml'])
    """
    problems: list[Problem] = []

    def attempt(name: str, read: Callable[[Path], Any], otherwise: Any) -> Any:
        try:
            return read(folder / name)
        except (OSError, ValueError) as error:
            problems.append(Problem(str(folder / name), _words_of(error)))
            return otherwise

    settings = attempt("config.toml", lambda path: path.read_text(encoding="utf-8"), "")
    config = attempt("config.toml", lambda path: tomllib.loads(settings), {})
    lines = attempt("metrics.jsonl", lambda path: _read_lines(path, problems), [])
    state = attempt("status.json", lambda path: _status(folder, path), {"status": "unknown"})
    record = RunRecord(
        folder=folder,
        config=config,
        settings=settings,
        status=str(state.get("status", "unknown")),
        state=state,
        manifest=attempt("manifest.json", _read_table, {}),
        training=tuple(line for line in lines if line["kind"] == "train"),
        validation=tuple(line for line in lines if line["kind"] == "validation"),
        probes=attempt(PROBES, _read_table, {}) or None,
    )
    return record, problems


def _words_of(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "is not UTF-8 text"
    if isinstance(error, FileNotFoundError):
        return "is missing"
    return f"cannot be read: {error}"


def _read_table(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    table = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(table, dict):
        raise ValueError("a JSON object was expected")
    return table


def _status(folder: Path, path: Path) -> dict[str, Any]:
    """The status; a run that says that it is running and holds no lock was killed."""
    table = _read_table(path)
    return {**table, "status": Run(folder).status.get("status", "unknown")} if "status" in table or not table else table


def _read_lines(path: Path, problems: list[Problem]) -> list[Line]:
    """All whole measurements. A torn last line is what a kill leaves; any other that cannot be read is named."""
    if not path.exists():
        return []
    found: list[Line] = []
    torn: list[int] = []
    text = path.read_text(encoding="utf-8", errors="replace")
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
    except json.JSONDecodeError:
        return None
    whole = isinstance(line, dict) and isinstance(line.get("update"), int) and isinstance(line.get("kind"), str)
    return line if whole else None
