"""Figures as plotly draws them: plain dictionaries for the page's script, and plotly's own figures."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ._figure import Axis, Band, Bars, Curve, Figure, HeatMap, Part, Values, plain
from ._looks import COLOURS, Look
from ._ticks import tick_label

Trace = dict[str, Any]
HEIGHT = 420
"""Pixels of one picture among several."""
LONGEST_NAME = 48
"""Letters of a name that a legend bears."""
MODES = {"line": "lines", "marks": "markers", "both": "lines+markers"}
HOVER = {"": ".4g", "percent": ".1%", "SI": ".3s"}


def to_plotly(figures: Sequence[Figure]) -> Any:
    """A ``plotly.graph_objects.Figure`` of figures one above the other; needs the extra ``remanence[report]``.

    Example:
        >>> shown = to_plotly([Figure("a", "b", (Curve("c", [0, 1], [1.0, 2.0]),))])  # doctest: +SKIP
    """
    try:
        import plotly.graph_objects as graph_objects
        from plotly.subplots import make_subplots
    except ImportError as error:
        raise ImportError("`plot` needs plotly: pip install 'remanence[report]'") from error
    if len(figures) == 1:
        drawn = plotly_dict(figures[0])
        return graph_objects.Figure(drawn["data"], {**drawn["layout"], "title": {"text": _title(figures[0])}})
    rows = max(len(figures), 1)
    whole = make_subplots(rows=rows, cols=1, subplot_titles=[_title(figure) for figure in figures])
    for row, figure in enumerate(figures, start=1):
        drawn = plotly_dict(figure)
        for trace in drawn["data"]:
            whole.add_trace(trace, row=row, col=1)
        whole.update_xaxes(drawn["layout"]["xaxis"], row=row, col=1)
        whole.update_yaxes(drawn["layout"]["yaxis"], row=row, col=1)
    return whole.update_layout(coloraxis={"colorscale": "Viridis"}, height=HEIGHT * rows)


def _title(figure: Figure) -> str:
    return inert(figure.caption or figure.title, longest=200)


def plotly_dict(figure: Figure) -> Trace:
    """A figure as plain values for plotly.js: ``data`` and ``layout``, without colours of a theme.

    Example:
        >>> plotly_dict(Figure("a", "b", (Curve("c", [0], [1.0]),)))["data"][0]["name"]
        'c'
    """
    drawn = figure.with_looks()
    named = [part for part in drawn.parts if _is_in_legend(part, figure)]
    data: list[Trace] = []
    for part in drawn.parts:
        shown = len(named) > 1 and _is_in_legend(part, figure)
        data += [{**trace, "showlegend": shown} for trace in _TRACES[type(part)](part, figure)]
    layout = {"xaxis": _axis(figure.x), "yaxis": _axis(figure.y)}
    if any(isinstance(part, HeatMap) for part in figure.parts):
        layout["coloraxis"] = {"cmin": 0}
    return {"data": data, "layout": layout}


def _is_in_legend(part: Part, figure: Figure) -> bool:
    """Whether a legend explains it: the page has switches for groups."""
    if not isinstance(part, Curve):
        return False
    return not part.group or (figure.legend and not part.faint and not part.hollow)


def _curve(part: Curve, figure: Figure) -> list[Trace]:
    look = part.look or Look()
    hover = f"{_place(figure.x)}: %{{y:{HOVER[figure.y.unit]}}}"
    width, opacity = {True: (1.5, 0.6), False: (2, 1)}[part.faint]
    mode = MODES[part.draws]
    if len(part.x) == 1:  # a line of one point would not be seen
        mode = MODES["both"]
    return [
        {
            "type": "scatter",
            "mode": mode,
            "x": [_drawn_place(value) for value in plain(part.x)],
            "y": _heights(part.y, figure.y),
            "name": inert(part.name),
            "meta": {"model": part.group},
            "line": {"color": look.colour, "dash": look.dash, "width": width},
            "marker": _marker(part, look),
            "opacity": opacity,
            "hovertemplate": f"{hover}<extra>%{{fullData.name}}</extra>",
        }
    ]


def _marker(part: Curve, look: Look) -> Trace:
    if part.hollow:
        return {"color": look.colour, "symbol": f"{look.mark}-open", "size": 11}
    return {"color": look.colour, "symbol": look.mark, "size": 7}


def _place(axis: Axis) -> str:
    """The hover's words for a place on the x axis."""
    name = axis.title.partition(",")[0]
    if axis.scale == "category":
        return "%{x}"
    return f"{name} %{{x:,.6~g}}"


def _band(part: Band, figure: Figure) -> list[Trace]:
    look = part.look or Look()
    edge = {"type": "scatter", "mode": "lines", "x": plain(part.x), "meta": {"model": part.group}}
    edge |= {"line": {"width": 0, "color": look.colour}, "hoverinfo": "skip"}
    lower = {**edge, "y": _heights(part.low, figure.y), "name": inert(part.names[0])}
    upper = {**edge, "y": _heights(part.high, figure.y), "name": inert(part.names[1])}
    return [lower, {**upper, "fill": "tonexty", "fillcolor": f"{look.colour}2e"}]


def _bars(part: Bars, figure: Figure) -> list[Trace]:
    hover = f"%{{x}}: %{{y:{HOVER[figure.y.unit]}}}<extra></extra>"
    names = [inert(name) for name in part.names]
    bar = {"type": "bar", "x": names, "y": [finite(value) for value in part.values], "width": 0.5}
    return [{**bar, "marker": {"color": COLOURS[0]}, "hovertemplate": hover}]


def _heat_map(part: HeatMap, figure: Figure) -> list[Trace]:
    values = [[finite(value, 3) for value in row] for row in np.asarray(part.values).tolist()]
    hover = f"{figure.y.title} %{{y}}, {figure.x.title} %{{x}}: %{{z:.3f}}<extra></extra>"
    return [
        {
            "type": "heatmap",
            "z": values,
            "dx": part.block,
            "dy": part.block,
            "coloraxis": "coloraxis",
            "hovertemplate": hover,
        }
    ]


_TRACES: dict[type, Callable[[Any, Figure], list[Trace]]] = {
    Curve: _curve,
    Band: _band,
    Bars: _bars,
    HeatMap: _heat_map,
}


def _axis(axis: Axis) -> Trace:
    drawn: Trace = {"title": {"text": axis.title}, "type": axis.scale}
    if axis.unit == "percent":
        drawn["tickformat"] = ".0%"
    if axis.unit == "SI":
        drawn["exponentformat"] = "SI"
    if axis.ticks:
        drawn["tickvals"] = list(axis.ticks)
        drawn["ticktext"] = [tick_label(tick, axis.unit) for tick in axis.ticks]
    if axis.bounds is not None:
        drawn["range"] = list(axis.bounds)
        if axis.scale == "log":
            drawn["range"] = [math.log10(bound) for bound in axis.bounds]
    if axis.downwards:
        drawn["autorange"] = "reversed"
    return drawn


def _heights(values: Values, axis: Axis) -> list[float | None]:
    """What the axis can show; None leaves a gap."""
    numbers = [finite(value) for value in plain(values)]
    if axis.scale != "log":
        return numbers
    shown: list[float | None] = []
    for number in numbers:
        if number is not None and number <= 0:  # a logarithmic axis has no place for it
            number = None
        shown.append(number)
    return shown


def _drawn_place(value: object) -> float | str | None:
    if isinstance(value, str):
        return inert(value)
    return finite(value, whole=True)


def finite(value: object, digits: int = 6, whole: bool = False) -> float | None:
    """A number that can be drawn, with a few digits, or all of a whole one; None leaves a gap.

    Example:
        >>> finite(float("inf")), finite(1 / 3), finite("x"), finite(1234567, whole=True)
        (None, 0.333333, None, 1234567)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if whole and isinstance(value, int):
        return value
    return float(f"{value:.{digits}g}")


def inert(text: str, longest: int = LONGEST_NAME) -> str:
    """The first letters of a text, so that plotly, which reads some tags, shows them as they are.

    Example:
        >>> inert("<b>x</b>")
        '&lt;b&gt;x&lt;/b&gt;'
    """
    if len(text) > longest:
        text = f"{text[: longest - 1]}…"
    return html.escape(text, quote=False)


def compact(figure: Figure, points: int = 400, cells: int = 160) -> Figure:
    """A figure that takes less room: curves thinned, the first and last point kept, heat maps pooled.

    Args:
        figure: any.
        points: most of a curve.
        cells: most rows and columns of a map.

    Example:
        >>> thin = compact(Figure("a", "b", (Curve("c", range(10), range(10)),)), points=4)
        >>> thin.parts[0].x
        [0, 3, 6, 9]
    """
    parts = [_compact_part(part, points, cells) for part in figure.parts]
    return replace(figure, parts=tuple(parts))


def _compact_part(part: Part, points: int, cells: int) -> Part:
    if isinstance(part, HeatMap):
        return part.pooled(cells)
    if isinstance(part, Curve) and len(part.x) > points and None not in plain(part.x):
        kept = [round(place * (len(part.x) - 1) / (points - 1)) for place in range(points)]
        x = plain(part.x)
        y = plain(part.y)
        return replace(part, x=[x[place] for place in kept], y=[y[place] for place in kept])
    return part
