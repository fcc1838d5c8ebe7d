"""What a model costs as sequences grow."""

from __future__ import annotations

import dataclasses
import math
import time as clock
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree
from torch.utils.flop_counter import FlopCounterMode

from remanence._validate import message, positive_int
from remanence.figures import Axis, Curve, Figure, Look, length_axis, log_axis

from ._attention import without_fast_path
from ._declared import declared_operations
from ._fit import Growth, fit_growth
from ._meter import peak_bytes
from ._observe import inputs_of, is_batch_first, modules, output_of, products_visible, untouched
from ._reach import GradientReach, Loss, gradient_reach
from ._result import ProbeResult

MEASURES = ("seconds", "peak_bytes", "state_bytes", "operations")
UNITS = {
    "seconds": "seconds, forward and backward",
    "peak_bytes": "bytes, at the peak of a training step",
    "state_bytes": "bytes, from step to step",
    "operations": "floating-point operations",
}
NEAR = 0.25
"""How far off a measured cost, relative to it, a fitted growth may be to be believed."""
WORDS = {"seconds": "time", "peak_bytes": "memory", "state_bytes": "state", "operations": "operations"}


def _attention_operations(query: Sequence[int], key: Sequence[int], *others: Any, **options: Any) -> int:
    """Of the two products of an attention, by the shapes ``(..., T, d)`` of queries and keys."""
    return 4 * math.prod(query) * key[-2]


HIDDEN: dict[Any, Any] = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention_operations}
"""Operations with matrix products inside that torch's counter does not know."""
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

    lengths: tuple[int, ...]
    seconds: tuple[float, ...]
    """Of a forward and a backward pass, the best of several."""
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
        """The order of growth of each."""
        orders = ", ".join(f"{WORDS[name]} {self.growth[name].order}" for name in MEASURES)
        kept = [WORDS[name] for name, holds in self.as_declared.items() if holds]
        broken = [WORDS[name] for name, holds in self.as_declared.items() if not holds]
        parts = [f"{', '.join(kept)} as declared"] * bool(kept) + [f"{', '.join(broken)} not as declared"] * bool(
            broken
        )
        return "; ".join([f"{orders} in T", *parts])

    def order(self, measure: str) -> str | None:
        """How a measure grows, or None if the measurements are too noisy to say.

        The fitted growth must be within a quarter of everything measured, and time must grow as the operations do:
        if it does not, something else on the machine disturbed it.

        Args:
            measure: ``"seconds"``, ``"peak_bytes"``, ``"state_bytes"`` or ``"operations"``.
        """
        growth = self.growth[measure]
        fitted = self._fitted(measure)
        close = all(abs(a - b) <= NEAR * abs(b) for a, b in zip(fitted, getattr(self, measure), strict=True))
        disturbed = measure == "seconds" and growth.order != self.growth["operations"].order
        return growth.order if close and not disturbed else None

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
        words = "too noisy to say" if order is None else order
        return Figure(WORDS[measure].capitalize(), words, tuple(parts), length_axis("T, steps", self.lengths), y)


def cost(
    model: Callable[..., Any],
    lengths: Sequence[int],
    batch: Any = None,
    *,
    batch_first: bool | None = None,
    repeats: int = 3,
) -> Cost:
    """Measures a forward and a backward pass at several lengths and fits ``a + b T + c T^2``.

    Args:
        model: any callable on sequences.
        lengths: two at least, rising.
        batch: one input, repeated or cut along time to each length; ``None`` draws one row for the model's first
            layer with an ``input_size``.
        batch_first: whether time is the second dimension; ``None`` asks the model's layers.
        repeats: runs of which the fastest counts.

    Example:
        >>> cost(torch.nn.GRU(3, 8), [8, 16]).lengths
        (8, 16)
    """
    sizes = [positive_int("lengths", length) for length in lengths]
    if len(sizes) < 2 or sizes != sorted(set(sizes)):
        raise ValueError(message("lengths", "be two lengths or more, rising", repr(list(lengths))))
    time = 1 if is_batch_first(model, batch_first) else 0
    sample = _sample(model, time) if batch is None else inputs_of(batch)
    with untouched(model), torch.enable_grad():
        rows = [_measure(model, at_length(sample, length, time), repeats) for length in sizes]
    columns = {name: tuple(row[name] for row in rows) for name in MEASURES}
    growth = {name: fit_growth(sizes, [float(v) for v in columns[name]]) for name in MEASURES}
    rows_of = sample.shape[1 - time] if sample.dim() > 1 else None
    said = [declared_operations(model, length, rows_of or 1) for length in sizes]
    return Cost(
        tuple(sizes),
        **columns,
        growth=growth,
        declared_state_bytes=_declared(model, rows_of),
        declared_operations=None if None in said else tuple(count for count in said if count is not None),
    )


def _sample(model: Any, time: int) -> Tensor:
    sizes = (getattr(part, "input_size", None) for part in modules(model))
    size = next((size for size in sizes if isinstance(size, int)), None)
    if size is None:
        raise ValueError(message("batch", "be given for a model without `input_size`", "None"))
    like = next(iter(model.parameters()), torch.zeros(()))
    generator = torch.Generator().manual_seed(0)
    return torch.randn((1, 1, int(size)), generator=generator).to(like.dtype)


def at_length(sample: Tensor, length: int, time: int) -> Tensor:
    """The sample repeated and cut along time: for instance ``(length, B, F)``."""
    repeats = -(-length // sample.shape[time])
    return torch.cat([sample] * repeats, dim=time).narrow(time, 0, length).detach()


def _measure(model: Callable[..., Any], x: Tensor, repeats: int) -> dict[str, Any]:
    def train() -> None:
        value = output_of(model(x)).square().sum()
        if value.requires_grad:
            leaves = [p for part in modules(model) for p in part.parameters(recurse=False) if p.requires_grad]
            torch.autograd.grad(value, leaves, allow_unused=True) if leaves else None

    seconds = min(_timed(train) for _ in range(max(1, repeats)))
    counter = FlopCounterMode(display=False, custom_mapping=HIDDEN)
    with torch.no_grad(), products_visible(model), without_fast_path(), counter:
        result = model(x)
    state = result[1:] if isinstance(result, tuple) else ()
    held = [leaf for leaf in _pytree.tree_leaves(state) if isinstance(leaf, Tensor)]
    sizes = {"peak_bytes": peak_bytes(train), "state_bytes": sum(leaf.nbytes for leaf in held)}
    return {"seconds": seconds, "operations": counter.get_total_flops(), **sizes}


def log_slope(lengths: Sequence[int], costs: Sequence[float]) -> float:
    """Exponent of T from the shortest to the longest; nothing in between is as sure.

    Example:
        >>> log_slope([10, 20, 40], [1, 4, 16])
        2.0
    """
    if min(costs[0], costs[-1]) <= 0:
        return 0.0
    return math.log(costs[-1] / costs[0]) / math.log(lengths[-1] / lengths[0])


def _timed(run: Callable[[], None]) -> float:
    started = clock.perf_counter()
    run()
    return clock.perf_counter() - started


def _declared(model: Any, rows: int | None) -> int | None:
    declare = getattr(model, "initial_state", None)
    if not callable(declare):
        return None
    state: Any = declare(rows)
    return sum(leaf.nbytes for leaf in _pytree.tree_leaves(state) if isinstance(leaf, Tensor))


@dataclasses.dataclass(frozen=True)
class Tradeoff(ProbeResult):
    """Gradient against memory for several models at several lengths.

    Example:
        >>> models = {"LSTM": torch.nn.LSTM(3, 4), "GRU": torch.nn.GRU(3, 4)}
        >>> sorted(tradeoff(models, [8, 16], torch.randn(16, 2, 3)).points)
        ['GRU', 'LSTM']
    """

    lengths: tuple[int, ...]
    points: Mapping[str, tuple[tuple[float, float], ...]]
    """By model, for each length: peak bytes, and the mean log norm of the gradient over the finite ones."""

    @property
    def verdict(self) -> str:
        """Which model keeps most gradient at the longest, and which takes least memory."""
        last = {name: points[-1] for name, points in self.points.items()}
        strongest, leanest = max(last, key=lambda n: last[n][1]), min(last, key=lambda n: last[n][0])
        return f"at T = {self.lengths[-1]} most gradient: {strongest}; least memory: {leanest}"

    def figures(self) -> list[Figure]:
        """Mean log gradient norm against peak memory, as figure 2 (right) of Kerg et al. 2020."""
        curves = []
        for name, points in self.points.items():
            memory, norms = zip(*points, strict=True)
            curves.append(Curve(name, memory, norms, "both"))
        x = log_axis("bytes at the peak", [value for curve in curves for value in curve.x], "SI")
        words = f"{self.verdict}. Marks, from left to right: T = {', '.join(map(str, self.lengths))}."
        return [Figure("Gradient against memory", words, tuple(curves), x, Axis("mean ln |gradient|"))]


def tradeoff(
    models: Mapping[str, Callable[..., Any]], lengths: Sequence[int], batch: Any, loss: Loss | None = None
) -> Tradeoff:
    """Measures the mean log gradient norm and the peak memory of several models at several lengths.

    Args:
        models: by name.
        lengths: rising, two at least.
        batch: one input for all, repeated or cut along time to each length; or a function that makes one of a length,
            such as ``lambda length: task.with_length(length).batch(0, 8)``.
        loss: as in :func:`gradient_reach`, given the output and the input of that length.

    Example:
        >>> tradeoff({"RNN": torch.nn.RNN(3, 4)}, [4, 8], torch.randn(8, 2, 3)).lengths
        (4, 8)
    """
    points = {}
    for name, model in models.items():
        time = 1 if is_batch_first(model, None) else 0
        measured = cost(model, lengths, batch(max(lengths)) if callable(batch) else batch, repeats=1)
        batches = [batch(t) if callable(batch) else at_length(inputs_of(batch), t, time) for t in measured.lengths]
        reaches = [gradient_reach(model, one, loss) for one in batches]
        points[name] = tuple(zip(map(float, measured.peak_bytes), map(_mean_norm, reaches), strict=True))
    return Tradeoff(tuple(lengths), points)


def _mean_norm(reach: GradientReach) -> float:
    finite = reach.log_norm[np.isfinite(reach.log_norm)]
    return float(finite.mean()) if len(finite) else float("-inf")
