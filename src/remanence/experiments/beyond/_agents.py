"""Policies in T-mazes and in six tasks of POPGym: which of them need a memory, and who learns to use one."""

from __future__ import annotations

from remanence.experiments._declaring import TINY, departures, told
from remanence.experiments._experiment import Curve, Experiment, Place, Reading, Recipe, Scale, Setting
from remanence.experiments._work import Measure
from remanence.rl import NO_MEMORY

MODELS = ("RelLSTM", "LSTM", "GRU", "MinGRU", NO_MEMORY)
LENGTHS = {"T-maze 10": 10, "T-maze 30": 30, "T-maze 100": 100}
POPGYM = ("RepeatFirst", "RepeatPrevious", "Autoencode", "CountRecall", "HigherLower", "PositionOnlyCartPole")
COMMON = (
    *told("ours, the same for all", copies=16, ppo__steps=64, ppo__recurrence=64, ppo__batch=256),
    *told("ours, the same for all", ppo__learning_rate=2e-3, frames=1_000_000),
)


def _environment(task: str) -> tuple[str, tuple[Setting, ...]]:
    """Id of a task, and the settings that choose it."""
    if task in LENGTHS:
        maze = "remanence/TMaze-v0"
        return maze, told("the table", environment=maze, environment_options__length=LENGTHS[task])
    name = f"popgym-{task}Easy-v0"
    return name, told("the table", environment=name)


def _learnt(place: Place) -> Recipe:
    name, chosen = _environment(place["task"])
    core = told("the table", model__name=place["model"])
    if place["model"] == NO_MEMORY:
        core = told("the table: the same network, its core reset at every step", model__name="LSTM", forgets=True)
    played = Measure("play", {"environments": {"here": name}, "episodes": 100})
    return Recipe("policy", (*chosen, *core, *COMMON), (played,))


AGENTS = Experiment(
    id="beyond/agents",
    title="T-mazes and POPGym: mean return in new episodes, with and without memory",
    axes={"task": (*LENGTHS, *POPGYM), "model": MODELS},
    recipe=_learnt,
    smoke=Scale(
        departures(TINY, frames=256, copies=2, measure_play__episodes=1),
        {"task": ("T-maze 10",), "model": ("MinGRU", NO_MEMORY)},
    ),
    laptop=Scale(departures("1,000,000 frames", frames=30_000), {"task": ("T-maze 10", "T-maze 30", *POPGYM)}, seeds=3),
    paper=Scale(seeds=3),
    readings=(Reading("return", "play", ("here", "mean")),),
    curves=(Curve("mean return", "train", "frames", "mean_return"),),
    needs=("popgym",),
    note="The model none is the same network without memory: what it gets says how much of a task needs any. A T-maze "
    "pays 1 for the right turn; POPGym's returns lie between -1 and 1, those of its CartPole between 0 and 1.",
)
