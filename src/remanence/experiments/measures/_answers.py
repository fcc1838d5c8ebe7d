"""How well a trained model answers, at other lengths and on whole held-out parts, and what a policy gets."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import torch

from remanence.nn import SequenceModel
from remanence.rl import PolicyRun, evaluate_policy, load_policy
from remanence.runs import Values
from remanence.tasks import Task
from remanence.train import EvaluationConfig, Run, evaluate

LANGUAGE = ("ptb-char", "text8", "wikitext2-char", "ptb-word", "wikitext2-word")


def answers(run: Path, lengths: Sequence[int], sequences: int, batch: int, weights: str = "best") -> Values:
    """Accuracy and cross-entropy at several lengths, without more training.

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


def held_out(run: Path, batch: int = 50, weights: str = "best", batches: int = 0) -> Values:
    """Scores on the held-out parts, or on so many batches of each; 0 takes all.

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
def errors(run: Path, sequences: int, batch: int, weights: str = "best") -> Values:
    """Mean loss of a task with numbers for answers, at the length that it was trained at."""
    model, task = Run.open(run).load(weights)
    found = evaluate(model, task, EvaluationConfig(batches=-(-sequences // batch), batch_size=batch), "test")
    return {name: round(found[name], 8) for name in ("loss", "accuracy")}


def streamed(run: Path, lengths: Sequence[int], rows: int, chunk: int = 1000, weights: str = "last") -> Values:
    """Accuracy of a trained model at lengths of which no sequence would fit into memory.

    Returns:
        By length, as text: ``accuracy``, ``state_bytes`` of what is carried from step to step, and ``cpu_seconds``.
    """
    model, task = Run.open(run).load(weights)
    return {str(length): _answered(model, task, length, rows, chunk) for length in lengths}


def _answered(model: SequenceModel, task: Task, length: int, rows: int, chunk: int) -> dict[str, float]:
    began = time.process_time()
    config = EvaluationConfig(batches=1, batch_size=rows)
    found = evaluate(model, task.with_length(length), config, "test", chunk=chunk)
    seconds = time.process_time() - began
    first = task.with_length(min(length, chunk)).batch(0, rows, split="test")  # a chunk fills every memory
    return {
        "accuracy": round(found["accuracy"], 6),
        "state_bytes": int(model(first.inputs)[1].nbytes),
        "cpu_seconds": round(seconds, 2),
    }


def play(run: Path, environments: Mapping[str, str], episodes: int) -> Values:
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
