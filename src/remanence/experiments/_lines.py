"""The lines of a figure: a pure function of cells, finished or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remanence import figures
from remanence.experiments._cell import Cell
from remanence.experiments._experiment import Curve, Experiment
from remanence.experiments._stored import StoredCell

OF_THE_RUN = ("validation", "train")


def figures_of(experiment: Experiment, cells: Sequence[Cell | StoredCell]) -> list[figures.Figure]:
    """One picture for each kind of line that an experiment declares, with a line for every cell that has any points.

    Args:
        experiment: the table or figure.
        cells: some of its cells.
    """
    drawn = (_figure(experiment, curve, cells) for curve in experiment.curves)
    return [figure for figure in drawn if not figure.is_empty]


def _figure(experiment: Experiment, curve: Curve, cells: Sequence[Cell | StoredCell]) -> figures.Figure:
    parts = []
    has_seeds = len({cell.place["seed"] for cell in cells}) > 1
    for cell in cells:
        x, y = points(cell, curve)
        group = _without_seed(cell)
        name = f"{group}, seed {cell.place['seed']}" if has_seeds else group
        if x:
            parts.append(figures.Curve(name, x, y, group=group))
    x_axis = figures.Axis(curve.x.rpartition(".")[2])
    y_axis = figures.Axis(curve.name, curve.scale)
    return figures.Figure(curve.name.capitalize(), experiment.title, tuple(parts), x_axis, y_axis, legend=True)


def _without_seed(cell: Cell | StoredCell) -> str:
    """What the seeds of a place have in common, their colour too."""
    return ", ".join(str(value) for name, value in cell.place.items() if name != "seed")


def points(cell: Cell | StoredCell, curve: Curve) -> tuple[list[Any], list[Any]]:
    """The points of a cell's line, none before there are any.

    Args:
        cell: of a figure.
        curve: which line.
    """
    if curve.source in OF_THE_RUN:
        kept = [line for line in cell.lines(curve.source) if line.get(curve.y) is not None]
        return [line[curve.x] for line in kept], [line[curve.y] for line in kept]
    found = next(filter(None, map(cell.result, curve.source.split("|"))), None)
    return _at(found, curve.x), _at(found, curve.y)


def _at(found: Any, path: str) -> list[Any]:
    for key in path.split("."):
        found = None if found is None else found.get(key)
    return found or []
