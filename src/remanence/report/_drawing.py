"""Pictures as plain dictionaries that plotly.js draws: curves, axes, how a model looks. The script adds the theme."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from remanence.report._runs import Line
from remanence.report._words import as_number, shortened

# Okabe and Ito's colours, those that show on white and on black first; with each its own mark and, later, dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
DASHES = ("solid", "dash", "dot", "dashdot")
POINTS = 120
"""Points that a learning curve is thinned to."""

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
    return {"title": {"text": title}, "type": kind, **more}


def log_axis(title: str, values: Sequence[Any], **more: Any) -> dict[str, Any]:
    """A logarithmic axis; over more than a decade and a half it names powers of ten alone.

    Example:
        >>> log_axis("T", [1, 1000])["dtick"]
        1
    """
    drawn = [value for value in map(as_number, values) if value is not None and value > 0 and math.isfinite(value)]
    wide = bool(drawn) and max(drawn) / min(drawn) > 30
    return axis(title, "log", exponentformat="SI", dtick=1 if wide else "D2", **more)


def length_axis(title: str, lengths: Sequence[Any]) -> dict[str, Any]:
    """A logarithmic axis that names the lengths that were measured.

    Example:
        >>> length_axis("T", [400, 100])["tickvals"]
        [100.0, 400.0]
    """
    ticks = sorted({length for length in map(as_number, lengths) if length is not None and length > 0})
    return axis(title, "log", tickvals=ticks, ticktext=[f"{tick:,.0f}" for tick in ticks])


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
