"""The section about claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from remanence._documents import PAPERS, paper_key
from remanence.report._blocks import Block, Column, Entry, Facts, Finding, Section, Table
from remanence.report._numbers import ABSENT, as_number, enumerated, number_of, plain

COLUMNS = tuple(Column(name, numeric=False) for name in ("claim", "printed", "true instead", "measured", "verdict"))
KINDS = {"holds with correction": "corrected", "fails as printed": "fails", "not settled at this budget": "open"}
"""Classes of the style sheet, by verdict."""


def claims_section(claims: Sequence[Mapping[str, Any]]) -> Section:
    """The claims with what is printed, what is true and what was measured.

    Args:
        claims: as ``remanence verify --json`` gives them.

    Example:
        >>> claims_section([{"id": "notes/4.1", "paper": "notes", "verdict": "holds", "agrees": True}]).headline
        '1 claim of the papers, measured'
    """
    present = {paper_of(claim) for claim in claims}
    cited = [(key, paper.reference) for key, paper in PAPERS.items() if key in present]
    rows = [_row(claim) for claim in claims]
    filters = [{"paper": paper_of(claim), "verdict": str(claim.get("verdict", ""))} for claim in claims]
    blocks: list[Block] = [Facts(cited, long=True)] if cited else []
    blocks.append(Table(COLUMNS, rows, "Claims of the papers", "claims", filters))
    headline = f"{number_of(len(claims), 'claim')} of the papers, measured"
    return Section("claims", "Claims", blocks, headline, [Finding(claim_findings(claims))])


def paper_of(claim: Mapping[str, Any]) -> str:
    """The key of the paper that a claim is from; verdicts of before have its number, as ``document``.

    Example:
        >>> paper_of({"paper": "kerg2020"}), paper_of({"document": "000"})
        ('kerg2020', 'kerg2020')
    """
    named = str(claim.get("paper") or claim.get("document") or "")
    try:
        return paper_key(named)
    except ValueError:
        return named


def _row(claim: Mapping[str, Any]) -> list[Entry]:
    verdict = str(claim.get("verdict", ""))
    agrees = claim.get("agrees") is True
    numbers = claim.get("numbers")
    measured = ""
    if isinstance(numbers, Mapping):
        measured = "; ".join(f"{name} {_number(value)}" for name, value in numbers.items())
    return [
        Entry(str(claim.get("id", "")), note=str(claim.get("place", ""))),
        Entry(str(claim.get("printed", ""))),
        Entry(str(claim.get("corrected") or ABSENT)),
        Entry(measured or ABSENT, note=str(claim.get("measures", ""))),
        Entry(
            verdict if agrees else f"{verdict} (expected: {claim.get('expected')})",
            kind=f"verdict {KINDS.get(verdict, 'holds')}" if agrees else "verdict unexpected",
            note=str(claim.get("reason") or ""),
        ),
    ]


def _number(value: Any) -> str:
    number = as_number(value)
    return str(value) if number is None else plain(number, 4)


def claim_findings(claims: Sequence[Mapping[str, Any]]) -> str:
    """How many claims were measured, with what verdicts.

    Example:
        >>> claim_findings([{"verdict": "holds", "agrees": True}])
        '1 claim was measured: 1 holds. Every verdict is the expected one.'
    """
    verdicts = Counter(str(claim.get("verdict")) for claim in claims)
    wrong = [str(claim.get("id")) for claim in claims if claim.get("agrees") is not True]
    parts = enumerated([f"{amount} {_plural(verdict, amount)}" for verdict, amount in verdicts.most_common()])
    ending = f"Not as expected: {enumerated(wrong)}." if wrong else "Every verdict is the expected one."
    return f"{number_of(len(claims), 'claim')} {'was' if len(claims) == 1 else 'were'} measured: {parts}. {ending}"


def _plural(verdict: str, amount: int) -> str:
    """The verdict of several claims: "3 hold"."""
    verb, _, rest = verdict.partition(" ")
    if amount != 1 and verb in ("holds", "fails"):
        return f"{verb[:-1]} {rest}".strip()
    return verdict
