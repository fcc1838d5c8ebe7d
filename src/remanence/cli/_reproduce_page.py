"""The page of a table or figure in HTML: printed beside measured, curves, what is missing, settings and sources."""

from __future__ import annotations

from collections.abc import Sequence

from remanence.experiments import Cell, Experiment, entries, figures_of, grid
from remanence.report import Block, Column, Details, Entry, Facts, Figures, Page, Section, Table, Text


def html_page(experiment: Experiment, scale: str, cells: Sequence[Cell]) -> Page:
    """The page, from cells that are finished or not.

    Args:
        experiment: the table or figure.
        scale: at which its cells are run.
        cells: some of them.
    """
    done = sum(cell.state.is_done for cell in cells)
    headline = f"{done} of {len(cells)} cells are done, at the scale `{scale}`"
    laid = grid(experiment, entries(experiment, cells))
    blocks: list[Block] = [Text(experiment.note)] if experiment.note else []
    blocks.append(_table(laid.head, laid.rows, "measured, printed in brackets"))
    drawn = figures_of(experiment, cells)
    if drawn:
        blocks.append(Figures(drawn))
    blocks += [*_missing(cells), *_departures(experiment, scale), *_settings(experiment, scale, cells)]
    heading = f"{experiment.id}: {experiment.title}"
    return Page([Section(experiment.id.replace("/", "-"), heading, blocks, headline=headline)], title=heading)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> Table:
    columns = tuple(Column(name, numeric=False) for name in head)
    return Table(columns, [[Entry(text) for text in row] for row in rows], caption)


def _missing(cells: Sequence[Cell]) -> list[Block]:
    waiting = [(cell.label, cell.state) for cell in cells if not cell.state.is_done]
    rows = [(label, state.status, state.reason or "-") for label, state in waiting]
    return [_table(("not done", "status", "why"), rows, "cells that are not done")] if rows else []


def _departures(experiment: Experiment, scale: str) -> list[Block]:
    named = [departure.words for departure in experiment.scale(scale).departures]
    return [Text("Departures from the paper: " + ("; ".join(named) or "none, the settings are the paper's."))]


def _settings(experiment: Experiment, scale: str, cells: Sequence[Cell]) -> list[Block]:
    """Settings of every kind of cell with their sources, folded up."""
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    for cell in cells:
        recipe = experiment.recipe_at(scale, cell.place)
        facts = tuple((f"{one.key} = {one.value}", one.source) for one in recipe.settings)
        seen.setdefault(facts, cell.label)
    return [Details(f"Settings of {label}", [Facts(facts)]) for facts, label in seen.items() if facts]
