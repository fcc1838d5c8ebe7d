"""``remanence verify``: every claim of the documents measured, with the verdict beside the expected one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from remanence import claims
from remanence._documents import DOCUMENTS
from remanence.claims import Result

STYLES = {
    "holds": "green",
    "holds on stored runs": "green",
    "holds with correction": "yellow",
    "fails as printed": "red",
}


def run_verify(document: str | None, only: str | None, quick: bool, as_json: bool, page: Path | None) -> bool:
    """Measures, prints, and says whether every verdict is the expected one.

    Example:
        >>> run_verify(None, "004.4.1", quick=True, as_json=True, page=None)
        [
          {
            "id": "004.4.1",
        ...
        True
    """
    results = claims.verify(document, only, quick)
    if page is not None:
        page.write_text(markdown(results), encoding="utf-8")
    if as_json:
        print(json.dumps([result.to_dict() for result in results], indent=2, default=str))
    else:
        _show(results)
    return all(result.agrees for result in results)


def _show(results: list[Result]) -> None:
    table = Table(
        "claim", "place", "verdict", "measured", "s", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    for result in results:
        verdict = Text(result.verdict, style=STYLES.get(result.verdict, ""))
        if not result.agrees:
            verdict.append(f" (expected: {result.claim.expected})", style="bold red")
        measured = Text(_measured(result))
        table.add_row(result.claim.id, result.claim.place, verdict, measured, f"{result.seconds:.1f}")
    console = Console()
    console.print(table)
    console.print(summary(results))


def summary(results: Iterable[Result]) -> str:
    """One line: how many of each verdict, and how many are not the expected one.

    Example:
        >>> summary([])
        '0 claims: all verdicts as expected'
    """
    results = list(results)
    counts = {verdict: sum(result.verdict == verdict for result in results) for verdict in STYLES}
    parts = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    wrong = [result.claim.id for result in results if not result.agrees]
    ending = f"not as expected: {', '.join(wrong)}" if wrong else "all verdicts as expected"
    return f"{len(results)} claims: {', '.join([*parts, ending])}"


def _measured(result: Result) -> str:
    """The numbers, and where they come from if they were not measured now."""
    values = ((name, f"{n:.4g}" if isinstance(n, float) else n) for name, n in result.numbers.items())
    source = [] if result.source is None else [f"from {result.source}"]
    return "; ".join([*(f"{name} {value}" for name, value in values), *source])


def markdown(results: list[Result]) -> str:
    """The page "What is wrong in the papers": what does not hold as printed first, then what does.

    Example:
        >>> markdown([]).splitlines()[0]
        '# What is wrong in the papers'
    """
    wrong = [result for result in results if result.verdict in ("holds with correction", "fails as printed")]
    lines = ["# What is wrong in the papers", "", _INTRODUCTION, "", f"{summary(results)}.", ""]
    for document in sorted({result.claim.document for result in wrong}):
        lines += [f"## Document {document}", "", f"{DOCUMENTS[document]}.", ""]
        for result in (r for r in wrong if r.claim.document == document):
            lines += [*_entry(result), ""]
    lines += _table("What holds as printed", [result for result in results if result.verdict == "holds"])
    on_runs = [result for result in results if result.verdict == "holds on stored runs"]
    lines += ["", *_table("What holds on stored runs", on_runs)] if on_runs else []
    return "\n".join(lines) + "\n"


def _table(title: str, results: list[Result]) -> list[str]:
    lines = [f"## {title}", "", "| claim | place | statement | measured |", "|---|---|---|---|"]
    for result in results:
        row = (result.claim.id, result.claim.place, result.claim.printed, _measured(result))
        lines.append("| " + " | ".join(_cell(part) for part in row) + " |")
    return lines


_INTRODUCTION = (
    "Every statement of the documents is a function that measures it and gives a verdict. This page is written by "
    "`remanence verify --page docs/papers.md`; run `remanence verify --only ID` to measure one again."
)


def _entry(result: Result) -> list[str]:
    claim = result.claim
    lines = [f"### {claim.id}: {claim.place}", "", f"- **Printed:** {_plain(claim.printed)}."]
    if claim.corrected:
        lines.append(f"- **True:** {_plain(claim.corrected)}.")
    if claim.assumptions:
        lines.append(f"- **Assuming:** {_plain(claim.assumptions)}.")
    lines.append(f"- **Measured:** {_plain(claim.measures)}. {_plain(_measured(result))}.")
    return [*lines, f"- **Verdict:** {result.verdict}."]


def _plain(text: str) -> str:
    """Keeps Markdown from reading formulas as marks."""
    for mark in ("\\", "*", "_", "<", "$", "`", "[", "^"):
        text = text.replace(mark, f"\\{mark}")
    return text


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")
