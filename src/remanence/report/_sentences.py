"""The findings in sentences, made from the numbers and never stronger than these."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence

from remanence._wording import enumerated, number_of
from remanence.report._comparison import SeedRuns, Spread, TaskComparison, Transfer
from remanence.report._numbers import ABSENT, SPACE, at_length, count, only_if, percent, plain, size, the_only
from remanence.report._run_record import SOLVED

ALIKE = 3
"""Models from which on one sentence speaks of all that fared alike."""
PLURAL = {"solves": "solve", "does": "do"}
KEPT = 0.95
"""Accuracy from which on a model is said to keep what it learnt."""
NAMED_MEASURES = {"rmse": "an RMSE of", "perplexity": "a perplexity of"}
"""Measures that are no units: a number comes after their name."""


def with_range(cell: SeedRuns) -> str:
    """Mean accuracy over the seeds, and their range."""
    return _ranged(cell.accuracy, percent)


def in_unit(cell: SeedRuns) -> str:
    """The mean in the task's own unit over the seeds, their range and the unit; a dash if it has none."""
    if not cell.unit:
        return ABSENT
    return f"{_number_in_unit(cell)} {cell.unit.replace('_', ' ')}"


def _number_in_unit(cell: SeedRuns) -> str:
    return _ranged(cell.in_unit, lambda value: plain(value, 4))


def _ranged(found: Spread, words: Callable[[float | None], str]) -> str:
    if len(found.values) < 2 or found.least == found.most:
        return words(found.mean)
    return f"{words(found.mean)} ({words(found.least)} to {words(found.most)})"


def findings(found: TaskComparison) -> list[tuple[str, str]]:
    """A sentence for each model and length of a comparison, those that solved the task first, each with its model.

    Example:
        >>> [text.replace(SPACE, " ") for text, _ in findings(TaskComparison("copy", {}, (SeedRuns("LSTM", 5, ()),)))]
        ['LSTM has not been evaluated at T = 5.']
    """
    ordered = sorted(found.cells, key=lambda cell: (not _all_solved(cell), -(cell.accuracy.mean or 0.0)))
    alike: dict[object, list[SeedRuns]] = {}
    for cell in ordered:
        alike.setdefault(_fate(cell), []).append(cell)
    said = []
    for cells in alike.values():
        if len(cells) >= ALIKE:
            said.append((_together(found, cells), ""))
        else:
            said += [(finding(found, cell), cell.label) for cell in cells]
    return said


def _fate(cell: SeedRuns) -> object:
    """What cells have in common that one sentence can speak of; otherwise the cell itself."""
    plain_end = not _ending(cell) and not _kept(cell)
    if not plain_end or not cell.can_be_solved or not cell.accuracy.values or (cell.solved and not _all_solved(cell)):
        return id(cell)
    return cell.length, len(cell.runs), _all_solved(cell) or _within(cell)


def _together(found: TaskComparison, cells: Sequence[SeedRuns]) -> str:
    """One sentence about models that fared alike."""
    told = [f"{cell.short} ({with_range(cell)})" for cell in cells]
    runs = f"{_basis(cells[0])} each"
    task = found.title + at_length(cells[0].length)
    if _all_solved(cells[0]):
        return f"{enumerated(told)} solve {task}, {runs}."
    return f"{enumerated(told)} do not solve {task}{_within(cells[0])}, {runs}{_chance(found)}."


def headline(found: TaskComparison) -> str:
    """Which models solve the task, at the greatest length that was trained at."""
    length = max((cell.length or 0 for cell in found.cells), default=0) or None
    cells = [cell for cell in found.cells if cell.length == length and cell.accuracy.values]
    if not cells:
        return found.title
    task = found.title + at_length(length)
    if not any(cell.can_be_solved for cell in cells):
        return f"{number_of(len(cells), 'model')} on {task}"
    solved = _called([cell for cell in cells if _all_solved(cell)], cells)
    partly = _called([cell for cell in cells if cell.solved and not _all_solved(cell)], cells)
    others = _called([cell for cell in cells if not cell.solved and not _all_solved(cell)], cells)
    so_far = only_if(any(cell.unfinished for cell in cells), " yet")
    if not solved and not partly:
        return f"{_none_of(others)} {task}{so_far}"
    clauses = []
    if solved:
        clauses.append(f"{_verb(solved, 'solves')} {task}")
        task = "it"
    if partly:
        clauses.append(f"{_verb(partly, 'solves')} {task} in some runs")
    if others:
        clauses.append(f"{_verb(others, 'does')} not{so_far}")
    return "; ".join(clauses)


def _called(group: Sequence[SeedRuns], cells: Sequence[SeedRuns]) -> list[str]:
    """Names of a group's models; one name for all variants of a model where all of them are in the group."""
    elsewhere = {cell.model for cell in cells if cell not in group}
    names: dict[str, None] = {}
    for cell in group:
        if cell.model in elsewhere:
            names[cell.short] = None
        else:
            names[cell.model] = None
    return list(names)


def _verb(labels: Sequence[str], singular: str) -> str:
    """Models and what they do: "A solves", "A and B solve"."""
    if len(labels) == 1:
        return f"{labels[0]} {singular}"
    return f"{enumerated(labels)} {PLURAL[singular]}"


def _none_of(labels: Sequence[str]) -> str:
    if len(labels) == 1:
        return f"{labels[0]} does not solve"
    if len(labels) == 2:
        return f"Neither {labels[0]} nor {labels[1]} solves"
    return f"None of {len(labels)} models solves"


def finding(found: TaskComparison, cell: SeedRuns) -> str:
    """What became of one model."""
    task = found.title + at_length(cell.length)
    if not cell.accuracy.values and not cell.loss.values:
        return f"{cell.short} has not been evaluated{at_length(cell.length)}{_ending(cell)}."
    if not cell.accuracy.values:
        loss = f"a validation loss of {plain(cell.loss.mean)}"
        return f"{cell.short} on {task} reaches {loss} {_basis(cell)}{_ending(cell)}."
    if not cell.can_be_solved:
        reached = with_range(cell)
        if cell.unit in NAMED_MEASURES:
            reached = f"{NAMED_MEASURES[cell.unit]} {_number_in_unit(cell)}"
        elif cell.unit:
            reached = in_unit(cell)
        words = f"{cell.short} on {task} reaches {reached} {_basis(cell)}{_within(cell)}{_ending(cell)}"
        return f"{words}, by validation.{_state(cell)}"
    if _all_solved(cell):
        updates = statistics.median(update for update, _ in cell.solved)
        middle = only_if(len(cell.runs) > 1, " (median)")
        first = f"99{SPACE}% first reached after {count(updates)} updates{middle}"
        verb = f"{cell.short} solves {task}: {with_range(cell)} {_basis(cell)}; {first}"
    elif cell.solved:
        got = f"{len(cell.solved)} of {number_of(len(cell.runs), 'run')}"
        verb = f"{cell.short} solves {task} in {got}: {with_range(cell)}{_within(cell)}"
    else:
        verb = f"{cell.short} does not solve {task}{_within(cell)}: {with_range(cell)} {_basis(cell)}{_chance(found)}"
    return f"{verb}{_ending(cell)}.{_kept(cell)}{_state(cell)}"


def _all_solved(cell: SeedRuns) -> bool:
    """Whether the best weights of every run are at 99 %."""
    return len(cell.accuracy.values) == len(cell.runs) > 0 and (cell.accuracy.least or 0.0) >= SOLVED


def _basis(cell: SeedRuns) -> str:
    if len(cell.runs) == 1:
        return "in one run"
    return f"over {number_of(len(cell.runs), 'seed')}"


def _within(cell: SeedRuns) -> str:
    """The budget, which is what a model that did not get there was given."""
    made = max((run.update for run in cell.runs), default=0)
    return only_if(made, f" within {count(made)} updates")


def _chance(found: TaskComparison) -> str:
    return only_if(found.chance is not None, f"; a guess gets {percent(found.chance)}")


def _ending(cell: SeedRuns) -> str:
    """What has to be said of runs that did not end."""
    states = Counter(run.status for run in cell.runs if run.status != "done")
    if not states:
        return ""
    told = [f"{number_of(amount, 'run')} {state}" for state, amount in states.items()]
    return f" ({enumerated(told)})"


def _kept(cell: SeedRuns) -> str:
    """How the best run does at other lengths: the farthest that it keeps, and the first that it does not."""
    known = [point for point in cell.transfer if point.accuracy is not None]
    if not known or (cell.accuracy.most or 0.0) < KEPT:  # what was not learnt cannot be kept
        return ""
    kept = _before_first_loss(known)
    lost = known[len(kept) :]
    parts = []
    if kept:
        parts.append(f"keeps {percent(kept[-1].accuracy)}{at_length(kept[-1].length)}")
    if lost:
        parts.append(f"falls to {percent(lost[0].accuracy)}{at_length(lost[0].length)}")
    amount = the_only({point.sequences for point in known}) or 0
    sequences = only_if(amount, f" ({number_of(amount, 'sequence')} each)")
    which = "it"
    if len(cell.runs) > 1:
        which = "its best run"
    return f" Without more training {which} {' and '.join(parts)}{sequences}."


def _before_first_loss(points: Sequence[Transfer]) -> list[Transfer]:
    kept: list[Transfer] = []
    for point in points:
        if (point.accuracy or 0.0) < KEPT:
            break
        kept.append(point)
    return kept


def _state(cell: SeedRuns) -> str:
    if cell.weights.state_bytes is None:
        return ""
    return f" It carries {state_words(cell)} from step to step."


def state_words(cell: SeedRuns) -> str:
    """Bytes of the state, and whether they grow."""
    cost = cell.weights.cost
    shown = size(cell.weights.state_bytes)
    if cost is None or cost.growth["state_bytes"].order == "constant":
        return shown
    return f"{shown} at T = {plain(cost.lengths[0])}, growing"
