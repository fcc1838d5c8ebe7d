"""Recall at lengths nobody ran, and by models that came after the papers."""

from __future__ import annotations

from remanence.experiments._declaring import departures, options, told
from remanence.experiments._experiment import Experiment, Place, Reading, Recipe, Scale
from remanence.experiments._work import Measure
from remanence.experiments.kerg2020._recall import ACCURACY, LAPTOP, LEARNING, SHORT_TRANSFER, SMOKE, asked_at
from remanence.experiments.kerg2020._recall_settings import COMMON, recall_settings

FAR = (100, 400, 2000, 10_000, 50_000)
MODELS = ("LSTM", "RelRNN", "RelLSTM")


def _far(place: Place) -> Recipe:
    measure = Measure("answers", {"lengths": list(FAR), "sequences": 100, "batch": 10, "weights": "last"})
    return Recipe("training", recall_settings(place["task"], place["model"], 100), (measure,))


LENGTHS = Experiment(
    id="beyond/lengths",
    title="Copy and Denoise: trained at T = 100, evaluated at lengths that the paper does not have",
    axes={"task": ("copy", "denoise"), "model": MODELS},
    recipe=_far,
    smoke=Scale(SHORT_TRANSFER, {"task": ("denoise",), "model": ("RelRNN",)}),
    laptop=Scale(LAPTOP),
    paper=Scale(seeds=3),
    readings=tuple(Reading(f"T = {length:,}", "answers", (str(length), "accuracy"), "%") for length in FAR),
    note="The runs are those of Tables 2 and 5 of Kerg et al. 2020.",
)

MILLION_STEPS = (100, 10_000, 1_000_000)


def _streamed(place: Place) -> Recipe:
    measure = Measure("streamed", {"lengths": list(MILLION_STEPS), "rows": 10, "chunk": 1000, "weights": "last"})
    return Recipe("training", recall_settings("copy", place["model"], 100), (measure,))


MILLION = Experiment(
    id="beyond/million",
    title="Copy at T = 1,000,000 in constant memory, trained at T = 100",
    axes={"model": MODELS},
    recipe=_streamed,
    smoke=Scale(
        (
            *SMOKE,
            *departures("T = 100", task__options__length=5, measure_streamed__lengths=[100]),
            *departures("10", measure_streamed__rows=2),
        ),
        {"model": ("RelRNN",)},
    ),
    laptop=Scale(LAPTOP),
    readings=(
        *(Reading(f"T = {length:,}", "streamed", (str(length), "accuracy"), "%") for length in MILLION_STEPS),
        Reading("state bytes", "streamed", (str(MILLION_STEPS[-1]), "state_bytes")),
        Reading("CPU seconds", "streamed", (str(MILLION_STEPS[-1]), "cpu_seconds")),
    ),
    note="The blanks are streamed: neither the sequence nor its states are ever in memory.",
)

GRU = (
    *options("as the others", hidden_size=128),
    *told("ours", optimiser__name="adam", optimiser__learning_rate=2e-4),
)
TRANSFORMER = (
    *told("ours", optimiser__name="adam", optimiser__learning_rate=3e-4),
    *options("ours: about as many parameters as an LSTM of 128", encoder="dense", embedding_size=64, heads=4, depth=2),
)
MODERN = {"GRU": GRU, "Transformer": TRANSFORMER}


def _modern(place: Place) -> Recipe:
    shared = [setting for setting in COMMON if setting.key != "model.options.hidden_size"]
    task = told("the table", task__name=place["task"], task__options__length=place["length"])
    chosen = told("ours", model__name=place["model"])
    return Recipe("training", (*task, *chosen, *shared, *MODERN[place["model"]]), (asked_at([place["length"]]),))


BASELINES = Experiment(
    id="beyond/baselines",
    title="Copy and Denoise by GRU and a Transformer",
    axes={"task": ("copy", "denoise"), "model": tuple(MODERN), "length": (100, 300, 1000)},
    recipe=_modern,
    smoke=Scale(
        tuple(one for one in SMOKE if one.key != "model.options.hidden_size"),
        {"task": ("copy",), "model": ("Transformer",), "length": (5,)},
    ),
    laptop=Scale(LAPTOP, {"length": (100,)}),
    paper=Scale(seeds=3),
    readings=(ACCURACY,),
    curves=(LEARNING,),
    note="Neither is in the papers' tables. A Transformer keeps all states, so its memory grows with T.",
)
