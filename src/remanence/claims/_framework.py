"""The register of claims: how one enters it, how they are listed, and how they are measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from remanence._documents import PAPERS, paper_key
from remanence._validate import one_of
from remanence.claims._cells import Cells
from remanence.claims._types import VERDICTS, Claim, Evidence, Number, Result, Verdict

_REGISTRY: dict[str, Claim] = {}

Size = TypeVar("Size")
Check: TypeAlias = Callable[[bool], Evidence]
Reading: TypeAlias = Callable[[Cells], Evidence]


def amount(quick: bool, few: Size, many: Size) -> Size:
    """How much a check computes: little if it is to be quick, and all that the claim asks for otherwise."""
    if quick:
        return few
    return many


def gap_of(have: Tensor, want: Tensor) -> float:
    """The greatest difference between two tensors."""
    return float((have - want).detach().abs().max())


def relative_gap(have: Tensor, want: Tensor) -> float:
    """The greatest difference between two tensors, relative to the greatest entry of the second."""
    return gap_of(have, want) / float(want.abs().max())


def claim(
    id: str,
    *,
    place: str,
    printed: str,
    measures: str,
    tolerance: str,
    expected: Verdict | None = None,
    corrected: str = "",
    assumptions: str = "",
) -> Callable[[Check], Check]:
    """Registers the decorated function as the check of a claim; the fields are those of :class:`Claim`.

    By default a claim is expected to hold, or to hold with its correction where one is given.
    """
    if expected is None and corrected:
        expected = "holds with correction"
    elif expected is None:
        expected = "holds"
    one_of("expected", expected, VERDICTS)
    described = Claim(id, place, printed, measures, tolerance, expected, corrected=corrected, assumptions=assumptions)
    _refuse_a_taken_id(id)

    def register(check: Check) -> Check:
        _REGISTRY[id] = replace(described, check=check)
        return check

    return register


def _refuse_a_taken_id(id: str) -> None:
    if id in _REGISTRY:
        raise ValueError(f"`id` must be new; got {id!r}, which is taken")


def stored_claim(id: str, *, stored: str, cells: tuple[str, ...] = (), **fields: str) -> Callable[[Reading], Reading]:
    """Registers a claim about experiments: the decorated function gets the stored cells of the tables ``stored``.

    It measures from them alone. Its verdict is one of the rule's (:func:`judge`): no verdict is expected, as records
    that come later may turn it. The other fields are those of :class:`Claim`.
    """
    _refuse_a_taken_id(id)

    def register(reading: Reading) -> Reading:
        def check(quick: bool) -> Evidence:
            found = _read(id, stored)
            return replace(reading(found), source=found.source)

        _REGISTRY[id] = Claim(id, expected=None, check=check, stored=stored, cells=cells, **fields)
        return reading

    return register


def _read(id: str, stored: str) -> Cells:
    try:
        return Cells(*stored.split(", "))
    except ValueError as error:
        raise ValueError(f"claim {id} reads the stored runs of {stored}, which cannot be read: {error}") from error


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


def _plain(number: Number) -> Number:
    """A number as Python has it, so that it is shown and stored as such."""
    if isinstance(number, np.floating):
        return float(number)
    return number


def measure(claim: Claim, quick: bool = False) -> Result:
    """Measures one claim, always from the same random numbers, and leaves the generator as it was."""
    started = time.perf_counter()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        evidence = claim.check(quick)
    numbers = {name: _plain(number) for name, number in evidence.numbers.items()}
    seconds = time.perf_counter() - started
    return Result(claim, evidence.verdict, numbers, seconds, evidence.source, evidence.reason)


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
        ValueError: nothing is stored of a table that a claim reads; before anything is measured.

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
            _read(claim.id, claim.stored)
    results = []
    for claim in chosen:
        results.append(measure(claim, quick))
        if observer is not None:
            observer(results[-1])
    return results
