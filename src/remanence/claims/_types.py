"""What a claim is, what measuring it finds, and the verdict that follows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import ClassVar, Literal, Self, TypeAlias

from remanence import runs
from remanence.claims._rule import STORED_VERDICTS, Budget, Ruling, StoredVerdict, TrainedRun, judge
from remanence.runs import Settings, Values

Verdict: TypeAlias = Literal["holds", "holds with correction", "fails as printed"] | StoredVerdict
VERDICTS: tuple[Verdict, ...] = ("holds", "holds with correction", *STORED_VERDICTS)
Number: TypeAlias = float | int | str


@dataclass(frozen=True)
class StoredRun:
    """Where the numbers of a claim about experiments come from.

    Args:
        name: ids of the tables and figures.
        command: that runs them again.
        scaled_down: what is smaller than in the paper; empty if nothing is.

    Example:
        >>> print(StoredRun("copy", "remanence reproduce copy", "3 seeds"))
        stored runs of copy (remanence reproduce copy); scaled down: 3 seeds
    """

    name: str
    command: str
    scaled_down: str = ""

    def __str__(self) -> str:
        told = f"stored runs of {self.name} ({self.command})"
        if self.scaled_down:
            told += f"; scaled down: {self.scaled_down}"
        return told


@dataclass(frozen=True)
class Evidence:
    """What one measurement found.

    Args:
        printed: whether the statement holds as it is printed.
        corrected: whether the corrected statement holds; ``None`` if there is nothing to correct it to.
        numbers: what was measured, by name.
        source: the stored result that it was measured on; ``None`` if it was measured now.
        runs: the stored runs that it was measured on, if they were trained.
        needs: the budget of the paper's runs, where they do not say it; below it one that falls short contradicts
            nothing.
        favour: what was done for one side of a comparison and not for the other, in words.
        missing: what of the statement no stored run says anything about, in words.

    Example:
        >>> Evidence(printed=False, corrected=True, numbers={"gap": 0.5}).verdict
        'holds with correction'
    """

    printed: bool
    corrected: bool | None = None
    numbers: Mapping[str, Number] = field(default_factory=dict)
    source: StoredRun | None = None
    runs: tuple[TrainedRun, ...] = ()
    needs: Budget | None = None
    favour: str = ""
    missing: str = ""

    @property
    def verdict(self) -> Verdict:
        """What follows; of stored runs by the rule of :mod:`remanence.claims`: no correction helps them."""
        if self.source is not None:
            return self.judgement.verdict
        if self.printed:
            return "holds"
        if self.corrected:
            return "holds with correction"
        return "fails as printed"

    @property
    def judgement(self) -> Ruling:
        """What the stored runs say, and why."""
        return judge(self.printed, self.runs, self.needs, self.favour, self.missing)

    @property
    def reason(self) -> str:
        """Why stored runs settle it or leave it open, in words; empty if it was measured now."""
        if self.source is None:
            return ""
        return self.judgement.reason


def _read_from_a_file(quick: bool) -> Evidence:
    raise ValueError("a claim that was read from a file cannot be measured; `claims.verify(only=ID)` measures it anew")


@dataclass(frozen=True)
class Claim:
    """A statement, how it is measured, and the expected verdict.

    Args:
        id: its name, such as ``"miller2018/lemma1"``; the part before the slash is the paper's key.
        place: where it stands.
        printed: the statement as printed, in our words.
        corrected: the corrected statement; empty if none is needed.
        assumptions: under which it is checked.
        measures: what is measured.
        tolerance: the tolerance, and why.
        expected: the expected verdict; None where stored runs decide it.
        check: measures; ``True`` asks for a quick run. A claim that was read from a file has none.
        stored: ids of the tables and figures whose records it reads; empty if it measures by itself.
        cells: of printed tables that it speaks about, such as ``"Table 5, SABLSTM"``.

    Example:
        >>> from remanence import claims
        >>> claims.list_claims(only="notes/4.1")[0].expected
        'holds'
    """

    id: str
    place: str
    printed: str
    measures: str
    tolerance: str
    expected: Verdict | None
    check: Callable[[bool], Evidence] = _read_from_a_file
    corrected: str = ""
    assumptions: str = ""
    stored: str = ""
    cells: tuple[str, ...] = ()

    def to_dict(self) -> Values:
        """Everything but the function, ready for JSON."""
        described = {name: value for name, value in asdict(self).items() if name != "check"}
        return {**described, "cells": list(self.cells)}

    @property
    def paper(self) -> str:
        """The paper's key."""
        return self.id.partition("/")[0]

    @property
    def document(self) -> str:
        """The old name of :attr:`paper`."""
        warnings.warn("`Claim.document` is now `Claim.paper`", DeprecationWarning, stacklevel=2)
        return self.paper


@dataclass(frozen=True)
class Result(runs.Result):
    """A claim, measured.

    Example:
        >>> from remanence import claims
        >>> result = claims.verify(only="notes/4.1", quick=True)[0]
        >>> result.agrees, claims.Result.from_dict(result.to_dict()).verdict
        (True, 'holds')
    """

    kind: ClassVar[str] = "verdict"

    claim: Claim
    verdict: Verdict
    numbers: Mapping[str, Number]
    seconds: float
    source: StoredRun | None = None
    reason: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the measured verdict is the expected one; what stored runs decide is taken as it comes."""
        return self.claim.expected in (None, self.verdict)

    def to_dict(self) -> Values:
        """Kind, version, the claim's fields and the measurements; everything but the function."""
        measured = super().to_dict()
        claim = measured.pop("claim")
        derived = {"paper": self.claim.paper, "agrees": self.agrees}
        return {**runs.tag(self.kind, self.version), **claim, **measured, **derived}

    @classmethod
    def from_dict(cls, values: Settings) -> Self:
        """Makes the result that :meth:`to_dict` described; a claim out of a file is measured again by its id alone.

        Args:
            values: With ``kind`` and ``version``, and the fields of the claim and of the result.

        Raises:
            NewerVersionError: If a newer version of the package wrote it.
            ResultError: If it is no verdict, or a field is missing or of the wrong type.
        """
        return super().from_dict({**values, "claim": dict(values)})
