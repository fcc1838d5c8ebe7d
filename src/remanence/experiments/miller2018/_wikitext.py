"""Words of WikiText-2: figure 2, the two perplexities, stable models, weight distances, and context."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from remanence.experiments._declaring import TINY, departures, options, tiny, told, watched
from remanence.experiments._experiment import Curve, Departure, Experiment, Place, PrintedNumber, Reading, Recipe, Scale
from remanence.experiments._work import Measure
from remanence.runs import Values

CODE = "an author's code, word_language_model"
GUARANTEE = "ours: the author's projection touches one layer only"
EPOCH = 2984
"""Updates of a pass over the text."""

WORDS = (
    *told("the slides", task__name="wikitext2-word"),
    *told(CODE, task__options__length=35, task__batch_size=20, budget__updates="none", budget__epochs=40),
    *options(CODE, encoder="embedding", embedding_size=200, hidden_size=200, dropout=0.2),
    *options(GUARANTEE, num_layers=1),
    *told(CODE, optimiser__name="sgd", optimiser__learning_rate=20.0, loop__clip_norm=0.25),
    *told(CODE, schedule__name="plateau", schedule__factor=0.25),
    *watched(every=EPOCH, batches=0, batch_size=10, save_every=EPOCH),
)
SMALL: Values = {
    "task__options__words": 50,
    "task__options__length": 6,
    "task__batch_size": 2,
    "model__options__embedding_size": 4,
    "model__options__hidden_size": 4,
}
SMOKE = tiny(
    **SMALL,
    measure_held_out__batch=2,
    measure_held_out__batches=1,
    measure_text_gradients__rows=2,
    measure_text_gradients__length=5,
    measure_context_loss__rows=2,
    measure_context_loss__length=6,
    measure_context_loss__windows=[1, 3],
    measure_context_loss__ends=1,
)
LAPTOP = (
    *departures("40 epochs", budget__epochs=5),
    *departures("all 33,278 words", task__options__words=10_000),
)
SCORE = Measure("held_out", {"batch": 10, "weights": "best", "batches": 0})
PERPLEX = Reading("test perplexity", "held_out", ("test", "perplexity"))


def _words(model: str, *measures: Measure) -> Recipe:
    return Recipe("training", (*WORDS, *told("the slides", model__name=model)), (SCORE, *measures))


GRADIENTS = Measure("text_gradients", {"length": 100, "rows": 20, "batches": 10})
PRINTED = {"RNN": 146.7, "LSTM": 92.3}
NOTE = "One layer of 200 units: which options the printed runs had is not recorded."

FIGURE_2 = Experiment(
    id="miller2018/figure-2",
    title="WikiText-2: norm of the gradient by the distance between input and loss",
    axes={"model": ("RNN", "LSTM")},
    recipe=lambda place: _words(place["model"], GRADIENTS),
    smoke=Scale(SMOKE, {"model": ("RNN",)}),
    laptop=Scale(LAPTOP),
    readings=(Reading("change of the logarithm", "text_gradients", ("change",)),),
    curves=(Curve("ln of the gradient's norm", "text_gradients", "distance", "log_norm"),),
    needs=("wikitext-2",),
    note=f"By the states, over 200 stretches of the test text. {NOTE}",
)

PERPLEXITY = Experiment(
    id="miller2018/perplexity",
    title="WikiText-2: test perplexity of free models",
    axes={"model": ("RNN", "LSTM")},
    recipe=lambda place: _words(place["model"]),
    smoke=Scale(SMOKE, {"model": ("LSTM",)}),
    laptop=Scale(LAPTOP),
    readings=(PERPLEX,),
    curves=(Curve("validation loss", "validation", "update", "loss"),),
    printed={(model, PERPLEX.name): PrintedNumber(value, "caption of figure 2") for model, value in PRINTED.items()},
    needs=("wikitext-2",),
    note=NOTE,
)

STABLE = Experiment(
    id="miller2018/stable",
    title="WikiText-2: stable and free models",
    axes={"model": ("RNN", "StableRNN", "LSTM", "StableLSTM")},
    recipe=lambda place: _words(place["model"]),
    smoke=Scale(SMOKE, {"model": ("StableRNN",)}),
    laptop=Scale(LAPTOP),
    readings=(PERPLEX,),
    printed={(model, PERPLEX.name): PrintedNumber(value, "caption of figure 2") for model, value in PRINTED.items()},
    needs=("wikitext-2",),
    note=f"The slides say 'same performance' and print nothing for stable models. {NOTE}",
)

CONTEXT = Experiment(
    id="miller2018/context",
    title="WikiText-2: perplexity of trained models that see only their last words",
    axes={"model": ("RNN", "StableRNN", "LSTM", "StableLSTM")},
    recipe=lambda place: _words(
        place["model"],
        Measure("context_loss", {"windows": [1, 2, 5, 10, 20, 35, 50], "length": 100, "rows": 100, "ends": 20}),
    ),
    smoke=Scale(SMOKE, {"model": ("StableLSTM",)}),
    laptop=Scale(LAPTOP),
    readings=(Reading("with all 100 words", "context_loss", ("whole",)),),
    curves=(Curve("perplexity", "context_loss", "windows", "perplexity"),),
    needs=("wikitext-2",),
    note=f"The figure that the slides show is of other models and texts (Dauphin et al.). {NOTE}",
)


def _settings(place: Place) -> dict[str, Any]:
    """Those of a run, by dotted keys."""
    return {setting.key: setting.value for setting in (*WORDS, *told("the slides", model__name=place["model"]))}


def _measured_with(measure: str, paper: str, settings: Values, **own: Any) -> tuple[Departure, ...]:
    """Departures of a measure without a run of its own: of the settings that it takes, and of what it takes beside."""
    inner = {f"measure_{measure}__settings__{key}": value for key, value in settings.items()}
    return departures(paper, **{f"measure_{measure}__{key}": value for key, value in own.items()}, **inner)


def _fresh(place: Place) -> Recipe:
    measure = Measure("fresh_text_gradients", {"settings": _settings(place), **GRADIENTS.settings, "seed": 0})
    return Recipe("measurement", (), (measure,))


BEFORE = replace(
    FIGURE_2,
    id="miller2018/figure-2-before",
    title="WikiText-2: norm of the gradient by the distance between input and loss, before training",
    axes={"model": ("RNN", "StableRNN", "LSTM", "StableLSTM")},
    recipe=_fresh,
    smoke=Scale(_measured_with("fresh_text_gradients", TINY, SMALL, rows=2, length=5, batches=1), {"model": ("RNN",)}),
    laptop=Scale(),
    readings=(Reading("change of the logarithm", "fresh_text_gradients", ("change",)),),
    curves=(Curve("ln of the gradient's norm", "fresh_text_gradients", "distance", "log_norm"),),
)


def _distance(place: Place) -> Recipe:
    settings = _settings(place)
    settings |= {"budget.epochs": "none", "schedule.name": "constant", "model.options.dropout": 0.0}
    stages = [EPOCH * epoch for epoch in (1, 2, 5, 10, 20, 40)]
    truncated = {"task.options.drop_state": 1.0}
    measure = Measure("weight_distance", {"settings": settings, "truncated": truncated, "stages": stages, "seed": 0})
    return Recipe("measurement", (), (measure,))


WATCHED_TINY = {"evaluation__every": 2, "evaluation__batches": 1, "evaluation__batch_size": 2, "loop__save_every": 2}

WEIGHTS = Experiment(
    id="miller2018/weights",
    title="WikiText-2: distance between the weights of recurrent and truncated training",
    axes={"model": ("RNN", "StableRNN", "LSTM", "StableLSTM")},
    recipe=_distance,
    smoke=Scale(_measured_with("weight_distance", TINY, {**SMALL, **WATCHED_TINY}, stages=[2, 4]), {"model": ("RNN",)}),
    laptop=Scale(
        _measured_with(
            "weight_distance", "all words, 40 epochs", {"task__options__words": 10_000}, stages=[500, 1000, 3000]
        )
    ),
    readings=(Reading("distance over the way", "weight_distance", ("share",)),),
    curves=(
        Curve("distance", "weight_distance", "updates", "distance"),
        Curve("way", "weight_distance", "updates", "moved"),
    ),
    needs=("wikitext-2",),
    note="Truncated training begins every 35 words with an empty state. Neither has dropout, nor a falling rate, "
    "so that both differ in nothing else.",
)
