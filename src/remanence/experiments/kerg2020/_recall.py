"""Copy and Denoise: Tables 1, 2 and 5, and the learning curves of figures 4 to 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from remanence.experiments._experiment import (
    Curve,
    Departure,
    Experiment,
    Reading,
    Recipe,
    Scale,
    printed_table,
)
from remanence.experiments._work import Measure
from remanence.experiments.kerg2020._recall_settings import recall_settings

SEQUENCES = 1000
BATCH = 100
NOTE = (
    "Accuracy of the last weights on 1,000 fresh sequences (the authors' code takes 10,000). A run ends when it has "
    "answered 99 % at twenty evaluations in a row, or after 200,000 updates."
)

TINY = "a few updates of a tiny model show that it runs, and nothing else"
SMOKE = (
    Departure("model.options.hidden_size", 8, TINY),
    Departure("budget.updates", 4, TINY),
    Departure("evaluation.every", 2, TINY),
    Departure("evaluation.batch_size", 5, TINY),
    Departure("loop.log_every", 2, TINY),
    Departure("loop.save_every", 2, TINY),
    Departure("measure:answers.sequences", 5, TINY),
    Departure("measure:answers.batch", 5, TINY),
)
LAPTOP = (Departure("budget.updates", 50_000, "200,000 updates, in the authors' code"),)

ACCURACY = Reading("accuracy", "answers", ("{length}", "accuracy"), "%", "accuracy")
LEARNING = Curve("accuracy of validation", "validation", "update", "accuracy")
LOSS = Curve("cross-entropy of all steps", "train", "update", "loss")


def learnt(task: str, place: Mapping[str, Any], measures: tuple[Measure, ...] = ()) -> Recipe:
    """A run at a place's length, asked on fresh sequences of it."""
    settings = recall_settings(task, place["model"], place["length"])
    return Recipe("training", settings, measures or (asked_at([place["length"]]),))


def asked_at(lengths: Sequence[int]) -> Measure:
    """Fresh sequences of some lengths, answered by the last weights, as in the authors' code."""
    return Measure("answers", {"lengths": list(lengths), "sequences": SEQUENCES, "batch": BATCH, "weights": "last"})


def recall_scales(**laptop: tuple[Any, ...]) -> dict[str, Scale]:
    """The three scales of a table of recall; at `laptop` these values of the axes are run."""
    return {
        "smoke": Scale(SMOKE, {"length": (5,)} if "length" in laptop else {}),
        "laptop": Scale(LAPTOP, laptop),
        "paper": Scale(seeds=3),
    }


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
    scales=recall_scales(length=(100,)),
    readings=(ACCURACY,),
    curves=(LEARNING,),
    printed=printed_table("Table 2", DENOISE_LENGTHS, DENOISE, "accuracy", transposed=True),
    note=NOTE,
)

TABLE_5 = Experiment(
    id="kerg2020/table-5",
    title="Copy: accuracy of the answers by length and model",
    axes={"length": COPY_LENGTHS, "model": tuple(COPY)},
    recipe=lambda place: learnt("copy", place),
    scales=recall_scales(length=(100,)),
    readings=(ACCURACY,),
    curves=(LEARNING,),
    printed=printed_table("Table 5", COPY_LENGTHS, COPY, "accuracy"),
    note=NOTE,
)
