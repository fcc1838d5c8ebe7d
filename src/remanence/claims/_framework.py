"""What a claim is: a statement of a paper as a function that measures, and the verdict that follows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from remanence import experiments
from remanence._documents import PAPERS, paper_key
from remanence._validate import one_of

Verdict: TypeAlias = Literal["holds", "holds with correction", "fails as printed", "holds on stored runs"]
VERDICTS: tuple[Verdict, ...] = ("holds", "holds with correction", "fails as printed", "holds on stored runs")
Number: TypeAlias = float | int | str


@dataclass(frozen=True)
class StoredRun:
    """Where the numbers of a claim about experiments come from.

    Args:
        name: of the stored result.
        command: that runs it again.
        scaled_down: what is smaller than in the paper; empty if nothing is.

    Example:
        >>> print(StoredRun("copy", "remanence reproduce copy", "3 seeds"))
        stored result 'copy' (remanence reproduce copy); scaled down: 3 seeds
    """

    name: str
    command: str
    scaled_down: str = ""

    def __str__(self) -> str:
        smaller = f"; scaled down: {self.scaled_down}" if self.scaled_down else ""
        return f"stored result {self.name!r} ({self.command}){smaller}"


@dataclass(frozen=True)
class Evidence:
    """What one measurement found.

    Args:
        printed: whether the statement holds as it is printed.
        corrected: whether the corrected statement holds; ``None`` if there is nothing to correct it to.
        numbers: what was measured, by name.
        source: the stored result that it was measured on; ``None`` if it was measured now.

    Example:
        >>> Evidence(printed=False, corrected=True, numbers={"gap": 0.5}).verdict
        'holds with correction'
    """

    printed: bool
    corrected: bool | None = None
    numbers: Mapping[str, Number] = field(default_factory=dict)
    source: StoredRun | None = None

    @property
    def verdict(self) -> Verdict:
        """What follows; stored runs either bear out what is printed or they do not: no correction helps."""
        if self.source is not None:
            return "holds on stored runs" if self.printed else "fails as printed"
        if self.printed:
            return "holds"
        return "holds with correction" if self.corrected else "fails as printed"


@dataclass(frozen=True)
class Claim:
    """A statement, how it is measured, and the verdict that we expect.

    Args:
        id: its name, such as ``"miller2018/lemma1"``; the part before the slash is the paper's key.
        place: where it stands.
        printed: the statement as printed, in our words.
        corrected: what is true instead; empty if nothing needs correction.
        assumptions: under which it is checked.
        measures: what is measured.
        tolerance: how far off is still right, and why.
        expected: the verdict that we expect.
        check: measures; ``True`` asks for a quick run.
        stored: the stored result that it reads; empty if it measures by itself.

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
    expected: Verdict
    check: Callable[[bool], Evidence]
    corrected: str = ""
    assumptions: str = ""
    stored: str = ""

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
class Result:
    """A claim, measured.

    Example:
        >>> from remanence import claims
        >>> claims.verify(only="notes/4.1", quick=True)[0].agrees
        True
    """

    claim: Claim
    verdict: Verdict
    numbers: Mapping[str, Number]
    seconds: float
    source: StoredRun | None = None

    @property
    def agrees(self) -> bool:
        """Whether the measured verdict is the expected one."""
        return self.verdict == self.claim.expected

    def to_dict(self) -> dict[str, Any]:
        """Everything but the function, ready for JSON."""
        fields = {name: value for name, value in asdict(self.claim).items() if name != "check"}
        measured = {"verdict": self.verdict, "numbers": dict(self.numbers), "seconds": self.seconds}
        source = None if self.source is None else asdict(self.source)
        return {**fields, "paper": self.claim.paper, **measured, "source": source, "agrees": self.agrees}


_REGISTRY: dict[str, Claim] = {}


Check: TypeAlias = Callable[[bool], Evidence]
Reading: TypeAlias = Callable[[Mapping[str, Any]], Evidence]


def claim(
    id: str,
    *,
    place: str,
    printed: str,
    measures: str,
    tolerance: str,
    expected: Verdict = "holds",
    corrected: str = "",
    assumptions: str = "",
    stored: str = "",
) -> Callable[[Check], Check]:
    """Registers the decorated function as the check of a claim; the fields are those of :class:`Claim`."""
    one_of("expected", expected, VERDICTS)
    if id in _REGISTRY:
        raise ValueError(f"`id` must be new; got {id!r}, which is taken")

    def register(check: Check) -> Check:
        _REGISTRY[id] = Claim(id, place, printed, measures, tolerance, expected, check, corrected, assumptions, stored)
        return check

    return register


def stored_claim(
    id: str, *, stored: str, expected: Verdict = "holds on stored runs", **fields: str
) -> Callable[[Reading], Reading]:
    """Registers a claim about experiments: the decorated function gets the results of the stored result ``stored``.

    It measures from them alone, and its verdict is ``"holds on stored runs"`` or ``"fails as printed"``.
    The other fields are those of :class:`Claim`.
    """
    one_of("expected", expected, ("holds on stored runs", "fails as printed"))

    def register(reading: Reading) -> Reading:
        def check(quick: bool) -> Evidence:
            record = _load(id, stored)
            source = StoredRun(stored, record["command"], record["scaled_down"])
            return replace(reading(record["results"]), source=source)

        claim(id, expected=expected, stored=stored, **fields)(check)
        return reading

    return register


def _load(id: str, stored: str) -> dict[str, Any]:
    try:
        return experiments.load_stored(stored)
    except ValueError as error:
        raise ValueError(f"claim {id} reads the stored result {stored!r}, which cannot be read: {error}") from error


def list_claims(paper: str | None = None, only: str | None = None, *, document: str | None = None) -> list[Claim]:
    """The claims, paper by paper, in order of their ids.

    Args:
        paper: ``"kerg2020"``, ``"ke2017"``, ``"miller2018"``, ``"shen2019"`` or ``"notes"``, or the number under which
            it went before, ``"000"`` to ``"004"``; ``None`` for all.
        only: one id; an old one such as ``"002.lemma1"`` is understood.
        document: the old name of ``paper``.

    Example:
        >>> from remanence import claims
        >>> {claim.paper for claim in claims.list_claims("miller2018")}
        {'miller2018'}
        >>> claims.list_claims(only="002.lemma1")[0].id
        'miller2018/lemma1'
    """
    if document is not None:
        warnings.warn("`document` is now called `paper`", DeprecationWarning, stacklevel=2)
        paper = document
    chosen = list(_REGISTRY.values())
    if paper is not None:
        key = paper_key(paper)
        chosen = [claim for claim in chosen if claim.paper == key]
    if only is not None:
        id = one_of("only", present_id(only), sorted(_REGISTRY))
        chosen = [claim for claim in chosen if claim.id == id]
    order = list(PAPERS)
    return sorted(chosen, key=lambda claim: (order.index(claim.paper), claim.id))


def present_id(id: str) -> str:
    """The id that a claim has today; ids of before began with the paper's number and a dot.

    Example:
        >>> present_id("000.table2"), present_id("kerg2020/table2")
        ('kerg2020/table2', 'kerg2020/table2')
    """
    number, dot, rest = id.partition(".")
    known = any(paper.number == number for paper in PAPERS.values())
    if not (dot and known):
        return id
    return f"{paper_key(number)}/{rest}"


def measure(claim: Claim, quick: bool = False) -> Result:
    """Measures one claim, always from the same random numbers, and leaves the generator as it was."""
    started = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        evidence = claim.check(quick)
    numbers = {name: float(n) if isinstance(n, np.floating) else n for name, n in evidence.numbers.items()}
    return Result(claim, evidence.verdict, numbers, time.perf_counter() - started, evidence.source)


def verify(
    paper: str | None = None,
    only: str | None = None,
    quick: bool = False,
    observer: Callable[[Result], None] | None = None,
    *,
    document: str | None = None,
) -> list[Result]:
    """Measures the claims.

    Args:
        paper: as in :func:`list_claims`.
        only: as in :func:`list_claims`.
        quick: smaller instances, under a minute for everything.
        observer: gets every result as soon as it is there.
        document: the old name of ``paper``.

    Raises:
        ValueError: a stored result that a claim reads is not there; before anything is measured.

    Example:
        >>> from remanence import claims
        >>> [result.verdict for result in claims.verify(only="notes/2.1", quick=True)]
        ['holds']
    """
    if document is not None:
        warnings.warn("`document` is now called `paper`", DeprecationWarning, stacklevel=2)
        paper = document
    chosen = list_claims(paper, only)
    for claim in chosen:
        if claim.stored:
            _load(claim.id, claim.stored)
    results = []
    for claim in chosen:
        results.append(measure(claim, quick))
        if observer is not None:
            observer(results[-1])
    return results
