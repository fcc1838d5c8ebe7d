"""Sequences eight times as long as those that models were trained on: does the law go on?"""

from __future__ import annotations

from dataclasses import replace

from remanence.experiments._experiment import Curve, Experiment, Place, Reading, Recipe, Scale
from remanence.experiments.shen2019._models import BINARY_LAPTOP, BINARY_SMOKE, DATA, sampled

FACTOR = 8
MODELS = (DATA, "RNN", "LSTM")
NAMES = "sampled_information|data_information"


def _long(place: Place) -> Recipe:
    recipe = sampled("binary", place["model"], 32, 1)
    (measure,) = recipe.measures
    longer = measure.with_setting("rows", 500).with_setting("length", FACTOR * measure.settings["length"])
    fits = {"all": [1, FACTOR * 250, None]}
    return replace(recipe, measures=(longer.with_setting("longest", FACTOR * 250).with_setting("fits", fits),))


LONG_BITS = Experiment(
    id="beyond/long-bits",
    title="Bits with a power law: sequences eight times as long as in training",
    axes={"model": MODELS},
    recipe=_long,
    smoke=Scale(BINARY_SMOKE, {"model": ("RNN",)}),
    laptop=Scale(BINARY_LAPTOP[:2]),
    readings=(
        Reading("xi", NAMES, ("fits", "all", "exponential", "xi")),
        Reading("gamma", NAMES, ("fits", "all", "power", "gamma")),
    ),
    curves=(Curve("information", NAMES, "curve.lags", "curve.values"),),
    note="Models of bounded state; a Transformer has no positions beyond those that it was trained on.",
)
