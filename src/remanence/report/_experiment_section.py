"""The section about a stored experiment: what was run, how and where, its curves, and all its numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping

from remanence.figures import Look
from remanence.report._blocks import Block, Details, Facts, Finding, Section, Text
from remanence.report._numbers import as_number, number_of, plain
from remanence.report._probe_sections import curve_blocks
from remanence.report._reading import StoredExperiment

SHORT = 12
"""Entries of a list that is shown as it is; longer ones are only counted."""


def experiment_section(found: StoredExperiment, styles: Mapping[str, Look], number: int) -> Section:
    """A stored experiment.

    Args:
        found: what its file says.
        styles: how each of its curves looks.
        number: of the experiment on the page, from 1.

    Example:
        >>> from remanence.experiments import Record
        >>> record = Record("kerg2020/table-2", "paper", "Recall.", "", "", (), "", {}, {})
        >>> experiment_section(StoredExperiment("recall.json", record), {}, 1).heading
        'recall'
    """
    record = found.record
    told = [("command", record.command), ("scaled down", record.scaled_down), ("machine", record.machine)]
    facts = [(name, text or "nothing") for name, text in told]
    blocks: list[Block] = [Text(record.what), Facts(facts, long=True)]
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
    return [found for key, item in pairs for found in _flattened(item, f"{name}, {key}" if name else key)]


def _short(value: object) -> str:
    if value is None:
        return ""
    number = as_number(value)
    if number is not None:
        return plain(number, 4)
    if isinstance(value, list):
        return ", ".join(map(_short, value)) if len(value) <= SHORT else number_of(len(value), "entry")
    return value if isinstance(value, str) else json.dumps(value, default=str)
