"""The section about claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from remanence import claims
from remanence._documents import PAPERS
from remanence._wording import agreeing, enumerated, number_of
from remanence.report._blocks import Block, Column, Entry, Facts, Finding, Section, Table
from remanence.report._numbers import ABSENT, plain

COLUMNS = tuple(Column(name, numeric=False) for name in ("claim", "printed", "true instead", "measured", "verdict"))
KINDS = {"holds with correction": "corrected", "fails as printed": "fails", "not settled at this budget": "open"}
"""Classes of the style sheet, by verdict."""


def claims_section(results: Sequence[claims.Result]) -> Section:
    """The claims with what is printed, what is true and what was measured."""
    present = {result.claim.paper for result in results}
    cited = [(key, paper.reference) for key, paper in PAPERS.items() if key in present]
    rows = [_row(result) for result in results]
    filters = [{"paper": result.claim.paper, "verdict": result.verdict} for result in results]
    blocks: list[Block] = []
    if cited:
        blocks.append(Facts(cited, long=True))
    blocks.append(Table(COLUMNS, rows, "Claims of the papers", "claims", filters))
    headline = f"{number_of(len(results), 'claim')} of the papers, measured"
    return Section("claims", "Claims", blocks, headline, [Finding(claim_findings(results))])


def _row(result: claims.Result) -> list[Entry]:
    claim = result.claim
    measured = "; ".join(f"{name} {_number(value)}" for name, value in result.numbers.items())
    verdict: str = result.verdict
    kind = KINDS.get(verdict, "holds")
    if not result.agrees:
        verdict = f"{verdict} (expected: {claim.expected})"
        kind = "unexpected"
    return [
        Entry(claim.id, note=claim.place),
        Entry(claim.printed),
        Entry(claim.corrected or ABSENT),
        Entry(measured or ABSENT, note=claim.measures),
        Entry(verdict, kind=f"verdict {kind}", note=result.reason),
    ]


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return plain(value, 4)


def claim_findings(results: Sequence[claims.Result]) -> str:
    """How many claims were measured, with what verdicts."""
    verdicts = Counter(result.verdict for result in results)
    wrong = [result.claim.id for result in results if not result.agrees]
    parts = enumerated([f"{amount} {agreeing(verdict, amount)}" for verdict, amount in verdicts.most_common()])
    verb = "were"
    if len(results) == 1:
        verb = "was"
    measured = f"{number_of(len(results), 'claim')} {verb} measured: {parts}."
    if wrong:
        return f"{measured} Not as expected: {enumerated(wrong)}."
    return f"{measured} Every verdict is the expected one."
