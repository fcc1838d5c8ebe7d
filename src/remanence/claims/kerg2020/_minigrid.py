"""Kerg et al. 2020, section 5.3: policies in MiniGrid (Table 4), on stored runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import hypot
from statistics import fmean

from remanence.claims._framework import stored_claim
from remanence.claims._rule import TrainedRun
from remanence.claims._types import Evidence, Number
from remanence.claims.kerg2020._runs import FRAMES, Results, Run

LEARNT = 0.9
ERRORS = 2
MODELS = ("LSTM", "MemLSTM", "RelLSTM")
_SETTINGS = "the settings of the authors' code, one seed (two in Memory)"


def runs_of(results: Results, family: str, model: str) -> list[Run]:
    """The runs of a policy in a family of environments, one a seed."""
    runs = [run for run in results["runs"] if (run["family"], run["model"]) == (family, model)]
    if not runs:
        raise ValueError(f"the stored result 'minigrid' has no runs of {model} in {family}")
    return runs


def mean_return(results: Results, family: str, model: str, part: str) -> float:
    """Mean over seeds in the small (train) or the large (test) environment."""
    return fmean(run[part]["mean"] for run in runs_of(results, family, model))


def trained(runs: Iterable[Run], falls_short: Callable[[Run], bool]) -> list[TrainedRun]:
    """What the rule asks of a run; the curve is the mean return while it learns, none before an episode has ended."""
    return [
        TrainedRun(
            model=run["model"],
            budget=run["frames"],
            falls_short=falls_short(run),
            curve=tuple(value for value in run["curve"]["mean_return"] if value is not None),
        )
        for run in runs
    ]


def below_printed(results: Results, run: Run, part: str) -> bool:
    """Whether a run's return is below the printed one by more than its error allows."""
    printed = results["arms"][run["arm"]]["document"][part]
    return run[part]["mean"] < printed - ERRORS * run[part]["error"]


@stored_claim(
    "kerg2020/table4-memory",
    stored="minigrid",
    place="Table 4, MemoryS7",
    printed="a policy with RelLSTM learns MemoryS7, where guessing gets a half (0.94)",
    measures="mean return of 100 fresh episodes there, by seed",
    tolerance=f"at least {LEARNT} for every seed",
    assumptions=_SETTINGS,
    expected="not settled at this budget",
    needs=FRAMES,
    cells=("Table 4 MemoryS7, RelLSTM",),
)
def screened_policies_learn_what_needs_a_memory(results: Results) -> Evidence:
    numbers: dict[str, Number] = {}
    for model in MODELS:
        found = [run["train"]["mean"] for run in runs_of(results, "Memory", model)]
        numbers[model] = "; ".join(f"{value:.2f}" for value in found)
    screened = runs_of(results, "Memory", "RelLSTM")
    learnt = all(run["train"]["mean"] >= LEARNT for run in screened)
    return Evidence(learnt, numbers=numbers, runs=tuple(trained(screened, lambda run: run["train"]["mean"] < LEARNT)))


@stored_claim(
    "kerg2020/table4-doorkey",
    stored="minigrid",
    place="Table 4 and section 5.3, DoorKey",
    printed="learnt at 5x5 (0.93 to 0.94 by all three), RelLSTM gets 0.44 at 16x16, LSTM 0.09 and MemLSTM 0.31",
    measures="mean return of 100 fresh episodes at 5x5 and at 16x16",
    tolerance=f"learnt: at least {LEARNT}; ahead by {ERRORS} standard errors",
    assumptions=_SETTINGS,
    expected="not settled at this budget",
    needs=FRAMES,
    cells=tuple(f"Table 4 DoorKey-16x16, {model}" for model in MODELS),
)
def screened_policies_find_the_key_in_larger_rooms(results: Results) -> Evidence:
    learnt = {model: mean_return(results, "DoorKey", model, "train") for model in MODELS}
    numbers: dict[str, Number] = {f"{model} at 5x5": value for model, value in learnt.items()}
    numbers |= {f"{model} at 16x16": mean_return(results, "DoorKey", model, "test") for model in MODELS}
    ahead = min(_lead(results, "DoorKey", model) for model in ("LSTM", "MemLSTM"))
    runs = [run for model in MODELS for run in runs_of(results, "DoorKey", model)]
    judged = trained(runs, lambda run: below_printed(results, run, "test"))
    return Evidence(min(learnt.values()) >= LEARNT and ahead > ERRORS, numbers=numbers, runs=tuple(judged))


@stored_claim(
    "kerg2020/table4-transfer",
    stored="minigrid",
    place="Table 4, all larger environments",
    printed="in none of the larger environments does RelLSTM get less than LSTM or MemLSTM",
    measures="return of RelLSTM in the larger environment less that of the better of the others, in standard errors",
    tolerance=f"no less than -{ERRORS} standard errors",
    assumptions=_SETTINGS,
    expected="not settled at this budget",
    needs=FRAMES,
)
def screened_policies_are_ahead_in_larger_environments(results: Results) -> Evidence:
    leads = {
        family: min(_lead(results, family, model) for model in ("LSTM", "MemLSTM")) for family in _families(results)
    }
    behind = {family for family, lead in leads.items() if lead < -ERRORS}
    runs = [run for family in leads for run in runs_of(results, family, "RelLSTM")]
    judged = trained(runs, lambda run: run["family"] in behind)
    return Evidence(not behind, numbers=leads, runs=tuple(judged))


@stored_claim(
    "kerg2020/table4-returns",
    stored="minigrid",
    place="Table 4, all returns",
    printed="LSTM, MemLSTM and RelLSTM get the returns of Table 4 in six small environments and six larger ones",
    measures="runs whose mean return of 100 fresh episodes is below the printed one, of all",
    tolerance=f"none below by more than {ERRORS} standard errors of the run",
    assumptions=_SETTINGS,
    expected="not settled at this budget",
    needs=FRAMES,
    cells=("Table 4, all",),
)
def policies_get_the_printed_returns(results: Results) -> Evidence:
    runs = results["runs"]
    below = {part: [run for run in runs if below_printed(results, run, part)] for part in ("train", "test")}
    numbers: dict[str, Number] = {
        "below in the small environments": f"{len(below['train'])} of {len(runs)}",
        "below in the larger ones": f"{len(below['test'])} of {len(runs)}",
    }
    short = [run["arm"] for run in (*below["train"], *below["test"])]
    return Evidence(not short, numbers=numbers, runs=tuple(trained(runs, lambda run: run["arm"] in short)))


def _families(results: Results) -> list[str]:
    return sorted({run["family"] for run in results["runs"]})


def _lead(results: Results, family: str, other: str) -> float:
    """Of RelLSTM over another in the larger environment, in standard errors of the difference."""
    mine = runs_of(results, family, "RelLSTM")
    theirs = runs_of(results, family, other)
    lead = fmean(run["test"]["mean"] for run in mine) - fmean(run["test"]["mean"] for run in theirs)
    return lead / hypot(_error(mine), _error(theirs))


def _error(runs: list[Run]) -> float:
    """Standard error of the mean over seeds of returns in the larger environment."""
    return hypot(*(run["test"]["error"] for run in runs)) / len(runs)
