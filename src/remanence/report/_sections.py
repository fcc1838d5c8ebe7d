"""The sections of the page that are no comparison, and the order of all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remanence._documents import DOCUMENTS
from remanence.report._comparison import Comparison
from remanence.report._comparison_section import comparison_section
from remanence.report._drawing import Figure
from remanence.report._findings import claim_findings, curve_findings
from remanence.report._inputs import Findings, Probed
from remanence.report._parts import Page, Section
from remanence.report._probe_figures import information_figure, probe_figures, title
from remanence.report._runs import Problem
from remanence.report._tables import Column, Entry, escape, facts, filtered_table, table
from remanence.report._words import ABSENT, as_number, count, number_of, plain


def information_section(page: Page, curves: Sequence[Probed]) -> Section:
    """Mutual-information curves on one plot, with what was fitted."""
    columns = (
        Column("file", numeric=False),
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
    body = page.legend(labels) + page.plots([figure]) + table(columns, rows, "Mutual-information curves", "runs")
    said = [(sentence, page.styles[c.place].colour) for sentence, c in zip(curve_findings(curves), curves, strict=True)]
    return Section(
        "information", "Mutual information", f"Mutual information in {number_of(len(labels), 'sequence')}", said, body
    )


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


def claims_section(claims: Sequence[dict[str, Any]]) -> Section:
    """The claims with what is printed, what is true and what was measured."""
    columns = (
        Column("claim", numeric=False),
        Column("printed", numeric=False),
        Column("true instead", numeric=False),
        Column("measured", numeric=False),
        Column("verdict", numeric=False),
    )
    rows = [_claim_row(claim) for claim in claims]
    known = [
        f"{name}: {text}" for name, text in DOCUMENTS.items() if any(str(c.get("document")) == name for c in claims)
    ]
    documents = "".join(f"<li>{escape(text)}</li>" for text in known)
    body = filtered_table(columns, rows, "Claims of the documents", "claims")
    said = [(claim_findings(claims), "")]
    return Section(
        "claims",
        "Claims",
        f"{number_of(len(claims), 'claim')} of the documents, measured",
        said,
        f'<ul class="small">{documents}</ul>{body}',
    )


def _claim_row(claim: Mapping[str, Any]) -> tuple[dict[str, str], list[Entry]]:
    verdict = str(claim.get("verdict", ""))
    shown = verdict if claim.get("agrees") is True else f"{verdict} (expected: {claim.get('expected')})"
    numbers = claim.get("numbers")
    measured = (
        "; ".join(f"{name} {_claimed(value)}" for name, value in numbers.items()) if isinstance(numbers, dict) else ""
    )
    kind = {"holds": "holds", "holds with correction": "corrected", "fails as printed": "fails"}.get(verdict, "holds")
    row = [
        Entry(f"{claim.get('id', '')} {claim.get('place', '')}", str(claim.get("id", ""))),
        Entry(str(claim.get("printed", ""))),
        Entry(str(claim.get("corrected") or ABSENT)),
        Entry(f"{claim.get('measures', '')}: {measured}" if measured else str(claim.get("measures", ""))),
        Entry(shown, kind=f"verdict {kind}" if claim.get("agrees") is True else "verdict unexpected"),
    ]
    return {"document": str(claim.get("document", "")), "verdict": verdict}, row


def _claimed(value: Any) -> str:
    number = as_number(value)
    return str(value) if number is None else plain(number, 4)


def probes_section(page: Page, probes: Sequence[Probed]) -> Section:
    """Each probe with its verdict and picture, by the file that it came from."""
    parts, said = [], []
    for place in dict.fromkeys(probe.place for probe in probes):
        here = [probe for probe in probes if probe.place == place]
        figures: list[Figure] = []
        for probe in here:
            try:
                figures += probe_figures(probe)
            except ValueError as error:
                page.problems.append(Problem(place, str(error)))
            said.append((f"{place}, {title(probe).lower()}: {probe.verdict}.", ""))
        drawn = {figure.title for figure in figures}
        bare = [(title(probe), probe.verdict) for probe in here if title(probe) not in drawn]
        parts.append(f"<h3><bdi>{escape(place)}</bdi></h3>{page.plots(figures)}{facts(bare) if bare else ''}")
    return Section("probes", "Probes", number_of(len(probes), "probe"), said, "".join(parts))


def records_section(records: Sequence[tuple[str, dict[str, Any]]]) -> Section:
    """Stored experiments: what was run, how, and everything that came out."""
    parts = []
    for place, record in records:
        results = record.get("results")
        pairs = [
            ("command", str(record.get("command", ""))),
            ("scaled down", _short(record.get("scaled_down")) or "nothing"),
        ]
        pairs.append(("machine", _short(record.get("machine"))))
        parts.append(
            f"<h3><bdi>{escape(place)}</bdi></h3><p><bdi>{escape(record.get('what', ''))}</bdi></p>{facts(pairs)}"
        )
        parts.append(_results(place, results))
    said = [(f"{place}: {record.get('what', '')}", "") for place, record in records]
    return Section("records", "Stored experiments", number_of(len(records), "stored experiment"), said, "".join(parts))


def _results(place: str, results: Any) -> str:
    """Rows of equal kind as a table, anything else by its names."""
    rows = results if isinstance(results, list) else []
    if rows and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(str(name) for row in rows for name in row))
        numeric = {name: any(as_number(row.get(name)) is not None for row in rows) for name in names}
        columns = [Column(name, numeric=numeric[name]) for name in names]
        body = [[_result(row.get(name)) for name in names] for row in rows]
        return table(columns, body, f"{place}: results", "runs")
    return facts(_flattened(results))


def _result(value: Any) -> Entry:
    number = as_number(value)
    return Entry(_short(value) or ABSENT) if number is None else Entry(plain(number, 4), number)


def _flattened(value: Any, name: str = "") -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [
            pair for key, item in value.items() for pair in _flattened(item, f"{name}, {key}" if name else str(key))
        ]
    return [(name or "result", _short(value))]


def _short(value: Any) -> str:
    if value is None:
        return ""
    number = as_number(value)
    if number is not None:
        return plain(number, 4)
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 2000 else text[:2000] + "…"


def sections(page: Page, found: Findings, comparisons: Sequence[Comparison]) -> list[Section]:
    """All sections that there are results for."""
    made = [comparison_section(page, comparison, number) for number, comparison in enumerate(comparisons, start=1)]
    if found.curves:
        made.append(information_section(page, found.curves))
    if found.probes:
        made.append(probes_section(page, found.probes))
    if found.records:
        made.append(records_section(found.records))
    if found.claims:
        made.append(claims_section(found.claims))
    return made
