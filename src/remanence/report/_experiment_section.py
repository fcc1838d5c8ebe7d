"""Sections about tables and figures of the papers: the page of one, and a stored record with all its numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from remanence._wording import number_of
from remanence.experiments import Part
from remanence.figures import Curve, Figure, Look, looks
from remanence.report._blocks import (
    Block,
    Column,
    Details,
    Entry,
    Facts,
    Figures,
    Finding,
    Heading,
    Section,
    Switches,
    Table,
    Text,
)
from remanence.report._numbers import as_number, only_if, plain
from remanence.report._probe_sections import curve_blocks
from remanence.report._reading import StoredExperiment

SHORT = 12
"""Entries of a list that is shown as it is; longer ones are only counted."""


def reproduction_section(parts: Sequence[Part]) -> Section:
    """The page of a table or figure, from :func:`remanence.experiments.page_parts`.

    Example:
        >>> reproduction_section([Part("ke2017/table-1: Copy", ("No stored runs",))]).headline
        'No stored runs'
    """
    first, *others = parts
    headline, *notes = first.words
    blocks: list[Block] = [Text(words) for words in notes]
    return Section("page", first.heading, [*blocks, *_all_blocks(others)], headline=headline)


def _all_blocks(parts: Sequence[Part]) -> list[Block]:
    """The parts one below the other; what stands for the same cells has one colour in all pictures."""
    figures = [figure for part in parts for figure in part.figures]
    groups = [curve.group for figure in figures for curve in figure.parts if isinstance(curve, Curve)]
    chosen = looks(groups)
    return [block for part in parts for block in _blocks(part, chosen)]


def _blocks(part: Part, chosen: Mapping[str, Look]) -> list[Block]:
    inside: list[Block] = [Text(words) for words in part.words]
    if part.rows:
        columns = tuple(Column(name, numeric=False) for name in part.head)
        inside.append(Table(columns, [[Entry(text) for text in row] for row in part.rows], part.heading))
    if part.figures:
        groups = {curve.group for figure in part.figures for curve in figure.parts if isinstance(curve, Curve)}
        inside.append(Switches({name: look for name, look in chosen.items() if name in groups}))
        inside.append(Figures([_coloured(figure, chosen) for figure in part.figures]))
    if part.folded:
        return [Details(part.heading, inside)]
    return [Heading(part.heading), *inside]


def _coloured(figure: Figure, chosen: Mapping[str, Look]) -> Figure:
    """With the colours of the switches, which are its legend."""
    curves = tuple(replace(curve, look=chosen[curve.group]) for curve in figure.parts if isinstance(curve, Curve))
    return replace(figure, parts=curves, legend=False)


def experiment_section(found: StoredExperiment, styles: Mapping[str, Look], number: int) -> Section:
    """A stored experiment, the ``number``-th on the page.

    Example:
        >>> from remanence.experiments import Record
        >>> record = Record("kerg2020/table-2", "paper", "Recall.", "", "", (), "", {}, {})
        >>> experiment_section(StoredExperiment("recall.json", record), {}, 1).heading
        'recall'
    """
    record = found.record
    told = [("command", record.command), ("scaled down", record.scaled_down), ("machine", record.machine)]
    facts = [(name, text or "nothing") for name, text in told]
    blocks: list[Block] = [Text(record.what), Facts(facts, long=True), *_all_blocks(found.parts)]
    if found.curves:
        blocks += curve_blocks(found.curves, styles)
    numbers = [(name, text) for name, text in _flattened(record.results) if text]
    blocks.append(Details(f"All {number_of(len(numbers), 'entry')}", [Facts(numbers)]))
    name = found.place.removesuffix(".json").replace("_", " ")
    return Section(f"record-{number}", name, blocks, f"Stored: {name}", [Finding(record.what)])


def _flattened(value: object, name: str = "") -> list[tuple[str, str]]:
    """Every entry of nested results, under the names that lead to it."""
    if isinstance(value, dict):
        pairs = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        pairs = [(str(place), item) for place, item in enumerate(value, start=1)]
    else:
        return [(name or "result", _short(value))]
    prefix = only_if(name, f"{name}, ")
    return [found for key, item in pairs for found in _flattened(item, prefix + key)]


def _short(value: object) -> str:
    if value is None:
        return ""
    number = as_number(value)
    if number is not None:
        return plain(number, 4)
    if isinstance(value, list) and len(value) > SHORT:
        return number_of(len(value), "entry")
    if isinstance(value, list):
        return ", ".join(map(_short, value))
    if isinstance(value, str):
        return value
    return json.dumps(value, default=str)
