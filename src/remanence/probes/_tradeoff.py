"""Gradient against memory, for several models at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from remanence.figures import Axis, Curve, Figure, log_axis

from ._cost import cost
from ._reach import GradientReach, Loss, gradient_reach
from ._result import ProbeResult
from ._subject import Model, Subject


@dataclasses.dataclass(frozen=True)
class Tradeoff(ProbeResult):
    """Gradient against memory for several models at several lengths.

    Example:
        >>> import torch
        >>> models = {"LSTM": torch.nn.LSTM(3, 4), "GRU": torch.nn.GRU(3, 4)}
        >>> sorted(tradeoff(models, [8, 16], torch.randn(16, 2, 3)).points)
        ['GRU', 'LSTM']
    """

    kind: ClassVar[str] = "tradeoff"

    lengths: tuple[int, ...]
    points: Mapping[str, tuple[tuple[float, float], ...]]
    """By model, for each length: peak bytes, and the mean log norm of the gradient over the finite ones."""

    @property
    def verdict(self) -> str:
        """Which model keeps most gradient at the longest, and which takes least memory."""
        last = {name: points[-1] for name, points in self.points.items()}
        strongest = max(last, key=lambda name: last[name][1])
        leanest = min(last, key=lambda name: last[name][0])
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
    models: Mapping[str, Model],
    lengths: Sequence[int],
    batch: object,
    loss: Loss | None = None,
    *,
    batch_first: bool | None = None,
) -> Tradeoff:
    """Measures the mean log gradient norm and the peak memory of several models at several lengths.

    Args:
        models: by name.
        lengths: rising, two at least.
        batch: one input for all, repeated or cut along time to each length; or a function that makes one of a length,
            such as ``lambda length: task.with_length(length).batch(0, 8)``.
        loss: as in :func:`gradient_reach`, given the output and the input of that length.
        batch_first: whether time is the second dimension; ``None`` asks the models, or measures it.

    Example:
        >>> import torch
        >>> tradeoff({"RNN": torch.nn.RNN(3, 4)}, [4, 8], torch.randn(8, 2, 3)).lengths
        (4, 8)
    """
    points = {name: _points(model, lengths, batch, loss, batch_first) for name, model in models.items()}
    return Tradeoff(tuple(lengths), points)


def _points(
    model: Model, lengths: Sequence[int], batch: object, loss: Loss | None, batch_first: bool | None
) -> tuple[tuple[float, float], ...]:
    """Peak bytes and mean log norm at each length."""
    longest = batch
    if callable(batch):
        longest = batch(max(lengths))
    subject = Subject(model, longest, batch_first=batch_first)
    measured = cost(model, lengths, subject, repeats=1)
    points = []
    for length, peak in zip(measured.lengths, measured.peak_bytes, strict=True):
        if callable(batch):
            one = Subject(model, batch(length), batch_first=batch_first)
        else:
            one = subject.at_length(length)
        reach = gradient_reach(model, one, loss)
        points.append((float(peak), _mean_norm(reach)))
    return tuple(points)


def _mean_norm(reach: GradientReach) -> float:
    finite = reach.log_norm[np.isfinite(reach.log_norm)]
    return float(finite.mean()) if len(finite) else float("-inf")
