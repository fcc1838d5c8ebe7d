"""Which cells: the experiments by their ids, and a selection of one's cells."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from remanence._validate import MOST_PARTS, message, one_of, positive_int
from remanence.experiments._cell import TableCell
from remanence.experiments._experiment import Axes, Experiment
from remanence.experiments.beyond import EXPERIMENTS as BEYOND
from remanence.experiments.ke2017 import EXPERIMENTS as KE2017
from remanence.experiments.kerg2020 import EXPERIMENTS as KERG2020
from remanence.experiments.miller2018 import EXPERIMENTS as MILLER2018
from remanence.experiments.shen2019 import EXPERIMENTS as SHEN2019

_ALL = (*KERG2020, *KE2017, *MILLER2018, *SHEN2019, *BEYOND)


def list_experiments() -> list[Experiment]:
    """All tables and figures, document by document.

    Example:
        >>> list_experiments()[0].id.partition("/")[0]
        'kerg2020'
    """
    return list(_ALL)


def find_experiment(id: str) -> Experiment:
    """One table or figure, such as ``"kerg2020/table-2"``; where there is none of this id, the nearest is proposed.

    Example:
        >>> find_experiment("kerg2020/table-22")
        Traceback (most recent call last):
        ValueError: `id` must be one that `remanence reproduce --list` shows; got 'kerg2020/table-22'. Did you mean ...
    """
    by_id = {experiment.id: experiment for experiment in _ALL}
    if id not in by_id:
        nearest = difflib.get_close_matches(id, by_id, 3, 0.0)
        hint = f"Did you mean {', '.join(map(repr, nearest))}?"
        raise ValueError(message("id", "be one that `remanence reproduce --list` shows", repr(id), hint))
    return by_id[id]


def plan_cells(
    experiment: Experiment,
    scale: str,
    root: str | Path,
    only: Iterable[str] = (),
    seeds: Sequence[int] | None = None,
    storage: str = "",
) -> list[TableCell]:
    """The cells of a selection; nothing is made yet.

    Args:
        experiment: the table or figure.
        scale: ``"smoke"``, ``"laptop"`` or ``"paper"``.
        root: folder of the cells.
        only: choices such as ``"model=RelRNN,LSTM"``; values of the document that the scale leaves out may be chosen.
        seeds: to run; None takes as many as the scale has.
        storage: URL of a storage that mirrors the cells, such as ``"s3://bucket/runs"``.

    Returns:
        The first seed of everything first.

    Raises:
        ValueError: a choice names no axis or no value, or nothing is left.

    Example:
        >>> cells = plan_cells(find_experiment("kerg2020/table-2"), "paper", "runs", ["model=LSTM", "length=100"], [0])
        >>> [cell.label for cell in cells]
        ['model=LSTM length=100 seed=0']
    """
    chosen = parse_choices(experiment, scale, only)
    axes = {**experiment.axes_at(scale), **chosen}
    cells = []
    for place in experiment.places(scale, seeds, axes):
        cells.append(TableCell(place, experiment.work(scale, place), Path(root), storage))
    if not cells:
        hint = f"{experiment.id} has no such cell; see `remanence reproduce {experiment.id} --dry-run`"
        raise ValueError(message("only", "leave at least one cell", " ".join(only), hint))
    return cells


COMMA = re.compile(",(?! )")
"""A comma between values; one with a space after it belongs to a name, such as ``SAB (5, 5, 2)``."""


def parse_choices(experiment: Experiment, scale: str, only: Iterable[str]) -> Axes:
    """Chosen values by axis; what is said of one axis several times adds up.

    Example:
        >>> parse_choices(find_experiment("kerg2020/table-2"), "paper", ["length=100,300"])
        {'length': (100, 300)}
        >>> parse_choices(find_experiment("ke2017/table-1"), "paper", ["method=SAB (5, 5, 2),LSTM (TBPTT 5)"])
        {'method': ('SAB (5, 5, 2)', 'LSTM (TBPTT 5)')}
    """
    found: dict[str, tuple[object, ...]] = {}
    for choice in only:
        axis, equals, values = choice.partition("=")
        if not equals or not values.strip(","):
            raise ValueError(message("only", "be axis=value,value such as model=LSTM,RelRNN", repr(choice)))
        one_of("axis of only", axis, experiment.axes)
        known = {str(value): value for value in (*experiment.axes[axis], *experiment.axes_at(scale)[axis])}
        named = [part for part in COMMA.split(values) if part]
        chosen = [known[one_of(f"{axis} of only", part, known)] for part in named]
        found[axis] = tuple(dict.fromkeys((*found.get(axis, ()), *chosen)))
    return found


def parse_seeds(text: str | None) -> list[int] | None:
    """Seeds as they are given: ``"3"`` is how many, ``"0,4"`` which ones; None takes those of the scale.

    Example:
        >>> parse_seeds("3"), parse_seeds("4,7"), parse_seeds("4,")
        ([0, 1, 2], [4, 7], [4])
    """
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise ValueError(message("seeds", "be how many, such as 3, or which, such as 0,4,7", repr(text)))
    if "," in text:
        return list(dict.fromkeys(map(int, parts)))
    if int(text) == 0:
        raise ValueError(message("seeds", "be at least 1, as a number of seeds", "0", "For seed 0 alone write 0,"))
    return list(range(positive_int("seeds", int(text), maximum=MOST_PARTS)))
