"""``remanence verify``: the claims of the papers measured, with the verdict and the expected one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from remanence import claims, experiments
from remanence._documents import PAPERS, Paper
from remanence._wording import agreeing, number_of
from remanence.claims import Result, StoredRun
from remanence.cli._tables import shown

STYLES = {
    "holds": "green",
    "holds on stored runs": "green",
    "holds with correction": "yellow",
    "not settled at this budget": "cyan",
    "fails as printed": "red",
}


def run_verify(paper: str | None, only: str | None, quick: bool, as_json: bool, page: Path | None) -> bool:
    """Measures, prints, and says whether every verdict is the expected one.

    Example:
        >>> run_verify(None, "notes/4.1", quick=True, as_json=True, page=None)
        [
          {
            "kind": "verdict",
        ...
        True
    """
    console = Console(stderr=as_json)
    expected = len(claims.list_claims(paper, only))
    with Progress(*_COLUMNS, console=console, transient=True, disable=not console.is_terminal) as progress:
        job = progress.add_task("", total=expected)

        def observe(result: Result) -> None:
            progress.update(job, advance=1, description=result.claim.id)
            if not as_json:
                _show(result, progress.console)

        results = claims.verify(paper, only, quick, observe)
    if page is not None:
        page.write_text(markdown(results), encoding="utf-8")
    if as_json:
        print(json.dumps([result.to_dict() for result in results], indent=2, allow_nan=False))
    else:
        _show_end(results, console)
    return all(result.agrees for result in results)


_COLUMNS = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))


def _show(result: Result, console: Console) -> None:
    """Two lines or more: which claim, its verdict and place; below, what was measured."""
    head = Text(f"{result.claim.id:<34} ")
    head.append(f"{result.verdict:<26}", style=STYLES[result.verdict])
    if not result.agrees:
        head.append(f" (expected: {result.claim.expected})", style="bold red")
    head.append(f" {result.claim.place}")
    console.print(head)
    measured = _measured(result)
    if result.source is None:
        measured += f"  ({result.seconds:.1f} s)"
    console.print(Padding(Text(measured, style="dim"), (0, 0, 0, 4)))
    if result.verdict == "not settled at this budget":
        console.print(Padding(Text(f"why: {result.reason}", style="dim"), (0, 0, 0, 4)))


def _show_end(results: list[Result], console: Console) -> None:
    """Once for all claims: where stored numbers come from; then how many verdicts there are of each kind."""
    for source in _sources(results):
        console.print(Padding(Text(str(source), style="dim"), (0, 0, 0, 4)))
    console.print(summary(results), highlight=False)


def _sources(results: Iterable[Result]) -> list[StoredRun]:
    return sorted({result.source for result in results if result.source is not None}, key=lambda source: source.name)


def summary(results: Iterable[Result]) -> str:
    """One line: how many of each verdict, and how many are not the expected one.

    Example:
        >>> summary([])
        '0 claims: all verdicts as expected'
    """
    results = list(results)
    counts = {verdict: sum(result.verdict == verdict for result in results) for verdict in STYLES}
    parts = [f"{count} {agreeing(verdict, count)}" for verdict, count in counts.items() if count]
    wrong = [result.claim.id for result in results if not result.agrees]
    ending = "all verdicts as expected"
    if wrong:
        ending = f"not as expected: {', '.join(wrong)}"
    return f"{number_of(len(results), 'claim')}: {', '.join([*parts, ending])}"


def _measured(result: Result) -> str:
    """The numbers, and the tables whose stored runs they are from if they were not measured now."""
    parts = [f"{name} {shown(value)}" for name, value in result.numbers.items()]
    if result.source is not None:
        parts.append(f"from stored runs of {result.source.name}")
    return "; ".join(parts)


def markdown(results: list[Result]) -> str:
    """The page "What was measured": first what does not hold as printed, then what is open, then what holds.

    Example:
        >>> markdown([]).splitlines()[0]
        '# What was measured of the papers'
    """
    found = {verdict: [result for result in results if result.verdict == verdict] for verdict in STYLES}
    not_as_printed = found["holds with correction"] + found["fails as printed"]
    lines = ["# What was measured of the papers", "", _INTRODUCTION, "", f"{summary(results)}."]
    for key, paper in PAPERS.items():
        lines += _not_as_printed(paper, [result for result in not_as_printed if result.claim.paper == key])
    lines += _stored("What is not settled", found["not settled at this budget"], "Open because")
    lines += _stored("What holds on stored runs", found["holds on stored runs"], "Scale")
    lines += _table("What holds as printed", found["holds"])
    lines += _left_out()
    lines += _origins(_sources(results))
    lines += _map()
    return "\n".join(lines) + "\n"


_INTRODUCTION = (
    "A function measures each statement and gives a verdict. Claims about trained models read stored runs. A small run "
    "can support such a claim; only three runs with the paper's budget and settings can contradict it. Otherwise it "
    "is not settled. `remanence verify --page docs/papers.md` writes this page, and `remanence verify --only ID` "
    "measures one statement again."
)


def _not_as_printed(paper: Paper, results: list[Result]) -> list[str]:
    if not results:
        return []
    lines = ["", f"## {paper.name}: not as printed", "", f"{paper.reference}."]
    for result in sorted(results, key=lambda result: result.claim.id):
        lines += ["", *_entry(result)]
    return lines


def _entry(result: Result) -> list[str]:
    claim = result.claim
    lines = [f"### {claim.id}: {claim.place}", "", f"- **Printed:** {_plain(claim.printed)}."]
    if claim.corrected:
        lines.append(f"- **True:** {_plain(claim.corrected)}.")
    if claim.assumptions:
        lines.append(f"- **Assuming:** {_plain(claim.assumptions)}.")
    lines.append(f"- **Measured:** {_plain(claim.measures)}. {_plain(_measured(result))}.")
    return [*lines, f"- **Verdict:** {result.verdict}."]


def _table(title: str, results: list[Result]) -> list[str]:
    """A section with one row per claim."""
    if not results:
        return []
    lines = ["", f"## {title}", "", "| claim | place | statement | measured |", "|---|---|---|---|"]
    for result in results:
        row = (result.claim.id, result.claim.place, result.claim.printed, _measured(result))
        lines.append("| " + " | ".join(map(_table_text, row)) + " |")
    return lines


def _stored(title: str, results: list[Result], reason: str) -> list[str]:
    """A section with a line per claim about trained models; its numbers and its reason are long, so they are folded."""
    if not results:
        return []
    lines = ["", f"## {title}"]
    for result in results:
        claim = result.claim
        lines += ["", f"**{claim.id}**, {_plain(claim.place)}: {_plain(claim.printed)}."]
        lines += ["", "<details><summary>Numbers and scale</summary>", "", f"- Measured: {_plain(_measured(result))}."]
        lines += [f"- {reason}: {_plain(part)}." for part in result.reason.split("; ") if part]
        lines += ["", "</details>"]
    return lines


def _left_out() -> list[str]:
    lines = ["", "## What is printed and was not measured", ""]
    for key, left_out in claims.NOT_MEASURED.items():
        lines += [f"- **{PAPERS[key].name}**: {_plain(words)}." for words in left_out]
    return lines


def _origins(sources: list[StoredRun]) -> list[str]:
    if not sources:
        return []
    lines = ["", "## The stored results", ""]
    for source in sources:
        line = f"- **{source.name}**: `{source.command}`."
        if source.scaled_down:
            line += f" Scaled down: {_plain(source.scaled_down).removesuffix('.')}."
        lines.append(line)
    return lines


def _map() -> list[str]:
    """Every table and figure with the command that runs it, and how much of it is stored."""
    heads = ["command", "what it shows", "places", "with the paper's settings and budget", "with others"]
    lines = ["", "## What runs each table and figure", "", _MAP, "", "| " + " | ".join(heads) + " |", "|---" * 5 + "|"]
    for experiment in experiments.list_experiments():
        cells = experiments.stored_cells(experiment.id)
        whole = {_place(cell) for cell in cells if cell.is_as_printed}
        others = {_place(cell) for cell in cells} - whole
        places = len(list(experiment.places("paper", [0])))
        row = [f"`remanence reproduce {experiment.id} --scale paper`", _table_text(experiment.title)]
        lines.append("| " + " | ".join([*row, *map(str, (places, len(whole), len(others)))]) + " |")
    return lines


def _place(cell: experiments.StoredCell) -> tuple[object, ...]:
    return tuple(experiments.without_seed(cell.place).values())


_MAP = (
    "The last two columns count places, such as a model at a length, of which stored runs are finished. All other "
    "places were not run. [](tables/index.md) has the numbers."
)


def _plain(text: str) -> str:
    """Keeps Markdown from reading formulas as marks."""
    for mark in ("\\", "*", "_", "<", "$", "`", "[", "^"):
        text = text.replace(mark, f"\\{mark}")
    return text


def _table_text(text: str) -> str:
    return _plain(text).replace("|", "\\|")
