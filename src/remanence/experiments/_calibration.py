"""Hours by calibration: every kind of cell is tried briefly on this machine."""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from remanence.data import DataError
from remanence.experiments._cell import TableCell
from remanence.experiments._size import size_of
from remanence.experiments._work import SEED, Measure
from remanence.experiments.measures import measured
from remanence.nn import SequenceModel
from remanence.probes import logarithmic_lags
from remanence.rl import PolicyConfig, train_policy
from remanence.runs import Values
from remanence.tasks import Task
from remanence.train import RunConfig, build_model, build_task

PROBED = 100
"""Steps of the sequences that the calibration learns from; times are taken to be linear in the length."""
PATIENCE = 0.4
"""Seconds that the calibration of one kind of run goes on for, of the processor's time as all of them: what else the
machine does would otherwise count as work."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Trial:
    """A setting that is made smaller to try a measurement; the time is taken to be proportional to it.

    Args:
        key: of the setting.
        value: that is tried.
        size: how much a value is.

    Example:
        >>> Trial("lengths", [10], sum).times([10, 20])
        3.0
    """

    key: str
    value: Any
    size: Callable[[Any], float] = float

    def times(self, whole: object) -> float:
        """How often the trial goes into the whole."""
        return self.size(whole) / self.size(self.value)


def _lags(longest: int) -> float:
    return float(len(logarithmic_lags(longest, 25)))


TRIALS: dict[str, tuple[Trial, ...]] = {
    "training_memory": (Trial("lengths", [50, 100, 200], sum),),
    "data_information": (Trial("rows", 20),),
    "repetitive": (Trial("sequences", 50),),
    "estimator": (Trial("sequences", 50),),
    "held_out_information": (Trial("longest", 3, _lags),),
    "language_model": (Trial("texts", 1), Trial("tokens", 16)),
    "gaussian_truncation": (Trial("instances", 1), Trial("updates", 20)),
    "weight_distance": (Trial("stages", [5], max),),
    "fresh_text_gradients": (Trial("batches", 1),),
}
"""Of the measurements that need no run. What does not depend on the setting is counted as if it did."""


def estimated_seconds(cells: Sequence[TableCell], tell: Tell | None = None) -> list[float | None]:
    """Seconds that the rest of every cell takes on one core of this machine, by trying each kind briefly.

    Args:
        cells: to be estimated.
        tell: is told what is tried, and what cannot be.

    Returns:
        One number a cell: 0 if it is done, None where a trial failed, as for want of data. A run may end before its
        budget is used up; what is measured once it is done is not counted.
    """
    rates: dict[str, float] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        seconds = []
        for number, cell in enumerate(cells, start=1):
            say = partial(_say, tell, f"cell {number} of {len(cells)}: ")
            seconds.append(_estimate(cell, rates, say))
    finally:
        torch.set_num_threads(threads)
    return [None if math.isnan(found) else found for found in seconds]


def gain_of_threads(cells: Sequence[TableCell], threads: int) -> float | None:
    """How many times as fast the longest run learns with several threads as with one, by the best of three trials.

    Cells have one thread each, so that their bits do not depend on the machine. This says whether that is also faster:
    it is, if the gain is less than the number of threads, as long as there are cells for all cores.

    Args:
        cells: of the table.
        threads: to compare with one.

    Returns:
        The gain; None if there is no run among the cells, or none that can be tried here.

    Example:
        >>> from remanence.experiments import find_experiment, plan_cells
        >>> gain_of_threads(plan_cells(find_experiment("miller2018/figure-1"), "smoke", "runs"), threads=2) is None
        True
    """
    longest = max((cell.work for cell in cells), key=size_of)
    if not isinstance(longest.config, RunConfig):
        return None
    config = _shortened(longest.config)
    seconds = {1: math.inf, threads: math.inf}
    before = torch.get_num_threads()
    try:
        for count in 3 * list(seconds):
            torch.set_num_threads(count)
            seconds[count] = min(seconds[count], _learning(config, time.perf_counter))
    except (ImportError, DataError, OSError):
        return None
    finally:
        torch.set_num_threads(before)
    return seconds[1] / seconds[threads]


def _say(tell: Tell | None, begin: str, words: str) -> None:
    if tell is not None:
        tell(begin + words)


def _estimate(cell: TableCell, rates: dict[str, float], tell: Tell) -> float:
    """Seconds; not a number, which every sum and product then is, where a trial failed."""
    state = cell.state
    if state.status in ("done", "trained", "measuring"):
        return 0.0
    config = cell.work.config
    if config is None:
        rest = [one for one in cell.work.measures if cell.result(one.name) is None]
        return sum(_tried(f"measurement {one.name}", partial(_measuring, one), rates, tell) for one in rest)
    left = _updates(config) - state.update
    if state.update and state.seconds:
        return left * state.seconds / state.update
    if isinstance(config, PolicyConfig):
        name = f"{config.where} {config.model.name}"
        rate = _tried(name, partial(_playing, replace(config, seed=0)), rates, tell)
        return left * rate
    name = f"{config.task.name} {config.model.name}"
    rate = _tried(name, partial(_learning, replace(_shortened(config), seed=0)), rates, tell)
    return left * rate * _total_steps(build_task(config))


def _tried(name: str, trial: partial[float], rates: dict[str, float], tell: Tell) -> float:
    """What a trial says, made once for all cells of a kind."""
    (kind,) = trial.args
    key = json.dumps([name, _key(kind)], sort_keys=True, default=str)
    if key not in rates:
        tell(f"calibrating {name}")
        try:
            rates[key] = trial()
        except (ImportError, DataError, OSError) as error:
            tell(f"{name} cannot be tried: {error}")
            rates[key] = math.nan
    return rates[key]


def _key(kind: RunConfig | PolicyConfig | Measure) -> object:
    if isinstance(kind, Measure):
        return [kind.name, {key: value for key, value in kind.settings.items() if key != SEED}]
    return kind.digest


def _updates(config: RunConfig | PolicyConfig) -> int:
    if isinstance(config, PolicyConfig):
        return config.updates
    if config.budget.updates is not None:
        return config.budget.updates
    return (config.budget.epochs or 1) * (build_task(config).batches_per_epoch(config.task.batch_size) or 1)


def _measuring(measure: Measure) -> float:
    """Seconds of a whole measurement, from one of a smaller size."""
    short = measure
    times = 1.0
    for trial in TRIALS[measure.name]:
        whole = measure.settings[trial.key]
        if trial.times(whole) > 1.0:
            short = short.with_setting(trial.key, trial.value)
            times *= trial.times(whole)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        measured(short, Path(folder) / "cell" / "run")
        return (time.process_time() - began) * times


def _playing(config: PolicyConfig) -> float:
    """Seconds that playing and learning once take, from the second of two short updates: the first one warms up."""
    ppo = config.ppo
    steps = min(ppo.steps, ppo.recurrence * math.ceil(ppo.batch / (config.copies * ppo.recurrence)))
    short = replace(config, ppo=replace(ppo, steps=steps), frames=2 * config.copies * steps)
    times: list[float] = []

    def note(line: Values) -> None:
        if line["kind"] == "train":
            times.append(time.process_time())

    with tempfile.TemporaryDirectory() as folder:
        train_policy(short, Path(folder) / "run", note)
    first, second = times
    return (second - first) * ppo.steps / steps


def _shortened(config: RunConfig) -> RunConfig:
    length = config.task.options.get("length")
    if length is None or length <= PROBED:
        return config
    return replace(config, task=replace(config.task, options={**config.task.options, "length": PROBED}))


def _total_steps(task: Task) -> int:
    return int(getattr(task, "total_steps", 0) or getattr(task, "length", 0) or task.batch(0, 1).inputs.shape[0])


def _learning(config: RunConfig, clock: Callable[[], float] = time.process_time) -> float:
    """Seconds that learning from one step of a batch takes."""
    task = build_task(config)
    with torch.random.fork_rng(devices=[]):
        model = build_model(config, task)
    learn = partial(_learn, model, task, config.task.batch_size)
    learn(0)
    began = clock()
    count = 0
    while clock() - began < PATIENCE or count == 0:
        count += 1
        learn(count)
    return (clock() - began) / count / _total_steps(task)


def _learn(model: SequenceModel, task: Task, rows: int, position: int) -> None:
    batch = task.batch(position, rows)
    task.loss(model(batch.inputs)[0], batch).backward()
    model.zero_grad()
