"""Many runs side by side: each a process and a folder of its own, so that the whole can be stopped and gone on with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from remanence._validate import positive_int
from remanence.ops import warn_without_kernel
from remanence.runs import Measurement, Process, ProcessEngine, Result, Values, is_trusted, run_jobs, start_process
from remanence.train._building import resolved
from remanence.train._config import RunConfig
from remanence.train._run import Run

Tick = Callable[[list[Values]], None]


@dataclass(frozen=True)
class ComparedRun:
    """One run of a comparison; a length of None is the task's own.

    Example:
        >>> ComparedRun("LSTM", 100, 0, Run(Path("runs/x"))).label
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
) -> list[ComparedRun]:
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


def _cell(model: str, config: RunConfig, folder: Path, length: int | None, seed: int) -> ComparedRun:
    options = dict(config.task.options)
    if length is not None:
        options["length"] = length
    config = resolved(replace(config, task=replace(config.task, options=options), seed=seed, label=model))
    return ComparedRun(model, length, seed, Run.create(folder / run_name(config), config))


def run_name(config: RunConfig) -> str:
    """The folder name of a run: task, model, seed and a digest, so that the same command finds the same run.

    Example:
        >>> run_name(RunConfig()).startswith("copy-LSTM-s0-")
        True
    """
    config = resolved(config)
    return f"{config.task.name}-{config.model.name}-s{config.seed}-{config.digest}"


def carry_out(cells: Sequence[ComparedRun], jobs: int, tick: Tick | None = None, pause: float = 0.3) -> list[Values]:
    """Carries all runs to their end, at most `jobs` at a time; those that are done are left alone.

    Gives a dictionary per run. Ctrl-C asks every run to save before it is passed on.

    Example:
        >>> carry_out([], jobs=1)
        []
    """
    positive_int("jobs", jobs)
    runs = [cell.run for cell in cells if not cell.run.is_done]

    def look() -> None:
        if tick is not None:
            tick(summarise(cells))

    if runs:
        warn_without_kernel()  # each run's own warning goes to its output.txt
        run_jobs(_RunEngine(jobs), runs, look, pause)
        look()
    return summarise(cells)


class _RunEngine(ProcessEngine[Run]):
    """Carries out runs, at most so many at a time."""

    def __init__(self, jobs: int) -> None:
        super().__init__()
        self.jobs = jobs

    def launch(self, job: Run) -> Process:
        """Starts the process of a run."""
        return _start(job)

    def has_room(self, job: Run) -> bool:
        """Whether fewer are at work; a run that the worker of a killed comparison is still at counts as one."""
        return len(self.working) + self.held < self.jobs


def _start(run: Run) -> Process:
    arguments = [str(run.folder)]
    if all(map(is_trusted, run.config.imports)):  # this process may run the code, so its worker may
        arguments.append("--trust")
    return start_process("remanence.train._worker", arguments, run.folder / "output.txt", run.config.loop.threads)


def summarise(cells: Sequence[ComparedRun]) -> list[Values]:
    """The status of every run, read from its folder, for a table or for JSON.

    Example:
        >>> summarise([])
        []
    """
    return [_row(cell) for cell in cells]


def _row(cell: ComparedRun) -> Values:
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
