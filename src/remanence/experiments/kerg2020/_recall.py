"""Copy and Denoise: Tables 1, 2 and 5, and the learning curves of figures 4 to 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from remanence.experiments._declaring import departures, printed_table, tiny
from remanence.experiments._experiment import Axes, Curve, Experiment, Place, PrintedNumber, Reading, Recipe, Scale
from remanence.experiments._work import Measure
from remanence.experiments.kerg2020._recall_settings import recall_settings

SEQUENCES = 1000
BATCH = 100
NOTE = (
    "Accuracy of the last weights on 1,000 fresh sequences (the authors' code takes 10,000). A run ends when it has "
    "answered 99 % at twenty evaluations in a row, or after 200,000 updates."
)

SMOKE = tiny(model__options__hidden_size=8, measure_answers__sequences=5, measure_answers__batch=5)
SHORT_TRANSFER = (*SMOKE, *departures("T = 100", task__options__length=5, measure_answers__lengths=[100]))
LAPTOP = departures("200,000 updates, in the authors' code", budget__updates=50_000)

ACCURACY = Reading("accuracy", "answers", ("{length}", "accuracy"), "%", "accuracy")
LEARNING = Curve("accuracy of validation", "validation", "update", "accuracy")
LOSS = Curve("cross-entropy of all steps (validation)", "validation", "update", "loss", scale="log")


def learnt(task: str, place: Place, measures: tuple[Measure, ...] = ()) -> Recipe:
    """A run at a place's length, asked on fresh sequences of it."""
    settings = recall_settings(task, place["model"], place["length"])
    return Recipe("training", settings, measures or (asked_at([place["length"]]),))


def asked_at(lengths: Sequence[int]) -> Measure:
    """Fresh sequences of some lengths, answered by the last weights, as in the authors' code."""
    return Measure("answers", {"lengths": list(lengths), "sequences": SEQUENCES, "batch": BATCH, "weights": "last"})


TINIEST = {"length": (5,), "model": ("LSTM", "RelRNN")}
AT_100 = Scale(LAPTOP, {"length": (100,)})
THRICE = Scale(seeds=3)

# Per cent, by our names of the models: orth-RNN, expRNN and SAB in the paper.
DENOISE_LENGTHS = (100, 300, 500, 1000, 2000)
DENOISE = {
    "OrthRNN": (90, 71, 61, 29, 3),
    "ExpRNN": (34, 25, 20, 16, 11),
    "MemRNN": (99, 99, 99, 99, "OOM"),
    "RelRNN": (100, 99, 99, 99, 99),
    "LSTM": (82, 41, 33, 21, 15),
    "GORU": (92, 93, 91, 93, 73),
    "SABLSTM": (99, 99, 99, 99, 99),
    "RelLSTM": (100, 99, 99, 99, 99),
}
# The text at hand has lost LSTM at T = 1000 and runs two lines of MemRNN together: None.
COPY_LENGTHS = (100, 200, 300, 500, 1000, 2000)
COPY = {
    "LSTM": (100, 100, 100, 12, None, 12),
    "OrthRNN": (100, 100, 100, 100, 80, 11),
    "ExpRNN": (100, 100, 100, 100, 100, 100),
    "MemRNN": (100, 100, None, None, 100, "OOM"),
    "SABLSTM": (100, 100, 100, 100, 100, 100),
    "RelRNN": (100, 100, 100, 100, 100, 100),
    "RelLSTM": (100, 100, 100, 100, 100, 100),
}

TABLE_2 = Experiment(
    id="kerg2020/table-2",
    title="Denoise: accuracy of the answers by model and length",
    axes={"model": tuple(DENOISE), "length": DENOISE_LENGTHS},
    recipe=lambda place: learnt("denoise", place),
    smoke=Scale(SMOKE, TINIEST),
    laptop=AT_100,
    paper=THRICE,
    readings=(ACCURACY,),
    curves=(LEARNING,),
    printed=printed_table("Table 2", DENOISE_LENGTHS, DENOISE, transposed=True),
    note=NOTE,
)

TABLE_5 = Experiment(
    id="kerg2020/table-5",
    title="Copy: accuracy of the answers by length and model",
    axes={"length": COPY_LENGTHS, "model": tuple(COPY)},
    recipe=lambda place: learnt("copy", place),
    smoke=Scale(SMOKE, TINIEST),
    laptop=AT_100,
    paper=THRICE,
    readings=(ACCURACY,),
    curves=(LEARNING,),
    printed=printed_table("Table 5", COPY_LENGTHS, COPY),
    note=NOTE,
)

OTHERS = Experiment(
    id="kerg2020/recall-others",
    title="Copy and Denoise: accuracy of models that Tables 2 and 5 leave out",
    axes={"task": ("copy", "denoise"), "model": ("RNN", "HDetachLSTM"), "length": (100,)},
    recipe=lambda place: learnt(place["task"], place),
    smoke=Scale(SMOKE, {"length": (5,)}),
    laptop=Scale(LAPTOP),
    readings=(ACCURACY,),
    curves=(LEARNING,),
    note=f"{NOTE} Nothing is printed for these models, so there is no number to compare with.",
)

TRANSFER_LENGTHS = (100, 200, 400, 2000, 5000)
TRANSFER = {
    "OrthRNN": (99, 4, 16, 10, 0),
    "ExpRNN": (100, 86, 73, 58, 50),
    "MemRNN": (99, 99, 99, 92, "OOM"),
    "RelRNN": (100, 99, 99, 99, 99),
    "LSTM": (99, 64, 48, 19, 14),
    "HDetachLSTM": (100, 91, 77, 51, 42),
    "SABLSTM": (99, 95, 95, 95, 95),
    "RelLSTM": (100, 99, 99, 99, 99),
}
TRAINED_AT = 100


def _transferred(place: Place) -> Recipe:
    return learnt("copy", {**place, "length": TRAINED_AT}, (asked_at(TRANSFER_LENGTHS),))


def _transferred_after_all(place: Place) -> Recipe:
    """As above, without an early end: the authors keep the last weights of 200,000 updates."""
    solved = _transferred(place)
    kept = tuple(setting for setting in solved.settings if setting.key not in ("budget.accuracy", "budget.hold"))
    return replace(solved, settings=kept)


TABLE_1 = Experiment(
    id="kerg2020/table-1",
    title="Transfer Copy: trained at T = 100, evaluated at other lengths",
    axes={"model": tuple(TRANSFER)},
    recipe=_transferred,
    smoke=Scale(SHORT_TRANSFER, {"model": ("HDetachLSTM",)}),
    laptop=Scale(LAPTOP),
    paper=Scale(seeds=3),
    readings=tuple(
        Reading(f"T = {length}", "answers", (str(length), "accuracy"), "%", "accuracy") for length in TRANSFER_LENGTHS
    ),
    curves=(LEARNING,),
    printed={
        (model, f"T = {length}"): PrintedNumber.of(value, "Table 1")
        for model, numbers in TRANSFER.items()
        for length, value in zip(TRANSFER_LENGTHS, numbers, strict=True)
    },
    note=NOTE,
)

TABLE_1_AFTER_ALL = replace(
    TABLE_1,
    id="kerg2020/table-1-after-all",
    title="Transfer Copy after all 200,000 updates: does training past 99 % transfer further?",
    recipe=_transferred_after_all,
    note="Accuracy of the last weights on 1,000 fresh sequences (the authors' code takes 10,000). No run ends early.",
)


def _curves(number: int, title: str, axes: Axes, tables: Mapping[str, Mapping[str, str]], note: str = "") -> Experiment:
    """Learning curves of cells that the tables have too."""
    smoke: dict[str, tuple[Any, ...]] = {"length": (5,)}
    if len(axes.get("model", ())) > 1:
        smoke["model"] = ("RelRNN",)
    return Experiment(
        id=f"kerg2020/figure-{number}",
        title=title,
        axes=axes,
        recipe=lambda place: learnt(place.get("task", "denoise"), place),
        smoke=Scale(SMOKE, smoke),
        laptop=AT_100,
        paper=THRICE,
        readings=(ACCURACY,),
        curves=(LOSS,),
        note=f"{note} {NOTE}".strip(),
        shows_cells_of=tables,
    )


FIGURE_4 = _curves(
    4,
    "Copy and Denoise: cross-entropy by updates",
    {
        "task": ("copy", "denoise"),
        "model": ("OrthRNN", "ExpRNN", "MemRNN", "SABLSTM", "RelRNN"),
        "length": (100, 200, 300, 500, 1000, 2000),
    },
    {"kerg2020/table-5": {"task": "copy"}, "kerg2020/table-2": {"task": "denoise"}},
    "The legend of the figure is not in the text at hand: the models are those of the tables.",
)
FIGURE_5 = _curves(
    5,
    "LSTM on Denoise: learning curves",
    {"model": ("LSTM",), "length": DENOISE_LENGTHS},
    {"kerg2020/table-2": {}},
)
FIGURE_6 = _curves(
    6,
    "GORU on Denoise: learning curves",
    {"model": ("GORU",), "length": DENOISE_LENGTHS},
    {"kerg2020/table-2": {}},
)
