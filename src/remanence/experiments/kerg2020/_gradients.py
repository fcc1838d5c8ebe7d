"""Gradients, memory and attention of models trained on Copy and Denoise: figures 1, 2, 3, 10 and 11."""

from __future__ import annotations

from remanence.experiments._declaring import but, departures, options
from remanence.experiments._experiment import Curve, Experiment, Place, Reading, Recipe, Scale, Setting
from remanence.experiments._work import Measure
from remanence.experiments.kerg2020._recall import LAPTOP, SMOKE
from remanence.experiments.kerg2020._recall_settings import recall_settings
from remanence.runs import Settings, Values

LENGTH = 1000
TRADED = (400, 600, 800)
ROWS = 10
CODE = "authors' code, denoisetask.py"


# ---- figure 1: what full attention reads -----------------------------------------------------------------------------

ATTENTION = (
    Reading("states read, of those there", "attention", ("effective",)),
    Reading("states there", "attention", ("available",)),
    Reading("attention on symbols", "attention", ("on_symbols",), "%"),
    Reading("if it were even", "attention", ("even",), "%"),
    Reading("farthest read", "attention", ("farthest",)),
)


def attention_recipe(task: str, model: str, changed: Settings) -> Recipe:
    """A run of recall whose attention is looked at."""
    settings = but(recall_settings(task, model, 100), *options("the figure", **changed))
    return Recipe("training", settings, (Measure("attention", {"rows": 8}),))


ONE_MAP = (*SMOKE, *departures("not printed", task__options__length=5), *departures("8", measure_attention__rows=1))

FIGURE_1 = Experiment(
    id="kerg2020/figure-1",
    title="Attention of a fully attentive model trained on Copy and on Denoise",
    axes={"task": ("copy", "denoise")},
    recipe=lambda place: attention_recipe(place["task"], "MemRNN", {}),
    smoke=Scale(ONE_MAP, {"task": ("copy",)}),
    laptop=Scale(LAPTOP),
    readings=ATTENTION,
    note="The figure does not say at which T; here T = 100. The heat map is the measurement `attention`, its `map`.",
)

BUFFER = {"recent": 10, "relevant": 0}


def _buffer(number: int, task: str) -> Experiment:
    return Experiment(
        id=f"kerg2020/figure-{number}",
        title=f"Attention on {task.capitalize()} over the short-term buffer alone",
        axes={"model": ("RelRNN",)},
        recipe=lambda place: attention_recipe(task, place["model"], BUFFER),
        smoke=Scale(ONE_MAP),
        laptop=Scale(LAPTOP),
        readings=ATTENTION,
        note="No read goes farther back than the buffer is long, by construction: the figure shows what is read in it.",
    )


FIGURE_10 = _buffer(10, "copy")
FIGURE_11 = _buffer(11, "denoise")


# ---- figures 2 and 3: gradients of trained models --------------------------------------------------------------------

REACH = Curve("ln |dL/dh|", "gradients", f"reach.{LENGTH}.distance", f"reach.{LENGTH}.log_norm")
CHANGE = Reading("change of ln |dL/dh|", "gradients", ("reach", str(LENGTH), "change"))
ACCURACY = Reading("accuracy", "answers", (str(LENGTH), "accuracy"), "%", "accuracy")
SIZES = {"RelLSTM": options(CODE, recent=15, relevant=15)}


def _looked_into(model: str, own: tuple[Setting, ...], traded: tuple[int, ...]) -> Recipe:
    settings = but(recall_settings("denoise", model, LENGTH), *own)
    gradients = Measure("gradients", {"lengths": [LENGTH], "rows": ROWS, "traded": list(traded)})
    asked = Measure("answers", {"lengths": [LENGTH], "sequences": 200, "batch": 50, "weights": "last"})
    return Recipe("training", settings, (asked, gradients))


FEW_GRADIENTS = (
    *SMOKE,
    *departures("T = 1000", task__options__length=5, measure_gradients__rows=2, measure_answers__lengths=[1000]),
    *departures(
        "T = 1000", measure_gradients__points=20, measure_gradients__lengths=[20], measure_gradients__traded=[]
    ),
)
GROWING = Scale(
    (
        *departures("200,000 updates", budget__updates=20_000),
        *departures("T = 1000 throughout", curriculum__start=10, curriculum__accuracy=0.9),
    )
)

FIGURE_2 = Experiment(
    id="kerg2020/figure-2",
    title="Denoise at T = 1000: gradients by distance (left), and against the memory of training (right)",
    axes={"model": ("RNN", "LSTM", "MemRNN", "SABLSTM", "RelLSTM")},
    recipe=lambda place: _looked_into(place["model"], SIZES.get(place["model"], ()), TRADED),
    smoke=Scale(FEW_GRADIENTS, {"model": ("RelLSTM",)}),
    laptop=GROWING,
    readings=(
        ACCURACY,
        CHANGE,
        *(Reading(f"mean ln |dL/dh|, T = {t}", "gradients", ("tradeoff", str(t), "mean_log_norm")) for t in TRADED),
        *(Reading(f"peak bytes, T = {t}", "gradients", ("tradeoff", str(t), "peak_bytes")) for t in TRADED),
    ),
    curves=(REACH,),
    note="Memory is counted in bytes of tensors in plain torch; the authors read a GPU's peak, which has a constant of "
    "some 490 MB in it.",
)

MEMORY_LENGTHS = (200, 400, 600, 800, 1000, 2000)
ALL_SCORED = {"every": 10, "top_k": 10, "score": "mlp"}
LAYERS: dict[str, tuple[str, Values]] = {
    "RNN": ("RNN", {}),
    "LSTM": ("LSTM", {}),
    "MemRNN": ("MemRNN", {}),
    "SAB": ("SABLSTM", ALL_SCORED),
    "RelRNN": ("RelRNN", {}),
    "RelLSTM": ("RelLSTM", {}),
    "MemRNN, kernel": ("MemRNN", {"backend": "auto"}),
    "SAB, kernel": ("SABLSTM", {"every": 10, "top_k": 10, "backend": "auto"}),
    "RelLSTM, kernel": ("RelLSTM", {"backend": "auto"}),
}


def _memory(place: Place) -> Recipe:
    model, own = LAYERS[place["layer"]]
    chosen = {"backend": "reference", **own}
    settings = {"model": model, "options": chosen, "width": 128, "lengths": list(MEMORY_LENGTHS)}
    return Recipe("measurement", (), (Measure("training_memory", settings),))


FIGURE_2_CENTRE = Experiment(
    id="kerg2020/figure-2-centre",
    title="Memory of training by the length of the sequence",
    axes={"layer": tuple(LAYERS)},
    recipe=_memory,
    smoke=Scale(
        departures("T = 200 to 2000, width 128", measure_training_memory__lengths=[10, 20, 40])
        + departures("128", measure_training_memory__width=4),
        {"layer": ("MemRNN",)},
    ),
    laptop=Scale(departures("128, in the authors' code", measure_training_memory__width=32)),
    readings=(
        Reading("MB at the longest", "training_memory", ("megabytes",)),
        Reading("power of T", "training_memory", ("exponent",)),
    ),
    curves=(Curve("peak bytes", "training_memory", "lengths", "peak_bytes"),),
    note="One sequence in plain torch, as the authors' code runs; the layers named `kernel` run in this library's.",
)


def _screened(place: Place) -> Recipe | None:
    if 15 not in (place["recent"], place["relevant"]) or place["recent"] == place["relevant"]:
        return None
    return _looked_into("RelLSTM", options("the figure", recent=place["recent"], relevant=place["relevant"]), ())


FIGURE_3 = Experiment(
    id="kerg2020/figure-3",
    title="Denoise at T = 1000: gradients of RelLSTM by the sizes of its memories",
    axes={"recent": (15, 3, 8, 18, 25), "relevant": (3, 8, 15, 18, 25)},
    recipe=_screened,
    smoke=Scale(FEW_GRADIENTS, {"recent": (15,), "relevant": (3,)}),
    laptop=GROWING,
    readings=(ACCURACY, CHANGE),
    curves=(REACH,),
    note="The caption says MemLSTM; the sizes are those of RelLSTM.",
)
