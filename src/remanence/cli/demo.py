"""``remanence demo``: the same cells, with and without a memory, learn to recall side by side."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from rich.console import Console
from torch.nn.utils import clip_grad_norm_

from remanence.cli._demo_display import progress_display, result_table
from remanence.nn import SequenceModel
from remanence.tasks import Batch, Copy


@dataclass(frozen=True)
class Settings:
    """Sizes of the demo; the quick one only shows that everything runs.

    Attributes:
        length: longest delay in training.
        shortest: shortest delay in training.
        far: delay of the second test, which nobody was trained for.
        updates: of every model.
        batch_size: rows of a training batch.
        rows: sequences of a test.
        hidden_size: of every model.
        memory: states in the short-term buffer, and as many in the relevant set.
        report_every: updates between two printed lines, where there is no terminal.

    Example:
        >>> Settings().far / Settings().length
        10.0
    """

    length: int = 50
    shortest: int = 10
    far: int = 500
    updates: int = 3000
    batch_size: int = 20
    rows: int = 100
    hidden_size: int = 64
    memory: int = 5
    report_every: int = 250


QUICK = Settings(length=6, shortest=3, far=20, updates=4, batch_size=2, rows=4, hidden_size=8, report_every=2)

LEARNING_RATE = 3e-3
GREATEST_GRADIENT = 1.0
VISIBLE = 0.01
"""Share of the greatest gradient that still counts as reaching a step."""


INTRODUCTION = """\
[bold]Who can still recall?[/bold] {task.items} symbols out of {task.symbols} are shown, then comes a delay, then they \
are asked for in their order (a guess gets {task.chance.accuracy:.1%}).
Two cells, each without and with a memory of at most 2 x {settings.memory} past states (Rel), learn from the same \
{settings.updates} batches of {settings.batch_size} sequences with delays from {settings.shortest} to \
{settings.length}; seed {seed}, one thread.
"""

CONCLUSION = """\
[bold]gradient reach[/bold]: steps from the first question back to the farthest input at which the gradient of the \
answer's loss is still 1 % of its greatest, at delay {settings.far}, before and after training.
[bold]state[/bold]: what is carried from step to step for one sequence; it is the same at every length.
One seed of one small task: a demonstration, not a benchmark. Easier variants need no memory: with 4 symbols and \
delays up to 30 the LSTM starts to learn as well, and if the delay is always 30 the RNN learns it fully, thanks to its \
orthogonal start.
"""


@dataclass
class Contender:
    """One model on its way through the demo.

    Attributes:
        name: what the table calls it.
        model: the network.
        reach_at_start: what :func:`gradient_reach` said before training.
        seconds: of training.
        recent: accuracies of the last batches.
    """

    name: str
    model: SequenceModel
    reach_at_start: int
    seconds: float = 0.0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=20))

    def __post_init__(self) -> None:
        self.optimiser = torch.optim.Adam(self.model.parameters(), LEARNING_RATE)

    @property
    def accuracy(self) -> float:
        """Mean accuracy of the last batches."""
        return sum(self.recent) / max(len(self.recent), 1)

    def learn(self, task: Copy, batch: Batch) -> None:
        """Makes one update.

        Args:
            task: gives the loss.
            batch: what to learn from.
        """
        start = time.perf_counter()
        logits, _ = self.model(batch.inputs)
        self.optimiser.zero_grad()
        task.loss(logits, batch).backward()
        clip_grad_norm_(self.model.parameters(), GREATEST_GRADIENT)
        self.optimiser.step()
        self.seconds += time.perf_counter() - start
        self.recent.append(task.accuracy(logits, batch).item())


@dataclass(frozen=True)
class Result:
    """One row of the final table.

    Attributes:
        name: of the model.
        accuracy: share of symbols recalled after the longest delay of the training.
        far_accuracy: after a delay that it was not trained for.
        state_bytes: of one sequence, at the end of the longer test.
        reach_at_start: steps that the gradient reached back before training.
        reach: and after it.
        parameters: numbers that were trained.
        seconds: of training.

    Example:
        >>> Result("LSTM", 1.0, 0.5, 512, 10, 20, 1000, 3.0).accuracy
        1.0
    """

    name: str
    accuracy: float
    far_accuracy: float
    state_bytes: int
    reach_at_start: int
    reach: int
    parameters: int
    seconds: float


def run_demo(*, quick: bool = False, seed: int = 0, console: Console | None = None) -> list[Result]:
    """Trains every contender on the same batches, one update each in turn, and prints a table of what came out.

    Args:
        quick: a few updates of tiny models, to see that everything runs.
        seed: of the initial weights and of the batches.
        console: where to print; None is the standard output.

    Returns:
        The rows of the table.

    Example:
        >>> [result.name for result in run_demo(quick=True, console=Console(quiet=True))]
        ['RNN', 'RelRNN', 'LSTM', 'RelLSTM']
    """
    console = console or Console()
    settings = QUICK if quick else Settings()
    task = Copy(length=settings.length, shortest=settings.shortest, items=3)
    with _one_thread(), torch.random.fork_rng(devices=[]):
        contenders = [make_contender(name, task, settings, seed) for name in ("RNN", "RelRNN", "LSTM", "RelLSTM")]
        console.print(INTRODUCTION.format(task=task, settings=settings, seed=seed), soft_wrap=not console.is_terminal)
        train(contenders, task, settings, seed, console)
        results = [judge(contender, task, settings, seed) for contender in contenders]
    console.print(result_table(results, settings.length, settings.far))
    console.print(CONCLUSION.format(settings=settings), soft_wrap=not console.is_terminal)
    return results


def make_contender(name: str, task: Copy, settings: Settings, seed: int) -> Contender:
    """Builds one model. Both RNNs start with an orthogonal recurrent matrix, so that the memory is what differs.

    Args:
        name: of its core.
        task: that it will learn.
        settings: sizes.
        seed: of its initial weights.

    Example:
        >>> make_contender("RelLSTM", Copy(items=3), QUICK, seed=0).model.core.spec.memory.recent
        5
    """
    options: dict[str, Any] = {"hidden_size": settings.hidden_size}
    if name.startswith("Rel"):
        options |= {"recent": settings.memory, "relevant": settings.memory}
    if name.endswith("RNN"):
        options["recurrent_init"] = "henaff"
    torch.manual_seed(seed)
    model = SequenceModel.for_task(task, name, **options)
    return Contender(name, model, gradient_reach(model, *_test(task, settings.far, settings.rows, seed)))


def train(contenders: list[Contender], task: Copy, settings: Settings, seed: int, console: Console) -> None:
    """Gives every contender the same batches, one update each in turn, and shows how they get on.

    Args:
        contenders: trained in place.
        task: gives the batches.
        settings: how many.
        seed: of the batches.
        console: where progress is shown: live on a terminal, else a line now and then.
    """
    with progress_display(console, settings.updates, settings.report_every) as show:
        for update in range(settings.updates):
            batch = task.batch(update, settings.batch_size, seed=seed)
            for contender in contenders:
                contender.learn(task, batch)
            show(update + 1, {contender.name: contender.accuracy for contender in contenders})


@torch.no_grad()
def judge(contender: Contender, task: Copy, settings: Settings, seed: int) -> Result:
    """Measures what a trained contender can do, on test sequences.

    Args:
        contender: to be measured.
        task: that it learnt.
        settings: delays of the tests.
        seed: of the test sequences.
    """
    near, batch = _test(task, settings.length, settings.rows, seed)
    far, far_batch = _test(task, settings.far, settings.rows, seed)
    logits, _ = contender.model(batch.inputs)
    far_logits, state = contender.model(far_batch.inputs)
    return Result(
        name=contender.name,
        accuracy=near.accuracy(logits, batch).item(),
        far_accuracy=far.accuracy(far_logits, far_batch).item(),
        state_bytes=state.nbytes // far_batch.size,
        reach_at_start=contender.reach_at_start,
        reach=gradient_reach(contender.model, far, far_batch),
        parameters=sum(parameter.numel() for parameter in contender.model.parameters()),
        seconds=contender.seconds,
    )


@torch.enable_grad()
def gradient_reach(model: SequenceModel, task: Copy, batch: Batch) -> int:
    """Steps back from the first question to the farthest input that still matters to its answer.

    An input matters if the norm of the gradient of the answer's loss, averaged over the rows, is there at least one
    hundredth of what it is at its greatest.

    Args:
        model: any that answers at every step.
        task: gives the loss.
        batch: inputs ``(T, B, input_size)``.

    Returns:
        The number of steps, 0 for a model that uses the present input alone.

    Example:
        >>> task = Copy(length=30, items=3)
        >>> model = SequenceModel.for_task(task, "RNN", hidden_size=4)
        >>> _ = torch.nn.init.zeros_(model.core.weight_hh_l0)
        >>> gradient_reach(model, task, task.batch(0, 2))
        0
    """
    question = int(batch.mask[:, 0].nonzero()[0])
    inputs = batch.inputs[: question + 1].detach().requires_grad_()
    logits, _ = model(inputs)
    loss = task.step_loss(logits[question], batch.targets[question]).sum()
    (gradient,) = torch.autograd.grad(loss, [inputs])
    size = gradient.norm(dim=-1).mean(dim=-1)
    return question - int((size >= VISIBLE * size.max()).nonzero()[0])


def _test(task: Copy, length: int, rows: int, seed: int) -> tuple[Copy, Batch]:
    """The task at one fixed delay, and sequences of it that no training batch shares."""
    fixed = replace(task, length=length, shortest=None)
    return fixed, fixed.batch(0, rows, split="test", seed=seed)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Small networks are fastest, and their sums always the same, with one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
