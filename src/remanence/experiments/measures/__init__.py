"""What is measured in cells: functions of a trained run, or of settings alone, by their names in :data:`MEASURES`.

Each takes the run's folder first, which those of settings alone do not look at, and gives plain values for JSON. Their
settings mean the same everywhere: ``weights`` are the ``"best"`` by validation or the ``"last"``, ``lengths`` those T
at which a model is asked, ``rows`` sequences side by side, ``longest`` the greatest lag, ``points`` those of a curve.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from remanence._validate import one_of
from remanence.experiments.measures._answers import answers, errors, held_out, play, streamed
from remanence.experiments.measures._attention import attention
from remanence.experiments.measures._dependencies import dependencies
from remanence.experiments.measures._gradients import gradients, text_gradients, training_memory
from remanence.experiments.measures._information import (
    data_information,
    estimator,
    fresh_score,
    held_out_information,
    repetitive,
    sampled_information,
)
from remanence.experiments.measures._language_model import language_model
from remanence.experiments.measures._recalled import recalled
from remanence.experiments.measures._stable import context_loss, gaussian_truncation, weight_distance
from remanence.runs import Values

if TYPE_CHECKING:
    from remanence.experiments._work import Measure

Measured = Callable[..., Values]

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


def measured(measure: Measure, run: Path) -> Values:
    """Makes one measurement."""
    return MEASURES[one_of("measure", measure.name, MEASURES)](run, **measure.settings)


__all__ = ["MEASURES", "measured"]
