"""Many runs side by side: each a process and a folder of its own, so that the whole can be stopped and gone on with."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from remanence._validate import positive_int
from remanence.ops import warn_without_kernel
from remanence.runs import Measurement, Result, Values, is_locked, is_trusted, require_regular
from remanence.train._building import resolved
from remanence.train._config import RunConfig
from remanence.train._run import Run

GRACE = 120.0
"""Seconds that a run gets to save itself when it is asked to stop."""

Tick = Callable[[list[Values]], None]


@dataclass(frozen=True)
class Cell:
    """One run of a comparison.

    Args:
        model: its name.
        length: of the task, None for the task's own.
        seed: of the run.
        run: its folder.

    Example:
        >>> Cell("LSTM", 100, 0, Run(Path("runs/x"))).label
        'LSTM T=100 seed 0'
    """

    model: str
    length: int | None
    seed: int
    run: Run

    @property
    def label(self) -> str:
        """Model, length and seed in words."""
        if self.length is None:
            return f"{self.model} seed {self.seed}"
        return f"{self.model} T={self.length} seed {self.seed}"


def plan_grid(
    configs: dict[str, RunConfig], folder: str | Path, lengths: Sequence[int | None] = (None,), seeds: int = 1
) -> list[Cell]:
    """Lays out a comparison and makes its run folders; those that exist are found again.

    Args:
        configs: By what tables and pages call the model.
        folder: Where the runs go.
        lengths: Of the task.
        seeds: How many, from the configuration's own upwards.

    Returns:
        The cells, the first seed of everything first, so that a whole picture appears early.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [cell.label for cell in plan_grid({"LSTM": RunConfig()}, folder, lengths=[5, 9], seeds=2)]
        ['LSTM T=5 seed 0', 'LSTM T=9 seed 0', 'LSTM T=5 seed 1', 'LSTM T=9 seed 1']
    """
    positive_int("seeds", seeds)
    cells = []
    for extra in range(seeds):
        for model, config in configs.items():
            for length in lengths:
                cells.append(_cell(model, config, Path(folder), length, config.seed + extra))
    return cells


def _cell(model: str, config: RunConfig, folder: Path, length: int | None, seed: int) -> Cell:
    options = dict(config.task.options)
    if length is not None:
        options["length"] = length
    config = resolved(replace(config, task=replace(config.task, options=options), seed=seed, label=model))
    return Cell(model, length, seed, Run.create(folder / run_name(config), config))


def run_name(config: RunConfig) -> str:
    """The folder name of a run: what it is about, and a digest, so that the same command finds the same run.

    Example:
        >>> run_name(RunConfig()).startswith("copy-LSTM-s0-")
        True
    """
    config = resolved(config)
    return f"{config.task.name}-{config.model.name}-s{config.seed}-{config.digest}"


def carry_out(cells: Sequence[Cell], jobs: int, tick: Tick | None = None, pause: float = 0.3) -> list[Values]:
    """Carries all runs to their end, at most `jobs` at a time; those that are done are left alone.

    Returns:
        The table: one dictionary per run.

    Raises:
        KeyboardInterrupt: If interrupted; every run has then been asked to save, and has.

    Example:
        >>> carry_out([], jobs=1)
        []
    """
    positive_int("jobs", jobs)
    waiting = [cell for cell in cells if not cell.run.is_done]
    if waiting:
        warn_without_kernel()  # each run's own warning goes to its output.txt
    working: dict[str, subprocess.Popen[bytes]] = {}
    before = _interrupt_on_terminate()
    try:
        while waiting or working:
            # A worker of a comparison that was killed may still be at a run: it is waited for, and counts as one.
            waiting = [cell for cell in waiting if not cell.run.is_done]
            free = [cell for cell in waiting if not is_locked(cell.run.folder)]
            busy = len(working) + len(waiting) - len(free)
            for cell in free[: max(jobs - busy, 0)]:
                waiting.remove(cell)
                working[str(cell.run.folder)] = _start(cell.run)
            working = {name: process for name, process in working.items() if process.poll() is None}
            if tick is not None:
                tick(summarise(cells))
            time.sleep(pause)
    finally:
        _stop(list(working.values()))
        if before is not None:
            signal.signal(signal.SIGTERM, before)
    return summarise(cells)


def _interrupt_on_terminate() -> Any:
    """Makes SIGTERM end the comparison as Ctrl-C does; only the main thread may."""
    with contextlib.suppress(ValueError):
        return signal.signal(signal.SIGTERM, signal.default_int_handler)
    return None


def _start(run: Run) -> subprocess.Popen[bytes]:
    threads = str(run.config.loop.threads)
    environment = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    require_regular(run.folder / "output.txt")
    with (run.folder / "output.txt").open("ab") as output:
        command = [sys.executable, "-m", "remanence.train._worker", str(run.folder)]
        if all(map(is_trusted, run.config.imports)):  # this process may run the code, so its worker may
            command.append("--trust")
        # A session of its own: Ctrl-C reaches the comparison alone, which then asks every run to save.
        return subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.terminate()
        with contextlib.suppress(OSError, ValueError):
            process.send_signal(signal.SIGCONT)  # a stopped process hears nothing until it goes on
    for process in processes:
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()  # its last checkpoint is whole
            process.wait()


def summarise(cells: Sequence[Cell]) -> list[Values]:
    """The status of every run, read from its folder.

    Returns:
        One dictionary per run, for a table or for JSON.

    Example:
        >>> summarise([])
        []
    """
    return [_row(cell) for cell in cells]


def _row(cell: Cell) -> Values:
    history = cell.run.history
    config = cell.run.config
    trained = history.training[-1] if history.training else Measurement(0)
    judged = history.last or trained
    return {
        "model": cell.model,
        "length": cell.length,
        "seed": cell.seed,
        "training_length": history.length or config.curriculum.start or cell.length,
        "status": cell.run.status["status"],
        "update": history.update,
        "budget": config.budget.updates,
        "loss": judged.loss,
        "accuracy": judged.accuracy,
        "best_accuracy": history.greatest("accuracy"),
        "curve": [[update, accuracy] for update, accuracy in history.curve("accuracy")],
        "updates_per_second": trained.get("updates_per_second"),
        "seconds": trained.get("seconds"),
        "run": str(cell.run.folder),
    }


@dataclass(frozen=True)
class Comparison(Result):
    """Several models, lengths and seeds side by side; it is stored as ``comparison.json`` next to the runs.

    Args:
        runs: one row per run, as :func:`summarise` gives them.
        seeds: accuracy of each model and length over its seeds.
        transfer: the best run of each model and length, measured at other lengths.
        command: that made it.

    Example:
        >>> Comparison(runs=[{"model": "LSTM"}]).to_dict()["kind"]
        'comparison'
    """

    kind: ClassVar[str] = "comparison"

    runs: list[Values]
    seeds: list[Values] = field(default_factory=list)
    transfer: list[Values] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
