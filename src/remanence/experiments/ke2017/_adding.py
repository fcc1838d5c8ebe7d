"""The adding task: Tables 4 and 5."""

from __future__ import annotations

from collections.abc import Mapping

from remanence.experiments._declaring import OURS, departures, options, tiny, told, watched
from remanence.experiments._experiment import Experiment, Place, PrintedNumber, Reading, Recipe, Scale
from remanence.experiments._work import Measure
from remanence.experiments.ke2017._methods import ADAM, BPTT, lstm, method_settings, sab

UNSAID = "not in the paper: as for copying"
ADDING = (
    *told("the table", task__name="adding"),
    *told(UNSAID, task__batch_size=64),
    *told("not in the paper: ours", budget__updates=50_000, budget__loss=5e-5, budget__hold=5),
    *options(UNSAID, hidden_size=128),
    *ADAM,
    *watched(every=1000, batches=2, batch_size=500),
    *told(OURS, evaluation__metric="loss"),
)
ROWS: dict[int, Mapping[str, float]] = {
    200: {BPTT: 0.0, lstm(20): 0.0011, lstm(50): 0.0003, sab(5, 10): 0.0004, sab(10, 10): 0.0001},
    400: {BPTT: 0.0, lstm(100): 0.00068, sab(5, 10, 5): 0.00037, sab(10, 10, 10): 0.00014},
}


def _added(place: Place) -> Recipe:
    settings = (*ADDING, *told("the table", task__options__length=place["length"]), *method_settings(place["method"]))
    return Recipe("training", settings, (Measure("errors", {"sequences": 5000, "batch": 500, "weights": "best"}),))


def _table(number: int, length: int) -> Experiment:
    rows = ROWS[length]
    return Experiment(
        id=f"ke2017/table-{number}",
        title=f"Adding at T = {length}: squared error (printed as cross-entropy)",
        axes={"method": tuple(rows), "length": (length,)},
        recipe=_added,
        smoke=Scale(
            tiny(model__options__hidden_size=8, measure_errors__sequences=5, measure_errors__batch=5),
            {"method": (list(rows)[-1],), "length": (6,)},
        ),
        laptop=Scale(departures("not printed", budget__updates=10_000, task__batch_size=32)),
        readings=(Reading("squared error", "errors", ("loss",), validation="loss"),),
        printed={
            (method, length, "squared error"): PrintedNumber(value, f"Table {number}") for method, value in rows.items()
        },
        note="The paper calls the column cross-entropy; an answer is a number, so it can only be the squared error. It "
        "does not say how long it trains. Here a run ends when its validation error is at most 0.00005 at five "
        "evaluations in a row, or after 50,000 updates.",
    )


TABLE_4 = _table(4, 200)
TABLE_5 = _table(5, 400)
