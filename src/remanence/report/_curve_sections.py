"""Sections with information curves: those of files, and those of stored experiments, with all else that these hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remanence.report._findings import curve_findings
from remanence.report._inputs import Probed
from remanence.report._parts import Page, Section
from remanence.report._probe_figures import information_figure
from remanence.report._records import record_curves
from remanence.report._tables import Column, Entry, details, escape, facts, table, without_empty
from remanence.report._words import ABSENT, as_number, count, number_of, plain

SHORT = 12
"""Entries of a list that is shown as it is; longer ones are only counted."""


def information_section(page: Page, curves: Sequence[Probed]) -> Section:
    """Mutual-information curves on one plot, with what was fitted."""
    said = [(sentence, page.styles[c.place].colour) for sentence, c in zip(curve_findings(curves), curves, strict=True)]
    amount = number_of(len({curve.place for curve in curves}), "sequence")
    return Section("information", "Mutual information", f"Mutual information in {amount}", said, _curves(page, curves))


def _curves(page: Page, curves: Sequence[Probed]) -> str:
    """Switches, picture and table of curves."""
    columns = (
        Column("curve", numeric=False),
        Column("symbols"),
        Column("sequences"),
        Column("pairs", "at most"),
        Column("above the noise", "up to lag"),
        Column("law", numeric=False),
        Column("remarks", numeric=False),
    )
    rows = [_curve_row(page, curve) for curve in curves]
    labels = list(dict.fromkeys(curve.place for curve in curves))
    figure = information_figure(curves, page.styles)
    shown = table(*without_empty(columns, rows), "Mutual-information curves", "runs")
    return page.legend(labels) + page.plots([figure]) + shown


def _curve_row(page: Page, curve: Probed) -> list[Entry]:
    values = curve.values
    above = [
        lag
        for lag, value, floor in zip(values["lags"], values["values"], values["floor"], strict=False)
        if (as_number(value) or 0.0) > (as_number(floor) or 0.0)
    ]
    fit = values.get("fit")
    law = str(fit.get("verdict", "")) if isinstance(fit, dict) else "none"
    pairs = max((as_number(pair) or 0 for pair in values.get("pairs", [])), default=None)
    alphabet, sequences = as_number(values.get("alphabet")), as_number(values.get("sequences"))
    reach = max(above, default=None)
    return [
        Entry(curve.place, colour=page.styles[curve.place].colour),
        Entry(count(alphabet), alphabet),
        Entry(count(sequences), sequences),
        Entry(count(pairs), pairs),
        Entry(count(reach), reach),
        Entry(law),
        Entry("; ".join(map(str, values.get("warnings", []))) or ABSENT),
    ]


def record_section(page: Page, place: str, record: Mapping[str, Any], number: int) -> Section:
    """A stored experiment: what was run, how and where, its information curves, and all its numbers."""
    names = ("command", "scaled_down", "machine")
    told = {name.replace("_", " "): _short(record.get(name)) or "nothing" for name in names}
    what = str(record.get("what", ""))
    curves = list(record_curves(record.get("results")))
    body = f"<p><bdi>{escape(what)}</bdi></p>{facts(list(told.items()), 'facts long')}"
    if curves:
        body += _curves(page, curves)
    numbers = [(name, text) for name, text in _flattened(record.get("results")) if text]
    body += details(f"All {number_of(len(numbers), 'entry').replace('entrys', 'entries')}", facts(numbers))
    name = place.removesuffix(".json").replace("_", " ")
    return Section(f"record-{number}", name, f"Stored: {name}", [(what, "")], body)


def _flattened(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Every entry of nested results, under the names that lead to it."""
    if isinstance(value, dict):
        pairs = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        pairs = [(str(place), item) for place, item in enumerate(value, start=1)]
    else:
        return [(name or "result", _short(value))]
    return [found for key, item in pairs for found in _flattened(item, f"{name}, {key}" if name else key)]


def _short(value: Any) -> str:
    if value is None:
        return ""
    number = as_number(value)
    if number is not None:
        return plain(number, 4)
    if isinstance(value, list):
        shown = len(value) <= SHORT
        return ", ".join(_short(item) for item in value) if shown else f"{len(value)} entries"
    return value if isinstance(value, str) else json.dumps(value, default=str)
