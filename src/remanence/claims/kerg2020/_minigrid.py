"""Kerg et al. 2020, section 5.3: policies in MiniGrid (Table 4), on stored runs."""

from __future__ import annotations

from functools import partial
from math import hypot
from statistics import fmean

from remanence.claims._cells import Cells, in_all, result_of, trained, unlike
from remanence.claims._framework import stored_claim
from remanence.claims._printed import ERRORS, beside, is_worse, number
from remanence.claims._types import Evidence, Number
from remanence.experiments import StoredCell

LEARNT = 0.9
MODELS = ("LSTM", "MemLSTM", "RelLSTM")
OTHERS = ("LSTM", "MemLSTM")

_about_returns = partial(stored_claim, stored="kerg2020/table-4", assumptions="the settings of the authors' code")


def _returns(cells: list[StoredCell], part: str) -> list[float]:
    return [value for cell in cells if (value := number(cell, part)) is not None]


def _lead(cells: Cells, environment: str, other: str) -> float:
    """Of RelLSTM over another in the larger environment, in standard errors of the difference."""
    mine, theirs = (cells.at(environment=environment, model=model) for model in ("RelLSTM", other))
    lead = fmean(_returns(mine, "test")) - fmean(_returns(theirs, "test"))
    return lead / hypot(_error(mine), _error(theirs))


def _error(cells: list[StoredCell]) -> float:
    """Standard error of the mean over seeds of returns in the larger environment."""
    return hypot(*(result_of(cell, "play")["test"]["error"] for cell in cells)) / len(cells)


@_about_returns(
    "kerg2020/table4-memory",
    place="Table 4, MemoryS7",
    printed="a policy with RelLSTM learns MemoryS7, where guessing gets a half (0.94)",
    measures="mean return of 100 fresh episodes there, by seed",
    tolerance=f"at least {LEARNT} for every seed",
    cells=("Table 4 MemoryS7, RelLSTM",),
)
def screened_policies_learn_what_needs_a_memory(cells: Cells) -> Evidence:
    found = {model: _returns(cells.at(environment="Memory", model=model), "train") for model in MODELS}
    return Evidence(
        min(found["RelLSTM"]) >= LEARNT,
        numbers={model: "; ".join(f"{value:.2f}" for value in values) for model, values in found.items()},
        runs=trained(
            cells.at(environment="Memory", model="RelLSTM"), lambda cell: min(_returns([cell], "train")) < 0.9
        ),
    )


@_about_returns(
    "kerg2020/table4-doorkey",
    place="Table 4 and section 5.3, DoorKey",
    printed="learnt at 5x5 (0.93 to 0.94 by all three), RelLSTM gets 0.44 at 16x16, LSTM 0.09 and MemLSTM 0.31",
    measures="mean return of 100 fresh episodes at 5x5 and at 16x16",
    tolerance=f"learnt: at least {LEARNT}; ahead by {ERRORS} standard errors",
    cells=tuple(f"Table 4 DoorKey-16x16, {model}" for model in MODELS),
)
def screened_policies_find_the_key_in_larger_rooms(cells: Cells) -> Evidence:
    found = {model: cells.at(environment="DoorKey", model=model) for model in MODELS}
    small = {model: fmean(_returns(runs, "train")) for model, runs in found.items()}
    numbers: dict[str, Number] = {f"{model} at 5x5": value for model, value in small.items()}
    numbers |= {f"{model} at 16x16": fmean(_returns(runs, "test")) for model, runs in found.items()}
    ahead = min(_lead(cells, "DoorKey", model) for model in OTHERS)
    return Evidence(
        min(small.values()) >= LEARNT and ahead > ERRORS,
        numbers=numbers,
        runs=trained(in_all(found), lambda cell: is_worse(cell, "test")),
        favour=unlike(found),
    )


@_about_returns(
    "kerg2020/table4-transfer",
    place="Table 4, all larger environments",
    printed="in none of the larger environments does RelLSTM get less than LSTM or MemLSTM",
    measures="return of RelLSTM in the larger environment less that of the better of the others, in standard errors",
    tolerance=f"no less than -{ERRORS} standard errors",
)
def screened_policies_are_ahead_in_larger_environments(cells: Cells) -> Evidence:
    runs = cells.at(model="RelLSTM")
    environments = dict.fromkeys(cell.place["environment"] for cell in runs)
    leads: dict[str, Number] = {one: min(_lead(cells, one, model) for model in OTHERS) for one in sorted(environments)}
    behind = {environment for environment, lead in leads.items() if float(lead) < -ERRORS}
    judged = trained(runs, lambda cell: cell.place["environment"] in behind)
    return Evidence(not behind, numbers=leads, runs=judged, favour=unlike({one: cells.at(model=one) for one in MODELS}))


@_about_returns(
    "kerg2020/table4-returns",
    place="Table 4, all returns",
    printed="LSTM, MemLSTM and RelLSTM get the returns of Table 4 in six small environments and six larger ones",
    measures="runs whose mean return of 100 fresh episodes is below the printed one, of all",
    tolerance=f"none below by more than {ERRORS} standard errors of the run",
    cells=("Table 4, all",),
)
def policies_get_the_printed_returns(cells: Cells) -> Evidence:
    runs = cells.at()
    below = {part: sum(is_worse(cell, part) for cell in runs) for part in ("train", "test")}
    numbers: dict[str, Number] = {
        "below in the small environments": f"{below['train']} of {len(runs)}",
        "below in the larger ones": f"{below['test']} of {len(runs)}",
    }
    judged = trained(runs, lambda cell: any(is_worse(cell, part) for part in beside(cell)))
    return Evidence(not any(below.values()), numbers=numbers, runs=judged)
