"""Figures as SVG, for documents; no plotting library is needed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard
from xml.sax.saxutils import escape

import numpy as np

from ._figure import Axis, Band, Bars, Curve, Figure, HeatMap, Part, Value, Values, plain
from ._looks import COLOURS, Look
from ._ticks import finite_numbers, linear_ticks, log_ticks, tick_label

LEFT = 70
TOP = 24
BOTTOM = 48
LINE = 18
"""Pixels from one line of a legend to the next."""
SAMPLE = 34
"""Pixels that the stroke before a name in a legend takes."""
LETTER = 6.6
"""Pixels of a letter, on the average; names in a legend get room by it."""
CELL = 6
"""Pixels of a cell of a heat map."""
SHADES = 8
"""Of a heat map."""
CROWD = 20
"""Points of a curve from which on they are not marked one by one."""
DASHES = {"solid": "", "dash": ' stroke-dasharray="6 4"', "dot": ' stroke-dasharray="2 3"'}
DASHES["dashdot"] = ' stroke-dasharray="6 3 2 3"'


def to_svg(*figures: Figure) -> str:
    """The text of an SVG file: heat maps side by side, others two in a row, small enough to be read on a page.

    A single figure has its legend to the right, several have them below; one legend if it is the same for all.

    Example:
        >>> to_svg(Figure("a", "b", (Curve("c", [0, 1], [1.0, 2.0]),))).count("<polyline")
        1
    """
    if all(map(_is_map, figures)):
        return _document(_in_rows([_map(figure) for figure in figures], len(figures)))
    if len(figures) == 1:
        return _document(_alone(figures[0]))
    drawn = [figure.with_looks() for figure in figures]
    if len({_legend_of(figure) for figure in drawn}) > 1:
        return _document(_in_rows([_with_legend_below(figure) for figure in drawn]))
    panels = _in_rows([_panel(figure, SMALL, titled=True) for figure in drawn])
    return _document(_stacked(panels, _legend(_named(drawn[0]), panels.width)))


@dataclass(frozen=True)
class _Panel:
    """One drawn figure."""

    drawn: str
    width: int
    height: int


@dataclass(frozen=True)
class _Size:
    """Right end of the plot, and height of the panel."""

    right: int
    height: int


WIDE = _Size(660, 380)
BESIDE_LEGEND = _Size(490, 380)
SMALL = _Size(350, 270)


def _in_rows(panels: Sequence[_Panel], per_row: int = 2) -> _Panel:
    """Several panels as one."""
    rows = [panels[start : start + per_row] for start in range(0, len(panels), per_row)]
    pieces: list[str] = []
    top = 0
    for row in rows:
        left = 0
        for panel in row:
            pieces.append(_placed(panel, left, top))
            left += panel.width
        top += max(panel.height for panel in row)
    return _Panel("\n".join(pieces), max(sum(panel.width for panel in row) for row in rows), top)


def _stacked(*panels: _Panel) -> _Panel:
    """One below the other."""
    return _in_rows(panels, per_row=1)


def _placed(panel: _Panel, left: int, top: int) -> str:
    if left == top == 0:
        return panel.drawn
    return f'<svg x="{left}" y="{top}" width="{panel.width}" height="{panel.height}">{panel.drawn}</svg>'


def _is_map(figure: Figure) -> bool:
    return any(isinstance(part, HeatMap) for part in figure.parts)


def _named(figure: Figure) -> list[Curve]:
    """The curves of a figure that has its looks."""
    return [part for part in figure.parts if isinstance(part, Curve)]


def _legend_of(figure: Figure) -> tuple[tuple[str, Look | None], ...]:
    return tuple((curve.name, curve.look) for curve in _named(figure))


def _alone(figure: Figure) -> _Panel:
    """With the legend to the right."""
    drawn = figure.with_looks()
    named = _named(drawn)
    if len(named) < 2:
        return _panel(drawn, WIDE)
    plot = _panel(drawn, BESIDE_LEGEND)
    legend = _legend(named, _width_of(named))
    lowered = _Panel(_placed(legend, 0, TOP), legend.width, legend.height + TOP)
    return _in_rows([plot, lowered])


def _with_legend_below(figure: Figure) -> _Panel:
    plot = _panel(figure, SMALL, titled=True)
    return _stacked(plot, _legend(_named(figure), plot.width))


def _panel(figure: Figure, size: _Size, titled: bool = False) -> _Panel:
    """Axes and what they show, without a legend."""
    if _is_map(figure):
        return _map(figure)
    across = _ruler(figure.x, _places(figure.parts), LEFT, size.right)
    up = _ruler(figure.y, _heights(figure.parts), size.height - BOTTOM, TOP)
    pieces = [*_frame(across, up)]
    for part in figure.parts:
        pieces += _part(part, across, up)
    if titled:
        pieces.append(_text((LEFT + size.right) / 2, TOP - 8, figure.title, "middle"))
    return _Panel("\n".join(pieces), size.right + 20, size.height)


@dataclass(frozen=True)
class _Ruler:
    """Maps values of an axis onto pixels."""

    axis: Axis
    low: float
    high: float
    first: float
    last: float
    ticks: Sequence[float]
    labels: Sequence[str]

    def scaled(self, value: float) -> float:
        if self.axis.scale == "log":
            return math.log10(value)
        return value

    def at(self, value: float) -> float:
        share = (self.scaled(value) - self.scaled(self.low)) / (self.scaled(self.high) - self.scaled(self.low))
        return round(self.first + share * (self.last - self.first), 1)

    def shows(self, value: Value) -> TypeGuard[float]:
        if not isinstance(value, int | float) or not math.isfinite(value):
            return False
        return value > 0 or self.axis.scale != "log"


def _ruler(axis: Axis, values: Sequence[Value], first: float, last: float) -> _Ruler:
    if axis.scale == "category":
        names = [str(value) for value in values]
        return _Ruler(axis, -0.5, len(names) - 0.5, first, last, range(len(names)), names)
    numbers = finite_numbers(values)
    if axis.scale == "log":
        numbers = [number for number in numbers if number > 0]
    low, high = axis.bounds or _padded(numbers or [1.0], axis.scale)
    ticks: Sequence[float] = axis.ticks
    if not ticks and axis.scale == "log":
        ticks = log_ticks([low, high])
    elif not ticks:
        ticks = linear_ticks(low, high)
    return _Ruler(axis, low, high, first, last, ticks, [tick_label(tick, axis.unit) for tick in ticks])


def _padded(numbers: Sequence[float], scale: str) -> tuple[float, float]:
    """A range with a little room around the values."""
    low = min(numbers)
    high = max(numbers)
    if scale == "log":
        room = max((high / low) ** 0.03, 1.05)
        return low / room, high * room
    room = 0.03 * (high - low) or abs(high) or 1.0
    if low == 0:  # bars and counts stand on the axis
        return 0.0, high + room
    return low - room, high + room


def _places(parts: Sequence[Part]) -> list[Value]:
    found: list[Value] = []
    for part in parts:
        if isinstance(part, Bars):
            found += part.names
        elif isinstance(part, Curve | Band):
            found += plain(part.x)
    return found


def _heights(parts: Sequence[Part]) -> list[Value]:
    found: list[Value] = []
    for part in parts:
        if isinstance(part, Curve):
            found += plain(part.y)
        elif isinstance(part, Band):
            found += [*plain(part.low), *plain(part.high)]
        elif isinstance(part, Bars):
            found += [0.0, *part.values]
    return found


def _frame(across: _Ruler, up: _Ruler) -> Iterator[str]:
    bottom = up.first
    right = across.last
    for tick, label in zip(across.ticks, across.labels, strict=True):
        x = across.at(tick)
        yield f'<line x1="{x}" y1="{bottom}" x2="{x}" y2="{up.last}" stroke="#eee"/>'
        yield _text(x, bottom + 16, label, "middle")
    for tick, label in zip(up.ticks, up.labels, strict=True):
        y = up.at(tick)
        yield f'<line x1="{across.first}" y1="{y}" x2="{right}" y2="{y}" stroke="#eee"/>'
        yield _text(across.first - 6, y + 4, label, "end")
    size = f'width="{right - across.first}" height="{bottom - up.last}"'
    yield f'<rect x="{across.first}" y="{up.last}" {size} fill="none" stroke="#999"/>'
    yield _text((across.first + right) / 2, bottom + BOTTOM - 10, across.axis.title, "middle")
    middle = (up.last + bottom) / 2
    turned = f' transform="rotate(-90 14 {middle})"'
    yield _text(14, middle, up.axis.title, "middle", extra=turned)


def _part(part: Part, across: _Ruler, up: _Ruler) -> Iterator[str]:
    if isinstance(part, Curve):
        yield from _curve(part, across, up)
    elif isinstance(part, Band):
        look = part.look or Look()
        edge = [*_points(part.x, part.high, across, up), *reversed(_points(part.x, part.low, across, up))]
        yield f'<polygon points="{_joined(edge)}" fill="{look.colour}" fill-opacity="0.18"/>'
    elif isinstance(part, Bars):
        for place, value in enumerate(part.values):
            x = across.at(place - 0.25)
            y = up.at(value)
            size = f'width="{across.at(place + 0.25) - x:.1f}" height="{up.first - y:.1f}"'
            yield f'<rect x="{x}" y="{y}" {size} fill="{COLOURS[0]}"/>'


def _curve(part: Curve, across: _Ruler, up: _Ruler) -> Iterator[str]:
    look = part.look or Look()
    points = _points(part.x, part.y, across, up)
    width = {True: 1.2, False: 1.8}[part.faint]
    if part.draws != "marks":
        style = f'stroke="{look.colour}" stroke-width="{width}"{DASHES[look.dash]}'
        yield f'<polyline points="{_joined(points)}" fill="none" {style}/>'
    if part.draws != "line" and len(points) < CROWD:
        yield from (f'<circle cx="{x}" cy="{y}" r="3" fill="{look.colour}"/>' for x, y in points)


def _points(x: Values, y: Values, across: _Ruler, up: _Ruler) -> list[tuple[float, float]]:
    pairs = zip(plain(x), plain(y), strict=True)
    return [(across.at(a), up.at(b)) for a, b in pairs if across.shows(a) and up.shows(b)]


def _joined(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)


def _width_of(curves: Sequence[Curve]) -> int:
    """Pixels of the longest line of a legend."""
    return SAMPLE + math.ceil(LETTER * max(len(curve.name) for curve in curves)) + 16


def _legend(curves: Sequence[Curve], width: int) -> _Panel:
    """Names and looks of curves, in as many columns as the width has room for; nothing for a single curve."""
    if len(curves) < 2:
        return _Panel("", width, 0)
    columns = max(1, width // _width_of(curves))
    pieces: list[str] = []
    for number, curve in enumerate(curves):
        row, column = divmod(number, columns)
        pieces += _entry(curve, 10 + column * width // columns, LINE * row + 10)
    return _Panel("\n".join(pieces), width, LINE * math.ceil(len(curves) / columns) + 14)


def _entry(curve: Curve, left: float, y: float) -> Iterator[str]:
    look = curve.look or Look()
    line = f'x1="{left}" y1="{y}" x2="{left + SAMPLE - 12}" y2="{y}" stroke="{look.colour}" stroke-width="2"'
    yield f"<line {line}{DASHES[look.dash]}/>"
    yield _text(left + SAMPLE - 6, y + 4, curve.name, "start")


def _map(figure: Figure) -> _Panel:
    """Cells, darker where more; the square root shows small weights."""
    part = next(part for part in figure.parts if isinstance(part, HeatMap))
    values = np.asarray(part.values, dtype=float)
    rows, columns = values.shape
    shades = np.rint(SHADES * np.sqrt(np.clip(values, 0, None) / (values.max() or 1.0))).astype(int)
    left = 16
    top = 28
    pieces = [_text(left, top - 9, figure.title, "start")]
    for number, row in enumerate(shades):
        for start, length in _stretches(row):
            grey = 245 - 225 * int(row[start]) // SHADES
            box = f'x="{left + CELL * start}" y="{top + CELL * number}" width="{CELL * length}" height="{CELL}"'
            pieces.append(f'<rect {box} fill="rgb({grey},{grey},245)"/>')
    size = f'width="{CELL * columns}" height="{CELL * rows}"'
    pieces.append(f'<rect x="{left}" y="{top}" {size} fill="none" stroke="#888"/>')
    words = f"{figure.x.title} (right), {figure.y.title} (down)"
    pieces.append(_text(left, top + CELL * rows + 16, words, "start"))
    width = max(CELL * columns, 210)
    return _Panel("\n".join(pieces), width + 2 * left, CELL * rows + top + 26)


def _stretches(row: np.ndarray) -> Iterator[tuple[int, int]]:
    """Where stretches of one shade begin in a row, and how long they are; those without any are left out."""
    edges = np.flatnonzero(np.diff(row)) + 1
    starts = [0, *edges.tolist()]
    ends = [*edges.tolist(), len(row)]
    yield from ((start, end - start) for start, end in zip(starts, ends, strict=True) if row[start])


def _text(x: float, y: float, words: str, anchor: str, extra: str = "") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{extra}>{escape(words)}</text>'


def _document(panel: _Panel) -> str:
    look = f'viewBox="0 0 {panel.width} {panel.height}" font-family="sans-serif" font-size="12" fill="#333"'
    ground = f'<rect width="{panel.width}" height="{panel.height}" fill="white"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {look}>', ground, panel.drawn, "</svg>"]) + "\n"
