"""Judging a model on batches that are always the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import nn

from remanence._validate import message
from remanence.nn import evaluating
from remanence.runs import Result, Settings, Values, detach
from remanence.tasks import Batch, Score, Split, Task
from remanence.train._config import EvaluationConfig


@torch.no_grad()
def evaluate(
    model: nn.Module, task: Task, config: EvaluationConfig, split: Split = "validation", *, chunk: int | None = None
) -> dict[str, float]:
    """Measures a model in evaluation mode; the state is carried on where the task says so.

    Args:
        model: ``model(inputs, state) -> output, state``.
        task: What it is asked.
        config: How many batches, of what size and seed.
        split: "validation", "test" or "train".
        chunk: steps at a time, the state carried on, for sequences that are too long for memory; None takes them
            whole. The answers are the same, to rounding.

    Returns:
        The task's report, among it "loss" and "accuracy"; where the loss counts every step, also "asked_loss", the mean
        over the steps where answers are asked for.

    Example:
        >>> from remanence.nn import SequenceModel
        >>> from remanence.tasks import Copy
        >>> model = SequenceModel.for_task(Copy(length=3), "LSTM", hidden_size=4)
        >>> sorted(evaluate(model, Copy(length=3), EvaluationConfig(batches=1, batch_size=5)))
        ['accuracy', 'asked_loss', 'loss']
    """
    score = Score()
    state = None
    count = config.batches or task.batches_per_epoch(config.batch_size, split)
    if count is None:
        raise ValueError(f"`evaluation.batches` must be >= 1 for task {task.name!r}, which never ends; got 0")
    if chunk is not None and any(getattr(part, "bidirectional", False) for part in model.modules()):
        raise ValueError(message("chunk", "be None for a model that reads backwards too", chunk))
    with evaluating(model):
        for position in range(count):
            for number, piece in enumerate(_pieces(task, position, config, split, chunk)):
                batch = fitted(piece, model)
                origin = {"state": state}
                if number == 0:
                    origin = start(task, batch, state)
                output, after = model(batch.inputs, **origin)
                state = detach(after)
                score = score.plus(task.score(output, batch))
            if not task.stateful:
                state = None
    found = task.report(score)
    if task.loss_on_all_steps:
        return {**found, "asked_loss": score.asked_loss}
    return found


def _pieces(task: Task, position: int, config: EvaluationConfig, split: Split, chunk: int | None) -> Iterator[Batch]:
    """A batch of the evaluation, whole or in pieces of time."""
    if chunk is None:
        yield task.batch(position, config.batch_size, split=split, seed=config.seed)
        return
    yield from task.stream_batch(position, config.batch_size, chunk=chunk, split=split, seed=config.seed)


@dataclass(frozen=True)
class Evaluation(Result):
    """What ``remanence evaluate`` found at one length, as it prints it with ``--json``.

    Args:
        length: T of the task, None if it has none.
        values: the task's report, among it ``loss`` and ``accuracy``.
        weights: ``"best"`` or ``"last"``.
        update: batches that these weights had learnt from.
        split: ``"test"`` or ``"validation"``.

    Example:
        >>> Evaluation(5, {"loss": 0.5}, "best", 100, "test").to_dict()["loss"]
        0.5
    """

    kind: ClassVar[str] = "evaluation"

    length: int | None
    values: dict[str, float]
    weights: str
    update: int | None
    split: str

    def to_dict(self) -> Values:
        """Kind, version and fields; the values stand among them."""
        fields = super().to_dict()
        return {**{name: value for name, value in fields.items() if name != "values"}, **fields["values"]}

    @classmethod
    def from_dict(cls, values: Settings) -> Self:
        """Makes what :meth:`to_dict` described."""
        own = ("kind", "version", "length", "weights", "update", "split")
        measured = {name: value for name, value in values.items() if name not in own}
        return super().from_dict({**values, "values": measured})


def fitted(batch: Batch, model: nn.Module) -> Batch:
    """The batch on a model's device, its numbers in the model's precision.

    Example:
        >>> from remanence.tasks import Copy
        >>> fitted(Copy(length=3).batch(0, 2), nn.Linear(1, 1).double()).inputs.dtype
        torch.float64
    """
    like = next(model.parameters())
    moved = batch.to(like.device)
    if moved.inputs.is_floating_point():
        moved = moved._replace(inputs=moved.inputs.to(like.dtype))
    if moved.targets.is_floating_point():
        moved = moved._replace(targets=moved.targets.to(like.dtype))
    return moved


def start(task: Task, batch: Batch, state: object) -> Values:
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
