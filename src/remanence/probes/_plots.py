"""The few shapes of pictures that the probes draw; the only file here that knows plotly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def _graph_objects() -> Any:
    try:
        import plotly.graph_objects as graph_objects
    except ImportError as error:
        raise ImportError("`plot` needs plotly: pip install 'remanence[report]'") from error
    return graph_objects


def lines(
    curves: Mapping[str, tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]],
    *,
    title: str,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = False,
    markers: bool = False,
) -> Any:
    """Named curves in one picture."""
    go = _graph_objects()
    mode = "lines+markers" if markers else "lines"
    traces = [go.Scatter(x=list(a), y=list(b), name=name, mode=mode) for name, (a, b) in curves.items()]
    figure = go.Figure(traces)
    figure.update_layout(title=title, xaxis_title=x, yaxis_title=y)
    figure.update_xaxes(type="log" if log_x else "linear")
    figure.update_yaxes(type="log" if log_y else "linear")
    return figure


def heat_maps(maps: Mapping[str, np.ndarray], *, x: str, y: str) -> Any:
    """One heat map above the other, rows downwards."""
    go = _graph_objects()
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=max(len(maps), 1), cols=1, subplot_titles=list(maps))
    for row, values in enumerate(maps.values(), start=1):
        figure.add_trace(go.Heatmap(z=values, coloraxis="coloraxis"), row=row, col=1)
        figure.update_xaxes(title_text=x, row=row, col=1)
        figure.update_yaxes(title_text=y, autorange="reversed", row=row, col=1)
    figure.update_layout(coloraxis={"colorscale": "Viridis"}, height=380 * max(len(maps), 1))
    return figure


def points(groups: Mapping[str, Sequence[tuple[float, float, str]]], *, title: str, x: str, y: str) -> Any:
    """Named groups of labelled points, joined in their order."""
    go = _graph_objects()
    traces = [
        go.Scatter(
            x=[p[0] for p in group],
            y=[p[1] for p in group],
            text=[p[2] for p in group],
            name=name,
            mode="lines+markers+text",
        )
        for name, group in groups.items()
    ]
    figure = go.Figure(traces)
    figure.update_layout(title=title, xaxis_title=x, yaxis_title=y)
    return figure
