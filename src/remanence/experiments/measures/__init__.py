"""What is measured in cells: pure functions of a trained run, or of settings alone, by their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remanence._validate import one_of
from remanence.experiments.measures._answers import answers, held_out

if TYPE_CHECKING:
    from remanence.experiments._work import Measure

Measured = Callable[..., dict[str, Any]]

MEASURES: dict[str, Measured] = {
    "answers": answers,
    "held_out": held_out,
}
"""All of them: each takes the run's folder and its own settings, and gives plain values for JSON."""


def measured(measure: Measure, run: Path) -> dict[str, Any]:
    """Makes one measurement.

    Args:
        measure: its name and settings.
        run: folder of the run that it looks at; measurements without one take no notice of it.
    """
    return MEASURES[one_of("measure", measure.name, MEASURES)](run, **measure.settings)


__all__ = ["MEASURES", "measured"]
