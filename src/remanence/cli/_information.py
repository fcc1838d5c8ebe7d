"""``remanence mi``: mutual information against distance in files of symbols, and the law that it follows."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from remanence._validate import one_of
from remanence.probes import InformationLaw, MutualInformation, logarithmic_lags, mutual_information, read_symbols
from remanence.probes._entropy import ESTIMATORS, Estimator
from remanence.probes._plots import lines
from remanence.probes._symbols import KINDS, Kind


def run_information(
    files: Sequence[str],
    kind: str,
    longest: int | None,
    count: int,
    estimator: str,
    threshold: float | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Measures one curve for each file and prints all.

    Example:
        >>> run_information(["-"], "words", None, 40, "plug-in", None, False, None)  # doctest: +SKIP
    """
    one_of("kind", kind, KINDS)
    one_of("estimator", estimator, ESTIMATORS)
    curves = {
        file: measure(file, cast(Kind, kind), longest, count, cast(Estimator, estimator))
        for file in dict.fromkeys(files)
    }
    if output is not None:
        draw(curves).write_html(output)
    if as_json:
        entries = json.dumps([_entry(file, curve, threshold) for file, curve in curves.items()])
        print(json.dumps(json.loads(entries, parse_constant=lambda _: None), indent=2))  # JSON knows no NaN
        return
    for file, curve in curves.items():
        _show(file, curve, threshold)


def measure(file: str, kind: Kind, longest: int | None, count: int, estimator: Estimator) -> MutualInformation:
    """The curve of one file; what it warns of is shown with the result, not apart."""
    symbols = read_symbols(file, kind)
    lags = logarithmic_lags(max(symbols.longest // 10, 1) if longest is None else longest, count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mutual_information(symbols, lags, estimator=estimator)


def draw(curves: dict[str, MutualInformation]) -> Any:
    """A single curve with its interval, floor and fit; several beside each other."""
    if len(curves) == 1:
        return next(iter(curves.values())).plot()
    shown = {file: (curve.lags[curve.above], curve.values[curve.above]) for file, curve in curves.items()}
    return lines(shown, title="mutual information", x="lag", y="nats", log_x=True, log_y=True, markers=True)


def _law(law: InformationLaw | None) -> dict[str, Any] | None:
    if law is None:
        return None
    derived = {"correlation_length": law.correlation_length, "exponent": law.exponent, "verdict": law.verdict}
    return dataclasses.asdict(law) | derived


def _entry(file: str, curve: MutualInformation, threshold: float | None) -> dict[str, Any]:
    regimes = [
        {"shortest": r.shortest, "longest": r.longest, "fit": _law(r.law)} for r in curve.regimes(threshold=threshold)
    ]
    return {"file": file, **curve.to_dict(), "fit": _law(curve.fit(threshold=threshold)), "regimes": regimes}


def _show(file: str, curve: MutualInformation, threshold: float | None) -> None:
    console = Console()
    pairs = f"{curve.pairs.max():,} pairs" if len(curve.pairs) else ""
    console.print(f"[bold]{escape(file)}[/]: {curve.sequences:,} sequences, {curve.alphabet:,} symbols, {pairs}")
    table = Table("lag", "nats", "95 %", "floor", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    rows = zip(curve.lags, curve.values, curve.low, curve.high, curve.floor, curve.above, strict=True)
    for lag, value, low, high, floor, above in rows:
        style = None if above else "dim"
        table.add_row(str(lag), f"{value:.4g}", f"{low:.4g} to {high:.4g}", f"{floor:.2g}", style=style)
    console.print(table)
    law = curve.fit(threshold=threshold)
    console.print(f"all lags above the floor: {law.verdict if law else 'too few to fit'}")
    regimes = curve.regimes(threshold=threshold)
    for regime in regimes if len(regimes) > 1 else ():
        console.print(f"lags {regime.shortest} to {regime.longest}: {regime.law.verdict}")
    for remark in curve.warnings:
        console.print(f"[yellow]note:[/] {remark}")
