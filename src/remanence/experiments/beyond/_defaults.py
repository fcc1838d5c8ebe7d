"""Which defaults learn: how the read is combined, what is answered from, the optimiser and the initial weights."""

from __future__ import annotations

from remanence.experiments._declaring import but, departures, options, tiny, told, watched
from remanence.experiments._experiment import Experiment, Place, Reading, Recipe, Scale
from remanence.experiments._work import Measure
from remanence.experiments.kerg2020._recall import LEARNING, SHORT_TRANSFER, asked_at
from remanence.experiments.kerg2020._recall_settings import COMMON

LENGTH = 100
UPDATES = 50_000
RATES = {"RelRNN": 2e-4, "RelLSTM": 1e-3}  # The larger one that the authors use for the model, for both optimisers.


def _chosen(place: Place) -> Recipe:
    budget = told("ours: the authors' RelRNN needs 35,000", budget__updates=UPDATES)
    shared = but(COMMON, *budget)
    what = told("ours", task__name=place["task"], task__options__length=LENGTH, model__name=place["model"])
    learner = told("ours", optimiser__name=place["optimiser"], optimiser__learning_rate=RATES[place["model"]])
    factors = {name: place[name] for name in ("combine", "output", "init")}
    model = options("ours", recent=10, relevant=15, **factors)
    return Recipe("training", (*what, *shared, *learner, *model), (asked_at([LENGTH]),))


DEFAULTS = Experiment(
    id="beyond/defaults",
    title="Copy and Denoise at T = 100 with other defaults",
    axes={
        "task": ("copy", "denoise"),
        "model": tuple(RATES),
        "init": ("torch", "xavier"),
        "output": ("macro", "hidden"),
        "combine": ("sum", "half"),
        "optimiser": ("adam", "rmsprop"),
    },
    recipe=_chosen,
    smoke=Scale(
        SHORT_TRANSFER,
        {
            "task": ("copy",),
            "model": ("RelLSTM",),
            "init": ("xavier",),
            "output": ("hidden",),
            "combine": ("half",),
        },
    ),
    laptop=Scale(departures("50,000 updates", budget__updates=20_000)),
    paper=Scale(seeds=3),
    readings=(Reading("accuracy", "answers", (str(LENGTH), "accuracy"), "%", "accuracy"),),
    curves=(LEARNING,),
    note="One length throughout, no curriculum. A run ends when it has answered 99 % at twenty evaluations in a row.",
)

TEXT = (
    *told("ours", task__name="wikitext2-char", task__options__length=100, task__batch_size=32),
    *told("the recipe for text", optimiser__name="adam", optimiser__learning_rate=2e-3, loop__clip_norm=1.0),
    *options("the recipe for text", encoder="embedding", embedding_size=64, hidden_size=128),
    *told("ours: about an epoch and a half", budget__updates=5000),
    *watched(every=1000, batches=50, batch_size=16),
)


def _read(place: Place) -> Recipe:
    factors = {name: place[name] for name in ("combine", "output")}
    model = (*told("ours", model__name=place["model"]), *options("ours", recent=10, relevant=10, **factors))
    score = Measure("held_out", {"batch": 50, "batches": 0, "weights": "last"})
    return Recipe("training", (*TEXT, *model), (score,))


DEFAULTS_TEXT = Experiment(
    id="beyond/defaults-text",
    title="Characters of WikiText-2 by the options that a user leaves alone",
    axes={"model": tuple(RATES), "output": ("macro", "hidden"), "combine": ("sum", "half")},
    recipe=_read,
    smoke=Scale(
        tiny(
            task__options__length=6,
            model__options__embedding_size=4,
            model__options__hidden_size=4,
            measure_held_out__batches=1,
        ),
        {"model": ("RelLSTM",), "output": ("hidden",), "combine": ("half",)},
    ),
    laptop=Scale(departures("5,000 updates", budget__updates=2000)),
    readings=(Reading("bits per character", "held_out", ("test", "bits")),),
    curves=(LEARNING,),
    needs=("wikitext-2",),
    note="One layer of 128 units with 10 recent and 10 relevant states; the state is carried from chunk to chunk.",
)
