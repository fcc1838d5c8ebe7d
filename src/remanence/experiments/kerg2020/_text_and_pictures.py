"""Tasks whose every step counts, the letters of the Penn Treebank and permuted MNIST: Table 3, figures 7, 8 and 9."""

from __future__ import annotations

from remanence.experiments._declaring import but, departures, options, tiny, told, watched
from remanence.experiments._experiment import (
    Curve,
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
from remanence.experiments.kerg2020._gradients import ATTENTION

PTB_CODE = "authors' code, PTBtask.py"
MNIST_CODE = "authors' code, pixelmnist.py and sMNISTtask.py"
UNLISTED = "not in the paper: as for the model nearest to it"
HALF = options("authors' code", combine="half", output="hidden")

PTB = (
    *told("the table", task__name="ptb-char"),
    *told(PTB_CODE, task__options__length=150, task__batch_size=128, budget__updates="none", budget__epochs=100),
    *options(PTB_CODE, encoder="embedding", embedding_size=200, hidden_size=1024),
    *told(PTB_CODE, schedule__name="plateau", schedule__factor=0.5, loop__clip_norm="none"),
    *watched(
        every=261, batches=0, batch_size=10, save_every=261
    ),  # an epoch: the rate is halved after one without gain
)
MNIST = (
    *told("the table", task__name="pixel-mnist", task__options__permuted=True),
    *told(MNIST_CODE, task__batch_size=100, budget__updates="none", budget__epochs=200, loop__clip_norm=1.0),
    *options(MNIST_CODE, hidden_size=100),
    *told("the best by validation", evaluation__metric="accuracy"),
    *watched(every=500, batches=0, batch_size=500, save_every=500),
)


def _adam(rate: float, source: str, **more: float) -> tuple[Setting, ...]:
    return told(source, optimiser__name="adam", optimiser__learning_rate=rate, **more)


def _memory(relevant: int, source: str) -> tuple[Setting, ...]:
    return (*HALF, *options(source, recent=10, relevant=relevant))


TANH = (*options("Table 9", nonlinearity="tanh"), *options(PTB_CODE, recurrent_init="cayley"))
MODRELU = (*options("Table 8", nonlinearity="modrelu"), *options(MNIST_CODE, recurrent_init="henaff"))
SAB = options("authors' code of SAB", score="tanh", normalise=True, underfull="raw", start="zero", output="summary")

PTB_MODELS: dict[str, tuple[Setting, ...]] = {
    "RNN": (*_adam(1e-3, UNLISTED), *options(UNLISTED, nonlinearity="tanh")),
    "OrthRNN": (*_adam(1e-3, "Table 9"), *TANH),
    "ExpRNN": (*_adam(3e-3, "Table 9", optimiser__orthogonal_learning_rate=3e-4), *TANH),
    "RelRNN": (*_adam(3e-4, "Table 9"), *TANH, *_memory(5, "Table 9")),
    "LSTM": _adam(2e-4, "Table 9; the optimiser is not printed"),
    "SABLSTM": (*_adam(2e-3, "Ke et al. 2017, 4.3"), *options("Ke et al. 2017", top_k=10, every=2, truncate=5), *SAB),
    "RelLSTM": (*_adam(2e-4, "Table 9, row of LSTM"), *_memory(5, "Table 9")),
}
MNIST_MODELS: dict[str, tuple[Setting, ...]] = {
    "RNN": (*_adam(1e-4, UNLISTED), *options(UNLISTED, nonlinearity="tanh")),
    "OrthRNN": (*_adam(1e-4, "Table 8"), *MODRELU),
    "ExpRNN": (*_adam(1e-4, "Table 8", optimiser__orthogonal_learning_rate=1e-5), *MODRELU),
    "RelRNN": (*_adam(3e-4, "Table 8"), *MODRELU, *_memory(10, "Table 8")),
    "LSTM": _adam(2e-4, "Table 8; the optimiser is not printed"),
    "HDetachLSTM": (*_adam(1e-3, "authors' code of h-detach"), *options("authors' code of h-detach", p=0.25)),
    "SABLSTM": (*_adam(1e-3, "Ke et al. 2017, 4.5"), *options("Ke et al. 2017", top_k=10, every=10, truncate=10), *SAB),
    "RelLSTM": (*_adam(2e-4, "Table 8, row of LSTM"), *_memory(10, "Table 8")),
}
MODELS = {"ptb-char": PTB_MODELS, "pixel-mnist": MNIST_MODELS}
SHARED = {"ptb-char": PTB, "pixel-mnist": MNIST}
NAMES = ("RNN", "OrthRNN", "ExpRNN", "RelRNN", "LSTM", "HDetachLSTM", "SABLSTM", "RelLSTM")

PRINTED = (
    ("ptb-char", "bits", (1.56, 1.53, 1.49, 1.43, 1.36, None, 1.37, 1.36)),
    ("ptb-char", "accuracy", (66, 66, 68, 69, 73, None, None, 73)),
    ("pixel-mnist", "accuracy", (90.4, 93.4, 96.6, 92.8, 91.1, 92.3, 94.2, 94.3)),
)


def _table_3_recipe(place: Place) -> Recipe | None:
    task = place["task"]
    model = place["model"]
    if model not in MODELS[task]:
        return None
    chosen = told("the table", model__name=model)
    measure = Measure("held_out", {"batch": 50, "weights": "best", "batches": 0})
    return Recipe("training", (*SHARED[task], *chosen, *MODELS[task][model]), (measure,))


SMOKE = tiny(
    model__options__hidden_size=4,
    task__batch_size=2,
    measure_held_out__batch=2,
    measure_held_out__batches=1,
    measure_attention__rows=1,
)
LAPTOP = (
    *departures("100 epochs of text, 200 of pictures", budget__epochs=2),
    *departures("1024 units for text, 100 for pictures", model__options__hidden_size=100),
)
READINGS = (
    Reading("bits", "held_out", ("test", "bits"), where={"task": "ptb-char"}),
    Reading("accuracy", "held_out", ("test", "accuracy"), "%", "accuracy"),
)
NOTE = (
    "The authors' code clears the attention memory at every chunk of 150 letters and carries the hidden state on; here "
    "both are carried on. Table 3 does not say how wide its models are; the widths are those of the authors' code."
)

TABLE_3 = Experiment(
    id="kerg2020/table-3",
    title="Characters of the Penn Treebank, and permuted MNIST",
    axes={"model": NAMES, "task": ("ptb-char", "pixel-mnist")},
    recipe=_table_3_recipe,
    smoke=Scale(SMOKE, {"model": ("RelRNN",)}),
    laptop=Scale(LAPTOP),
    readings=READINGS,
    curves=(Curve("validation loss", "validation", "update", "loss"),),
    printed={
        (model, task, reading): PrintedNumber(value, "Table 3")
        for task, reading, numbers in PRINTED
        for model, value in zip(NAMES, numbers, strict=True)
        if value is not None
    },
    needs=("ptb", "mnist"),
    note=NOTE,
)

FIGURE_8 = Experiment(
    id="kerg2020/figure-8",
    title="Permuted MNIST: validation accuracy by updates",
    axes={"model": NAMES},
    recipe=lambda place: _table_3_recipe({**place, "task": "pixel-mnist"}),
    smoke=Scale(SMOKE, {"model": ("LSTM",)}),
    laptop=Scale(LAPTOP),
    readings=(READINGS[1],),
    curves=(Curve("accuracy of validation", "validation", "update", "accuracy"),),
    needs=("mnist",),
    note="The cells are those of Table 3.",
)


def _heat_map(
    number: int, title: str, settings: tuple[Setting, ...], needs: str, smoke: tuple[Departure, ...]
) -> Experiment:
    chosen = (*settings, *told("the figure", model__name="MemRNN"), *HALF)
    recipe = Recipe("training", chosen, (Measure("attention", {"rows": 8, "weights": "best"}),))
    return Experiment(
        id=f"kerg2020/figure-{number}",
        title=title,
        axes={"model": ("MemRNN",)},
        recipe=lambda place: recipe,
        smoke=Scale(smoke),
        laptop=Scale(LAPTOP),
        readings=tuple(reading for reading in ATTENTION if not reading.unit),
        needs=(needs,),
        note="The heat map is the measurement `attention`, its `map`.",
    )


FIGURE_7 = _heat_map(
    7,
    "Attention on the letters of the Penn Treebank, full attention",
    but((*PTB, *_adam(3e-4, "Table 9, row of RelRNN"), *TANH), *told("the figure", task__options__length=125)),
    "ptb",
    (*SMOKE, *departures("125", task__options__length=12)),
)
FIGURE_9 = _heat_map(
    9,
    "Attention on MNIST, seven pixels a step",
    but(
        (*MNIST, *_adam(3e-4, "Table 8, row of RelRNN"), *MODRELU),
        *told("the figure", task__options__group=7, task__options__permuted=False),
    ),
    "mnist",
    (*SMOKE, *departures("7", task__options__group=98)),
)
