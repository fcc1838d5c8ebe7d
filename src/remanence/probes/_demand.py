"""Whether a task needs memory at all."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import torch

from remanence._validate import message, positive_int
from remanence.figures import Axis, Bars, Figure, share_axis

from ._observe import untouched
from ._outputs import output_of
from ._result import ProbeResult
from ._subject import Model


@dataclasses.dataclass(frozen=True)
class MemoryDemand(ProbeResult):
    """Accuracies of predictors that see nothing, the present input alone, and of a model.

    Example:
        >>> from remanence.tasks import Copy
        >>> memory_demand(Copy(10)).needs_memory
        True
    """

    kind: ClassVar[str] = "memory_demand"

    chance: float
    """Accuracy without looking."""
    memory_free: float
    """Best accuracy from the present input alone."""
    model: float | None
    """The model's accuracy; ``None`` without a model."""
    measured: bool
    """Whether ``memory_free`` was counted on data, not stated by the task."""

    @property
    def needs_memory(self) -> bool:
        """Whether the present input alone leaves answers open: one in a hundred, at least."""
        return self.memory_free < 0.99

    @property
    def uses_memory(self) -> bool | None:
        """Whether the model beats every predictor without a memory; ``None`` without a model."""
        if self.model is None:
            return None
        return self.model > self.memory_free

    @property
    def verdict(self) -> str:
        """Needed or not, and whether the model shows any."""
        needs = {True: "needs memory", False: "needs no memory"}[self.needs_memory]
        words = f"the task {needs}: without it at most {self.memory_free:.3f} (chance {self.chance:.3f})"
        if self.model is not None:
            words += f"; the model reaches {self.model:.3f}"
        return words

    def figures(self) -> list[Figure]:
        """The accuracies in one figure."""
        shown = {"chance": self.chance, "present input alone": self.memory_free}
        if self.model is not None:
            shown["model"] = self.model
        bars = Bars(list(shown), list(shown.values()))
        return [Figure("Memory demand", self.verdict, (bars,), Axis(scale="category"), share_axis("accuracy"))]


def memory_demand(task: Any, model: Model | None = None, *, batches: int = 4, batch_size: int = 64) -> MemoryDemand:
    """Compares the best predictor without a memory with a model.

    Where inputs and targets are classes, the best such predictor is counted on the task's own data: for every input
    token its most frequent answer. Otherwise what the task states as ``memory_free`` is taken.

    Args:
        task: one of ``remanence.tasks``, or anything with ``batch(position, batch_size)``, ``accuracy(output, batch)``,
            ``chance`` and ``memory_free``.
        model: maps ``batch.inputs`` to outputs.
        batches: how many to count on.
        batch_size: rows of each.

    Example:
        >>> from remanence.tasks import Copy
        >>> 0 < memory_demand(Copy(10)).chance <= 1
        True
    """
    positive_int("batches", batches)
    if not callable(getattr(task, "batch", None)):
        hint = "For an environment take remanence.rl.memory_demand"
        raise TypeError(message("task", "have `batch(position, batch_size)`", type(task).__name__, hint))
    drawn = [task.batch(position, batch_size) for position in range(batches)]
    memory_free = counted = _counted(drawn)
    if memory_free is None:
        memory_free = float(task.memory_free.accuracy)
    score = None
    if model is not None:
        with untouched(model), torch.no_grad():
            scores = [float(task.accuracy(output_of(model(batch.inputs)), batch)) for batch in drawn]
        score = sum(scores) / len(scores)
    return MemoryDemand(float(task.chance.accuracy), memory_free, score, counted is not None)


def _counted(batches: list[Any]) -> float | None:
    """Share of right answers if every input token gets its most frequent one; ``None`` if they are not tokens."""
    first = batches[0]
    if first.inputs.is_floating_point() or first.targets.is_floating_point():
        return None
    tokens = torch.cat([batch.inputs[batch.mask] for batch in batches])
    answers = torch.cat([batch.targets[batch.mask] for batch in batches])
    if not len(tokens):
        return None
    table = torch.zeros(int(tokens.max()) + 1, int(answers.max()) + 1)
    table.index_put_((tokens, answers), torch.ones(len(tokens)), accumulate=True)
    return float(table.amax(dim=1).sum() / len(tokens))
