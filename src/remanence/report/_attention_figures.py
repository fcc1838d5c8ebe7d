"""Heat maps of attention."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from remanence.report._drawing import Figure, Trace, axis
from remanence.report._words import as_number

MAP = 160
"""Rows and columns that a map is pooled to."""


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
        says = f"Row: the step that reads; column: the step that is read. {result.get('verdict', '')}."
        if len(result.get("names", [])) > 1:
            says = f"{part}. {says}"
        if kept:
            says += " Orange: how long each state stayed in the relevant set, once it was no longer recent."
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
