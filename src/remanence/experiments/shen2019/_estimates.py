"""The estimator and data: figures 3d, 4, 5 and 6."""

from __future__ import annotations

from typing import Any

from remanence.experiments._declaring import TINY, departures
from remanence.experiments._experiment import Curve, Experiment, Place, PrintedNumber, Reading, Recipe, Scale
from remanence.experiments._work import Measure


def _only(name: str, **settings: Any) -> Recipe:
    return Recipe("measurement", (), (Measure(name, settings),))


FIGURE_4 = Experiment(
    id="shen2019/figure-4",
    title="Information of a repetitive chain, which does not decay, by p",
    axes={"p": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)},
    recipe=lambda place: _only("repetitive", probability=place["p"], sequences=2000, length=512, longest=100),
    smoke=Scale(
        departures(
            TINY, measure_repetitive__sequences=20, measure_repetitive__length=30, measure_repetitive__longest=4
        ),
        {"p": (0.9,)},
    ),
    readings=(Reading("measured", "repetitive", ("measured",)), Reading("Equation 52", "repetitive", ("exact",))),
    printed={(0.5, "Equation 52"): PrintedNumber(0.0, "Equation 52")},
)

EXPONENTS = tuple(number / 10 for number in range(1, 11))
FIGURE_5 = Experiment(
    id="shen2019/figure-5",
    title="Exponent that the estimator finds in bits with I(lag) = 0.1 lag^-gamma",
    axes={"gamma": EXPONENTS},
    recipe=lambda place: _only(
        "estimator", exponent=place["gamma"], sequences=10_000, length=1000, longest=500, threshold=2e-4
    ),
    smoke=Scale(
        departures(TINY, measure_estimator__sequences=50, measure_estimator__length=40, measure_estimator__longest=10),
        {"gamma": (0.4,)},
    ),
    laptop=Scale(departures("10,000 sequences", measure_estimator__sequences=2000)),
    readings=(Reading("fitted", "estimator", ("fitted",)),),
    curves=(Curve("information", "estimator", "curve.lags", "curve.values"),),
    printed={(gamma, "fitted"): PrintedNumber(gamma, "figure 5 (b): the line of truth") for gamma in EXPONENTS},
)


def _held_out(place: Place) -> Recipe:
    return _only("held_out_information", text=place["text"], part=place["part"], longest=1000)


FIGURE_6 = Experiment(
    id="shen2019/figure-6",
    title="Information in held-out parts compared with equally long stretches of the training part",
    axes={"text": ("ptb", "wikitext-2", "text8"), "part": ("validation", "test")},
    recipe=_held_out,
    smoke=Scale(departures(TINY, measure_held_out_information__longest=4), {"text": ("ptb",), "part": ("validation",)}),
    readings=(
        Reading("lags outside", "held_out_information", ("outside",)),
        Reading("by chance", "held_out_information", ("outside_by_chance",)),
    ),
    curves=(
        Curve("held out", "held_out_information", "lags", "values"),
        Curve("training", "held_out_information", "lags", "mean"),
    ),
    needs=("ptb", "wikitext-2", "text8"),
    note="WikiText-103 is not among the texts, and of text8 the first 74 MB are, not 100.",
)

GPT2 = "GPT-2 with 117 million parameters, 500 texts of 1,024 tokens"
FIGURE_3D = Experiment(
    id="shen2019/figure-3d",
    title="Information in samples of a pretrained language model",
    axes={"model": ("gpt2", "SmolLM2-135M")},
    recipe=lambda place: _only("language_model", model=place["model"], texts=500, tokens=1024, longest=1000, seed=0),
    smoke=Scale(
        departures(TINY, measure_language_model__texts=1, measure_language_model__tokens=8)
        + departures(TINY, measure_language_model__longest=4),
        {"model": ("SmolLM2-135M",)},
    ),
    laptop=Scale(
        departures(GPT2, measure_language_model__texts=50, measure_language_model__tokens=512),
        {"model": ("SmolLM2-135M",)},
    ),
    readings=(Reading("exponent of a power law", "language_model", ("model", "curve", "fits", "power", "gamma")),),
    curves=(
        Curve("model", "language_model", "model.curve.lags", "model.curve.values"),
        Curve("WikiText-2", "language_model", "data.curve.lags", "data.curve.values"),
    ),
    needs=("wikitext-2", "transformers"),
    note="`gpt2` must lie in the cache of Hugging Face; SmolLM2-135M, tuned and in 4 bits, comes as a package.",
)
