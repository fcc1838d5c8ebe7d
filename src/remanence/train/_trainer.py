"""The loop: learn, log, evaluate, save, and be ready to be killed at any moment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from remanence._validate import message
from remanence.nn import SequenceModel
from remanence.runs import (
    DamagedFileError,
    NonFiniteError,
    Observer,
    RunError,
    StopRequest,
    isolated,
    locked,
    remember_code,
    save_best,
    seed_all,
    stop_requests,
)
from remanence.tasks import Task
from remanence.train._building import build, found_from_anywhere, resolved
from remanence.train._config import RunConfig
from remanence.train._distributed import Processes
from remanence.train._evaluation import evaluate
from remanence.train._journal import Journal
from remanence.train._learner import BadNumberError, Learner, Learnt
from remanence.train._progress import Progress, stop_reason
from remanence.train._run import Run
from remanence.train._saver import Saver


@dataclass(frozen=True)
class Outcome:
    """How a call of :func:`train` or :func:`resume` ended.

    Args:
        status: ``"done"``, or ``"interrupted"`` by a signal, to be resumed.
        reason: in words.
        run: the run folder.
        update: batches learnt from so far.
        validation: last evaluation.
        signal: number of the signal that interrupted it.

    Example:
        >>> from pathlib import Path
        >>> Outcome("done", "budget used up", Run(Path("mine")), 100, {}).status
        'done'
    """

    status: Literal["done", "interrupted"]
    reason: str
    run: Run
    update: int
    validation: dict[str, float]
    signal: int | None = None


def train(config: RunConfig, folder: str | Path, observer: Observer | None = None) -> Outcome:
    """Runs a configuration in a folder; an existing run is resumed, and a finished one is left alone.

    Args:
        config: What to run.
        folder: The run folder.
        observer: called with every measurement and message, as dictionaries with a ``"kind"``.

    Returns:
        How it ended.

    Raises:
        RunError: If it could not continue; the folder holds what was reached.
        ValueError: If the configuration is bad, or the folder holds another one.

    Example:
        >>> import tempfile
        >>> from remanence.train import config_from
        >>> config = config_from({"task": {"options": {"length": 3}}, "budget": {"updates": 2}})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train(config, Path(folder) / "mine").reason
        'budget used up'
    """
    processes = Processes()
    config = found_from_anywhere(resolved(config))
    remember_code(config.imports)  # the caller names this code; whoever only reads the folder later does not
    run = Run(Path(folder))
    with isolated(config.loop.threads):
        built = None
        if not run.exists:
            run.refuse_foreign()
            built = seeded_build(config)
        if processes.writes:
            run = Run.place(folder, config)
        # The others wait here until the folder is made.
        processes.shared(None)
        return _Training(run, processes, observer, built=built).carry_out()


def resume(folder: str | Path, observer: Observer | None = None, config: RunConfig | None = None) -> Outcome:
    """Resumes a run from its last checkpoint; it ends with the weights of a run that never stopped.

    Args:
        folder: The run folder.
        observer: As in :func:`train`.
        config: A changed configuration, for instance with a larger budget; None keeps the old one.

    Returns:
        How it ended.

    Raises:
        RunError: As in :func:`train`.
        ValueError: If the folder holds no run.

    Example:
        >>> resume("no such folder")
        Traceback (most recent call last):
        ValueError: `run` must be a run folder with a config.toml; got 'no such folder', which does not exist
    """
    run = Run.open(folder)
    with isolated((config or run.config).loop.threads):
        return _Training(run, Processes(), observer, config).carry_out()


def seeded_build(config: RunConfig) -> tuple[Task, SequenceModel]:
    """Makes the task and the model of a run from its seed, in the global generators' state that it begins with.

    Example:
        >>> with isolated(threads=1):
        ...     seeded_build(RunConfig())[0].name
        'copy'
    """
    seed_all(config.seed)
    return build(config)


class _Training:
    """One process's work on one run."""

    def __init__(
        self,
        run: Run,
        processes: Processes,
        observer: Observer | None,
        config: RunConfig | None = None,
        built: tuple[Task, SequenceModel] | None = None,
    ) -> None:
        self.run = run
        self.processes = processes
        self.journal = Journal(run, processes, observer)
        self.wanted = config
        self.built = built

    def carry_out(self) -> Outcome:
        """Trains until the run is done."""
        lock = contextlib.nullcontext()
        if self.processes.writes:
            lock = locked(self.run.folder)
        with lock, stop_requests() as request:
            # Read under the lock: another process may have changed the settings until now.
            stored = self.run.config
            self.config = resolved(self.wanted or stored)
            self.changed = (self.config, self.config.label) != (stored, stored.label)
            self.was_done = self.run.is_done
            if self.was_done and not self.changed:
                return self._done_before()
            self._prepare()
            try:
                return self._loop(request)
            except RunError as error:
                self.journal.fail(error, self.progress.update)
                raise
            finally:
                self.journal.close()

    def _done_before(self) -> Outcome:
        """What the run says of itself."""
        status = self.run.status
        try:
            validation = {name: float(value) for name, value in status["validation"].items()}
            return Outcome("done", status["reason"], self.run, status["update"], validation)
        except (KeyError, AttributeError, TypeError, ValueError, OverflowError) as error:
            path = self.run.folder / "status.json"
            raise DamagedFileError(f"{path} is damaged: it does not say how the run ended ({error!r})") from error

    # ---- start ------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Builds everything, or brings it back to where the last checkpoint stands."""
        self.task, model = self.built or seeded_build(self.config)
        self.final_length = getattr(self.task, "length", 0)
        self.budget = self._budget()
        self.journal.budget = self.budget
        self.learner = Learner(self.config, model, self.processes)
        self.saver = Saver(self.run, self.learner, self.processes, self.journal)
        self.progress = Progress(length=self.config.curriculum.start)
        found = None
        if self.processes.writes:
            found = self.run.checkpoint_to_resume(self.journal.say)
        checkpoint = self.processes.shared(found)
        if checkpoint is not None:
            self.progress = self.saver.restore(checkpoint)
        if self.was_done and self.progress.update >= self.budget:
            expected = f"leave something to do: the run is done after {self.progress.update} updates"
            got = f"changed ones with a budget of {self.budget} updates"
            raise ValueError(message("settings", expected, got, "Raise budget.updates too"))
        if checkpoint is None:
            self._save()  # before anything else is written, which without it would look as if it had been lost
        self.journal.begin(self.config, self.changed, self.progress.update)
        if checkpoint is not None:
            self.journal.tell({"kind": "resumed", "update": self.progress.update})

    def _budget(self) -> int:
        budget = self.config.budget
        if budget.updates is not None:
            return budget.updates
        per_epoch = self.task.batches_per_epoch(self.config.task.batch_size)
        if per_epoch is None:
            raise ValueError(f"`budget.epochs` must be 'none' for task {self.task.name!r}, which never ends")
        return (budget.epochs or 1) * per_epoch

    # ---- the loop ---------------------------------------------------------------------------------------------------

    def _loop(self, request: StopRequest) -> Outcome:
        reason = None
        # A run that was killed after its last evaluation, before it said so, has nothing left to learn.
        if self.progress.validation and not self.changed:
            reason = stop_reason(self.progress, self.config)
        while reason is None and self.progress.update < self.budget:
            learnt = self._learn()
            self._after(learnt)
            last = self.progress.update == self.budget
            if last or self.progress.update % self.config.evaluation.every == 0:
                reason = self._evaluate()
            is_over = last or reason is not None
            if not is_over and (signal := self._stop_signal(request)):
                return self._end("interrupted", f"signal {signal}", signal)
            if is_over or self.progress.update % self.config.loop.save_every == 0:
                self._save()
        return self._end("done", reason or "budget used up")

    def _learn(self) -> Learnt:
        progress = self.progress
        try:
            with self._clock():
                learnt = self.learner.learn(self._present_task(), progress.update, self.budget, progress.plateau_drops)
        except BadNumberError as error:
            raise self._bad_number(str(error), error.stepped) from error
        progress.update += 1
        return learnt

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        """Counts time, and time of the processor: the latter is the same on a machine that is busy with other work."""
        began = time.perf_counter()
        worked = time.process_time()
        yield
        self.progress.seconds += time.perf_counter() - began
        self.progress.cpu_seconds += time.process_time() - worked

    def _present_task(self) -> Task:
        length = self.progress.length
        if length is None:
            return self.task
        if 0 < self.final_length <= length:
            return self.task
        return self.task.with_length(length)

    def _after(self, learnt: Learnt) -> None:
        progress = self.progress
        progress.add(*learnt)
        if progress.grow(learnt.accuracy, self.config.curriculum, self.final_length):
            self.journal.record({"kind": "curriculum", "update": progress.update, "length": progress.length})
        if progress.update % self.config.loop.log_every == 0:
            means = progress.take_means()
            rate = self.learner.optimiser.param_groups[-1]["lr"]
            clock = {"seconds": progress.seconds, "cpu_seconds": progress.cpu_seconds}
            clock["updates_per_second"] = progress.update / max(progress.seconds, 1e-9)
            self.journal.record({"kind": "train", "update": progress.update, **means, "learning_rate": rate, **clock})

    def _evaluate(self) -> str | None:
        with self._clock():
            found = None
            if self.processes.writes:
                found = evaluate(self.learner.model, self.task, self.config.evaluation)
            validation = self.processes.shared(found)
            gain = self.progress.judge(validation, self.config)
            self.journal.record({"kind": "validation", "update": self.progress.update, **validation, "best": gain})
            if gain and self.processes.writes and self.learner.weights_are_finite():
                weights = self.learner.model.state_dict()
                save_best(self.run.checkpoints, weights, update=self.progress.update, **validation)
        return stop_reason(self.progress, self.config)

    def _stop_signal(self, request: StopRequest) -> int:
        """The signal that reached any of the processes; all of them stop at the same update."""
        return int(max(self.processes.gathered(request.signal or 0)))

    # ---- saving and ending ------------------------------------------------------------------------------------------

    def _save(self) -> None:
        if self.saver.saved_update == self.progress.update:
            return
        if not self.learner.weights_are_finite():
            raise self._bad_number("a weight is not finite", stepped=True)
        self.saver.save(self.progress)

    def _end(self, status: Literal["done", "interrupted"], reason: str, number: int | None = None) -> Outcome:
        self._save()
        self.journal.end(status, reason, self.progress)
        return Outcome(status, reason, self.run, self.progress.update, self.progress.validation, number)

    def _bad_number(self, words: str, stepped: bool) -> NonFiniteError:
        """Keeps the batch and the last good state, and names step and parameter group."""
        update = self.progress.update
        groups = self.learner.bad_groups()
        if self.processes.writes:
            report = {
                "update": update,
                "found": words,
                "groups": groups,
                "weights_finite": self.learner.weights_are_finite(),
            }
            self.journal.keep_failure(self.learner.batch(self._present_task(), update), report)
        if not stepped and self.learner.weights_are_finite():
            self._save()
        named = "; ".join(f"group {group}: {', '.join(names)}" for group, names in groups.items()) or "no group"
        saved = self.saver.saved_update
        return NonFiniteError(
            f"update {update}: {words} ({named}). The last good state is the checkpoint of update {saved}, "
            f"the batch is in {self.run.folder / 'failure'}. Resume with a smaller optimiser.learning_rate or clip_norm"
        )
