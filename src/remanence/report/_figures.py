"""Pictures of a comparison, as plain dictionaries that plotly.js draws; colours of page and letters come later."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remanence.report._comparison import Cell, Comparison
from remanence.report._runs import Line, RunRecord
from remanence.report._words import as_number, shortened

# Okabe and Ito's colours, those that show on white and on black first; with each its own mark and, later, dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
DASHES = ("solid", "dash", "dot", "dashdot")
POINTS = 120
"""Points that a learning curve is thinned to."""
MAP = 160
"""Rows and columns that an attention map is pooled to."""

Trace = dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """One picture.

    Args:
        title: above it.
        says: what it shows, in a sentence: below it, and for those who cannot see it.
        data: traces.
        layout: axes.
        wide: whether it takes the whole width.

    Example:
        >>> Figure("a", "b", []).layout
        {}
    """

    title: str
    says: str
    data: list[Trace]
    layout: dict[str, Any] = field(default_factory=dict)
    wide: bool = False


@dataclass(frozen=True)
class Look:
    """How a model looks in every picture."""

    colour: str
    mark: str
    dash: str


def looks(labels: Sequence[str]) -> dict[str, Look]:
    """One look for each model, the same on the whole page.

    Example:
        >>> looks(["LSTM", "RelRNN"])["RelRNN"].colour
        '#D55E00'
    """
    return {
        label: Look(COLOURS[i % len(COLOURS)], MARKS[i % len(MARKS)], DASHES[i // len(COLOURS) % len(DASHES)])
        for i, label in enumerate(dict.fromkeys(labels))
    }


def inert(text: str) -> str:
    """A name that plotly, which reads some tags, shows as it is.

    Example:
        >>> inert("<b>x</b>")
        '&lt;b&gt;x&lt;/b&gt;'
    """
    return html.escape(shortened(text), quote=False)


def axis(title: str, kind: str = "linear", **more: Any) -> dict[str, Any]:
    """An axis with its name and unit.

    Example:
        >>> axis("T", "log")["type"]
        'log'
    """
    return {"title": {"text": title}, "type": kind, "automargin": True, **more}


def line(
    label: str, look: Look, x: Sequence[Any], y: Sequence[Any], *, name: str = "", hover: str = "", **more: Any
) -> Trace:
    """A curve of a model, joined to its switch by ``meta``."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(x),
        "y": [finite(value) for value in y],
        "name": inert(name or label),
        "meta": {"model": label},
        "line": {"color": look.colour, "dash": look.dash, "width": 2},
        "marker": {"color": look.colour, "symbol": look.mark, "size": 7},
        "hovertemplate": f"{hover or '%{x}, %{y:.4g}'}<extra>%{{fullData.name}}</extra>",
        **more,
    }


def finite(value: Any) -> float | None:
    """A number that can be drawn, with six digits; None leaves a gap.

    Example:
        >>> finite(float("inf")), finite(1 / 3), finite("x")
        (None, 0.333333, None)
    """
    number = as_number(value)
    return float(f"{number:.6g}") if number is not None and math.isfinite(number) else None


def thinned(lines: Sequence[Line], most: int = POINTS) -> list[Line]:
    """Evenly chosen lines, the first and the last among them.

    Example:
        >>> [line["update"] for line in thinned([{"update": n} for n in range(10)], 4)]
        [0, 3, 6, 9]
    """
    if len(lines) <= most:
        return list(lines)
    return [lines[round(i * (len(lines) - 1) / (most - 1))] for i in range(most)]


def comparison_figures(found: Comparison, styles: Mapping[str, Look]) -> dict[str, list[Figure]]:
    """All pictures of a comparison that there are numbers for, by the heading they stand under.

    Args:
        found: what was compared.
        styles: how each model looks.

    Example:
        >>> comparison_figures(Comparison("copy", {}, ()), {})
        {}
    """
    parts = {
        "Learning": learning(found, styles),
        "Other lengths": transfer(found, styles),
        "Gradient reach": reach(found, styles),
        "Cost": costs(found, styles),
        "Attention": attention(found),
    }
    return {heading: figures for heading, figures in parts.items() if figures}


def learning(found: Comparison, styles: Mapping[str, Look]) -> list[Figure]:
    """Accuracy and loss against updates, a thin curve for each seed."""
    figures = []
    for length in found.lengths:
        cells = [cell for cell in found.cells if cell.length == length]
        at = "" if length is None else f" at T = {length:,}"
        for metric in ("accuracy", "loss"):
            data = [trace for cell in cells for run in cell.runs if (trace := _curve(cell, run, metric, styles))]
            if any(value is not None for trace in data for value in trace["y"]):
                figures.append(_learning(metric, at, data))
    return figures


def _learning(metric: str, at: str, data: list[Trace]) -> Figure:
    share = {"tickformat": ".0%", "range": [-0.02, 1.04]} if metric == "accuracy" else {}
    y = axis(f"validation {metric}", "linear" if metric == "accuracy" else "log", **share)
    says = f"Validation {metric} against updates{at}; one curve per run, the seeds of a model in one colour."
    return Figure(f"{metric.capitalize()}{at}", says, data, {"xaxis": axis("updates"), "yaxis": y})


def _curve(cell: Cell, run: RunRecord, metric: str, styles: Mapping[str, Look]) -> Trace | None:
    lines = thinned(run.validation or run.training)
    if not lines:
        return None
    state = "" if run.status == "done" else f", {run.status}"
    return line(
        cell.label,
        styles[cell.label],
        [entry["update"] for entry in lines],
        [entry.get(metric) for entry in lines],
        name=f"{cell.label}, seed {run.seed}{state}",
        hover="update %{x:,}: " + ("%{y:.1%}" if metric == "accuracy" else "%{y:.4g}"),
        line={"color": styles[cell.label].colour, "dash": styles[cell.label].dash, "width": 1.5},
        opacity=0.75,
    )


def transfer(found: Comparison, styles: Mapping[str, Look]) -> list[Figure]:
    """Accuracy at other lengths, without more training, and what a document prints for them."""
    data = []
    for cell in (cell for cell in found.cells if cell.transfer):
        lengths = [point.length for point in cell.transfer]
        style, hover = styles[cell.label], "T = %{x:,}: %{y:.1%}"
        values = [point.accuracy for point in cell.transfer]
        data.append(line(cell.label, style, lengths, values, name=cell.name, hover=hover, mode="lines+markers"))
        printed = [(length, cell.printed(length)) for length in lengths]
        known = [(length, cell.accuracy) for length, cell in printed if cell is not None]
        if known:
            marks = {"color": style.colour, "symbol": f"{style.mark}-open", "size": 11}
            x, y = zip(*known, strict=True)
            data.append(
                line(cell.label, style, x, y, name=f"{cell.name}, printed", hover=hover, mode="markers", marker=marks)
            )
    if not data:
        return []
    says = "Accuracy of the best run by validation of each model at lengths that it was not trained at."
    if any(trace["mode"] == "markers" for trace in data):
        says += " Open marks: as printed in the document."
    layout = {"xaxis": axis("T of the evaluation", "log"), "yaxis": axis("accuracy", tickformat=".0%", range=[-0.02, 1.04])}
    return [Figure("Accuracy without more training", says, data, layout, wide=True)]


def reach(found: Comparison, styles: Mapping[str, Look]) -> list[Figure]:
    """Gradient against distance, for every measured model on one axis."""
    data, verdicts = [], []
    for cell in found.cells:
        result = cell.probe("gradient_reach")
        if result is None or not isinstance(result.get("log_norm"), list):
            continue
        far = thinned([{"d": d, "n": n} for d, n in zip(result.get("distance", []), result["log_norm"], strict=False)], 400)
        x, y = [point["d"] for point in far], [point["n"] for point in far]
        data.append(line(cell.label, styles[cell.label], x, y, name=cell.name, hover="%{x:,} steps back: %{y:.3g}"))
        verdicts.append(f"{cell.name}: {result.get('verdict', '')}")
    if not data:
        return []
    layout = {"xaxis": axis("steps before the end"), "yaxis": axis("ln |gradient|")}
    return [Figure("How far back the gradient of the loss reaches", ". ".join(verdicts) + ".", data, layout, wide=True)]


_COSTS = {
    "seconds": ("Time", "seconds, forward and backward", "%{y:.3s}s"),
    "peak_bytes": ("Memory", "bytes, at the peak of a training step", "%{y:.3s}B"),
    "state_bytes": ("State", "bytes carried from step to step", "%{y:.3s}B"),
}


def costs(found: Comparison, styles: Mapping[str, Look]) -> list[Figure]:
    """Time, memory and state against T for one sequence, with the fitted growth."""
    figures = []
    for measure, (title, unit, hover) in _COSTS.items():
        data, orders = [], []
        for cell in found.cells:
            result = cell.probe("cost")
            values = (result or {}).get(measure)
            if not result or not isinstance(values, list) or not any(as_number(value) for value in values):
                continue
            style, lengths = styles[cell.label], result.get("lengths", [])
            marks = line(cell.label, style, lengths, values, name=cell.name, hover="T = %{x:,}: " + hover, mode="markers")
            growth = result.get("growth", {}).get(measure, {})
            data += [marks, line(cell.label, style, lengths, _fitted(growth, lengths), name=f"{cell.name}, fit", opacity=0.6)]
            orders.append(f"{cell.name}: {growth.get('order', 'unknown')}")
        if data:
            says = f"{title} against T for one sequence; marks are measured, lines are a + b T + c T². {'; '.join(orders)}."
            layout = {"xaxis": axis("T, steps", "log"), "yaxis": axis(unit, "log", exponentformat="SI")}
            figures.append(Figure(title, says, data, layout))
    return figures


def _fitted(growth: Mapping[str, Any], lengths: Sequence[float]) -> list[float | None]:
    terms = [as_number(growth.get(name)) for name in ("constant", "linear", "quadratic")]
    if any(term is None for term in terms):
        return [None] * len(lengths)
    a, b, c = (term or 0.0 for term in terms)
    return [a + b * t + c * t * t for t in lengths]


def attention(found: Comparison) -> list[Figure]:
    """What each measured model attends to in one test sequence."""
    return [
        figure
        for cell in found.cells
        if (result := cell.probe("attention_map")) is not None
        for figure in attention_figures(cell.name, result)
    ]


def attention_figures(name: str, result: Mapping[str, Any]) -> list[Figure]:
    """Heat maps of a result of ``attention_map``; lines mark how long states were in the relevant set, where known."""
    figures = []
    for part, weights in zip(result.get("names", []), result.get("maps", []), strict=False):
        if not isinstance(weights, list) or not weights:
            continue
        pooled, block = pooled_map(weights)
        heat = {
            "type": "heatmap",
            "z": pooled,
            "dx": block,
            "dy": block,
            "coloraxis": "coloraxis",
            "hovertemplate": "reader %{y}, read %{x}: %{z:.3f}<extra></extra>",
        }
        recent = as_number(result.get("recent"))
        kept = [] if recent is None else _relevant_set(weights, int(recent))
        says = f"{part}: rows read, columns are read. {result.get('verdict', '')}."
        if kept:
            says += f" Lines mark the relevant set: how long each state older than the {int(recent or 0)} recent ones was kept."
        layout = {"xaxis": axis("step read"), "yaxis": axis("reader", autorange="reversed"), "coloraxis": {"cmin": 0}}
        figures.append(Figure(name, says, [heat, *kept], layout))
    return figures


def pooled_map(weights: Sequence[Sequence[float]], most: int = MAP) -> tuple[list[list[float | None]], int]:
    """A map of at most so many rows and columns, each the greatest of a block, and the block's side.

    Example:
        >>> pooled_map([[0, 1], [2, 3]], most=1)
        ([[3.0]], 2)
    """
    side = max(len(weights), *(len(row) for row in weights))
    block = -(-side // most)
    if block == 1:
        return [[_three(value) for value in row] for row in weights], 1
    rows = [weights[i : i + block] for i in range(0, len(weights), block)]
    return [
        [
            _three(max((as_number(v) or 0.0 for row in group for v in row[j : j + block]), default=0.0))
            for j in range(0, len(group[0]), block)
        ]
        for group in rows
    ], block


def _three(value: Any) -> float | None:
    number = as_number(value)
    return round(number, 3) if number is not None and math.isfinite(number) else None


def _relevant_set(weights: Sequence[Sequence[Any]], recent: int) -> list[Trace]:
    """A line along the readers for every state that was attended to when it was older than the recent buffer."""
    x: list[int | None] = []
    y: list[float | None] = []
    for state in range(len(weights[0])):
        readers = [t for t in range(state + recent, len(weights)) if (as_number(weights[t][state]) or 0.0) > 0]
        if readers:
            x += [state, state, None]
            y += [readers[0] - 0.5, readers[-1] + 0.5, None]
    if not x:
        return []
    look = {"color": "#D55E00", "width": 1.5}
    return [{"type": "scatter", "mode": "lines", "x": x, "y": y, "line": look, "opacity": 0.55, "hoverinfo": "skip"}]
