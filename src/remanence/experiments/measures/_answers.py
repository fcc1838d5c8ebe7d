"""How well a trained model answers: at other lengths, and on the whole held-out parts of a data set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from remanence.nn import SequenceModel
from remanence.tasks import Task
from remanence.train import EvaluationConfig, Run, evaluate

LANGUAGE = ("ptb-char", "text8", "wikitext2-char", "ptb-word", "wikitext2-word")


def answers(run: Path, lengths: Sequence[int], sequences: int, batch: int, weights: str = "best") -> dict[str, Any]:
    """Accuracy and cross-entropy at several lengths, without more training.

    Args:
        run: folder of a run that is done.
        lengths: T to ask at.
        sequences: of the test split at each length.
        batch: rows at a time.
        weights: ``"best"`` by validation, or ``"last"``, as the authors' code takes.

    Returns:
        By length, as text: ``accuracy`` and ``answer_loss``, the mean cross-entropy, of the asked steps, ``loss``, that
        of all steps, and the number of ``sequences``.
    """
    model, task = Run.open(run).load(weights)
    return {str(length): _asked(model, task.with_length(length), sequences, batch) for length in lengths}


@torch.no_grad()
def _asked(model: SequenceModel, task: Task, sequences: int, batch: int) -> dict[str, float]:
    sums = dict.fromkeys(("accuracy", "answer_loss", "loss"), 0.0)
    count = -(-sequences // batch)
    for position in range(count):
        drawn = task.batch(position, batch, split="test")
        output = model(drawn.inputs)[0]
        sums["accuracy"] += task.accuracy(output, drawn).item()
        sums["loss"] += task.loss(output, drawn).item()
        sums["answer_loss"] += task.step_loss(output[drawn.mask], drawn.targets[drawn.mask]).mean().item()
    return {**{name: round(total / count, 6) for name, total in sums.items()}, "sequences": count * batch}


def held_out(run: Path, batch: int = 50, weights: str = "best", batches: int = 0) -> dict[str, Any]:
    """Scores on whole held-out parts.

    Args:
        run: folder of a run that is done.
        batch: rows at a time.
        weights: ``"best"`` by validation, or ``"last"``.
        batches: of each part; 0 takes all of it.

    Returns:
        ``validation`` and ``test``, each with ``accuracy`` and ``loss``, and of texts ``bits`` and ``perplexity``.
    """
    model, task = Run.open(run).load(weights)
    config = EvaluationConfig(batches=batches, batch_size=batch)
    parts = {"validation": evaluate(model, task, config, "validation"), "test": evaluate(model, task, config, "test")}
    return {name: _scores(found, task.name in LANGUAGE) for name, found in parts.items()}


def _scores(found: dict[str, float], language: bool) -> dict[str, float]:
    scores = {"accuracy": found["accuracy"], "loss": found["loss"]}
    if language:
        scores |= {"bits": found["loss"] / math.log(2), "perplexity": math.exp(found["loss"])}
    return {name: round(value, 6) for name, value in scores.items()}


@torch.no_grad()
def errors(run: Path, sequences: int, batch: int, weights: str = "best") -> dict[str, Any]:
    """Mean loss of a task with numbers for answers, at the length that it was trained at.

    Args:
        run: folder of a run that is done.
        sequences: of the test split.
        batch: rows at a time.
        weights: ``"best"`` by validation, or ``"last"``.
    """
    model, task = Run.open(run).load(weights)
    found = evaluate(model, task, EvaluationConfig(batches=-(-sequences // batch), batch_size=batch), "test")
    return {name: round(found[name], 8) for name in ("loss", "accuracy")}
