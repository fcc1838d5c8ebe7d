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
from remanence.experiments.measures import (
    _answers,
    _attention,
    _dependencies,
    _gradients,
    _information,
    _language_model,
    _recalled,
    _stable,
)
from remanence.runs import Values

if TYPE_CHECKING:
    from remanence.experiments._work import Measure

Measured = Callable[..., Values]

MEASURES: dict[str, Measured] = {
    function.__name__: function
    for function in (
        _answers.answers,
        _recalled.recalled,
        _answers.held_out,
        _answers.errors,
        _answers.streamed,
        _attention.attention,
        _dependencies.dependencies,
        _gradients.gradients,
        _gradients.text_gradients,
        _gradients.fresh_text_gradients,
        _gradients.training_memory,
        _information.sampled_information,
        _information.data_information,
        _information.fresh_score,
        _information.estimator,
        _information.repetitive,
        _information.held_out_information,
        _language_model.language_model,
        _answers.play,
        _stable.gaussian_truncation,
        _stable.weight_distance,
        _stable.context_loss,
    )
}


def measured(measure: Measure, run: Path) -> Values:
    """Makes one measurement."""
    return MEASURES[one_of("measure", measure.name, MEASURES)](run, **measure.settings)


__all__ = ["MEASURES", "measured"]
