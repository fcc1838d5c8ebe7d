"""``remanence evaluate``: a trained model on held-out sequences, a policy in fresh episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from remanence import runs
from remanence._validate import message, one_of
from remanence.cli._errors import exit_codes
from remanence.cli._tables import numbers, show_rows
from remanence.runs import tag, trusting
from remanence.tasks import SPLITS, Split, Task
from remanence.train import EvaluationConfig, Run, evaluate


def evaluate_run(
    folder: Path,
    lengths: str | None,
    split: str,
    batches: int,
    batch_size: int,
    weights: str,
    *,
    trust: bool,
    as_json: bool,
) -> None:
    """Does what ``remanence evaluate`` says."""
    with exit_codes(), trusting(trust):
        if runs.Run(folder).kind == "policy":
            _evaluate_policy(folder, lengths, batch_size, as_json=as_json)
            return
        one_of("weights", weights, ("best", "last"))
        part: Split = one_of("split", split, SPLITS)
        run = Run.open(folder)
        chosen = run.weights(weights)
        torch.set_num_threads(run.config.loop.threads)
        model, task = run.load(chosen)
        config = EvaluationConfig(batches=batches, batch_size=batch_size)
        rows: list[dict[str, Any]] = []
        for length in numbers("length", lengths) or [None]:
            asked = task if length is None else task.with_length(length)
            row = {"length": length or _own_length(task), **evaluate(model, asked, config, part)}
            rows.append({**tag("evaluation"), **row, "weights": chosen.name, "update": chosen.update})
    show_rows(rows, as_json)


def _evaluate_policy(folder: Path, lengths: str | None, episodes: int, *, as_json: bool) -> None:
    """A policy is asked in its environment: as many episodes as a batch has rows."""
    from remanence.cli._policies import play_episodes

    if lengths is not None:
        hint = "Use remanence rl play --environment"
        raise ValueError(message("length", "be left out for a policy, whose episodes end by themselves", lengths, hint))
    play_episodes(folder, None, [], episodes, 0, likeliest=False, video=None, as_json=as_json)


def _own_length(task: Task) -> int | None:
    return getattr(task, "length", None)
