"""Who should stay: the screens side by side, each at the learning rate that suits it."""

from __future__ import annotations

from remanence.experiments._declaring import departures, options, tiny, told, watched
from remanence.experiments._experiment import Departure, Experiment, Place, Reading, Recipe, Scale
from remanence.experiments._work import Measure
from remanence.experiments.kerg2020._recall import LEARNING

TEXT = "wikitext2-char"
RECALL = ("copy", "denoise", "mqar", "late-cues")
SCREENS = ("attention", "mean", "value", "learned", "random", "newest")
LENGTH = 100
COMMON = (
    *told("ours", model__name="RelLSTM", optimiser__name="adam", loop__clip_norm=1.0),
    *told("ours", budget__updates=50_000, budget__accuracy=0.99, budget__hold=2),
    *options("sizes of Kerg et al. 2020", hidden_size=128, recent=10, relevant=10),
    *options("their code: s = (h + r)/2, and the answer is read from h", combine="half", output="hidden"),
    *watched(every=500, batches=1, batch_size=100),
)


def _screened(place: Place) -> Recipe:
    task = told("ours", task__name=place["task"], task__options__length=LENGTH, task__batch_size=20)
    chosen = options("the table", screen=place["screen"])
    rate = told("the table: swept, because recall succeeds in a narrow window", optimiser__learning_rate=place["rate"])
    measure = Measure("recalled", {"rows": 1000, "weights": "last"})
    if place["task"] == TEXT:
        measure = Measure("held_out", {"batch": 50, "batches": 0, "weights": "last"})
    return Recipe("training", (*task, *COMMON, *chosen, *rate), (measure,))


SMALL_RECALL = {"items": 3, "symbols": 4}
SMALL_TASKS = {
    "copy": SMALL_RECALL,
    "denoise": SMALL_RECALL,
    "late-cues": {**SMALL_RECALL, "distractors": 8},
    "mqar": {"pairs": 4, "keys": 8, "values": 4},
}
SMALL = (
    *departures("T = 100", task__options__length=30),
    *departures("20 sequences an update", task__batch_size=32),
    *departures("128, 10 and 10", model__options__hidden_size=32, model__options__recent=4, model__options__relevant=4),
    *departures("1,000", measure_recalled__rows=500),
    *departures("the whole test part", measure_held_out__batches=20),
    *(
        Departure(f"task.options.{name}", size, "the task's own size", {"task": task})
        for task, sizes in SMALL_TASKS.items()
        for name, size in sizes.items()
    ),
)
LAPTOP = (*SMALL, *departures("50,000 and 500", budget__updates=2000, evaluation__every=250, loop__log_every=250))
QUICK_RATES = (5e-3, 1e-2, 2e-2)  # in so few updates the lower rates of the table teach nothing

SCREENED = Experiment(
    id="beyond/screens",
    title="Screens compared on recall and characters, by task and learning rate",
    axes={"task": (*RECALL, TEXT), "screen": SCREENS, "rate": (2e-4, 1e-3, 5e-3)},
    recipe=_screened,
    smoke=Scale(
        (*SMALL, *tiny(measure_recalled__rows=5)),
        {"task": ("mqar", "late-cues"), "screen": ("mean", "learned"), "rate": (1e-3,)},
    ),
    laptop=Scale(LAPTOP, {"rate": QUICK_RATES}, seeds=3),
    paper=Scale(seeds=3),
    readings=(
        *(Reading("accuracy", "recalled", ("accuracy",), "%", "accuracy", {"task": task}) for task in RECALL),
        *(Reading("needed states held", "recalled", ("held",), "%", where={"task": task}) for task in RECALL),
        Reading("bits a character", "held_out", ("test", "bits"), where={"task": TEXT}),
    ),
    curves=(LEARNING,),
    needs=("wikitext-2",),
    note=(
        "One layer, RelLSTM. The best rate of a screen is the one to compare: read the three columns together. A state "
        "is held if it is in the buffer or in the relevant set at the step that asks for it."
    ),
)
