"""Policies in MiniGrid: Table 4, as printed and as the authors' code runs it."""

from __future__ import annotations

from dataclasses import replace

from remanence.experiments._declaring import departures, options, told
from remanence.experiments._experiment import Curve, Experiment, Place, PrintedNumber, Reading, Recipe, Scale
from remanence.experiments._work import Measure

CODE = "authors' code, defaults of rl-starter-files"
MODELS = ("LSTM", "MemLSTM", "RelLSTM")

# Small and large version, and the printed returns of LSTM, MemLSTM and RelLSTM in both.
ENVIRONMENTS: dict[str, tuple[str, str, tuple[float, ...], tuple[float, ...]]] = {
    "RedBlueDoors": ("-6x6", "-8x8", (0.97, 0.97, 0.97), (0.95, 0.95, 0.95)),
    "GoToObject": ("-6x6-N2", "-8x8-N2", (0.81, 0.85, 0.84), (0.66, 0.66, 0.74)),
    "Memory": ("S7", "S13", (0.96, 0.4, 0.94), (0.25, 0.24, 0.3)),
    "GoToDoor": ("-5x5", "-8x8", (0.28, 0.17, 0.25), (0.13, 0.11, 0.15)),
    "Fetch": ("-5x5-N2", "-8x8-N3", (0.48, 0.42, 0.5), (0.38, 0.44, 0.45)),
    "DoorKey": ("-5x5", "-16x16", (0.94, 0.94, 0.93), (0.09, 0.31, 0.44)),
}


def _learnt(place: Place) -> Recipe:
    family = place["environment"]
    small, large = (f"MiniGrid-{family}{version}-v0" for version in ENVIRONMENTS[family][:2])
    settings = (
        *told("the table", environment=small, model__name=place["model"]),
        *told("section 5.3", frames=5_000_000),
        *told(CODE, ppo__recurrence=16, copies=16, words=False),
    )
    if place["model"] == "RelLSTM":
        settings = (*settings, *options("section 5.3", recent=5, relevant=5))
    return Recipe(
        "policy", settings, (Measure("play", {"environments": {"train": small, "test": large}, "episodes": 100}),)
    )


TABLE_4 = Experiment(
    id="kerg2020/table-4",
    title="MiniGrid: mean return in the training environment (train) and in a larger one (test)",
    axes={"environment": tuple(ENVIRONMENTS), "model": MODELS},
    recipe=_learnt,
    smoke=Scale(
        departures("5,000,000 frames", frames=256, copies=2, measure_play__episodes=1),
        {"environment": ("GoToDoor",), "model": ("RelLSTM",)},
    ),
    laptop=Scale(departures("5,000,000 frames", frames=500_000)),
    readings=(Reading("train", "play", ("train", "mean")), Reading("test", "play", ("test", "mean"))),
    curves=(Curve("mean return", "train", "frames", "mean_return"),),
    printed={
        (family, model, reading): PrintedNumber(value, "Table 4")
        for family, (_, _, train, test) in ENVIRONMENTS.items()
        for reading, row in (("train", train), ("test", test))
        for model, value in zip(MODELS, row, strict=True)
    },
    needs=("minigrid",),
    note="The authors' code empties the attention memory at every step while it plays, by mistake; here it is emptied "
    "when an episode ends. The read is added to the state, as the paper's equation says; the authors' code halves the "
    "sum. `kerg2020/table-4-code` follows the code in both.",
)

AUTHORS_CODE = "authors' code, where it departs from the paper"
HANDLED = ("MemLSTM", "RelLSTM")  # an LSTM has no memory to handle
TRIED = ("Memory", "DoorKey")  # where the paper's models differ most


def _as_coded(place: Place) -> Recipe:
    printed = _learnt(place)
    # With an emptied memory a step reads only itself: half of h + h is h, as in the code; the sum would double it.
    model = options(AUTHORS_CODE, combine="half", output="hidden")
    return replace(printed, settings=(*printed.settings, *model, *told(AUTHORS_CODE, memory="emptied_acting")))


TABLE_4_CODE = replace(
    TABLE_4,
    id="kerg2020/table-4-code",
    title="MiniGrid as the authors' code runs it: memory emptied before every step of acting, half of the sum",
    axes={"environment": TRIED, "model": HANDLED},
    recipe=_as_coded,
    document_recipe=_learnt,
    smoke=Scale(TABLE_4.smoke.departures, {"environment": ("Memory",), "model": ("RelLSTM",)}),
    printed={key: number for key, number in TABLE_4.printed.items() if key[0] in TRIED and key[1] in HANDLED},
    note="The code learns with a memory that lasts for a chunk of 16 steps and acts without one. Everything else is as "
    "in Table 4.",
)
