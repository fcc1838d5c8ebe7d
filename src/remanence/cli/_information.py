"""``remanence mi``: mutual information against distance in files and in what models say, and the law it follows."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from remanence import probes
from remanence._validate import message, one_of
from remanence._wording import number_of
from remanence.cli._information_sources import Sampling, Source, file_sources, language_model_source
from remanence.figures import looks
from remanence.probes import Estimator, InformationLaw, MutualInformation, SymbolKind
from remanence.report import Figures, InformationCurve, Page, Section, information_section
from remanence.runs import Values


@dataclasses.dataclass(frozen=True)
class CurveOptions:
    """How to measure and fit."""

    kind: str = "auto"
    longest: int | None = None
    count: int = 40
    estimator: str = "grassberger"
    threshold: float | None = None

    def __post_init__(self) -> None:
        one_of("kind", self.kind, get_args(SymbolKind))
        one_of("estimator", self.estimator, get_args(Estimator))


def run_information(
    targets: Sequence[str],
    language_models: Sequence[str],
    asked: CurveOptions,
    sampling: Sampling,
    *,
    download: bool = False,
    as_json: bool = False,
    output: Path | None = None,
) -> None:
    """Measures one curve for each file and each language model, and three for each run, and prints all."""
    if not targets and not language_models:
        raise ValueError(message("files", "be files, runs, or come with --hf", "nothing"))
    sources = [
        source
        for name in dict.fromkeys(targets)
        for source in file_sources(name, cast(SymbolKind, asked.kind), sampling)
    ]
    sources += [language_model_source(name, sampling, download) for name in dict.fromkeys(language_models)]
    found = [(source, measure(source, asked)) for source in sources]
    if output is not None:
        page(found, asked.threshold).write(output)
    if as_json:
        entries = json.dumps([_entry(source, curve, asked.threshold) for source, curve in found])
        print(json.dumps(json.loads(entries, parse_constant=lambda _: None), indent=2))  # JSON knows no NaN
        return
    for source, curve in found:
        _show(source, curve, asked.threshold)


def measure(source: Source, asked: CurveOptions) -> MutualInformation:
    """The curve of one source; what it warns of is shown with the result, not apart."""
    longest = source.longest
    if asked.longest is not None:
        longest = asked.longest
    lags = probes.logarithmic_lags(longest, asked.count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return probes.mutual_information(source.symbols, lags, estimator=cast(Estimator, asked.estimator))


def page(found: Sequence[tuple[Source, MutualInformation]], threshold: float | None = None) -> Page:
    """The report's page: all curves, and where a run is among them, its stretches and its topics."""
    curves = [InformationCurve(source.name, curve, curve.fit(threshold=threshold)) for source, curve in found]
    sections = [information_section(curves, looks([curve.place for curve in curves]))]
    for number, (source, _) in enumerate(found, start=1):
        parts = [part for part in (source.uniformity, source.quality) if part is not None]
        figures = [figure for part in parts for figure in part.figures()]
        if figures:
            sections.append(Section(f"source-{number}", source.name, [Figures(figures)]))
    return Page(sections)


def _law(law: InformationLaw | None) -> Values | None:
    if law is None:
        return None
    derived = {"correlation_length": law.correlation_length, "exponent": law.exponent, "verdict": law.verdict}
    return dataclasses.asdict(law) | derived


def _entry(source: Source, curve: MutualInformation, threshold: float | None) -> Values:
    regimes = [
        {"shortest": r.shortest, "longest": r.longest, "fit": _law(r.law)} for r in curve.regimes(threshold=threshold)
    ]
    extra = {"uniformity": source.uniformity, "quality": source.quality}
    shown = {name: part.to_dict() for name, part in extra.items() if part is not None}
    fit = _law(curve.fit(threshold=threshold))
    return {"file": source.name, **curve.to_dict(), "fit": fit, "regimes": regimes, **shown}


def _show(source: Source, curve: MutualInformation, threshold: float | None) -> None:
    console = Console()
    pairs = curve.pairs.max(initial=0)
    counts = f"{number_of(curve.sequences, 'sequence')}, {curve.alphabet:,} symbols, {pairs:,} pairs"
    console.print(f"[bold]{escape(source.name)}[/]: {counts}")
    table = Table("lag", "nats", "95 %", "floor", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    rows = zip(curve.lags, curve.values, curve.low, curve.high, curve.floor, curve.above, strict=True)
    for lag, value, low, high, floor, above in rows:
        style = "dim"
        if above:
            style = None
        table.add_row(str(lag), f"{value:.4g}", f"{low:.4g} to {high:.4g}", f"{floor:.2g}", style=style)
    console.print(table)
    law = curve.fit(threshold=threshold)
    if law is None:
        console.print("no law: too few lags are above the floor")
    else:
        console.print(f"all lags above the floor: {law.verdict}")
    regimes = curve.regimes(threshold=threshold)
    if len(regimes) > 1:
        for regime in regimes:
            console.print(f"lags {regime.shortest} to {regime.longest}: {regime.law.verdict}")
    if source.uniformity is not None:
        console.print(f"compared with the training data: {source.uniformity.verdict}")
    if source.quality is not None:
        console.print(f"text: {source.quality.verdict}")
    for remark in curve.warnings:
        console.print(f"[yellow]note:[/] {remark}")
