"""What is measured in cells: pure functions of a trained run, or of settings alone, by their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from remanence._validate import one_of
from remanence.experiments.measures._answers import answers, errors, held_out
from remanence.experiments.measures._attention import attention
from remanence.experiments.measures._dependencies import dependencies
from remanence.experiments.measures._gradients import gradients, text_gradients
from remanence.experiments.measures._information import (
    data_information,
    estimator,
    fresh_score,
    held_out_information,
    repetitive,
    sampled_information,
)
from remanence.experiments.measures._language_model import language_model
from remanence.experiments.measures._long import streamed
from remanence.experiments.measures._memory import training_memory
from remanence.experiments.measures._policies import play
from remanence.experiments.measures._recalled import recalled
from remanence.experiments.measures._stable import context_loss, gaussian_truncation, weight_distance

if TYPE_CHECKING:
    from remanence.experiments._work import Measure

Measured = Callable[..., dict[str, Any]]

MEASURES: dict[str, Measured] = {
    function.__name__: function
    for function in (
        answers,
        recalled,
        held_out,
        errors,
        streamed,
        attention,
        dependencies,
        gradients,
        text_gradients,
        training_memory,
        sampled_information,
        data_information,
        fresh_score,
        estimator,
        repetitive,
        held_out_information,
        language_model,
        play,
        gaussian_truncation,
        weight_distance,
        context_loss,
    )
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
