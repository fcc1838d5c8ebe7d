"""One update: forward, backward, clip, step, project. It knows batches and no files."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from remanence.nn import SequenceModel
from remanence.runs import detach, seed_torch
from remanence.tasks import Batch, Task, stream
from remanence.train._building import check_precision
from remanence.train._clipping import clip_gradients_
from remanence.train._config import RunConfig
from remanence.train._distributed import Processes
from remanence.train._evaluation import fitted, start
from remanence.train._optimisers import decay_, make_optimiser, rate_factor


class Learnt(NamedTuple):
    """What one batch showed: loss and accuracy before the update, and the norm of the gradient before clipping."""

    loss: float
    accuracy: float
    norm: float


class Sums(NamedTuple):
    """What the parts of a batch add up to: loss over the steps that count, their number, right answers, questions."""

    loss: float = 0.0
    counted: float = 0.0
    right: float = 0.0
    asked: float = 0.0

    def plus(self, other: Sums) -> Sums:
        """Both together."""
        return Sums(*(mine + others for mine, others in zip(self, other, strict=True)))


class BadNumberError(ArithmeticError):
    """The loss or the gradient is not finite; no parameter has been moved by it.

    Args:
        words: What was found.
        stepped: Whether an earlier piece of the same batch has moved the parameters.
    """

    def __init__(self, words: str, stepped: bool) -> None:
        super().__init__(words)
        self.stepped = stepped


class Learner:
    """A model and its optimiser.

    Example:
        >>> from remanence.tasks import Copy
        >>> model = SequenceModel.for_task(Copy(length=3), "LSTM", hidden_size=4)
        >>> learner = Learner(RunConfig(), model, Processes())
        >>> learner.learn(Copy(length=3), update=0, budget=1, plateau_drops=0).loss > 1
        True
    """

    def __init__(self, config: RunConfig, model: SequenceModel, processes: Processes) -> None:
        self.config = config
        self.processes = processes
        self.device = torch.device(config.loop.device)
        check_precision(config.loop.precision, self.device)
        self.model = model.to(self.device)
        self.shared_model = processes.wrap(self.model)
        self.optimiser = make_optimiser(self.model, config.optimiser)
        self.base_rates = [group["lr"] for group in self.optimiser.param_groups]
        self.rows = processes.rows(config.task.batch_size, config.loop.accumulate)
        self.carried: list[Any] = [None] * len(self.rows)

    def learn(self, task: Task, update: int, budget: int, plateau_drops: int) -> Learnt:
        """Learns from batch number `update`: once, or once per piece of `truncate` steps.

        Raises :class:`BadNumberError` if loss or gradient is not finite.
        """
        self._set_rates(rate_factor(self.config.schedule, update, budget, plateau_drops))
        batch = self.batch(task, update)
        self.model.train()
        states = list(self.carried)
        sums = Sums()
        norm = 0.0
        stepped = False
        steps = self.config.loop.truncate or batch.steps
        for number, first in enumerate(range(0, batch.steps, steps)):
            found = self._backward(task, batch.piece(first, first + steps), states, (update, number))
            sums = sums.plus(found)
            if found.counted:
                norm = max(norm, self._step(found.loss, stepped))
                stepped = True
        self.carried = [None] * len(states)
        if task.stateful:
            self.carried = states
        return Learnt(sums.loss / max(sums.counted, 1.0), sums.right / max(sums.asked, 1.0), norm)

    def batch(self, task: Task, update: int) -> Batch:
        """Batch number `update`, all rows of it: every process draws the whole and takes its share."""
        drawn = task.batch(update, self.config.task.batch_size, seed=self.config.seed)
        return fitted(drawn, self.model)

    def _seed(self, update: int, piece: int, place: int) -> None:
        """Parts need dropout masks of their own; gradient cuts are drawn for the whole batch, so parts must agree."""
        part = 0
        if self.config.model.options.get("dropout"):
            part = self.processes.rank * len(self.rows) + place
        seed_torch(update_seed(self.config.seed, update, piece, part))

    def _set_rates(self, factor: float) -> None:
        for group, rate in zip(self.optimiser.param_groups, self.base_rates, strict=True):
            group["lr"] = rate * factor

    def _backward(self, task: Task, piece: Batch, states: list[Any], when: tuple[int, int]) -> Sums:
        """Gradient of the whole piece, part by part, and what it shows, over all processes."""
        self.optimiser.zero_grad(set_to_none=True)
        total = _counted(task, piece)
        # Wrapped for several processes, a model waits for all gradients; where no step counts, none will come.
        model = self.model
        if total:
            model = self.shared_model
        sums = Sums()
        for place, (first, stop) in enumerate(self.rows):
            part = piece.rows(first, stop)
            # Only the first piece of a batch may start afresh; the later ones go on where the one before ended.
            origin = {"state": states[place]}
            if when[1] == 0:
                origin = start(task, part, states[place])
            self._seed(*when, place)
            with self._synchronised(place, total):
                output, state = model(part.inputs, **origin)
                states[place] = detach(state)
                if total:
                    sums = sums.plus(self._part_backward(task, part, output, total))
        return Sums(*self.processes.sums(list(sums)))

    def _part_backward(self, task: Task, part: Batch, output: Tensor, total: int) -> Sums:
        """Gradient of a part, weighted by its share of what counts in the whole piece, over all processes."""
        share = _counted(task, part)
        answers = int(part.mask.sum())
        if not share:
            # Nothing to learn here, but the other processes wait for this one's gradients: zeros.
            (output.sum() * 0.0).backward()
            return Sums()
        scores = output
        if output.dtype == torch.bfloat16:
            scores = output.float()
        loss = task.loss(scores, part)
        (loss * (share * self.processes.size / total)).backward()
        right = 0.0
        if answers:
            right = task.accuracy(output, part).item() * answers
        return Sums(loss.item() * share, float(share), right, float(answers))

    @contextlib.contextmanager
    def _synchronised(self, place: int, total: int) -> Iterator[None]:
        """Mixed precision, no graph where nothing counts, and gradients exchanged after the last part only."""
        mixed = self.config.loop.precision == "bfloat16"
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.autocast(self.device.type, torch.bfloat16, enabled=mixed))
            stack.enter_context(torch.set_grad_enabled(bool(total)))
            if self.processes.size > 1 and place < len(self.rows) - 1:
                stack.enter_context(self.shared_model.no_sync())  # pyright: ignore[reportCallIssue]
            yield

    def _step(self, loss_sum: float, stepped: bool) -> float:
        loop = self.config.loop
        if not math.isfinite(loss_sum):
            raise BadNumberError("the loss is not finite", stepped)
        norm = clip_gradients_(list(self.model.parameters()), loop.clip_norm, loop.clip_value)
        if not math.isfinite(norm):
            raise BadNumberError("the gradient is not finite", stepped)
        decay_(self.optimiser, self.config.optimiser.decoupled_decay)
        self.optimiser.step()
        for part in self.model.modules():
            if hasattr(part, "project_"):
                part.project_()  # pyright: ignore[reportCallIssue]
        return norm

    def bad_groups(self) -> dict[str, list[str]]:
        """Parameters whose value, or else whose gradient, or else its square, is not finite, by group."""
        by_name = dict(self.model.named_parameters())
        for part in ("value", "gradient", "squared gradient"):
            found = {
                f"{group['name']} ({part})": [name for name in group["names"] if _bad(by_name[name], part)]
                for group in self.optimiser.param_groups
            }
            if any(found.values()):
                return {group: names for group, names in found.items() if names}
        return {}

    def weights_are_finite(self) -> bool:
        """Whether every parameter is; only then may they be saved."""
        return all(bool(parameter.isfinite().all()) for parameter in self.model.parameters())


def _bad(parameter: Tensor, part: str) -> bool:
    values = parameter.grad
    if part == "value":
        values = parameter
    if values is None:
        return False
    if part == "squared gradient":
        values = values.square().sum()
    return not bool(values.isfinite().all())


def _counted(task: Task, batch: Batch) -> int:
    """Steps that the loss counts."""
    if task.loss_on_all_steps:
        return batch.steps * batch.size
    return int(batch.mask.sum())


def update_seed(seed: int, update: int, piece: int, part: int) -> int:
    """The seed of one forward pass's dropout and gradient cuts: a pure function, so a kill loses nothing of it.

    Example:
        >>> update_seed(0, 1, 0, 0) == update_seed(0, 1, 0, 0), update_seed(0, 1, 0, 0) == update_seed(0, 2, 0, 0)
        (True, False)
    """
    return stream("train", seed, update, salt=f"update:{piece}:{part}").initial_seed()
