"""What a model loses when it sees only the last k steps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from remanence._validate import message, positive_int
from remanence.figures import Curve, Figure, length_axis, log_axis

from ._observe import inputs_of, is_batch_first, modules, output_of, untouched
from ._result import ProbeResult

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

    ks: tuple[int, ...]
    output: tuple[float, ...]
    """Greatest norm, over rows and ends, of the difference between the outputs."""
    loss: tuple[float, ...]
    """Mean loss of the truncated model."""
    full_loss: float
    """Mean loss of the whole model."""
    gradient: tuple[float, ...]
    """Norm of the difference between the parameters' gradients, relative to the whole model's."""

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
        a, b = self.ks[0], self.ks[-1]
        return f"outputs differ by {self.output[0]:.3g} at k = {a} and {self.output[-1]:.3g} at k = {b}; " + (
            f"gradients by {self.gradient[0]:.3g} and {self.gradient[-1]:.3g} of their size"
        )

    def figures(self) -> list[Figure]:
        """Gaps against k, and the loss against context length."""
        measured = {"output": self.output, "gradient": self.gradient, "loss": self.loss}
        curves = [Curve(name, self.ks, np.abs(values), "both") for name, values in measured.items()]
        y = log_axis("gap, or loss", np.concatenate([curve.y for curve in curves]))
        return [Figure("Truncation gap", self.verdict, tuple(curves), length_axis("k, steps kept", self.ks), y)]


def truncation_gap(
    model: Callable[..., Any],
    batch: Any,
    ks: Sequence[int],
    loss: StepLoss | None = None,
    *,
    ends: int = 1,
    batch_first: bool | None = None,
) -> TruncationGap:
    """Runs a model on whole sequences and on their last k steps, from its empty state, and compares.

    Args:
        model: any callable on sequences that starts empty.
        batch: inputs ``(T, B, ...)``, or ``(inputs, targets)`` with targets ``(T, B, ...)``, or a batch with both.
        ks: windows, rising.
        loss: ``loss(output_t, target_t)`` of one step, ``target_t`` None without targets; ``None`` takes the mean
            square of the output. For language models give the cross entropy: the curve is then loss against context
            length.
        ends: at how many last steps of the sequences windows end.
        batch_first: whether time is the second dimension; ``None`` asks the model's layers.

    Example:
        >>> truncation_gap(torch.nn.GRU(2, 4), torch.randn(20, 3, 2), ks=[2, 8]).ks
        (2, 8)
    """
    windows = [positive_int("ks", k) for k in ks]
    if not windows or windows != sorted(windows):
        raise ValueError(message("ks", "be windows in rising order", repr(list(ks))))
    positive_int("ends", ends)
    time = 1 if is_batch_first(model, batch_first) else 0
    inputs, targets = inputs_of(batch).detach(), _targets_of(batch)
    length = inputs.shape[time]
    with untouched(model), torch.enable_grad():
        places = range(max(1, length - ends + 1), length + 1)
        whole = _runs(model, inputs, targets, loss, time, places, length)
        rows = [_compare(whole, _runs(model, inputs, targets, loss, time, places, k)) for k in windows]
    outputs, losses, gradients = zip(*rows, strict=True)
    return TruncationGap(tuple(windows), outputs, losses, whole[1], gradients)


def _targets_of(batch: Any) -> Tensor | None:
    if hasattr(batch, "targets"):
        return batch.targets
    return batch[1] if isinstance(batch, tuple | list) and len(batch) > 1 and isinstance(batch[1], Tensor) else None


def _runs(
    model: Callable[..., Any],
    inputs: Tensor,
    targets: Tensor | None,
    loss: StepLoss | None,
    time: int,
    places: range,
    k: int,
) -> tuple[Tensor, float, list[Tensor]]:
    """Last outputs of all windows ``(ends, B, ...)``, mean loss, and the parameters' gradients of it."""
    outputs, losses = [], []
    for end in places:
        start = max(0, end - k)
        output = output_of(model(inputs.narrow(time, start, end - start))).select(time, -1)
        target = None if targets is None else targets.select(time, end - 1)
        losses.append(output.square().mean() if loss is None else loss(output, target))
        outputs.append(output.detach())
    value = torch.stack(losses).mean()
    leaves = [p for part in modules(model) for p in part.parameters(recurse=False) if p.requires_grad]
    found = torch.autograd.grad(value, leaves, allow_unused=True) if leaves and value.requires_grad else ()
    return torch.stack(outputs), float(value.detach()), [torch.zeros(1) if g is None else g for g in found]


def _compare(whole: Any, truncated: Any) -> tuple[float, float, float]:
    output = float((whole[0] - truncated[0]).flatten(2).norm(dim=2).max())
    size = sum(float(g.double().square().sum()) for g in whole[2]) ** 0.5
    apart = sum(float((a - b).double().square().sum()) for a, b in zip(whole[2], truncated[2], strict=True)) ** 0.5
    return output, truncated[1], apart / size if size else apart
