"""How much a cell takes, before it is run: a rule for the order of cells and for memory."""

from __future__ import annotations

from remanence.experiments._work import Work
from remanence.rl import PolicyConfig
from remanence.train import RunConfig

PROCESS = 0.5e9
"""Bytes of a process with torch loaded."""
STATES = 12
"""Numbers that training keeps of every unit and step, roughly: gates, states and their gradients."""


def size_of(work: Work) -> float:
    """What a cell costs, roughly, in multiplications: enough to put the longest first.

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
