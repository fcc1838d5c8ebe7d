"""What Theorem 2 and Remark 6 speak of, in models trained on Copy and Denoise."""

from __future__ import annotations

from remanence.experiments._declaring import departures
from remanence.experiments._experiment import Experiment, Reading, Scale
from remanence.experiments._work import Measure
from remanence.experiments.kerg2020._recall import LAPTOP, SMOKE, learnt

MEASURE = Measure("dependencies", {"rows": 8})
PER_CENT = {
    "relevant": "relevant states",
    "irrelevant": "not relevant",
    "neither": "neither",
    "untrained_irrelevant": "not relevant before training",
    "reached": "answers with a way",
}
NUMBERS = {
    "kappa": "states read",
    "depth": "depth",
    "deepest": "deepest",
    "bound": "ln bound of Theorem 2",
    "jacobian": "ln |dh_T/dh_t|",
}

DEPENDENCIES = Experiment(
    id="kerg2020/dependencies",
    title="Theorem 2 and Remark 6 in trained models: states that are read, paths to them, and the bound",
    axes={"task": ("copy", "denoise"), "model": ("RelRNN", "RelLSTM", "MemRNN"), "length": (100,)},
    recipe=lambda place: learnt(place["task"], place, (MEASURE,)),
    smoke=Scale(
        (*SMOKE, *departures("8", measure_dependencies__rows=1)),
        {"task": ("denoise",), "model": ("RelRNN",), "length": (5,)},
    ),
    laptop=Scale(LAPTOP),
    paper=Scale(seeds=3),
    readings=(
        *(Reading(name, "dependencies", (key,), "%") for key, name in PER_CENT.items()),
        *(Reading(name, "dependencies", (key,)) for key, name in NUMBERS.items()),
    ),
    note="A state is relevant if more than half of the later steps read it at an even share or more, and not relevant "
    "if nine of ten read it at less than a tenth of that; the paper gives no thresholds. A state counts as read from a "
    "weight of 1 % on. The theorem assumes a linear cell, s = h + c, uniform weights and a positive real eigenvalue, "
    "which none of these models has: without such an eigenvalue, or with gates, there is no bound to show.",
)
