"""Document 000, Tables 1, 2 and 5: the models beside RelRNN, RelLSTM and LSTM, on stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from ._framework import Evidence, Number, stored_claim

SOLVED = 0.99
ALIKE = 0.02
_SOLVED = f"best validation accuracy at least {SOLVED:.0%}, where training stops, in the median over seeds"
_BUDGET = "6,000 updates at most, a thirtieth of the document's"


def runs_of(results: Mapping[str, Any], task: str, model: str) -> list[dict[str, Any]]:
    """The runs of a model on a task, one a seed."""
    arms = {name for name, arm in results["arms"].items() if (arm["task"], arm["model"]) == (task, model)}
    found = [run for run in results["runs"] if run["arm"] in arms]
    if not found:
        raise ValueError(f"the stored result 'others' has no runs of {model} on {task}")
    return found


def best(results: Mapping[str, Any], task: str, model: str) -> float:
    """Median over seeds of the best accuracy by validation."""
    return median(run["best_accuracy"] for run in runs_of(results, task, model))


def _numbers(results: Mapping[str, Any], task: str, models: tuple[str, ...]) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for model in models:
        runs = runs_of(results, task, model)
        updates = ", ".join(str(run["updates_to_99"] or "none") for run in runs)
        numbers[model] = f"{100 * best(results, task, model):.1f} % ({len(runs)} seeds; updates to 99 %: {updates})"
    return numbers
