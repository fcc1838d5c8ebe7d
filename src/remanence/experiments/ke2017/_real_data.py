"""Text and pictures: Tables 6, 7 and 8, and the ablation of clipping in 7.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from remanence.experiments._declaring import but, departures, options, tiny, told, watched
from remanence.experiments._experiment import (
    Departure,
    Experiment,
    Place,
    PrintedNumber,
    Reading,
    Recipe,
    Scale,
    Setting,
)
from remanence.experiments._work import Measure
from remanence.experiments.ke2017._methods import ADAM, BPTT, NORMS, lstm, method_settings, sab

UNSAID = "not in the paper"
PTB = (
    *told("section 4.3", task__name="ptb-char", task__options__length=100, task__batch_size=32),
    *told("section 4.3", budget__updates="none", budget__epochs=100),
    *options("section 4.3", hidden_size=1000),
    *options(UNSAID, encoder="embedding", embedding_size=200),
    *(setting for setting in ADAM if setting.key != "optimiser.learning_rate"),
    *told("section 4.3", optimiser__learning_rate=2e-3),
    *watched(every=1568, batches=0, batch_size=10),
)
TEXT8 = (
    *told("section 4.4", task__name="text8", task__options__length=180, task__batch_size=64),
    *told("section 4.4", budget__updates="none", budget__epochs=30),
    *options("section 4.4", hidden_size=1000),
    *options(UNSAID, encoder="embedding", embedding_size=200),
    *ADAM,
    *watched(every=2000, batches=100, batch_size=64),
)
MNIST = (
    *told("section 4.5", task__name="pixel-mnist", budget__updates="none", budget__epochs=100, budget__patience=10),
    *told(UNSAID, task__batch_size=100),
    *options("section 4.5", hidden_size=128),
    *ADAM,
    *told("section 4.5", evaluation__metric="accuracy"),
    *watched(every=500, batches=0, batch_size=500),
)
SHARED = {"ptb-char": PTB, "text8": TEXT8, "pixel-mnist": MNIST}

ROWS: dict[str, Mapping[str, tuple[float, float]]] = {
    "ptb-char": {
        BPTT: (1.48, 1.38),
        lstm(1): (1.57, 1.47),
        lstm(5): (1.54, 1.44),
        lstm(20): (1.52, 1.43),
        sab(5, 5): (1.51, 1.42),
        sab(5, 10): (1.49, 1.40),
    },
    "text8": {BPTT: (1.54, 1.51), lstm(5): (1.64, 1.60), sab(5, 5, 5): (1.56, 1.53)},
    "pixel-mnist": {
        BPTT: (91.2, 90.3),
        sab(14, 5, 14): (90.6, 89.8),
        sab(14, 10, 14): (92.2, 90.9),
        sab(10, 10, 10): (92.2, 91.1),
    },
}
TITLES = {
    "ptb-char": "Characters of the Penn Treebank: bits per character",
    "text8": "text8: bits per character",
    "pixel-mnist": "MNIST pixel by pixel: accuracy",
}
NEEDS = {"ptb-char": "ptb", "text8": "text8", "pixel-mnist": "mnist"}
SMOKE = tiny(model__options__hidden_size=4, task__batch_size=2, measure_held_out__batch=2, measure_held_out__batches=1)
LAPTOP = (
    *departures("up to 100 epochs", budget__epochs=2),
    *departures("1000 units for text, 128 for pictures", model__options__hidden_size=128),
)
PREFIX = Departure("task.options.source", "prefix", "all 100 MB of text8", {"task": "text8"})
MEASURE = Measure("held_out", {"batch": 50, "weights": "best", "batches": 0})


def _recipe(task: str, method: str, *more: Setting) -> Recipe:
    return Recipe("training", but((*SHARED[task], *method_settings(method)), *more), (MEASURE,))


def _readings(task: str) -> tuple[Reading, ...]:
    key, unit = {"pixel-mnist": ("accuracy", "%")}.get(task, ("bits", ""))
    return tuple(Reading(part, "held_out", (part, key), unit) for part in ("validation", "test"))


def _table(number: int, task: str) -> Experiment:
    readings = _readings(task)
    printed = {
        (method, reading.name): PrintedNumber(value, f"Table {number}")
        for method, values in ROWS[task].items()
        for reading, value in zip(readings, values, strict=True)
    }
    prefix = {"text8": (replace(PREFIX, where={}),)}.get(task, ())
    return Experiment(
        id=f"ke2017/table-{number}",
        title=TITLES[task],
        axes={"method": tuple(ROWS[task])},
        recipe=lambda place: _recipe(task, place["method"]),
        smoke=Scale((*SMOKE, *prefix), {"method": (list(ROWS[task])[-1],)}),
        laptop=Scale((*LAPTOP, *prefix)),
        readings=readings,
        printed=printed,
        needs=(NEEDS[task],),
    )


TABLE_6 = _table(6, "ptb-char")
TABLE_7 = _table(7, "text8")
TABLE_8 = _table(8, "pixel-mnist")

METHODS = {"ptb-char": sab(5, 10), "text8": sab(5, 5, 5), "pixel-mnist": sab(10, 10, 10)}


def _clipped(place: Place) -> Recipe:
    clipping = told("section 7.2", loop__clip_norm=NORMS[place["clipping"]])
    return _recipe(place["task"], METHODS[place["task"]], *clipping)


CLIPPING = Experiment(
    id="ke2017/clipping",
    title="SAB with and without gradient clipping (7.2)",
    axes={"task": tuple(METHODS), "clipping": tuple(NORMS)},
    recipe=_clipped,
    smoke=Scale(SMOKE, {"task": ("pixel-mnist",), "clipping": ("none",)}),
    laptop=Scale((*LAPTOP, PREFIX)),
    readings=(
        Reading("test bits", "held_out", ("test", "bits")),
        Reading("test accuracy", "held_out", ("test", "accuracy"), "%"),
    ),
    needs=("ptb", "text8", "mnist"),
    note="The paper prints no numbers: clipping is said to be needed for text8 only.",
)
