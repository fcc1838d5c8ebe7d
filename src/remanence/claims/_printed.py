"""Stored cells and the numbers that the papers print for them, and the claims that all tables make."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import median

from remanence import experiments
from remanence.claims._cells import Cells, result_of, trained
from remanence.claims._framework import stored_claim
from remanence.claims._rule import TrainedRun
from remanence.claims._types import Evidence, Number
from remanence.experiments import Experiment, Reading, StoredCell

ERRORS = 2
"""Standard errors that a number may be off."""
ROUNDING = {"%": 0.5, "": 0.005}
"""Of a printed number."""
CLOSE = 0.05
"""Of a printed number that comes without an error, such as a loss."""
HELD_OUT = 1.0
"""Per cent of a whole held-out set."""
TOLERANCE = (
    "rounding, and two standard errors of so many sequences or episodes; of a whole held-out set 1 % of the answers, "
    "of losses a twentieth"
)


def number(cell: StoredCell, reading: str) -> float | None:
    """What a cell's table shows of it, per cents as such; None if it was not measured."""
    return experiments.read(cell, _reading(cell, reading))


def _reading(cell: StoredCell, name: str) -> Reading:
    """One of the numbers that the cell's table shows of it."""
    (found,) = [one for one in _readings(cell) if one.name == name]
    return found


def _readings(cell: StoredCell) -> list[Reading]:
    return experiments.find_experiment(cell.experiment).readings_at(cell.place)


def printed(cell: StoredCell, reading: str) -> float | None:
    """What the paper prints there; None if nothing, or that the model did not fit into memory."""
    found = experiments.find_experiment(cell.experiment).printed_at(cell.place, reading)
    if found is None:
        return None
    return found.value


def beside(cell: StoredCell) -> dict[str, tuple[float, float]]:
    """Measured and printed numbers of a cell, by reading, where there are both."""
    pairs = {one.name: (number(cell, one.name), printed(cell, one.name)) for one in _readings(cell)}
    return {name: (one, other) for name, (one, other) in pairs.items() if one is not None and other is not None}


def tolerance(cell: StoredCell, reading: str) -> float:
    """How far a measured number may be from the printed one."""
    chosen = _reading(cell, reading)
    goal = printed(cell, reading) or 0.0
    if chosen.measure == "play":
        return ROUNDING[""] + ERRORS * result_of(cell, "play")[chosen.path[0]]["error"]
    if chosen.unit != "%":
        return CLOSE * abs(goal) + ROUNDING[""]
    answers = cell.result("answers")
    if answers is None:
        return HELD_OUT
    nearest_chance = min(max(goal, ROUNDING["%"]), 100 - ROUNDING["%"])
    return ROUNDING["%"] + ERRORS * share_error(nearest_chance, min(one["sequences"] for one in answers.values()))


def share_error(per_cent: float, sequences: int) -> float:
    """Standard error of a share of sequences, in per cent.

    Example:
        >>> share_error(50, 2500)
        1.0
    """
    return (per_cent * (100 - per_cent) / sequences) ** 0.5


def is_worse(cell: StoredCell, reading: str) -> bool:
    """Whether a cell does not come to a printed number: fewer answers, less return, more loss."""
    found = beside(cell).get(reading)
    if found is None:
        return False
    chosen = _reading(cell, reading)
    measured, wanted = found
    if chosen.unit == "%" or chosen.measure == "play":
        return measured - wanted < -tolerance(cell, reading)
    return wanted - measured < -tolerance(cell, reading)


def differs(cell: StoredCell, reading: str) -> bool:
    """Whether a cell has another number than is printed, worse or better."""
    found = beside(cell).get(reading)
    return found is not None and abs(found[0] - found[1]) > tolerance(cell, reading)


def comes_to(cells: Iterable[StoredCell], *readings: str) -> Evidence:
    """Whether most seeds of each model come to what is printed for it.

    Args:
        cells: of a table with models.
        readings: numbers of theirs; those without a printed one are left out.
    """
    chosen = list(cells)
    models = dict.fromkeys(cell.place["model"] for cell in chosen)
    numbers: dict[str, Number] = {}
    reached = []
    for model in models:
        own = [cell for cell in chosen if cell.place["model"] == model]
        for reading in readings:
            known = [cell for cell in own if reading in beside(cell)]
            if known:
                reached.append(median(is_worse(cell, reading) for cell in known) < 1)
                name = model
                if len(readings) > 1:
                    name = f"{model}, {reading}"
                numbers[name] = by_seed(known, reading)
    runs = trained(chosen, lambda cell: any(is_worse(cell, reading) for reading in readings))
    return Evidence(all(reached), numbers=numbers, runs=runs)


def shown(cell: StoredCell, reading: str) -> str:
    """A measured number with its unit."""
    found = number(cell, reading)
    if found is None:
        return "not measured"
    if _reading(cell, reading).unit == "%":
        return f"{found:.1f} %"
    return f"{found:.4g}"


def by_seed(cells: Iterable[StoredCell], reading: str) -> str:
    """A measured number of each cell with its unit."""
    return "; ".join(shown(cell, reading) for cell in cells)


# ---- every number of every table ------------------------------------------------------------------------------------


def _whole_table(cells: Cells) -> Evidence:
    """Whether all cells of a table have the printed numbers, as far as they were run."""
    numbers: dict[str, str] = {}
    runs: list[TrainedRun] = []
    measured = 0
    agreeing = 0
    stored = cells.at()
    for cell in stored:
        found = beside(cell)
        apart = [reading for reading in found if differs(cell, reading)]
        measured += len(found)
        agreeing += len(found) - len(apart)
        for reading in apart:
            name = f"{_place(cell)}, {reading}"
            told = shown(cell, reading)
            if name in numbers:
                told = f"{numbers[name].partition(' [')[0]}; {told}"
            numbers[name] = f"{told} [{found[reading][1]:g}]"
        if found:
            runs.append(_compared(cell, apart))
    counted = {"as printed": f"{agreeing} of {measured} numbers that were measured"}
    return Evidence(agreeing == measured, numbers={**counted, **numbers}, runs=tuple(runs), missing=_missing(stored))


def _missing(cells: Sequence[StoredCell]) -> str:
    """How many numbers of a table no stored cell has, in words; empty if none."""
    table = experiments.find_experiment(cells[0].experiment)
    wanted = {key for key, one in table.printed.items() if one.value is not None}
    found = {(*experiments.without_seed(cell.place).values(), reading) for cell in cells for reading in beside(cell)}
    missing = len(wanted - found)
    if not missing:
        return ""
    return f"{missing} of {len(wanted)} printed numbers were not measured"


def _place(cell: StoredCell) -> str:
    return " ".join(map(str, experiments.without_seed(cell.place).values()))


def _compared(cell: StoredCell, apart: list[str]) -> TrainedRun:
    """What the rule asks of a cell. One that does better than printed needs no more budget, but the same settings."""
    (run,) = trained([cell], lambda cell: bool(apart), _place)
    if any(is_worse(cell, reading) for reading in apart) or run.needs is None:
        return run
    return replace(run, budget=run.needs.amount, curve=())


def _register(experiment: Experiment) -> None:
    table = next(iter(experiment.printed.values())).place
    stored_claim(
        experiment.id,
        stored=experiment.id,
        place=f"{table}, all numbers",
        printed=f"the numbers of {table}: {experiment.title}",
        measures="every cell that was run, as the paper measures it; those that differ are named, printed in brackets",
        tolerance=TOLERANCE,
        assumptions="cells that were not run contradict nothing, and leave open whether the others are right",
    )(_whole_table)


def register_tables() -> None:
    """Registers one claim for every table with printed numbers of which anything is stored.

    A table with settings that were changed on purpose asks what they do: that is no statement of the document.
    """
    stored = {name.rpartition("_")[0] for name in experiments.stored_names()}
    for experiment in experiments.list_experiments():
        is_stored = experiment.id.replace("/", "_") in stored
        if experiment.printed and is_stored and experiment.document_recipe is None:
            _register(experiment)


register_tables()
