"""The sections of the page that are no comparison, and the order of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remanence._documents import PAPERS, paper_key
from remanence.report._comparison import Comparison
from remanence.report._comparison_section import comparison_section
from remanence.report._curve_sections import information_section, record_section
from remanence.report._drawing import Figure
from remanence.report._findings import claim_findings
from remanence.report._inputs import Findings, Probed
from remanence.report._parts import Page, Section
from remanence.report._probe_figures import probe_figures, title
from remanence.report._runs import Problem
from remanence.report._tables import Column, Entry, escape, facts, filtered_table
from remanence.report._words import ABSENT, as_number, number_of, plain


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
    present = {_paper_of(claim) for claim in claims}
    known = [f"{key}: {paper.reference}" for key, paper in PAPERS.items() if key in present]
    papers = "".join(f"<li>{escape(text)}</li>" for text in known)
    body = filtered_table(columns, rows, "Claims of the papers", "claims")
    said = [(claim_findings(claims), "")]
    return Section(
        "claims",
        "Claims",
        f"{number_of(len(claims), 'claim')} of the papers, measured",
        said,
        f'<ul class="small">{papers}</ul>{body}',
    )


_KINDS = {"holds with correction": "corrected", "fails as printed": "fails", "not settled at this budget": "open"}


def _claim_row(claim: Mapping[str, Any]) -> tuple[dict[str, str], list[Entry]]:
    verdict = str(claim.get("verdict", ""))
    shown = verdict if claim.get("agrees") is True else f"{verdict} (expected: {claim.get('expected')})"
    numbers = claim.get("numbers")
    measured = (
        "; ".join(f"{name} {_claimed(value)}" for name, value in numbers.items()) if isinstance(numbers, dict) else ""
    )
    kind = _KINDS.get(verdict, "holds")
    row = [
        Entry(str(claim.get("id", "")), note=str(claim.get("place", ""))),
        Entry(str(claim.get("printed", ""))),
        Entry(str(claim.get("corrected") or ABSENT)),
        Entry(measured or ABSENT, note=str(claim.get("measures", ""))),
        Entry(
            shown,
            kind=f"verdict {kind}" if claim.get("agrees") is True else "verdict unexpected",
            note=str(claim.get("reason") or ""),
        ),
    ]
    return {"paper": _paper_of(claim), "verdict": verdict}, row


def _paper_of(claim: Mapping[str, Any]) -> str:
    """The key of the claim's paper; verdicts of before have its number, as ``document``."""
    named = str(claim.get("paper") or claim.get("document") or "")
    try:
        return paper_key(named)
    except ValueError:
        return named


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


def sections(page: Page, found: Findings, comparisons: Sequence[Comparison]) -> list[Section]:
    """All sections that there are results for."""
    made = [comparison_section(page, comparison, number) for number, comparison in enumerate(comparisons, start=1)]
    if found.curves:
        made.append(information_section(page, found.curves))
    if found.probes:
        made.append(probes_section(page, found.probes))
    made += [record_section(page, *record, number) for number, record in enumerate(found.records, start=1)]
    if found.claims:
        made.append(claims_section(found.claims))
    return made
