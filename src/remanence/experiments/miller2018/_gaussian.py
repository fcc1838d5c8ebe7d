"""Random Gaussian instances: figure 1."""

from __future__ import annotations

from remanence.experiments._declaring import TINY, departures
from remanence.experiments._experiment import Curve, Experiment, Place, Reading, Recipe, Scale
from remanence.experiments._work import Measure


def _instances(place: Place) -> Recipe:
    settings = {
        "norm": place["lambda"],
        "width": 32,
        "steps": 200,
        "windows": list(range(2, 51, 2)),
        "updates": 200,
        "rate": 0.5,
        "instances": 10,
        "seed": 0,
    }
    return Recipe("measurement", (), (Measure("gaussian_truncation", settings),))


FIGURE_1 = Experiment(
    id="miller2018/figure-1",
    title="Gaussian instances: gradient gap by window, and weight gap by updates with steps 1/t and constant ones",
    axes={"lambda": (0.7, 0.8, 0.9, 0.99)},
    recipe=_instances,
    smoke=Scale(
        departures(
            TINY,
            measure_gaussian_truncation__width=3,
            measure_gaussian_truncation__steps=6,
            measure_gaussian_truncation__windows=[1, 2, 4],
            measure_gaussian_truncation__updates=2,
            measure_gaussian_truncation__instances=1,
        ),
        {"lambda": (0.9,)},
    ),
    laptop=Scale(departures("not printed", measure_gaussian_truncation__instances=3)),
    readings=(
        Reading("slope of ln(gap/k)", "gaussian_truncation", ("slope",)),
        Reading("last weight gap, steps 1/t", "gaussian_truncation", ("last_weight_gap", "decaying")),
        Reading("last weight gap, constant steps", "gaussian_truncation", ("last_weight_gap", "constant")),
    ),
    curves=(
        Curve("gradient gap", "gaussian_truncation", "windows", "gradient_gap"),
        Curve("weight gap, steps 1/t", "gaussian_truncation", "updates", "weight_gap.decaying"),
        Curve("weight gap, constant steps", "gaussian_truncation", "updates", "weight_gap.constant"),
    ),
    note="The paper does not say how large its instances are.",
)
