"""When stored runs settle a statement, and when they do not: a rule, so that nobody decides it by hand.

A run at a small scale may bear a statement out. Only runs that had what the paper's had may contradict it, and only
several of them: one may have had a bad seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

StoredVerdict: TypeAlias = Literal["holds on stored runs", "fails as printed", "not settled at this budget"]
STORED_VERDICTS: tuple[StoredVerdict, ...] = ("holds on stored runs", "fails as printed", "not settled at this budget")

FEWEST_RUNS = 3
"""Of one model at one place that may contradict what is printed."""
FEWEST_POINTS = 4
"""Of a half of a curve; a line through fewer says nothing about its own error."""


@dataclass(frozen=True)
class Budget:
    """How long the paper trains, which is what a claim about its experiments needs.

    Example:
        >>> print(Budget(200_000, "updates"))
        200,000 updates
    """

    amount: float
    unit: str

    def __str__(self) -> str:
        return f"{self.amount:,.0f} {self.unit}"


@dataclass(frozen=True)
class TrainedRun:
    """What the rule asks of one stored run.

    Args:
        model: that was trained.
        budget: that it used, in the unit of the claim's :class:`Budget`.
        falls_short: whether it did not come to what the paper prints for it.
        curve: what it is judged by, one value per evaluation; higher is better. Empty if it was not kept.
        departures: its settings that are not the paper's, in words.
        needs: the budget of the paper's run.
        place: what it was trained for; runs of one model at one place differ in their seeds alone.

    Example:
        >>> TrainedRun("LSTM", 6_000, falls_short=True, departures=("rate 0.001 for 0.0002",)).falls_short
        True
    """

    model: str
    budget: float
    falls_short: bool
    curve: tuple[float, ...] = ()
    departures: tuple[str, ...] = ()
    needs: Budget | None = None
    place: str = ""


@dataclass(frozen=True)
class Ruling:
    """A verdict and why, in words; nothing needs to be said where all runs bear a statement out at full scale."""

    verdict: StoredVerdict
    reason: str = ""


def judge(
    printed: bool, runs: Sequence[TrainedRun] = (), needs: Budget | None = None, favour: str = "", missing: str = ""
) -> Ruling:
    """Decides what stored runs say about a statement.

    They leave it open if a run that fell short of what is printed for it had less than the paper's budget, was still
    improving at the cut, or had other settings; if runs of one model do not agree; if too few runs contradict it; if
    the statement holds for a comparison in which one side was tuned and the other was not; and if it holds as far as
    anything was run, and something was not.

    Args:
        printed: whether the statement holds on the runs as it is printed.
        runs: all that it was measured on.
        needs: the budget of the paper's runs, where they do not say it themselves.
        favour: what was done for one side of a comparison and not for the other, in words; empty if nothing was.
        missing: what was not run, in words; empty if everything was.

    Example:
        >>> short = TrainedRun("LSTM", 6_000, falls_short=True)
        >>> judge(False, [short] * 3, Budget(200_000, "updates"))
        Ruling(verdict='not settled at this budget', reason='LSTM: 6,000 of 200,000 updates')
        >>> whole = TrainedRun("LSTM", 200_000, falls_short=True)
        >>> judge(False, [whole], Budget(200_000, "updates")).reason
        'LSTM: fewer than 3 runs'
        >>> judge(False, [whole] * 3, Budget(200_000, "updates")).verdict
        'fails as printed'
    """
    doubts = _by_model(runs, needs, printed)
    if printed and favour:
        doubts.append(f"the two sides were not tuned alike: {favour}")
    if printed and missing:
        doubts.append(missing)
    if doubts:
        return Ruling("not settled at this budget", "; ".join(doubts))
    if printed:
        return Ruling("holds on stored runs", _scale(runs, needs))
    return Ruling("fails as printed", _scale(runs, needs))


def still_improving(curve: Sequence[float]) -> bool:
    """Whether a curve was still rising when it was cut: a line through its second half rises by more than its error.

    A curve with fewer than seven points is too short to show that it had stopped.

    Example:
        >>> still_improving([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]), still_improving([0.1, 0.5] + [0.6] * 8)
        (True, False)
    """
    values = np.asarray(curve, dtype=np.float64)
    half = values[len(values) // 2 :]
    if len(half) < FEWEST_POINTS:
        return True
    steps = np.arange(len(half)) - (len(half) - 1) / 2
    spread = float((steps**2).sum())
    slope = float(steps @ half) / spread
    residual = half - half.mean() - slope * steps
    # The standard error of a slope by least squares: the line has used up two degrees of freedom.
    error = float(np.sqrt((residual**2).sum() / (len(half) - 2) / spread))
    # A curve that stands still has an error of nearly 0, which its rounding may exceed.
    rounding = 1e-9 * float(np.abs(half).max())
    return slope > 2 * error + rounding


def _by_model(runs: Sequence[TrainedRun], needs: Budget | None, printed: bool) -> list[str]:
    """The doubts about each model, those of several models once if they are the same."""
    # Where none falls short, it is the comparison of all that contradicts the statement.
    against = [run for run in runs if run.falls_short] or runs
    models: dict[str, list[str]] = {}
    for model in _distinct(run.model for run in runs):
        doubts = _doubts([run for run in runs if run.model == model], needs)
        if not printed:
            doubts += _too_few([run for run in against if run.model == model], needs)
        found = ", ".join(doubts)
        if found:
            models.setdefault(found, []).append(model)
    return [f"{', '.join(names)}: {found}" for found, names in models.items()]


def _doubts(runs: Sequence[TrainedRun], needs: Budget | None) -> list[str]:
    """Why the runs of one model that fall short show nothing; empty if they do show it, or if none does."""
    short = [run for run in runs if run.falls_short]
    if not short:
        return []
    doubts = [*_little_budget(short, needs), *_improving(short), *_departing(short)]
    if len(short) < len(runs):
        doubts.append(f"{len(short)} of {len(runs)} runs fall short and the others do not")
    return doubts


def _too_few(runs: Sequence[TrainedRun], needs: Budget | None) -> list[str]:
    """Whether runs of one model that contradict a statement are too few for that, at one of their places."""
    # What has no budget was measured and not trained: a seed changes nothing.
    counts = Counter(run.place for run in runs if needs or run.needs)
    if min(counts.values(), default=FEWEST_RUNS) >= FEWEST_RUNS:
        return []
    return [f"fewer than {FEWEST_RUNS} runs"]


def _little_budget(runs: Sequence[TrainedRun], needs: Budget | None) -> list[str]:
    needs = needs or runs[0].needs
    if needs is None or min(run.budget for run in runs) >= needs.amount:
        return []
    return [f"{_span(run.budget for run in runs)} of {needs}"]


def _improving(runs: Sequence[TrainedRun]) -> list[str]:
    rising = sum(still_improving(run.curve) for run in runs if run.curve)
    if not rising:
        return []
    return [f"still improving at the cut ({rising} of {len(runs)} runs)"]


def _departing(runs: Sequence[TrainedRun]) -> list[str]:
    departures = _distinct(word for run in runs for word in run.departures)
    if not departures:
        return []
    return [f"other settings than the paper's ({', '.join(departures)})"]


def _scale(runs: Sequence[TrainedRun], needs: Budget | None) -> str:
    """How far runs that settle a statement are from the paper's."""
    units: dict[Budget, list[float]] = {}
    for run in runs:
        wanted = needs or run.needs
        if wanted is not None:
            units.setdefault(wanted, []).append(run.budget)
    words = [f"{_span(budgets)} of {wanted}" for wanted, budgets in units.items()]
    return ", ".join([*words, *_departing(runs)])


def _span(budgets: Iterable[float]) -> str:
    known = sorted(set(budgets))
    if len(known) == 1:
        return f"{known[0]:,.0f}"
    return f"{known[0]:,.0f} to {known[-1]:,.0f}"


def _distinct(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))
