"""What a model loses when it sees only the last k steps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from remanence._validate import message, positive_int
from remanence._wording import number_of
from remanence.figures import Curve, Figure, length_axis, log_axis

from ._observe import trained_parameters
from ._result import ProbeResult
from ._steps import last_steps
from ._subject import Model, Subject, subject_of

MOST = 700.0
"""Greatest exponent that a float bears."""
StepLoss = Callable[[Tensor, Tensor | None], Tensor]


@dataclasses.dataclass(frozen=True)
class TruncationGap(ProbeResult):
    """Differences between a model and its truncated version, at the last step of every window.

    Example:
        >>> layer = torch.nn.RNN(2, 4)
        >>> gap = truncation_gap(layer, torch.randn(30, 3, 2), ks=[1, 30])
        >>> gap.output[1], gap.gradient[1]
        (0.0, 0.0)
    """

    kind: ClassVar[str] = "truncation_gap"

    ks: tuple[int, ...]
    output: tuple[float, ...]
    """Greatest norm, over rows and ends, of the difference between the outputs."""
    loss: tuple[float, ...]
    """Mean loss of the truncated model."""
    full_loss: float
    """Mean loss of the whole model."""
    gradient: tuple[float, ...]
    """Norm of the difference between the parameters' gradients, relative to the whole model's; empty without any."""

    @property
    def perplexity(self) -> tuple[float, ...]:
        """``exp(loss)`` for every window: against ``ks``, perplexity against context length."""
        return tuple(math.exp(min(value, MOST)) for value in self.loss)

    def sufficient(self, epsilon: float) -> int | None:
        """The least k of those tried from which on all outputs stay within epsilon; ``None`` if there is none."""
        found = None
        for k, gap in zip(reversed(self.ks), reversed(self.output), strict=True):
            if gap > epsilon:
                break
            found = k
        return found

    @property
    def verdict(self) -> str:
        """How the gaps fall from the least to the greatest k."""
        finite = [at for at, gap in enumerate(self.output) if math.isfinite(gap)]
        if self.ks and not finite:
            return "Cannot say what is lost: the outputs are not finite"
        shortest = finite[0]
        steps = last_steps(self.ks[shortest])
        apart = [at for at in finite if self.output[at] > 0]
        if not shortest and not apart and not any(self.gradient):
            return f"{steps.capitalize()} alone give the same outputs"
        words = f"With {steps} alone {self._gap(shortest, 'outputs differ by', 'gradients by')}"
        if apart and apart[-1] != shortest:
            words += f"; with {last_steps(self.ks[apart[-1]])} {self._gap(apart[-1], 'by', 'by')}"
        if shortest:
            words += f"; not finite with {last_steps(self.ks[shortest - 1])}: is a row all padding there?"
        return words

    def _gap(self, at: int, outputs: str, gradients: str) -> str:
        """What is lost with one window, in words."""
        gap = f"{outputs} {self.output[at]:.3g}"
        if self.gradient:
            percent = 100 * self.gradient[at]
            shown = f"{percent:.2g}"
            if percent >= 100:
                shown = f"{percent:,.0f}"
            gap += f" and {gradients} {shown} % of their size"
        return gap

    def figures(self) -> list[Figure]:
        """Gaps against k, and the loss against context length."""
        measured = {"output": self.output, "gradient": self.gradient, "loss": self.loss}
        curves = [Curve(name, self.ks, np.abs(values), "both") for name, values in measured.items() if values]
        y = log_axis("gap, or loss", [value for curve in curves for value in curve.y])
        return [Figure("Truncation gap", self.verdict, tuple(curves), length_axis("k, steps kept", self.ks), y)]


def truncation_gap(
    model: Model,
    batch: object,
    ks: Sequence[int],
    loss: StepLoss | None = None,
    *,
    ends: int = 1,
    batch_first: bool | None = None,
    training: bool = False,
) -> TruncationGap:
    """Runs a model on whole sequences and on their last k steps, from its empty state, and compares.

    Args:
        model: any callable on sequences that starts empty. One that returns a single output for a row is compared on
            that output.
        batch: inputs ``(T, B, ...)``, or ``(inputs, targets)`` with targets ``(T, B, ...)``, or a batch with both.
            Targets without a dimension of time are those of the last step.
        ks: windows, rising.
        loss: ``loss(output_t, target_t)`` of one step, ``target_t`` None without targets; ``None`` takes the mean
            square of the output. For language models give the cross entropy: the curve is then loss against context
            length.
        ends: at how many last steps of the sequences windows end.
        batch_first: whether time is the second dimension; ``None`` asks the model, or measures it.
        training: whether to keep training mode, with its dropout; by default the model is probed in evaluation mode.

    Raises:
        ValueError: If the model runs on sequences of one length only.

    Example:
        >>> truncation_gap(torch.nn.GRU(2, 4), torch.randn(20, 3, 2), ks=[2, 8]).ks
        (2, 8)
    """
    windows = [positive_int("ks", k) for k in ks]
    if not windows or windows != sorted(windows):
        raise ValueError(message("ks", "be windows in rising order", repr(list(ks))))
    positive_int("ends", ends)
    subject = subject_of(model, batch, batch_first=batch_first, training=training)
    length = subject.layout.steps
    require_any_length(subject)
    places = range(max(1, length - ends + 1), length + 1)
    targets = _targets_of(subject.batch)
    with subject.untouched(), torch.enable_grad():
        whole = _run_windows(subject, targets, loss, places, length)
        parts = [_run_windows(subject, targets, loss, places, k) for k in windows]
    return TruncationGap(
        ks=tuple(windows),
        output=tuple(output_gap(whole.outputs, part.outputs) for part in parts),
        loss=tuple(part.loss for part in parts),
        full_loss=whole.loss,
        gradient=tuple(_gradient_gap(whole.gradients, part.gradients) for part in parts if whole.gradients),
    )


def require_any_length(subject: Subject) -> None:
    """Refuses a model that does not run on a shorter sequence."""
    if not subject.layout.any_length:
        expected = "run on sequences of any length to be cut to windows"
        raise ValueError(message("model", expected, f"one that runs on {number_of(subject.layout.steps, 'step')} only"))


@dataclasses.dataclass(frozen=True)
class _Windows:
    """What a model gives at the last steps of windows of one length."""

    outputs: Tensor
    """``(ends, B, C)``."""
    loss: float
    gradients: list[Tensor]
    """Of the loss by the parameters."""


def _targets_of(batch: Any) -> Tensor | None:
    if hasattr(batch, "targets"):
        return batch.targets
    if isinstance(batch, tuple | list) and len(batch) > 1 and isinstance(batch[1], Tensor):
        return batch[1]
    return None


def _target_at(subject: Subject, targets: Tensor | None, step: int) -> Tensor | None:
    layout = subject.layout
    if targets is None:
        return None
    along_time = targets.dim() > layout.time and targets.shape[layout.time] == layout.steps
    if along_time and layout.output_time is not None:
        return targets.select(layout.time, step)
    return targets


def _run_windows(subject: Subject, targets: Tensor | None, loss: StepLoss | None, places: range, k: int) -> _Windows:
    outputs = []
    losses = []
    for end in places:
        output = last_output(subject, end, k)
        target = _target_at(subject, targets, end - 1)
        if loss is None:
            losses.append(output.square().mean())
        else:
            losses.append(loss(output, target))
        outputs.append(subject.by_row(output.detach()))
    value = torch.stack(losses).mean()
    return _Windows(torch.stack(outputs), float(value.detach()), _parameter_gradients(subject.model, value))


def last_output(subject: Subject, end: int, k: int) -> Tensor:
    """The output at the end of a window of k steps, or of as many as there are: ``(B, ...)``."""
    window = subject.window(max(0, end - k), end)
    return subject.last(subject.output(window))


def _parameter_gradients(model: object, value: Tensor) -> list[Tensor]:
    leaves = trained_parameters(model)
    if not leaves or not value.requires_grad:
        return []
    return list(torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True))


def output_gap(whole: Tensor, part: Tensor) -> float:
    """Greatest norm of a difference between outputs ``(ends, B, C)``."""
    return float((whole - part).norm(dim=2).max())


def _gradient_gap(whole: list[Tensor], part: list[Tensor]) -> float:
    size = _norm(whole)
    apart = _norm([a - b for a, b in zip(whole, part, strict=True)])
    return apart / (size or 1.0)


def _norm(tensors: list[Tensor]) -> float:
    return math.sqrt(sum(float(tensor.abs().double().square().sum()) for tensor in tensors))
