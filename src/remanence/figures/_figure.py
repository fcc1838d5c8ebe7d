"""What a picture shows: curves, bands, bars or a heat map on two axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from ._looks import Look, looks
from ._ticks import finite_numbers, log_ticks

FEW_TICKS = 8
"""Ticks of several figures that one axis can bear."""
Scale: TypeAlias = Literal["linear", "log", "category"]
Unit: TypeAlias = Literal["", "percent", "SI"]
Value: TypeAlias = "float | str | None"
"""A number, a name on an axis of names, or a gap."""
Values: TypeAlias = "Sequence[Value] | np.ndarray"


@dataclass(frozen=True)
class Axis:
    """One axis.

    Args:
        title: what it measures, with the unit.
        scale: ``"linear"``, ``"log"`` or ``"category"``.
        unit: how its ticks are written: plain, in percent, or with prefixes of the SI.
        ticks: where they are; the renderer chooses if empty.
        bounds: first and last value; the renderer chooses if None.
        downwards: whether values grow downwards.

    Example:
        >>> Axis("steps").scale
        'linear'
    """

    title: str = ""
    scale: Scale = "linear"
    unit: Unit = ""
    ticks: tuple[float, ...] = ()
    bounds: tuple[float, float] | None = None
    downwards: bool = False


@dataclass(frozen=True)
class Curve:
    """Points, joined by a line or not; None leaves a gap.

    Args:
        name: in legend and hover.
        x: where.
        y: how much, as many as ``x``.
        draws: ``"line"``, ``"marks"`` or ``"both"``.
        look: colour, mark and dash; None takes one by the curve's place in the figure.
        group: the model or file that it belongs to; a switch of the page shows and hides all of a group.
        faint: whether it only accompanies others.
        hollow: whether its marks are open.

    Example:
        >>> Curve("loss", [1, 2], [0.5, None]).draws
        'line'
    """

    name: str
    x: Values
    y: Values
    draws: Literal["line", "marks", "both"] = "line"
    look: Look | None = None
    group: str = ""
    faint: bool = False
    hollow: bool = False


@dataclass(frozen=True)
class Band:
    """The area between two curves, such as an interval.

    Args:
        names: of the lower and the upper edge.
        x: where.
        low: lower edge.
        high: upper edge.
        look: its colour.
        group: as of a :class:`Curve`.

    Example:
        >>> Band(("2.5 %", "97.5 %"), [1], [0.0], [1.0]).names
        ('2.5 %', '97.5 %')
    """

    names: tuple[str, str]
    x: Values
    low: Values
    high: Values
    look: Look | None = None
    group: str = ""


@dataclass(frozen=True)
class Bars:
    """One bar for each name.

    Example:
        >>> Bars(["chance"], [0.1]).values
        [0.1]
    """

    names: Sequence[str]
    values: Sequence[float]


@dataclass(frozen=True)
class HeatMap:
    """A number for each pair of row and column.

    Args:
        values: ``(rows, columns)``.
        block: steps that a row and a column stand for.

    Example:
        >>> HeatMap(np.eye(4)).pooled(2).values.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    values: np.ndarray
    block: int = 1

    def pooled(self, most: int) -> HeatMap:
        """The same with at most so many rows and columns, each the greatest of a block."""
        block = -(-max(self.values.shape) // most)
        if block <= 1:
            return self
        starts = [np.arange(0, size, block) for size in self.values.shape]
        rows = np.maximum.reduceat(self.values, starts[0], axis=0)
        return HeatMap(np.maximum.reduceat(rows, starts[1], axis=1), block * self.block)


Part: TypeAlias = Curve | Band | Bars | HeatMap


@dataclass(frozen=True)
class Figure:
    """One picture.

    Args:
        title: above it.
        caption: what it shows, in a sentence: below it, and for those who cannot see it.
        parts: curves, bands, bars or a heat map, drawn in this order.
        x: the axis to the right.
        y: the axis upwards.
        wide: whether it deserves a page's whole width.
        legend: whether curves that belong to groups are in a legend, too; others are wherever there are several.

    Example:
        >>> figure = Figure("Loss", "It falls.", (Curve("seed 0", [1, 2], [2.0, 1.0]),), Axis("updates"), Axis("loss"))
        >>> figure.is_empty
        False
    """

    title: str
    caption: str
    parts: tuple[Part, ...] = ()
    x: Axis = Axis()
    y: Axis = Axis()
    wide: bool = False
    legend: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(len(finite_numbers(_heights(part))) for part in self.parts)

    def with_looks(self) -> Figure:
        """The same, with a look for each curve and band that has none."""
        names = [_key(part) for part in self.parts if isinstance(part, Curve | Band) and part.look is None]
        chosen = looks(names)
        parts: list[Part] = []
        for part in self.parts:
            if isinstance(part, Curve | Band) and part.look is None:
                part = replace(part, look=chosen[_key(part)])
            parts.append(part)
        return replace(self, parts=tuple(parts))


def _key(part: Curve | Band) -> str:
    """What parts of one colour have in common."""
    if part.group:
        return part.group
    if isinstance(part, Curve):
        return part.name
    return part.names[0]


def _heights(part: Part) -> list[Value]:
    if isinstance(part, HeatMap):
        return np.asarray(part.values).ravel().tolist()
    if isinstance(part, Bars):
        return list(part.values)
    if isinstance(part, Curve):
        return plain(part.y)
    return plain(part.high)


def plain(values: Values) -> list[Value]:
    """An array or a sequence as a list of Python's own numbers.

    Example:
        >>> plain(np.arange(2)), plain(range(2))
        ([0, 1], [0, 1])
    """
    if isinstance(values, np.ndarray):
        return values.tolist()
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def overlay(title: str, figures: Mapping[str, Figure], styles: Mapping[str, Look] | None = None) -> Figure:
    """Puts figures of one kind on one pair of axes.

    Args:
        title: of the whole.
        figures: one at least, by name; each curve takes this name, and its own is added where there are several.
        styles: a look for each name; None chooses.

    Example:
        >>> one = Figure("reach", "vanishing", (Curve("measured", [0], [1.0]),), Axis("steps"), Axis("ln"))
        >>> both = overlay("Reach", {"LSTM": one, "GRU": one})
        >>> [curve.name for curve in both.parts], both.caption.splitlines()
        (['LSTM', 'GRU'], ['LSTM: vanishing', 'GRU: vanishing'])
    """
    if styles is None:
        styles = looks(list(figures))
    parts = [part for name, figure in figures.items() for part in _belonging(name, figure, styles[name])]
    caption = "\n".join(f"{name}: {figure.caption}" for name, figure in figures.items() if figure.caption)
    first = next(iter(figures.values()))
    named = tuple(sorted({tick for figure in figures.values() for tick in figure.x.ticks}))
    x = replace(first.x, ticks=named)
    if len(named) > FEW_TICKS:
        x = _shared_axis(first.x, named)
    y = _shared_axis(first.y, [value for part in parts for value in _heights(part)])
    return Figure(title, caption, tuple(parts), x, y, wide=first.wide)


def _belonging(name: str, figure: Figure, look: Look) -> Iterator[Curve | Band]:
    """The parts of a figure as parts of a group."""
    curves = [part for part in figure.parts if isinstance(part, Curve)]
    for part in figure.parts:
        if isinstance(part, Band):
            names = (f"{name}, {part.names[0]}", f"{name}, {part.names[1]}")
            yield replace(part, names=names, group=part.group or name, look=look)
        elif isinstance(part, Curve):
            called = name
            if part is not curves[0]:
                called = f"{name}, {part.name}"
            dash = (part.look or look).dash
            yield replace(part, name=called, group=part.group or name, look=replace(look, dash=dash))


def _shared_axis(axis: Axis, values: Values) -> Axis:
    """An axis with ticks for all that is on it."""
    if axis.scale != "log" or not axis.ticks:
        return axis
    return replace(axis, ticks=tuple(log_ticks(plain(values))))


def log_axis(title: str, values: Values, unit: Unit = "") -> Axis:
    """A logarithmic axis that has ticks for the values drawn along it, however narrow their range is.

    Example:
        >>> log_axis("loss", [1.9, 2.1]).ticks
        (1.9, 1.95, 2.0, 2.05, 2.1)
    """
    return Axis(title, "log", unit, tuple(log_ticks(plain(values))))


def length_axis(title: str, lengths: Values) -> Axis:
    """A logarithmic axis whose ticks are the lengths that were measured.

    Example:
        >>> length_axis("T", [400, 100]).ticks
        (100.0, 400.0)
    """
    return Axis(title, "log", "", tuple(sorted({length for length in finite_numbers(plain(lengths)) if length > 0})))


def share_axis(title: str) -> Axis:
    """An axis from 0 to 100 %.

    Example:
        >>> share_axis("accuracy").unit
        'percent'
    """
    return Axis(title, unit="percent", bounds=(-0.02, 1.04))
