"""Which defaults learn: how the read is combined, what is answered from, the optimiser and the initial weights."""

from __future__ import annotations

from remanence.experiments._declaring import but, departures, options, told
from remanence.experiments._experiment import Experiment, Place, Reading, Recipe, Scale
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
    title="Copy and Denoise at T = 100 by the options that a user leaves alone",
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
