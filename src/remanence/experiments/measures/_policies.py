"""What a trained policy gets in fresh episodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

from remanence.rl import PolicyRun, evaluate_policy, load_policy


def play(run: Path, environments: Mapping[str, str], episodes: int) -> dict[str, Any]:
    """Mean return with actions drawn, as in the authors' code.

    Args:
        run: folder of a policy's run that is done.
        environments: ids by what they are called, such as ``{"train": ..., "test": ...}``; the one that it was trained
            in has the options that it had there.
        episodes: of each.

    Returns:
        By name: ``mean``, its standard ``error``, and the mean ``length`` of an episode.
    """
    found = {}
    home = PolicyRun.open(run).config
    for name, environment in environments.items():
        options = home.environment_options if environment == home.environment else {}
        policy, _ = load_policy(run, environment, options)
        score = evaluate_policy(policy, environment, episodes, options=options)
        facts = {"mean": score.mean, "error": score.error, "length": fmean(score.lengths)}
        found[name] = {key: round(value, 4) for key, value in facts.items()}
    return found
