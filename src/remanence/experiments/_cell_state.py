"""The status of a cell: its run, its measurements, and what went wrong."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from remanence.experiments._work import Measure, Work
from remanence.rl import PolicyConfig
from remanence.runs import Result, ResultError, Values, is_locked, read_file, read_json
from remanence.train import Run

ERROR = "error.txt"


@dataclass(frozen=True)
class CellState:
    """The status of a cell.

    Args:
        status: ``new``, ``running``, ``interrupted``, ``killed``, ``trained`` (not measured yet), ``measuring``,
            ``failed`` or ``done``.
        update: batches learnt from so far.
        budget: that the run may last for at most; None where nothing is trained.
        validation: the last evaluation.
        seconds: spent learning so far.
        reason: why it ended, or what went wrong.

    Example:
        >>> CellState("new").is_done
        False
    """

    status: str
    update: int = 0
    budget: int | None = None
    validation: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    reason: str = ""

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.status == "done"


def run_of(folder: Path) -> Path:
    """The run folder of a cell.

    Example:
        >>> run_of(Path("a")).name
        'run'
    """
    return folder / "run"


@dataclass(frozen=True)
class Kept(Result):
    """A measurement of a cell as it is kept, with its settings and facts about the code and the machine."""

    kind: ClassVar[str] = "cell-measurement"

    measure: str
    settings: Values
    facts: Values
    values: Values


def read_kept(folder: Path, measure: Measure) -> Kept | None:
    """A kept measurement with its facts, None before it was made.

    Raises:
        NewerVersionError: it was written by a later version.
        ValueError: it is damaged.
    """
    path = folder / "measures" / measure.file
    if not os.path.lexists(path):
        return None
    try:
        return Kept.from_dict(read_json(path))
    except ResultError as error:
        raise type(error)(f"{path}: {error}") from error


def read_state(work: Work, folder: Path) -> CellState:
    """The status of a cell."""
    run = run_state(work, run_of(folder))
    if run.is_done and all(read_kept(folder, measure) is not None for measure in work.measures):
        return run
    is_trained = work.config is not None and run.is_done
    if is_locked(folder):
        # A run that goes on keeps the reason of its last stop until it writes again, and that is over.
        return replace(run, status="measuring" if is_trained else "running", reason="")
    error = folder / ERROR
    if error.is_file():
        return replace(run, status="failed", reason=_brief(read_file(error).decode("utf-8", "replace")))
    if is_trained:
        return replace(run, status="trained")
    return run


def run_state(work: Work, folder: Path) -> CellState:
    """The status of a cell's run, apart from its measurements."""
    if work.config is None:
        return CellState("done" if (folder.parent / "measures").is_dir() else "new")
    if isinstance(work.config, PolicyConfig):
        return _policy_state(work.config, folder)
    run = Run(folder)
    status = run.status
    history = run.history
    state = CellState(
        status["status"],
        max(status["update"], history.update),  # a run that was saved early has measured nothing yet
        status.get("budget") or work.config.budget.updates,
        seconds=status.get("seconds") or 0.0,
        reason=status.get("reason", ""),
    )
    if history.training:
        state = replace(state, seconds=max(state.seconds, history.training[-1].get("seconds") or 0.0))
    if history.last is not None:
        found = history.last.values
        known = {name: found[name] for name in ("loss", "accuracy") if found.get(name) is not None}
        state = replace(state, validation=known)
    return state


def _policy_state(config: PolicyConfig, folder: Path) -> CellState:
    lines = Run(folder).history.training
    if not lines:
        return CellState("new", 0, config.updates)
    last = lines[-1]
    status = "killed"
    if last.update >= config.updates:
        status = "done"
    elif is_locked(folder):
        status = "running"
    found = {}
    mean_return = last.get("mean_return")
    if mean_return is not None:  # None until an episode has ended
        found["mean_return"] = mean_return
    return CellState(status, last.update, config.updates, found, last["seconds"] or 0.0)


def _brief(text: str) -> str:
    """One line of an error: the last of a traceback, the first where there is only a message."""
    lines = text.strip().splitlines() or ["it says nothing"]
    return lines[-1 if lines[0].startswith("Traceback") else 0]
