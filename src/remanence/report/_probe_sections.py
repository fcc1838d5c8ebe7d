"""Sections about probes and about curves of mutual information."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from remanence._wording import number_of
from remanence.figures import Figure, Look, overlay
from remanence.report._blocks import Block, Column, Entry, Facts, Figures, Finding, Heading, Section, Switches, Table
from remanence.report._numbers import ABSENT, count, only_if, unbroken
from remanence.report._reading import InformationCurve, ProbeFinding

CROWD = 6
"""Curves that can be drawn with all that belongs to them."""
NAMED_BY_PLACE = {"attention_map", "cost"}
"""Probes that have a figure for each part: their titles need the probe's name."""


def probes_section(found: Sequence[ProbeFinding]) -> Section:
    """Each probe with its verdict and pictures, by the file that it came from; the findings are of those that apply.

    Example:
        >>> from remanence.probes import NotMeasured
        >>> probes_section([ProbeFinding("mine", "stability", NotMeasured("stability", "failed"))]).headline
        '1 probe of mine'
    """
    places = list(dict.fromkeys(probe.place for probe in found))
    told = [probe for probe in found if not probe.result.verdict.startswith("does not apply")]
    if len(places) == 1:
        said = [Finding(unbroken(f"{probe.title}: {probe.result.verdict}.")) for probe in told]
        headline = f"{_amount(told)} of {places[0].removesuffix('.json')}"
    else:
        said = [Finding(unbroken(f"{probe.place}, {probe.title.lower()}: {probe.result.verdict}.")) for probe in told]
        headline = _amount(told)
    return Section("probes", "Probes", [block for place in places for block in _of_place(place, found)], headline, said)


def _amount(told: Sequence[ProbeFinding]) -> str:
    """How many probes there are, in words; the layout is none."""
    return number_of(sum(probe.kind != "layout" for probe in told), "probe")


def _of_place(place: str, found: Sequence[ProbeFinding]) -> Iterator[Block]:
    here = [probe for probe in found if probe.place == place]
    yield Heading(place)
    drawn: list[Figure] = []
    bare: list[tuple[str, str]] = []
    for probe in here:
        figures = [figure for figure in probe.result.figures() if not figure.is_empty]
        drawn += [_titled(probe, figure) for figure in figures]
        if not figures:
            bare.append((probe.title, unbroken(probe.result.verdict)))
    yield Figures(drawn)
    if bare:
        yield Facts(bare)


def _titled(probe: ProbeFinding, figure: Figure) -> Figure:
    title = probe.title + only_if(probe.kind in NAMED_BY_PLACE, f": {figure.title.lower()}")
    return replace(figure, title=title, caption=unbroken(f"{figure.caption.rstrip('.')}."), wide=False)


def information_section(curves: Sequence[InformationCurve], styles: Mapping[str, Look]) -> Section:
    """Curves of mutual information, one at least, on one plot, with what was fitted.

    Example:
        >>> from remanence.figures import looks
        >>> from remanence.probes import mutual_information
        >>> curve = InformationCurve("bits", mutual_information(b"0011" * 500, [2, 4]), None)
        >>> information_section([curve], looks(["bits"])).headline
        'Mutual information in 1 sequence'
    """
    said = [Finding(f"{found.place}: {_verdict(found)}.", styles[found.place].colour) for found in curves]
    amount = number_of(len({found.place for found in curves}), "sequence")
    blocks = list(curve_blocks(curves, styles))
    return Section("information", "Mutual information", blocks, f"Mutual information in {amount}", said)


def _verdict(found: InformationCurve) -> str:
    """How far the information reaches, and the law that it follows."""
    reach = _reach(found)
    words = "no mutual information above the noise"
    if reach is not None:
        words = f"above the noise up to lag {count(reach)}"
    if found.law is not None:
        words += f"; {found.law.verdict}"
    return words


def _reach(found: InformationCurve) -> int | None:
    """The greatest lag above the floor."""
    return int(found.curve.lags[found.curve.above].max(initial=0)) or None  # no lag is 0


def curve_blocks(curves: Sequence[InformationCurve], styles: Mapping[str, Look]) -> Iterator[Block]:
    """Switches, picture and table of curves, of one at least."""
    yield Switches({found.place: styles[found.place] for found in curves})
    yield Figures([_figure(curves, styles)])
    yield Table(_COLUMNS, [_row(found, styles) for found in curves], "Mutual-information curves", "runs")


def _figure(curves: Sequence[InformationCurve], styles: Mapping[str, Look]) -> Figure:
    drawn = {found.place: found.curve.figures(found.law)[0] for found in curves}
    words = "Marks: estimates; bands: 95 % intervals; dotted: what pairs without any dependence reach; dashed: fits."
    if len(drawn) > CROWD:
        drawn = {name: replace(figure, parts=figure.parts[:1]) for name, figure in drawn.items()}
        words = "Marks: estimates. For so many curves intervals and floors are left out; the fits are in the table."
    told = [f"{found.place}: {_verdict(found)}" for found in curves]
    whole = overlay("Mutual information against distance", drawn, styles)
    return replace(whole, caption="\n".join([*told, words]))


_COLUMNS = (
    Column("curve", numeric=False),
    Column("symbols"),
    Column("sequences"),
    Column("pairs", "at most"),
    Column("above the noise", "up to lag"),
    Column("law", numeric=False),
    Column("remarks", numeric=False),
)


def _row(found: InformationCurve, styles: Mapping[str, Look]) -> list[Entry]:
    curve = found.curve
    pairs = max(curve.pairs.tolist(), default=0) or None
    alphabet = curve.alphabet or None
    sequences = curve.sequences or None
    reach = _reach(found)
    law = "none"
    if found.law is not None:
        law = found.law.verdict
    return [
        Entry(found.place, colour=styles[found.place].colour),
        Entry(count(alphabet), alphabet),
        Entry(count(sequences), sequences),
        Entry(count(pairs), pairs),
        Entry(count(reach), reach),
        Entry(law),
        Entry("; ".join(curve.warnings) or ABSENT),
    ]
