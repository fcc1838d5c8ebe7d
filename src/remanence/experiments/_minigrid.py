"""Table 4 of document 000: policies learn in a small version of an environment of MiniGrid and play in a larger one.

The stored result ``minigrid`` has, under ``results``, the ``arms`` (environment, model, what is printed) and the
``runs``: ``train`` and ``test`` are mean return, its standard error and the mean length of fresh episodes in the small
and the large version, ``curve`` the mean return of the last 100 episodes by frames.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from remanence.experiments._stored import save_stored
from remanence.rl import PolicyConfig, PPOConfig, evaluate_policy, load_policy, train_policy
from remanence.runs import read_lines, replace_file
from remanence.train import ModelConfig, RunLockedError

EPISODES = 100
POINTS = 50
"""Of a curve."""

MODELS: dict[str, dict[str, Any]] = {"LSTM": {}, "MemLSTM": {}, "RelLSTM": {"recent": 5, "relevant": 5}}

# Small and large version, and the printed returns of LSTM, MemLSTM and RelLSTM in both.
TABLE: dict[str, tuple[str, str, tuple[float, ...], tuple[float, ...]]] = {
    "RedBlueDoors": ("6x6", "8x8", (0.97, 0.97, 0.97), (0.95, 0.95, 0.95)),
    "GoToObject": ("6x6-N2", "8x8-N2", (0.81, 0.85, 0.84), (0.66, 0.66, 0.74)),
    "Memory": ("S7", "S13", (0.96, 0.4, 0.94), (0.25, 0.24, 0.3)),
    "GoToDoor": ("5x5", "8x8", (0.28, 0.17, 0.25), (0.13, 0.11, 0.15)),
    "Fetch": ("5x5-N2", "8x8-N3", (0.48, 0.42, 0.5), (0.38, 0.44, 0.45)),
    "DoorKey": ("5x5", "16x16", (0.94, 0.94, 0.93), (0.09, 0.31, 0.44)),
}
PRINTED_FRAMES = 5_000_000
USUAL_FRAMES = 500_000
FRAMES = {"Memory": 2_000_000}
"""Where a memory is needed to do better than guess, learning takes longer."""


def environment_id(family: str, version: str) -> str:
    """The id of a version.

    Example:
        >>> environment_id("Memory", "S7"), environment_id("DoorKey", "5x5")
        ('MiniGrid-MemoryS7-v0', 'MiniGrid-DoorKey-5x5-v0')
    """
    return f"MiniGrid-{family}{'' if version.startswith('S') else '-'}{version}-v0"


@dataclass(frozen=True)
class PolicyArm:
    """One model in one environment.

    Args:
        family: of the environment, a key of `TABLE`.
        model: a key of `MODELS`.
        frames: to play; None takes those of the family.
        seed: of everything.

    Example:
        >>> PolicyArm("Fetch", "RelLSTM").name
        'Fetch-RelLSTM-0'
    """

    family: str
    model: str
    frames: int | None = None
    seed: int = 0

    @property
    def name(self) -> str:
        """Also the folder of the run."""
        return f"{self.family}-{self.model}-{self.seed}"

    @property
    def small(self) -> str:
        """Where it learns."""
        return environment_id(self.family, TABLE[self.family][0])

    @property
    def large(self) -> str:
        """Where it is tried."""
        return environment_id(self.family, TABLE[self.family][1])

    @property
    def printed(self) -> dict[str, float]:
        """Returns that the document has."""
        place = list(MODELS).index(self.model)
        return {"train": TABLE[self.family][2][place], "test": TABLE[self.family][3][place]}

    def config(self) -> PolicyConfig:
        """The document's core and the settings of its authors' code; gradients go back 16 steps there."""
        frames = self.frames or FRAMES.get(self.family, USUAL_FRAMES)
        model, ppo = ModelConfig(self.model, MODELS[self.model]), PPOConfig(recurrence=16)
        return PolicyConfig(self.small, model, ppo, frames=frames, seed=self.seed)


SEEDS = {"Memory": 2}
"""Of the family in which the models differ; one of the others."""
GRID: tuple[PolicyArm, ...] = tuple(
    PolicyArm(family, model, seed=seed)
    for seed in range(max(SEEDS.values()))
    for family in TABLE
    for model in MODELS
    if seed < SEEDS.get(family, 1)
)


def run_policies(folder: str | Path, arms: Sequence[PolicyArm] = GRID) -> None:
    """Trains what is not trained yet; what another process is at is left to it.

    Args:
        folder: where the runs go, one folder an arm.
        arms: which ones.

    Example:
        >>> run_policies("nowhere", arms=())
    """
    for arm in arms:
        place = Path(folder) / arm.name
        if (place / "answers.json").is_file():
            continue
        try:
            outcome = train_policy(arm.config(), place)
        except RunLockedError:
            continue
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        answers = {"train": play(place, arm.small), "test": play(place, arm.large)}
        replace_file(place / "answers.json", json.dumps(answers).encode())


def play(run: Path, environment: str, episodes: int = EPISODES) -> dict[str, float]:
    """What a run's policy gets in fresh episodes, with actions drawn.

    Args:
        run: its folder.
        environment: id.
        episodes: how many.
    """
    score = evaluate_policy(load_policy(run, environment)[0], environment, episodes)
    found = {"mean": score.mean, "error": score.error, "length": fmean(score.lengths)}
    return {name: round(value, 4) for name, value in found.items()}


def collect(folder: str | Path, arms: Sequence[PolicyArm] = GRID) -> dict[str, Any]:
    """Reads all runs that are done.

    Args:
        folder: that :func:`run_policies` left.
        arms: which ones.

    Returns:
        The record, as the module describes it.

    Example:
        >>> collect("nowhere")["results"]["runs"]
        []
    """
    done = [arm for arm in arms if (Path(folder) / arm.name / "answers.json").is_file()]
    missing = [arm.name for arm in arms if arm not in done]
    more = "".join(f", {count:,} in {family}," for family, count in FRAMES.items())
    words = f"{USUAL_FRAMES:,} frames{more} where the document has {PRINTED_FRAMES:,}"
    return {
        "what": "LSTM, MemLSTM and RelLSTM learn small environments of MiniGrid by PPO and play in larger ones",
        "command": "python -m remanence.experiments minigrid RUNS",
        "scaled_down": f"{words}; one seed, of Memory two" + (f"; not run: {', '.join(missing)}" if missing else ""),
        "machine": f"{platform.machine()}, one core",
        "results": {
            "arms": {arm.name: {"small": arm.small, "large": arm.large, "document": arm.printed} for arm in arms},
            "runs": [summary(arm, Path(folder) / arm.name) for arm in done],
        },
    }


def summary(arm: PolicyArm, run: Path) -> dict[str, Any]:
    """What one run came to.

    Args:
        arm: that it belongs to.
        run: its folder.
    """
    lines = [line for line in read_lines(run / "metrics.jsonl") if line["mean_return"] is not None]
    shown = lines[:: max(1, len(lines) // POINTS)] + lines[-1:]
    curve = {
        "frames": [line["frames"] for line in shown],
        "mean_return": [round(line["mean_return"], 4) for line in shown],
    }
    answers = json.loads((run / "answers.json").read_text(encoding="utf-8"))
    facts = {"arm": arm.name, "family": arm.family, "model": arm.model, "seed": arm.seed, "frames": lines[-1]["frames"]}
    return {**facts, **answers, "curve": curve}


def run_minigrid(folder: Path) -> Path:
    """Trains what is missing and writes the stored result; several processes may share the work.

    Args:
        folder: where the runs are.
    """
    run_policies(folder)
    return save_stored("minigrid", collect(folder))
