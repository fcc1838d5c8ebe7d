"""What a trained memory held of the states that were asked for."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from remanence._validate import message
from remanence.nn import RecurrentLayer
from remanence.runs import Values
from remanence.tasks import Batch, Copy, Denoise, LateCues, MultiQueryRecall, Task
from remanence.train import Run


@torch.no_grad()
def recalled(run: Path, rows: int, weights: str = "last") -> Values:
    """Accuracy of the answers, and the share of needed states that were held when they were needed.

    Returns:
        ``accuracy``; ``held``, over all answers the share whose step was in buffer or relevant set at that moment;
        ``chance``, the accuracy without memory.
    """
    model, task = Run.open(run).load(weights)
    batch = task.batch(0, rows, split="test")
    core = cast(RecurrentLayer, model.core)
    (trace,) = core.trace(model.encoder(batch.inputs))
    needed = needed_steps(task, batch)
    held = (trace.steps == needed[..., None]).any(dim=-1)[batch.mask].double().mean()
    accuracy = task.accuracy(model(batch.inputs)[0], batch)
    return {"accuracy": round(float(accuracy), 6), "held": round(float(held), 6), "chance": task.chance_level}


def needed_steps(task: Task, batch: Batch) -> Tensor:
    """The step that each answer asks for, ``(T, B)`` int64; -2 where nothing is asked for.

    In MQAR it is the step that shows the value.

    Example:
        >>> task = LateCues(length=6, items=2, symbols=4, distractors=2)
        >>> batch = task.sample(1, task.stream("train", seed=0))
        >>> steps = needed_steps(task, batch)[batch.mask]  # of the two answers
        >>> batch.inputs[steps, 0].argmax(-1).tolist() == batch.targets[batch.mask].tolist()
        True
    """
    needed = torch.full_like(batch.targets, -2)
    if isinstance(task, MultiQueryRecall):
        keys = batch.inputs[0 : 2 * task.pairs : 2]
        # Keys stand at even steps, each before its value.
        shown = 2 * (batch.inputs[None] == keys[:, None]).int().argmax(dim=0) + 1
        return torch.where(batch.mask, shown, needed)
    if not isinstance(task, Copy | Denoise | LateCues):
        raise ValueError(message("task", "be Copy, Denoise, late cues or MQAR", task.name))
    # Row by row and in order of time, as `masked_scatter` fills the answers.
    shown = task.shows_symbol(batch.inputs).T.nonzero()[:, 1]
    return needed.T.masked_scatter(batch.mask.T, shown).T
