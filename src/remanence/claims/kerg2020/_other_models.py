"""Kerg et al. 2020, Tables 1, 2 and 5: models beside RelRNN, RelLSTM and LSTM, on stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from remanence.claims._framework import Evidence, Number, stored_claim

SOLVED = 0.99
ALIKE = 0.02
TRANSFER = ("200", "400", "2000")
_SOLVED = f"median over seeds at least {SOLVED:.0%}, where training stops"
_TRANSFER = "median accuracy of weights learnt at T = 100 at T = 200, 400 and 2000"


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


def elsewhere(results: Mapping[str, Any], task: str, model: str, length: str) -> float:
    """Median over seeds of the accuracy at another length."""
    return median(run["elsewhere"][length] for run in runs_of(results, task, model))


def _numbers(results: Mapping[str, Any], task: str, *models: str) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for model in models:
        runs = runs_of(results, task, model)
        updates = ", ".join(str(run["updates_to_99"] or "none") for run in runs)
        numbers[model] = f"{100 * best(results, task, model):.1f} %, updates to 99 % by seed: {updates}"
    return numbers


def _transfer(results: Mapping[str, Any], model: str) -> dict[str, float]:
    return {f"T = {length}": elsewhere(results, "copy", model, length) for length in ("100", *TRANSFER)}


@stored_claim(
    "kerg2020/table5-others",
    stored="others",
    place="Table 5, T = 100, orth-RNN and MemRNN",
    printed="orth-RNN and MemRNN solve Copy at T = 100",
    measures="best validation accuracy at T = 100",
    tolerance=_SOLVED,
)
def others_solve_copy(results: Mapping[str, Any]) -> Evidence:
    models = ("OrthRNN", "MemRNN")
    holds = all(best(results, "copy", model) >= SOLVED for model in models)
    return Evidence(holds, numbers=_numbers(results, "copy", *models))


@stored_claim(
    "kerg2020/table2-full",
    stored="others",
    place="Table 2, T = 100, MemRNN",
    printed="MemRNN performs as RelRNN and RelLSTM do on Denoise, where memory allows",
    corrected="nearly: one seed of two has 99 % within 6,000 updates, the other 97 %",
    measures="best validation accuracy at T = 100",
    tolerance=_SOLVED,
    expected="fails as printed",
)
def full_attention_solves_denoise(results: Mapping[str, Any]) -> Evidence:
    return Evidence(best(results, "denoise", "MemRNN") >= SOLVED, numbers=_numbers(results, "denoise", "MemRNN"))


@stored_claim(
    "kerg2020/table1-orthogonal",
    stored="others",
    place="Table 1 (Transfer Copy), orth-RNN",
    printed="orth-RNN, which solves Copy at T = 100, fails to transfer: 4, 16 and 10 % at T = 200, 400 and 2000",
    measures=_TRANSFER,
    tolerance="learnt at T = 100, and below one quarter at all the others; a guess gets one eighth",
)
def orthogonal_start_does_not_transfer(results: Mapping[str, Any]) -> Evidence:
    found = _transfer(results, "OrthRNN")
    learnt, *others = found.values()
    return Evidence(learnt >= SOLVED - ALIKE and max(others) < 0.25, numbers=found)


@stored_claim(
    "kerg2020/table1-full",
    stored="others",
    place="Table 1 (Transfer Copy), MemRNN",
    printed="MemRNN keeps good performance: 99, 99 and 92 % at T = 200, 400 and 2000",
    corrected="not where training stops at 99 %: accuracy falls with T, where that of screened layers stays",
    measures=_TRANSFER,
    tolerance="at least 90 % at all of them",
    expected="fails as printed",
)
def full_attention_transfers(results: Mapping[str, Any]) -> Evidence:
    found = _transfer(results, "MemRNN")
    return Evidence(min(found.values()) >= 0.9, numbers=found)
