"""Information in what trained models say: figures 1, 2, 3, 7, 8, 9 and 10."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from remanence.experiments._declaring import TINY, departures, options, tiny, told, watched
from remanence.experiments._experiment import (
    Curve,
    Departure,
    Experiment,
    Fills,
    Place,
    Reading,
    Recipe,
    Scale,
    Setting,
)
from remanence.experiments._work import Measure
from remanence.runs import Values

KERAS = "not printed; the default of Keras"
CODE = "PyTorch's example, which the paper uses"
TRANSFORMER = "E.2"
DATA = "data"
RNN = "RNN"
LSTM = "LSTM"
ATTENTION = "Transformer"

# Fits: least lag, greatest lag, least estimate that counts (None is the floor of the estimate).
BINARY_FITS = {"all": [1, 500, 1e-3]}
TEXT_FITS = {"short": [1, 10, None], "middle": [1, 1000, 2e-3], "far": [50, 1000, None]}

BINARY_TASK: Values = {"length": 512, "train_sequences": 10_000}
BINARY = told("4.2.1", **{f"task__options__{key}": value for key, value in BINARY_TASK.items()})
BINARY_RECURRENT = (
    *told("E.1.1", task__name="binary-power-law", task__batch_size=50, optimiser__name="rmsprop", loop__clip_norm=0.25),
    *BINARY,
    *told(KERAS, optimiser__smoothing=0.9, optimiser__epsilon=1e-7),
    *options("E.1.1", encoder="embedding", embedding_size=2),
    *told("E.1.1", budget__updates=200_000, budget__patience=5),
    *watched(every=200, batches=4, batch_size=500, save_every=200),  # an epoch, and the 2,000 validation sequences
)
BINARY_TRANSFORMER = (
    *told("E.2.1", task__name="binary-power-law", task__batch_size=50, optimiser__name="adam"),
    *BINARY,
    *told("E.2.1", optimiser__learning_rate=2e-4, budget__updates="none", budget__epochs=200, budget__patience=5),
    *told(TRANSFORMER, schedule__name="cosine", schedule__fraction=1 / 32, loop__clip_norm=5.0),
    *options("E.2.1", encoder="embedding", heads=4),
    *watched(every=200, batches=4, batch_size=500, save_every=200),
)
CHAR_LSTM = (
    *told("E.1.2", task__name="wikitext2-char", task__options__length=100, task__options__drop_state=0.01),
    *told(
        "E.1.2", task__batch_size=128, optimiser__name="rmsprop", optimiser__learning_rate=5e-3, loop__clip_norm=0.25
    ),
    *told(KERAS, optimiser__smoothing=0.9, optimiser__epsilon=1e-7),
    *options("E.1.2", encoder="embedding", embedding_size=200),
    *told("E.1.2", budget__updates=200_000, budget__patience=5),
    *watched(every=843, batches=0, batch_size=32, save_every=843),
)
WORD_LSTM = (
    *told("E.1.2", task__name="wikitext2-word", task__options__length=50, budget__updates="none", budget__epochs=60),
    *options("E.1.2", encoder="embedding", tied=True, dropout=0.4),
    *told(CODE, task__batch_size=20, optimiser__name="sgd", optimiser__learning_rate=20.0, loop__clip_norm=0.25),
    *told(CODE, schedule__name="plateau", schedule__factor=0.25),
    *watched(every=2088, batches=0, batch_size=10, save_every=2088),
)
CHAR_TRANSFORMER = (
    *told("section 5", task__name="wikitext2-char", task__options__length=512, task__options__drop_state=1.0),
    *told("E.2.2", task__batch_size=64, optimiser__name="adam", optimiser__learning_rate=2e-4),
    *told("E.2.2", budget__updates="none", budget__epochs=200, budget__patience=5),
    *told(TRANSFORMER, schedule__name="cosine", schedule__fraction=1 / 32, loop__clip_norm=5.0),
    *options("E.2.2", encoder="embedding", heads=8),
    *watched(every=329, batches=0, batch_size=32, save_every=329),
)
WORD_TRANSFORMER = (
    *told("section 5", task__name="wikitext2-word", task__options__length=128, task__options__drop_state=1.0),
    *told("E.2.2", task__batch_size=20, optimiser__name="adam", optimiser__learning_rate=2.5e-4),
    *told("E.2.2", optimiser__embedding_l2=0.01, budget__updates="none", budget__epochs=200, budget__patience=10),
    *told(TRANSFORMER, schedule__name="cosine", schedule__fraction=1 / 32, loop__clip_norm=5.0),
    *options("E.2.2", encoder="embedding", heads=8, tied=True, dropout=0.1),
    *watched(every=816, batches=0, batch_size=10, save_every=816),
)
SETTINGS: dict[tuple[str, str], tuple[Setting, ...]] = {
    ("binary", RNN): (*BINARY_RECURRENT, *told("E.1.1", optimiser__learning_rate=1e-3)),
    ("binary", LSTM): (*BINARY_RECURRENT, *told("E.1.1", optimiser__learning_rate=5e-3)),
    ("binary", ATTENTION): BINARY_TRANSFORMER,
    ("characters", LSTM): CHAR_LSTM,
    ("words", LSTM): WORD_LSTM,
    ("characters", ATTENTION): CHAR_TRANSFORMER,
    ("words", ATTENTION): WORD_TRANSFORMER,
}
AMOUNTS: dict[str, Values] = {
    "binary": {"rows": 2000, "length": 512, "longest": 500, "fits": BINARY_FITS},
    "characters": {"rows": 200, "length": 10_000, "longest": 1000, "fits": TEXT_FITS},
    "words": {"rows": 200, "length": 2000, "longest": 1000, "fits": TEXT_FITS},
}
TASKS: dict[str, tuple[str, Values]] = {
    "binary": ("binary-power-law", BINARY_TASK),
    "characters": ("wikitext2-char", {}),
    "words": ("wikitext2-word", {}),
}


def _shape(data: str, model: str, width: int, depth: int) -> tuple[Setting, ...]:
    if model == ATTENTION:
        return options("the figure", embedding_size=width, depth=depth)
    shape = options("the figure", hidden_size=width, num_layers=depth)
    if data == "words":
        return (*shape, *options("E.1.2: tied", embedding_size=width))
    return shape


def sampled(data: str, model: str, width: int, depth: int) -> Recipe:
    """A trained model and what is drawn from it, or the data themselves."""
    if model == DATA:
        task, own = TASKS[data]
        settings = {"task": task, "options": own, "split": "train", **AMOUNTS[data]}
        return Recipe("measurement", (), (Measure("data_information", settings),))
    chosen = (*told("the figure", model__name=model), *_shape(data, model, width, depth))
    measure = Measure("sampled_information", {**AMOUNTS[data], "seed": 0, "weights": "best"})
    return Recipe("training", (*SETTINGS[data, model], *chosen), (measure,))


NAMES = ("sampled_information", "data_information")

XI = ("xi", "all", "xi")
MIDDLE = ("xi, middle", "middle", "xi")
FAR = ("gamma, far", "far", "gamma")


def _readings(*numbers: tuple[str, str, str]) -> tuple[Reading, ...]:
    """Each number from whichever measurement the cell has."""
    laws = {"gamma": "power", "xi": "exponential"}
    return tuple(Reading(name, "|".join(NAMES), ("fits", fit, laws[key], key)) for name, fit, key in numbers)


CURVES = (Curve("information", "|".join(NAMES), "curve.lags", "curve.values"),)
BEST = "The paper draws from the best of five runs (three of some) by validation; here every seed is drawn from."


def _tiny(**more: Any) -> tuple[Departure, ...]:
    drawn: Values = {"rows": 4, "length": 40, "longest": 8}
    amounts = {f"measure_{name}__{key}": value for name in NAMES for key, value in drawn.items()}
    return (*tiny(task__batch_size=2, **more), *departures(TINY, **amounts))


_figure = partial(Experiment, curves=CURVES, note=BEST)

# ---- binary sequences ------------------------------------------------------------------------------------------------

WIDTHS = (4, 8, 16, 32, 64, 128, 256)
BINARY_LAPTOP = (
    *departures("until nothing is gained for 5 epochs", budget__updates=2000),
    *departures("512 bits", task__options__length=256, measure_sampled_information__length=256),
    *departures("lags to 500", measure_sampled_information__longest=200, measure_data_information__longest=200),
    *departures("512 bits", measure_data_information__length=256),
)
BINARY_SMOKE = _tiny(task__options__length=20, task__options__train_sequences=8)


def _scan(place: Place) -> Recipe | None:
    """Widths at depth 1 and depths at width 8; the data once."""
    model = place["model"]
    width = place["width"]
    depth = place["depth"]
    if depth != 1 and width != 8:
        return None
    if model == DATA and (width, depth) != (WIDTHS[0], 1):
        return None
    return sampled("binary", model, width, depth)


FIGURE_1 = _figure(
    id="shen2019/figure-1",
    title="Binary sequences: correlation length of RNN and LSTM by width and depth",
    axes={"model": (DATA, RNN, LSTM), "width": WIDTHS, "depth": (1, 2, 3, 4)},
    recipe=_scan,
    smoke=Scale(BINARY_SMOKE, {"model": (DATA, RNN), "width": (4,), "depth": (1,)}),
    laptop=Scale(BINARY_LAPTOP, {"width": (4, 8, 32), "depth": (1, 2)}),
    paper=Scale(seeds=5),
    readings=_readings(XI),
)
FIGURE_7 = _figure(
    id="shen2019/figure-7",
    title="Binary sequences: correlation length of LSTM by width and depth",
    axes={"width": (4, 8, 16, 32), "depth": (1, 2, 3, 4)},
    recipe=lambda place: sampled("binary", LSTM, place["width"], place["depth"]),
    smoke=Scale(BINARY_SMOKE, {"width": (4,), "depth": (2,)}),
    laptop=Scale(BINARY_LAPTOP, {"width": (4, 8), "depth": (1, 2)}),
    paper=Scale(seeds=5),
    readings=_readings(XI),
)


def _attentive_scan(place: Place) -> Recipe | None:
    if place["depth"] != 1 and place["width"] != 16:
        return None
    return sampled("binary", ATTENTION, place["width"], place["depth"])


FIGURE_9 = _figure(
    id="shen2019/figure-9",
    title="Binary sequences: correlation length of Transformers by width and depth",
    axes={"width": (4, 8, 16, 32, 64), "depth": (1, 2, 3, 4)},
    recipe=_attentive_scan,
    smoke=Scale(BINARY_SMOKE, {"width": (4,), "depth": (1,)}),
    laptop=Scale((*BINARY_LAPTOP, *departures("200 epochs", budget__epochs="none")), {"width": (4, 16), "depth": (1,)}),
    paper=Scale(seeds=5),
    readings=_readings(XI),
)

# ---- WikiText-2 ------------------------------------------------------------------------------------------------------

TEXT = ("wikitext-2",)
TEXT_SMOKE = _tiny(task__options__length=12)
TEXT_LAPTOP = (
    *departures("until nothing is gained, or 60 epochs", budget__updates=5000, budget__epochs="none"),
    *departures("128, 64 and 20", task__batch_size=16),
    *departures("2 MB", measure_sampled_information__rows=100),
)


def _data_once(data: str, depth: int) -> Recipe | None:
    """The data themselves stand in the row of depth 1."""
    if depth != 1:
        return None
    return sampled(data, DATA, 0, 1)


def _text_widths(model: str, widths: Mapping[str, tuple[int, ...]], depths: Mapping[str, int]) -> Fills:
    """Widths at depth 1, and depths at one width of each kind of text; the text itself once."""

    def recipe(place: Place) -> Recipe | None:
        data = place["data"]
        width = place["width"]
        depth = place["depth"]
        if width == DATA:
            return _data_once(data, depth)
        if width not in widths[data] or (depth != 1 and width != depths[data]):
            return None
        return sampled(data, model, width, depth)

    return recipe


LSTM_WIDTHS = {"characters": (16, 32, 128, 512, 1024, 2048), "words": (16, 128, 512, 1024, 2048)}
FIXED = {"characters": 128, "words": 512}
TEXT_AXES = {"data": ("characters", "words"), "width": (DATA, 16, 32, 128, 512, 1024, 2048), "depth": (1,)}
TEXT_READINGS = (("xi, short", "short", "xi"), MIDDLE, FAR)
SMOKE_TEXT = Scale(TEXT_SMOKE, {"data": ("characters",), "width": (16,), "depth": (1,)})

FIGURE_2 = _figure(
    id="shen2019/figure-2",
    title="WikiText-2: information in samples of LSTMs, by characters and by words",
    axes=TEXT_AXES,
    recipe=_text_widths(LSTM, LSTM_WIDTHS, FIXED),
    smoke=SMOKE_TEXT,
    laptop=Scale(TEXT_LAPTOP, {"width": (DATA, 128)}),
    paper=Scale(seeds=3),
    readings=_readings(*TEXT_READINGS),
    needs=TEXT,
)
FIGURE_8 = _figure(
    id="shen2019/figure-8",
    title="WikiText-2: correlation length of LSTMs by width and depth",
    axes={**TEXT_AXES, "depth": (1, 2, 3, 4)},
    recipe=_text_widths(LSTM, LSTM_WIDTHS, FIXED),
    smoke=SMOKE_TEXT,
    laptop=Scale(TEXT_LAPTOP, {"width": (DATA, 128), "depth": (1, 2)}),
    paper=Scale(seeds=3),
    readings=_readings(MIDDLE),
    needs=TEXT,
)

ATTENTION_WIDTHS = {"characters": (64, 128, 256, 512), "words": (64, 128, 256, 512)}
ATTENTION_AXES = {"data": ("characters", "words"), "width": (DATA, 64, 128, 256, 512), "depth": (1, 2, 4)}


def _attention_figure(place: Place) -> Recipe | None:
    """Figure 3 (a) to (c): binary sequences as well."""
    if place["data"] != "binary":
        return _text_widths(ATTENTION, ATTENTION_WIDTHS, FIXED)(place)
    if place["width"] == DATA:
        return _data_once("binary", place["depth"])
    if place["width"] not in (4, 16):
        return None
    return sampled("binary", ATTENTION, place["width"], place["depth"])


FIGURE_3 = _figure(
    id="shen2019/figure-3",
    title="Information in samples of Transformers: binary sequences, characters and words of WikiText-2",
    axes={"data": ("binary", "characters", "words"), "width": (DATA, 4, 16, 64, 128, 256, 512), "depth": (1, 2, 4)},
    recipe=_attention_figure,
    smoke=Scale((*TEXT_SMOKE, *BINARY_SMOKE), {"data": ("binary",), "width": (4,), "depth": (1,)}),
    laptop=Scale(TEXT_LAPTOP, {"data": ("characters", "words"), "width": (DATA, 128), "depth": (2,)}),
    paper=Scale(seeds=3),
    readings=_readings(XI, MIDDLE, FAR),
    needs=TEXT,
)
FIGURE_10 = _figure(
    id="shen2019/figure-10",
    title="WikiText-2: correlation length of Transformers by width and depth",
    axes=ATTENTION_AXES,
    recipe=_text_widths(ATTENTION, ATTENTION_WIDTHS, FIXED),
    smoke=Scale(TEXT_SMOKE, {"data": ("characters",), "width": (64,), "depth": (1,)}),
    laptop=Scale(TEXT_LAPTOP, {"width": (DATA, 128), "depth": (1, 2)}),
    paper=Scale(seeds=3),
    readings=_readings(MIDDLE),
    needs=TEXT,
)
