"""The copying task: Tables 1, 2 and 3, and figure 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from remanence.experiments._declaring import OURS, but, departures, options, tiny, told, watched
from remanence.experiments._experiment import Curve, Experiment, Place, PrintedNumber, Reading, Recipe, Scale
from remanence.experiments._work import Measure
from remanence.experiments.ke2017._methods import ADAM, BPTT, CODE, NORMS, lstm, method_settings, sab

COPY = (
    *told("the table", task__name="copy"),
    *told(CODE, task__batch_size=64, task__options__encoding="scalar", budget__updates=200_000),
    *options(CODE, hidden_size=128),
    *ADAM,
    *told(OURS, budget__accuracy=0.99, budget__hold=10),
    *watched(every=1000, batches=1, batch_size=512),
)
READINGS = (
    Reading("accuracy", "answers", ("{length}", "accuracy"), "%", "accuracy"),
    Reading("CE of the last 10", "answers", ("{length}", "answer_loss")),
    Reading("CE", "answers", ("{length}", "loss"), validation="loss"),
)
NOTE = (
    "A new batch every update, where the authors' code takes 20 passes over 640,000 sequences. A symbol is one number, "
    "as in that code; the paper does not say. A run ends when it has answered 99 % at ten evaluations in a row, or "
    "after 200,000 updates. In Table 3 the cross-entropy 0.197 of full BPTT does not go with its accuracy."
)

Rows = Mapping[str, Sequence[float]]
ROWS: dict[int, Rows] = {
    100: {
        BPTT: (98.8, 0.030, 0.002),
        lstm(5): (31.0, 1.737, 0.145),
        lstm(10): (29.6, 1.772, 0.148),
        lstm(20): (30.5, 1.714, 0.143),
        sab(1, 1): (17.6, 2.044, 0.170),
        sab(1, 10): (62.7, 0.964, 0.080),
        sab(5, 5): (99.6, 0.017, 0.001),
        sab(10, 10): (100.0, 0.000, 0.001),
    },
    200: {
        BPTT: (56.0, 1.07, 0.046),
        lstm(5): (17.1, 2.03, 0.092),
        lstm(10): (20.2, 1.98, 0.090),
        lstm(20): (35.8, 1.61, 0.073),
        lstm(150): (35.0, 1.596, 0.073),
        sab(1, 1): (29.8, 1.818, 0.083),
        sab(5, 5): (99.3, 0.032, 0.001),
        sab(10, 10): (98.7, 0.049, 0.002),
    },
    300: {
        BPTT: (35.9, 0.197, 0.047),
        lstm(1): (14.0, 2.077, 0.065),
        lstm(20): (25.7, 1.848, 0.197),
        lstm(150): (24.4, 1.857, 0.058),
        sab(1, 1): (26.7, 0.27, 0.059),
        sab(1, 5): (46.5, 1.340, 0.042),
        sab(5, 5): (98.9, 0.048, 0.002),
    },
}


def _copied(place: Place) -> Recipe:
    length = place["length"]
    asked = Measure("answers", {"lengths": [length], "sequences": 1000, "batch": 100, "weights": "last"})
    settings = (*COPY, *told("the table", task__options__length=length), *method_settings(place["method"]))
    return Recipe("training", settings, (asked,))


SMOKE = tiny(model__options__hidden_size=8, task__batch_size=2, measure_answers__sequences=5, measure_answers__batch=5)
LAPTOP = departures("200,000 batches of 64, in the authors' code", budget__updates=20_000, task__batch_size=16)


def _table(number: int, length: int) -> Experiment:
    rows = ROWS[length]
    printed = {
        (method, length, reading.name): PrintedNumber(value, f"Table {number}")
        for method, values in rows.items()
        for reading, value in zip(READINGS, values, strict=True)
    }
    return Experiment(
        id=f"ke2017/table-{number}",
        title=f"Copying at T = {length}: SAB compared with full and truncated back-propagation",
        axes={"method": tuple(rows), "length": (length,)},
        recipe=_copied,
        smoke=Scale(SMOKE, {"method": (list(rows)[2],), "length": (5,)}),
        laptop=Scale(LAPTOP),
        readings=READINGS,
        curves=(Curve("accuracy of validation", "validation", "update", "accuracy"),),
        printed=printed,
        note=NOTE,
    )


TABLE_1 = _table(1, 100)
TABLE_2 = _table(2, 200)
TABLE_3 = _table(3, 300)


def _clipped(place: Place) -> Recipe:
    copied = _copied(place)
    clipping = told("section 7.2", loop__clip_norm=NORMS[place["clipping"]])
    return replace(copied, settings=but(copied.settings, *clipping))


CLIPPING = replace(
    TABLE_1,
    id="ke2017/clipping-copy",
    title="Copying at T = 100 by SAB with and without gradient clipping",
    axes={"method": (sab(5, 5),), "length": (100,), "clipping": tuple(NORMS)},
    recipe=_clipped,
    smoke=Scale(SMOKE, {"length": (5,), "clipping": ("none",)}),
    printed={},
    note=f"Section 7.2 has three other tasks and prints no numbers; the run with clipping is that of Table 1. {NOTE}",
    shows_cells_of={"ke2017/table-1": {"clipping": "to norm 1"}},
)

STAGES = (100, 2000, 10_000)


def _staged(place: Place) -> Recipe:
    settings = [one for one in COPY if not one.key.startswith("budget.")]
    own = (*told("the figure", task__options__length=200), *told("within an epoch", budget__updates=place["updates"]))
    maps = Measure("attention", {"rows": 8, "weights": "last"})
    return Recipe("training", (*settings, *own, *method_settings(sab(10, 10))), (maps,))


FIGURE_3 = Experiment(
    id="ke2017/figure-3",
    title="Copying at T = 200: attention of SAB (10, 10) at three stages of the first epoch",
    axes={"updates": STAGES},
    recipe=_staged,
    smoke=Scale(
        (
            *(one for one in SMOKE if one.key != "budget.updates"),
            *departures("T = 200", task__options__length=5, measure_attention__rows=1),
        ),
        {"updates": (4,)},
    ),
    laptop=Scale(departures("T = 200, batches of 64", task__options__length=50, task__batch_size=16)),
    readings=(
        Reading("attention on symbols", "attention", ("on_symbols",), "%"),
        Reading("if it were even", "attention", ("even",), "%"),
    ),
    note="The paper's iterations are not in the text at hand; three stages within the first epoch of 10,000 updates.",
)
