"""The stored runs of Kerg et al. 2020 as claims read them: by model, with what the rule asks of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any, TypeAlias

from remanence.claims._rule import Budget, TrainedRun

Results: TypeAlias = Mapping[str, Any]
Run: TypeAlias = Mapping[str, Any]

UPDATES = Budget(200_000, "updates")
"""Of Copy and Denoise in the authors' code."""
GRADIENT_UPDATES = Budget(20_000, "updates")
"""Of the models whose gradients are drawn: the authors' code had so many when the figures were made."""
FRAMES = Budget(5_000_000, "frames")

PRINTED_RATE = 2e-4
"""Of Tables 6 and 7, for all models of Copy and Denoise but GORU."""
CURRICULUM = "short sequences first"
TUNED = "rate and forget bias of RelRNN and RelLSTM were searched, those of the others were not"

SOLVED = 0.99
ALIKE = 0.02
"""500 answers a run: two standard errors of a share near one half are 4 %, near 99 % one."""


def by_arm(results: Results, task: str, model: str) -> dict[str, list[Run]]:
    """The runs of a model on a task, by way of training."""
    found: dict[str, list[Run]] = {}
    for run in results["runs"]:
        arm = results["arms"][run["arm"]]
        if (arm["task"], arm["model"]) == (task, model):
            found.setdefault(run["arm"], []).append(run)
    if not found:
        raise ValueError(f"the stored result has no runs of {model} on {task}")
    return found


def runs_of(results: Results, task: str, model: str) -> list[Run]:
    """The runs of a model on a task, of the way of training with the best median."""
    return max(by_arm(results, task, model).values(), key=lambda runs: (accuracy(runs), len(runs)))


def accuracy(runs: Iterable[Run], length: int | None = None) -> float:
    """Median over seeds, by validation at the trained length, or on test sequences of another."""
    return median(answered(run, length) for run in runs)


def answered(run: Run, length: int | None = None) -> float:
    """What one run answers: the best by validation at the trained length, or on test sequences of another."""
    if length is None:
        return run["best_accuracy"]
    found = run["elsewhere"][str(length)]
    return found["accuracy"] if isinstance(found, Mapping) else found


def percent(value: float) -> str:
    """A share as it is shown.

    Example:
        >>> percent(0.9941)
        '99.4 %'
    """
    return f"{100 * value:.1f} %"


def by_seed(runs: Iterable[Run], length: int | None = None) -> str:
    """The accuracies of all seeds, as they are shown."""
    return "; ".join(percent(answered(run, length)) for run in runs)


def trained(results: Results, runs: Iterable[Run], falls_short: Callable[[Run], bool]) -> list[TrainedRun]:
    """What the rule asks of runs of Copy and Denoise."""
    return [
        TrainedRun(
            model=results["arms"][run["arm"]]["model"],
            budget=run["updates"],
            falls_short=falls_short(run),
            curve=tuple(run["curve"]["accuracy"]),
            departures=_departures(results["arms"][run["arm"]], run),
        )
        for run in runs
    ]


def _departures(arm: Mapping[str, Any], run: Run) -> tuple[str, ...]:
    found = [CURRICULUM] if arm["curriculum"] else []
    if "settings" in run:
        rate = run["settings"]["optimiser"]["learning_rate"]
        if rate != PRINTED_RATE:
            found.append(f"rate {rate:g} for {PRINTED_RATE:g}")
    return tuple(found)
