"""How much a cell takes, before it is run: a rule for the order of cells and for memory, and hours by calibration."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from remanence.experiments._cell import Cell
from remanence.experiments._work import Work
from remanence.rl import PolicyConfig
from remanence.tasks import Task
from remanence.train import RunConfig, build_model, build_task

PROCESS = 0.5e9
"""Bytes of a process with torch loaded."""
STATES = 12
"""Numbers that training keeps of every unit and step, roughly: gates, states and their gradients."""
PROBED = 100
"""Steps of the sequences that the calibration learns from; times are taken to be linear in the length."""
PATIENCE = 0.4
"""Seconds that the calibration of one kind of cell goes on for."""


def size_of(work: Work) -> float:
    """What a cell costs beside others, in multiplications, roughly: enough to put the longest first.

    Args:
        work: of the cell.

    Example:
        >>> size_of(Work(RunConfig(), ())) > size_of(Work(None, ()))
        True
    """
    config = work.config
    if config is None:
        return 0.0
    if isinstance(config, PolicyConfig):
        return config.frames * 64.0**2 * config.ppo.epochs
    width = config.model.options.get("hidden_size", 128)
    return float(_updates(config) * config.task.batch_size * _steps(config) * width**2)


def memory_of(work: Work) -> float:
    """Bytes that a cell may come to need, roughly and rather too many.

    Args:
        work: of the cell.

    Example:
        >>> memory_of(Work(None, ())) == PROCESS
        True
    """
    config = work.config
    if not isinstance(config, RunConfig):
        return PROCESS
    rows = max(config.task.batch_size, config.evaluation.batch_size)
    options = config.model.options
    units = options.get("hidden_size", 128) * options.get("num_layers", 1)
    return PROCESS + 4.0 * STATES * rows * _steps(config) * units


def _steps(config: RunConfig) -> int:
    return int(config.task.options.get("length", 100)) + 20


def _updates(config: RunConfig) -> int:
    """Of epochs, a guess that any data set is within a factor of ten of."""
    return config.budget.updates or 1000 * (config.budget.epochs or 1)


def estimated_seconds(cells: Sequence[Cell], tell: Callable[[str], None] | None = None) -> list[float | None]:
    """Seconds that the rest of every cell's budget takes on one core of this machine, by trying each kind briefly.

    Args:
        cells: to be estimated.
        tell: is told what is tried.

    Returns:
        One number a cell: 0 if it is done, None where there is nothing to go by (measurements, policies). A run may end
        before its budget is used up.
    """
    rates: dict[str, float] = {}
    return [_estimate(cell, rates, tell) for cell in cells]


def _estimate(cell: Cell, rates: dict[str, float], tell: Callable[[str], None] | None) -> float | None:
    config, state = cell.work.config, cell.state
    if state.is_done:
        return 0.0
    if not isinstance(config, RunConfig):
        return None
    task = build_task(config)
    left = max(0, _budget(config, task) - state.update)
    if state.update and state.seconds:
        return left * state.seconds / state.update
    short = _shortened(config)
    key = replace(short, seed=0).digest
    if key not in rates:
        if tell is not None:
            tell(f"calibrating {config.task.name} {config.model.name}")
        rates[key] = _seconds_a_step(short)
    return left * rates[key] * _total_steps(task)


def _budget(config: RunConfig, task: Task) -> int:
    if config.budget.updates is not None:
        return config.budget.updates
    return (config.budget.epochs or 1) * (task.batches_per_epoch(config.task.batch_size) or 1)


def _shortened(config: RunConfig) -> RunConfig:
    length = config.task.options.get("length")
    if length is None or length <= PROBED:
        return config
    return replace(config, task=replace(config.task, options={**config.task.options, "length": PROBED}))


def _total_steps(task: Task) -> int:
    return int(getattr(task, "total_steps", 0) or getattr(task, "length", 0) or task.batch(0, 1).inputs.shape[0])


def _seconds_a_step(config: RunConfig) -> float:
    """Seconds that learning from one step of a batch takes."""
    task = build_task(config)
    with torch.random.fork_rng(devices=[]):
        model = build_model(config, task)
    learn = partial(_learn, model, task, config.task.batch_size)
    learn(0)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < PATIENCE or count == 0:
        count += 1
        learn(count)
    return (time.perf_counter() - began) / count / _total_steps(task)


def _learn(model: Any, task: Task, rows: int, position: int) -> None:
    batch = task.batch(position, rows)
    task.loss(model(batch.inputs)[0], batch).backward()
    model.zero_grad()
