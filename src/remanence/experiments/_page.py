"""The page of a table or figure: printed beside measured, curves, settings with their sources, what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from remanence.experiments._cell import Cell
from remanence.experiments._experiment import Experiment, Recipe
from remanence.experiments._results import entries, grid


def make_page(experiment: Experiment, scale: str, cells: Sequence[Cell]) -> str:
    """The page in Markdown, from cells that are finished or not.

    Args:
        experiment: the table or figure.
        scale: at which its cells are run.
        cells: some of them.
    """
    parts = [
        f"# {experiment.id}: {experiment.title}",
        experiment.note,
        f"Scale: {scale}. {_counted(cells)} Measured numbers, printed ones in brackets.",
        _table(experiment, cells),
        _missing(cells),
        _departures(experiment, scale),
        _settings(experiment, scale, cells),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown.

    Example:
        >>> print(markdown_table(("a",), (("1",),)))
        | a |
        | --- |
        | 1 |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(text.replace('|', '/') for text in line)} |" for line in lines)


def _counted(cells: Sequence[Cell]) -> str:
    done = sum(cell.state.is_done for cell in cells)
    return f"{done} of {len(cells)} cells are done."


def _table(experiment: Experiment, cells: Sequence[Cell]) -> str:
    laid = grid(experiment, entries(experiment, cells))
    return markdown_table(laid.head, laid.rows) if laid.rows else ""


def _missing(cells: Sequence[Cell]) -> str:
    waiting = [(cell, cell.state) for cell in cells if not cell.state.is_done]
    if not waiting:
        return ""
    rows = [(cell.label, state.status, state.reason or "-") for cell, state in waiting]
    return "## Not done\n\n" + markdown_table(("cell", "status", "why"), rows)


def _departures(experiment: Experiment, scale: str) -> str:
    named = [f"- {departure.words}" for departure in experiment.scale(scale).departures]
    return "## Departures from the paper\n\n" + "\n".join(named or ["None: the settings are the paper's."])


def _settings(experiment: Experiment, scale: str, cells: Sequence[Cell]) -> str:
    """Settings by model (or whatever the first named axis is), each with its source."""
    seen: dict[tuple[str, ...], list[str]] = {}
    for cell in cells:
        lines = _described(experiment.recipe_at(scale, cell.place))
        seen.setdefault(lines, []).append(cell.label)
    parts = ["## Settings"]
    for lines, labels in seen.items():
        parts += [f"**{labels[0]}**" + (f" and {len(labels) - 1} more" if labels[1:] else ""), "\n".join(lines)]
    return "\n\n".join(parts)


def _described(recipe: Recipe) -> tuple[str, ...]:
    settings = (f"- `{setting.key} = {setting.value}` ({setting.source})" for setting in recipe.settings)
    measures = (f"- measured: `{measure.name}` with {dict(measure.settings)}" for measure in recipe.measures)
    return (*settings, *measures)
