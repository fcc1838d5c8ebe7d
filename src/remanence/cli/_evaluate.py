"""``remanence evaluate``: a trained model on held-out sequences, a policy in fresh episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import torch

from remanence import runs
from remanence._validate import message, one_of
from remanence.cli._errors import exit_codes
from remanence.cli._tables import numbers, show_rows
from remanence.runs import Values, trusting
from remanence.tasks import SPLITS, Split, Task
from remanence.train import Evaluation, EvaluationConfig, Run, evaluate

LONGEST_WHOLE = 10_000
CHUNK = 1_000
BATCHES = 10
BATCH_SIZE = 100


def evaluate_run(
    folder: Path,
    lengths: str | None,
    split: str,
    batches: int | None,
    batch_size: int | None,
    weights: str,
    chunk: int | None,
    *,
    trust: bool,
    as_json: bool,
) -> None:
    """Does what ``remanence evaluate`` says."""
    with exit_codes(), trusting(trust):
        if runs.Run(folder).kind == "policy":
            _evaluate_policy(folder, lengths, batch_size or BATCH_SIZE, as_json=as_json)
            return
        one_of("weights", weights, ("best", "last"))
        part = cast(Split, one_of("split", split, SPLITS))
        run = Run.open(folder)
        chosen = run.weights(weights)
        torch.set_num_threads(run.config.loop.threads)
        model, task = run.load(chosen)
        # One long sequence is cut into as many lanes as a batch has rows: a short file has no hundred of them.
        config = EvaluationConfig(batches=BATCHES, batch_size=BATCH_SIZE)
        if task.stateful:
            own = run.config.evaluation
            config = EvaluationConfig(batches=own.batches, batch_size=own.batch_size)
        given = {"batches": batches, "batch_size": batch_size}
        config = replace(config, **{name: value for name, value in given.items() if value is not None})
        rows: list[Values] = []
        for length in numbers("length", lengths) or [None]:
            asked = task
            if length is not None:
                asked = task.with_length(length)
            found = evaluate(model, asked, config, part, chunk=chunk or _chunk(asked))
            result = Evaluation(length or _own_length(task), found, chosen.name, chosen.update, part)
            rows.append(result.to_dict())
    show_rows(rows, as_json)


def _evaluate_policy(folder: Path, lengths: str | None, episodes: int, *, as_json: bool) -> None:
    """A policy is asked in its environment: as many episodes as a batch has rows."""
    from remanence.cli._policies import play_episodes

    if lengths is not None:
        hint = "Use remanence rl play --environment"
        raise ValueError(message("length", "be left out for a policy, whose episodes end by themselves", lengths, hint))
    play_episodes(folder, None, [], episodes, 0, likeliest=False, video=None, as_json=as_json)


def _chunk(task: Task) -> int | None:
    """Long sequences go through piece by piece; short ones whole."""
    if (_own_length(task) or 0) > LONGEST_WHOLE:
        return CHUNK
    return None


def _own_length(task: Task) -> int | None:
    return getattr(task, "length", None)
