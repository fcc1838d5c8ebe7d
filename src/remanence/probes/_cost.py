"""What a model costs as sequences grow."""

from __future__ import annotations

import dataclasses
import math
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils import _pytree
from torch.utils.flop_counter import FlopCounterMode

from remanence._validate import message, positive_int
from remanence.figures import Curve, Figure, Look, length_axis, log_axis

from ._attention import without_fast_path
from ._declared import declared_operations
from ._fit import Growth, fit_growth, fit_noisy_growth
from ._meter import UNCOUNTED, Bytes, count_bytes
from ._observe import modules, products_visible, trained_parameters
from ._outputs import state_of
from ._result import ProbeResult
from ._subject import Model, Subject, subject_of

MEASURES = ("seconds", "peak_bytes", "state_bytes", "operations")
UNITS = {
    "seconds": "seconds, forward and backward",
    "peak_bytes": "bytes, at the peak of a training step",
    "state_bytes": "bytes, from step to step",
    "operations": "floating-point operations",
}
NEAR = 0.25
"""How far off a measured cost, relative to it, a fitted growth may be to be believed."""
PATIENCE = 1.0
"""Seconds of processor time up to which runs are repeated while their scatter allows more than one order."""
WORDS = {"seconds": "time", "peak_bytes": "memory", "state_bytes": "state", "operations": "operations"}
FACTOR = 2.0
"""How far counted and declared operations may be apart: products with vectors are not counted, empty slots are."""
EXPONENT = 0.5
"""How much faster than declared operations time may grow: half-way from one power of T to the next."""


@dataclasses.dataclass(frozen=True)
class Cost(ProbeResult):
    """Time, memory, state and operations against the length of the sequence.

    Example:
        >>> found = cost(torch.nn.LSTM(3, 8), [16, 32, 64])
        >>> found.growth["operations"].order, found.growth["state_bytes"].order
        ('linear', 'constant')
    """

    kind: ClassVar[str] = "cost"

    lengths: tuple[int, ...]
    seconds: tuple[float, ...]
    """Processor time of a forward and a backward pass, the best of several; on a GPU, time by the clock."""
    peak_bytes: tuple[int, ...]
    """Most bytes of tensors alive at once during both, parameters and input not counted."""
    state_bytes: tuple[int, ...]
    """Of what the model hands over to the next call; 0 if it returns an output alone."""
    operations: tuple[int, ...]
    """Floating-point operations of the matrix products of the forward pass."""
    growth: Mapping[str, Growth]
    declared_state_bytes: int | None
    """What the layer's ``initial_state`` says its state takes; ``None`` if it has none."""
    declared_operations: tuple[int, ...] | None
    """What the formulas of :mod:`remanence.theory` say for its layers; ``None`` if it has one of another kind."""

    @property
    def as_declared(self) -> dict[str, bool]:
        """By measure, whether it is as declared, where anything is.

        The state has the declared size at every length. Operations are within a factor of two of the declared ones.
        Time, which has no unit in a formula, grows no faster than they do: by less than half a power of T more.
        """
        found = {}
        if self.declared_operations is not None:
            declared = self.declared_operations
            slopes = [log_slope(self.lengths, costs) for costs in (self.seconds, declared)]
            found["seconds"] = slopes[0] <= slopes[1] + EXPONENT
            pairs = list(zip(self.operations, declared, strict=True))
            found["operations"] = all(said <= FACTOR * done and done <= FACTOR * said for done, said in pairs)
        if self.declared_state_bytes is not None:
            found["state_bytes"] = all(size == self.declared_state_bytes for size in self.state_bytes)
        return found

    @property
    def verdict(self) -> str:
        """The order of growth of each, and whether that is as declared."""
        seen = [name for name in MEASURES if any(getattr(self, name))]
        orders = ", ".join(f"{WORDS[name]} {self.order(name) or '(too noisy to say)'}" for name in seen)
        parts = [f"{orders} from T = {self.lengths[0]:,} to {self.lengths[-1]:,}"]
        as_declared = [name for name, holds in self.as_declared.items() if holds and self.order(name)]
        others = [name for name, holds in self.as_declared.items() if not holds]
        for names, ending in ((as_declared, "as its layers declare"), (others, "not as its layers declare")):
            if names:
                parts.append(f"{' and '.join(WORDS[name] for name in names)} {ending}")
        return "; ".join(parts)

    def order(self, measure: str) -> str | None:
        """How a measure grows, or None if the measurements are too noisy to say.

        The fitted growth must be within a quarter of everything measured, and time must grow as the operations do, or
        as the memory where none were counted: if it does not, something else on the machine disturbed it.

        Args:
            measure: ``"seconds"``, ``"peak_bytes"``, ``"state_bytes"`` or ``"operations"``.
        """
        growth = self.growth[measure]
        if not any(getattr(self, measure)):
            return "constant"
        fitted = self._fitted(measure)
        close = all(abs(a - b) <= NEAR * abs(b) for a, b in zip(fitted, getattr(self, measure), strict=True))
        yardstick = self.growth["operations"]
        if not any(self.operations):
            yardstick = self.growth["peak_bytes"]
        disturbed = measure == "seconds" and growth.order != yardstick.order
        if not close or disturbed or growth.order == "unclear":
            return None
        return growth.order

    def _fitted(self, measure: str) -> list[float]:
        growth = self.growth[measure]
        return [growth.constant + growth.linear * t + growth.quadratic * t * t for t in self.lengths]

    def figures(self) -> list[Figure]:
        """Each measure against T, as figure 2 (centre) of Kerg et al. 2020, with the growth that was fitted."""
        return [self._figure(measure) for measure in MEASURES if any(getattr(self, measure))]

    def _figure(self, measure: str) -> Figure:
        values = getattr(self, measure)
        order = self.order(measure)
        parts = [Curve("measured", self.lengths, values, "marks")]
        if order is not None:
            parts.append(Curve("fitted a + b T + c T²", self.lengths, self._fitted(measure), faint=True))
        if measure == "operations" and self.declared_operations is not None:
            parts.append(Curve("declared", self.lengths, self.declared_operations, look=Look(dash="dot"), faint=True))
        y = log_axis(UNITS[measure], values, "SI")
        words = order or "too noisy to say"
        return Figure(WORDS[measure].capitalize(), words, tuple(parts), length_axis("T, steps", self.lengths), y)


def cost(
    model: Model,
    lengths: Sequence[int],
    batch: object = None,
    *,
    batch_first: bool | None = None,
    repeats: int = 5,
    training: bool = False,
    count: bool = True,
) -> Cost:
    """Measures a forward and a backward pass at several lengths and fits ``a + b T + c T^2``.

    Lengths take turns, so that a busy moment of the machine falls on all of them. Where the scatter of the times allows
    more than one order of growth, the verdict on time is "too noisy to say".

    Args:
        model: any callable on sequences.
        lengths: two at least, rising.
        batch: one input, repeated or cut along time to each length; ``None`` draws one row for the model's first
            layer with an ``input_size``.
        batch_first: whether time is the second dimension; ``None`` asks the model, or measures it.
        repeats: runs of which the fastest counts. As many again follow, for up to a second, while the times scatter too
            much to tell an order.
        training: whether to keep training mode, with its dropout; by default the model is probed in evaluation mode.
        count: whether to count operations, on the plain path, which is slow for long sequences. Without, the declared
            ones stand for them where there are any.

    Example:
        >>> cost(torch.nn.GRU(3, 8), [8, 16]).lengths
        (8, 16)
    """
    sizes = _rising_lengths(lengths)
    if batch is None:
        batch = _sample(model)
    subject = subject_of(model, batch, batch_first=batch_first, training=training)
    inputs = [subject.at_length(length).inputs for length in sizes]
    with subject.untouched(), torch.enable_grad():
        runs = _times_enough(subject, inputs, sizes, max(1, repeats))
        memory = [count_bytes(training_step(subject, x)) for x in inputs]
        declared = None
        if not subject.has_other_inputs:  # which may have another length
            declared = _declared_operations(model, sizes, subject.layout.rows)
        forward = [_forward_cost(subject, x, count or declared is None) for x in inputs]
    columns = {
        "peak_bytes": tuple(used.peak for used in memory),
        "state_bytes": tuple(state for state, _ in forward),
        "operations": tuple(operations for _, operations in forward),
    }
    if declared is not None and not count:
        columns["operations"] = declared
    growth = {"seconds": fit_noisy_growth(sizes, runs)}
    growth |= {name: fit_growth(sizes, [float(value) for value in column]) for name, column in columns.items()}
    growth["peak_bytes"] = _memory_growth(sizes, memory)
    return Cost(
        tuple(sizes),
        tuple(min(times) for times in runs),
        **columns,
        growth=growth,
        declared_state_bytes=_declared_state(model, subject),
        declared_operations=declared,
    )


def _memory_growth(sizes: list[int], memory: Sequence[Bytes]) -> Growth:
    """How the peak grows: no faster than all bytes together, for a peak that moves from one tensor to another bends."""
    peak = fit_growth(sizes, [float(used.peak) for used in memory])
    total = fit_growth(sizes, [float(used.total) for used in memory])
    if peak.order == "quadratic":
        return dataclasses.replace(peak, order=total.order)
    return peak


def _rising_lengths(lengths: Sequence[int]) -> list[int]:
    sizes = [positive_int("lengths", length) for length in lengths]
    if len(sizes) < 2 or sizes != sorted(set(sizes)):
        raise ValueError(message("lengths", "be two lengths or more, rising", repr(list(lengths))))
    return sizes


def _sample(model: Any) -> Tensor:
    """One row of one step for the first layer that says its input size: ``(1, 1, input_size)``."""
    sizes = (getattr(part, "input_size", None) for part in modules(model))
    size = next((size for size in sizes if isinstance(size, int)), None)
    if size is None:
        raise ValueError(message("batch", "be given for a model without `input_size`", "None"))
    like = next(iter(model.parameters()), torch.zeros(()))
    generator = torch.Generator().manual_seed(0)
    return torch.randn((1, 1, size), generator=generator).to(like.dtype)


def training_step(subject: Subject, x: Tensor) -> Callable[[], None]:
    """A forward and a backward pass."""
    leaves = trained_parameters(subject.model)

    def step() -> None:
        value = subject.output(x).square().sum()
        if value.requires_grad and leaves:
            torch.autograd.grad(value, leaves, allow_unused=True)

    return step


def _times_enough(subject: Subject, inputs: Sequence[Tensor], sizes: list[int], repeats: int) -> list[list[float]]:
    """As :func:`_times`, again and again while they scatter too much to tell an order, for a second at most."""
    runs = _times(subject, inputs, repeats)
    while sum(map(sum, runs)) < PATIENCE and fit_noisy_growth(sizes, runs).order == "unclear":
        more = _times(subject, inputs, repeats)
        runs = [old + new for old, new in zip(runs, more, strict=True)]
    return runs


def _times(subject: Subject, inputs: Sequence[Tensor], repeats: int) -> list[list[float]]:
    """Seconds of a training step on each input, in turns: a list for each input."""
    steps = [training_step(subject, x) for x in inputs]
    rounds = [[timed(step, subject.inputs.device) for step in steps] for _ in range(repeats)]
    return [list(times) for times in zip(*rounds, strict=True)]


def timed(run: Callable[[], None], device: torch.device) -> float:
    """Processor time, which other programs do not stretch as they do the clock's; a GPU's own work has no such time."""
    if device.type == "cpu":
        started = clock.process_time()
        run()
        return clock.process_time() - started
    torch.accelerator.synchronize(device)
    started = clock.perf_counter()
    run()
    torch.accelerator.synchronize(device)
    return clock.perf_counter() - started


def _forward_cost(subject: Subject, x: Tensor, count: bool) -> tuple[int, int]:
    """Bytes of the state that a run hands over, and floating-point operations of its matrix products, if asked for."""
    counter = FlopCounterMode(display=False, custom_mapping=UNCOUNTED)
    with torch.no_grad(), ExitStack() as stack:
        if count:
            stack.enter_context(products_visible(subject.model))
            stack.enter_context(without_fast_path())
            stack.enter_context(counter)
        result = subject.run(x)
    held = {id(tensor): tensor.nbytes for tensor in tensors_in(state_of(result))}
    return sum(held.values()), counter.get_total_flops()  # 0 if nothing was counted


def tensors_in(value: object, depth: int = 4) -> Iterator[Tensor]:
    """All tensors in nested containers, and in the attributes of objects such as a cache of keys and values.

    Example:
        >>> len(list(tensors_in(({"a": torch.zeros(1)}, [torch.ones(2)], "text"))))
        2
    """
    for leaf in _pytree.tree_leaves(value):
        if isinstance(leaf, Tensor):
            yield leaf
        elif depth and hasattr(leaf, "__dict__") and not isinstance(leaf, type):
            yield from tensors_in(dict(vars(leaf)), depth - 1)


def log_slope(lengths: Sequence[int], costs: Sequence[float]) -> float:
    """Exponent of T from the shortest to the longest; nothing in between is as sure.

    Example:
        >>> log_slope([10, 20, 40], [1, 4, 16])
        2.0
    """
    if min(costs[0], costs[-1]) <= 0:
        return 0.0
    return math.log(costs[-1] / costs[0]) / math.log(lengths[-1] / lengths[0])


def _declared_operations(model: object, lengths: Sequence[int], rows: int) -> tuple[int, ...] | None:
    counts = [declared_operations(model, length, rows) for length in lengths]
    known = tuple(count for count in counts if count)  # layers without products declare nothing
    if len(known) < len(counts):
        return None
    return known


def _declared_state(model: object, subject: Subject) -> int | None:
    declare = getattr(model, "initial_state", None)
    if not callable(declare):
        return None
    rows = None
    if subject.layout.row_dim is not None:
        rows = subject.layout.rows
    return sum(tensor.nbytes for tensor in tensors_in(declare(rows)))
