"""A cell of a table: a folder, what is in it so far, and the work that fills it."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from remanence._validate import message
from remanence.data import DataError
from remanence.experiments._cell_state import ERROR, CellState, Kept, read_kept, read_state, run_of, run_state
from remanence.experiments._experiment import Place
from remanence.experiments._facts import machine_facts
from remanence.experiments._storage import Archive
from remanence.experiments._work import Measure, Work
from remanence.experiments.measures import measured
from remanence.rl import PolicyConfig, train_policy
from remanence.runs import History, Observer, RunError, Values, locked, replace_file, write_result
from remanence.train import Run, resume, train

LOG = "output.txt"
PATIENCE = 10.0
"""Seconds that a cell is waited for which another process holds, as one does that just fetches it."""


@dataclass(frozen=True)
class TableCell:
    """One cell of a table or a figure.

    Args:
        place: where it stands, such as ``{"model": "LSTM", "length": 100, "seed": 0}``.
        work: what fills it.
        root: folder of all cells.
        storage: URL of a storage that mirrors the folder; empty if the folder is all.

    Example:
        >>> from remanence.train import RunConfig
        >>> TableCell({"seed": 0}, Work(RunConfig(), ()), Path("runs")).state.status
        'new'
    """

    place: Place
    work: Work
    root: Path
    storage: str = ""

    @property
    def folder(self) -> Path:
        """Of the cell: ``run`` is the run folder, ``measures`` what was measured on it."""
        return self.root / self.work.name

    @property
    def label(self) -> str:
        """Its place in words."""
        return " ".join(f"{name}={value}" for name, value in self.place.items())

    @property
    def state(self) -> CellState:
        """Its status, read from its folder."""
        return read_state(self.work, self.folder)

    @property
    def is_done(self) -> bool:
        """Whether its run has ended and everything was measured."""
        return self.state.is_done

    @property
    def history(self) -> History:
        """What its run has measured while it learnt."""
        return Run(run_of(self.folder)).history

    def learning_curve(self, source: str, name: str) -> Sequence[float | None]:
        """One column of its history: of the lines of ``"validation"`` or of ``"train"``."""
        lines = self.history.training
        if source == "validation":
            lines = self.history.validation
        if name == "update":
            return [line.update for line in lines]
        return [line.get(name) for line in lines]

    def result(self, name: str) -> Values | None:
        """What a measurement found, None before it was made."""
        for measure in self.work.measures:
            if measure.name == name:
                kept = read_kept(self.folder, measure)
                return kept and kept.values
        return None


def carry_out(
    work: Work,
    folder: str | Path,
    observer: Observer | None = None,
    storage: str = "",
    patience: float = PATIENCE,
) -> int | None:
    """Fills a cell, or resumes it.

    Args:
        work: what to do.
        folder: of the cell.
        observer: called with every measurement of a run.
        storage: URL of a storage that mirrors the folder: what is there is fetched first, what changes goes there.
        patience: seconds to wait for another process that is at it.

    Returns:
        The signal that stopped it, None if it is done.

    Raises:
        RunLockedError: another process is at it.
        TakenOverError: a worker elsewhere has taken it up on the storage meanwhile.
        Exception: whatever went wrong; the traceback is in ``error.txt``.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    mirror = contextlib.nullcontext()
    if storage:
        mirror = Archive(storage, place).mirrored()
    with locked(place, patience), mirror:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(place / ERROR)
        try:
            return _fill(work, place, observer)
        except (RunError, DataError) as error:  # of a file or the disk: its words say what to do
            replace_file(place / ERROR, f"{error}\n".encode())
            raise
        except Exception:
            replace_file(place / ERROR, traceback.format_exc().encode())
            raise


def _fill(work: Work, folder: Path, observer: Observer | None) -> int | None:
    signal = _trained(work, run_of(folder), observer)
    if signal is not None:
        return signal
    # Each measurement is kept as soon as it is made: a kill loses one at most.
    for measure in work.measures:
        if read_kept(folder, measure) is None:
            _keep(folder, measure, measured(measure, run_of(folder)))
            print(f"measured {measure.name}", flush=True)
    return None


def _trained(work: Work, folder: Path, observer: Observer | None) -> int | None:
    if work.config is None or run_state(work, folder).is_done:
        return None
    if isinstance(work.config, PolicyConfig):
        outcome = train_policy(work.config, folder, observer)
    elif Run(folder).exists:  # with settings of the same digest, or the cell would have another folder
        outcome = resume(folder, observer)
    else:
        outcome = train(work.config, folder, observer)
    print(f"{outcome.status} at update {outcome.update}", flush=True)
    if outcome.status == "interrupted":
        return outcome.signal
    return None


def _keep(folder: Path, measure: Measure, values: Values) -> None:
    (folder / "measures").mkdir(exist_ok=True)
    kept = Kept(measure.name, dict(measure.settings), machine_facts(), values)
    write_result(folder / "measures" / measure.file, kept)


def adopt(run: str | Path, root: str | Path) -> Path:
    """Makes a run that is done the cell of its settings, by a link: the run itself stays as it is, where it is.

    Gives the folder of the cell.

    Raises:
        ValueError: there is no run, it is not done, or the cell has a run already.

    Example:
        >>> adopt("no such folder", "runs")
        Traceback (most recent call last):
        ValueError: `run` must be a run folder with a config.toml; got 'no such folder', which does not exist
    """
    found = Run.open(run)
    if not found.is_done:
        raise ValueError(message("run", "be done", f"{run}, which is {found.status['status']}", "Resume it first"))
    folder = Path(root) / Work(found.config, ()).name
    link = run_of(folder)
    if link.is_symlink() and link.resolve() == found.folder.resolve():
        return folder
    if link.exists():
        raise ValueError(message("run", f"be a cell that has no run yet; {folder} has one", str(run)))
    folder.mkdir(parents=True, exist_ok=True)
    link.symlink_to(found.folder.resolve())
    return folder


def refresh(cells: Sequence[TableCell]) -> None:
    """Fetches what a storage, where there is one, has of cells that are not done here: their folders then tell."""
    for cell in cells:
        if cell.storage and not cell.is_done:
            Archive(cell.storage, cell.folder).look()


def unique(cells: Sequence[TableCell]) -> dict[Path, TableCell]:
    """The cells by their folders: several places of a figure may show one run, whose measurements are then joined.

    Example:
        >>> from remanence.train import RunConfig
        >>> len(unique([TableCell({}, Work(RunConfig(), ()), Path("a"))] * 2))
        1
    """
    found: dict[Path, TableCell] = {}
    for cell in cells:
        before = found.get(cell.folder)
        if before is not None:
            more = [measure for measure in cell.work.measures if measure not in before.work.measures]
            work = Work(before.work.config, (*before.work.measures, *more))
            cell = replace(before, work=work)
        found[cell.folder] = cell
    return found
