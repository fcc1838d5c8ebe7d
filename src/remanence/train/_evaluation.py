"""Judging a model on batches that are always the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from remanence.runs import detach
from remanence.tasks import Batch, Score, Split, Task
from remanence.train._config import EvaluationConfig


@torch.no_grad()
def evaluate(model: nn.Module, task: Task, config: EvaluationConfig, split: Split = "validation") -> dict[str, float]:
    """Measures a model in evaluation mode; the state is carried on where the task says so.

    Args:
        model: ``model(inputs, state) -> output, state``.
        task: What it is asked.
        config: How many batches, of what size and seed.
        split: "validation", "test" or "train".

    Returns:
        The task's report, among it "loss" and "accuracy".

    Example:
        >>> from remanence.nn import SequenceModel
        >>> from remanence.tasks import Copy
        >>> model = SequenceModel.for_task(Copy(length=3), "LSTM", hidden_size=4)
        >>> sorted(evaluate(model, Copy(length=3), EvaluationConfig(batches=1, batch_size=5)))
        ['accuracy', 'loss']
    """
    score, state = Score(), None
    size = config.batch_size
    count = config.batches or task.batches_per_epoch(size, split)
    if count is None:
        raise ValueError(f"`evaluation.batches` must be >= 1 for task {task.name!r}, which never ends; got 0")
    with _evaluating(model):
        for position in range(count):
            batch = fitted(task.batch(position, size, split=split, seed=config.seed), model)
            output, state = answer(model, task, batch, state)
            score = score.plus(task.score(output, batch))
    return task.report(score)


def answer(model: nn.Module, task: Task, batch: Batch, state: Any) -> tuple[Tensor, Any]:
    """Runs a model over a batch, from the carried state if the task goes on where it ended.

    Args:
        model: ``model(inputs, state) -> output, state``.
        task: Says whether state is carried.
        batch: With ``reset`` of the rows that start afresh.
        state: Of the batch before; None starts empty.

    Returns:
        Output ``(T, B, output_size)``, and the state to carry on, detached (None if the task carries none).

    Example:
        >>> from remanence.nn import SequenceModel
        >>> from remanence.tasks import Copy
        >>> task = Copy(length=3)
        >>> model = SequenceModel.for_task(task, "LSTM", hidden_size=4)
        >>> answer(model, task, task.batch(0, 2), None)[0].shape
        torch.Size([23, 2, 9])
    """
    output, after = model(batch.inputs, **start(task, batch, state))
    return output, detach(after) if task.stateful else None


def fitted(batch: Batch, model: nn.Module) -> Batch:
    """The batch on a model's device, its numbers in the model's precision.

    Example:
        >>> from remanence.tasks import Copy
        >>> fitted(Copy(length=3).batch(0, 2), nn.Linear(1, 1).double()).inputs.dtype
        torch.float64
    """
    like = next(model.parameters())
    moved = batch.to(like.device)
    cast = [part.to(like.dtype) if part.is_floating_point() else part for part in moved[:2]]
    return moved._replace(inputs=cast[0], targets=cast[1])


def start(task: Task, batch: Batch, state: Any) -> dict[str, Any]:
    """The arguments that say from where a model goes on: nothing, the carried state, or that with some rows reset.

    Example:
        >>> from remanence.tasks import Copy
        >>> task = Copy(length=3)
        >>> start(task, task.batch(0, 2), state=None)
        {}
    """
    if not task.stateful or state is None or batch.reset is None or bool(batch.reset.all()):
        return {}
    if not bool(batch.reset.any()):
        return {"state": state}
    reset = torch.zeros_like(batch.mask)
    reset[0] = batch.reset
    return {"state": state, "reset": reset}


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}  # a part may have been frozen on its own
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode
