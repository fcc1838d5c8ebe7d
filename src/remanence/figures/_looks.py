"""Colours, marks and dashes that tell curves apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Okabe and Ito's colours, those that show on white and on black first; with each its own mark and, later, dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "x")
DASHES = ("solid", "dash", "dot", "dashdot")


@dataclass(frozen=True)
class Look:
    """How a curve looks.

    Args:
        colour: hexadecimal, as ``"#0072B2"``.
        mark: plotly's name of a symbol.
        dash: plotly's name of a dash.

    Example:
        >>> Look().dash
        'solid'
    """

    colour: str = COLOURS[0]
    mark: str = MARKS[0]
    dash: str = DASHES[0]


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Gives each name its own look, by its place: in a fixed order, a name keeps its look.

    Example:
        >>> looks(["LSTM", "RelRNN"])["RelRNN"].colour
        '#D55E00'
    """
    found = {}
    for place, name in enumerate(dict.fromkeys(names)):
        dash = DASHES[place // len(COLOURS) % len(DASHES)]
        found[name] = Look(COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)], dash)
    return found
