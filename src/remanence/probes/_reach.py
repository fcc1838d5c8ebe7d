"""How far back the gradient reaches."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from remanence._validate import message, one_of
from remanence.figures import Axis, Curve, Figure

from ._fit import Decay, fit_decay
from ._observe import (
    Offsets,
    inputs_of,
    is_batch_first,
    modules,
    output_of,
    untouched,
    watched_embeddings,
    watched_states,
)
from ._result import ProbeResult

Loss = Callable[[Any, Any], Tensor]
STABLE = math.log(1000.0)
"""Change of the log norm over the run, up or down, that still counts as stable."""
UNDERFLOW = -80.0
"""Log norm near the least number of float32; a zero after it has underflowed."""


@dataclasses.dataclass(frozen=True)
class GradientReach(ProbeResult):
    """Log norm of the gradient against the distance from the end of the run.

    Example:
        >>> layer = torch.nn.RNN(1, 1, nonlinearity="relu", bias=False)
        >>> for weight in layer.parameters():
        ...     _ = torch.nn.init.constant_(weight, 0.5)
        >>> reach = gradient_reach(layer, torch.ones(12, 1, 1))
        >>> reach.kind, round(math.exp(reach.decay.rate), 6)
        ('vanishing', 0.5)
    """

    distance: np.ndarray
    """``(T,)``: 0 is the last step."""
    log_norm: np.ndarray
    """``(T,)``: natural logarithm of the norm over all rows, states and layers; -inf where nothing arrives."""
    source: Literal["states", "inputs"]
    """Whether dL/dh_t was seen, or dL/dx_t."""
    horizon: int
    """The greatest distance at which anything arrives; -1 if nothing does."""
    decay: Decay | None
    """The fitted law; ``None`` if fewer than three distances have a gradient."""

    @property
    def underflows(self) -> bool:
        """Whether zeros beyond the horizon are numbers too small for floats, not a gradient that was cut."""
        return self.horizon >= 0 and bool(self.log_norm[self.horizon] < UNDERFLOW)

    @property
    def kind(self) -> Literal["vanishing", "stable", "exploding", "cut off"]:
        """What the gradient does with distance; "cut off" if it is exactly zero beyond a horizon."""
        if np.isnan(self.log_norm).any() or np.isposinf(self.log_norm).any():
            return "exploding"
        if self.decay is None or (self.horizon < len(self.distance) - 1 and not self.underflows):
            return "cut off"
        low, high = self.decay.interval
        if self.decay.change < -STABLE and high < 0:
            return "vanishing"
        return "exploding" if self.decay.change > STABLE and low > 0 else "stable"

    @property
    def verdict(self) -> str:
        """Kind, law and rate."""
        what = "dL/dh" if self.source == "states" else "dL/dx"
        if self.decay is None:
            return f"{what} is {self.kind}: it reaches {self.horizon} steps back"
        low, high = self.decay.interval
        unit = "a step" if self.decay.law == "exponential" else "as power of the distance"
        rate = f"{self.decay.rate:+.4g} {unit} (95 %: {low:+.4g} to {high:+.4g})"
        gone = "too small for floats" if self.underflows else "exactly zero"
        ending = f"; {gone} beyond {self.horizon} steps" if self.horizon < len(self.distance) - 1 else ""
        return f"{what} is {self.kind}, {self.decay.law} law, log norm {rate}{ending}"

    def figures(self) -> list[Figure]:
        """Log norm against distance, as figure 2 (left) of Kerg et al. 2020."""
        curve = Curve("measured", self.distance, self.log_norm)
        axes = (Axis("steps before the end"), Axis("ln |gradient|"))
        return [Figure("Gradient reach", self.verdict, (curve,), *axes, wide=True)]


def gradient_reach(
    model: Callable[..., Any],
    batch: Any,
    loss: Loss | None = None,
    *,
    through: Literal["auto", "states", "inputs"] = "auto",
    batch_first: bool | None = None,
) -> GradientReach:
    """Measures how far back the gradient of a loss reaches, in one run and one backward pass.

    Args:
        model: any callable on sequences. States are seen in the layers of this library, in torch's RNN, LSTM and GRU
            that run forward, and in torch's recurrent cells, wherever they are inside the model.
        batch: the input: a tensor ``(T, B, ...)``, a tuple that starts with it, or anything with ``inputs``.
        loss: ``loss(output, batch)``; ``None`` takes the sum of the last step's outputs. The output is the model's
            result, or its first part.
        through: ``"states"`` for dL/dh_t, ``"inputs"`` for dL/dx_t (token inputs: dL/d embedding), ``"auto"`` for
            states where they can be seen.
        batch_first: whether time is the second dimension; ``None`` asks the model's layers.

    Example:
        >>> print(gradient_reach(torch.nn.LSTM(3, 8), torch.randn(200, 2, 3)).kind)
        vanishing
    """
    one_of("through", through, ("auto", "states", "inputs"))
    time = 1 if is_batch_first(model, batch_first) else 0
    with untouched(model), torch.enable_grad():
        norms = None if through == "inputs" else _state_norms(model, batch, loss, time)
        source: Literal["states", "inputs"] = "inputs" if norms is None else "states"
        if norms is None:
            if through == "states":
                hint = "Use through='inputs'"
                raise ValueError(message("model", "have states that can be seen", type(model).__name__, hint))
            norms = _input_norms(model, batch, loss, time)
    return summarise(norms, source)


def summarise(norms: np.ndarray, source: Literal["states", "inputs"]) -> GradientReach:
    """The result for norms in the order of time."""
    backwards = norms[::-1]
    distance = np.arange(len(norms))
    with np.errstate(divide="ignore"):
        log_norm = np.log(backwards)
    arrived = np.flatnonzero(backwards)
    horizon = int(arrived[-1]) if len(arrived) else -1
    return GradientReach(distance, log_norm, source, horizon, fit_decay(distance[1:], log_norm[1:]))


def _loss(loss: Loss | None, result: Any, batch: Any, time: int) -> Tensor:
    output = output_of(result)
    if loss is None:
        return output.select(time if output.dim() > 2 else 0, -1).sum() if output.dim() > 1 else output.sum()
    value = loss(output, batch)
    if not isinstance(value, Tensor) or value.numel() != 1:
        raise ValueError(message("loss", "return one number as a tensor", repr(value)))
    return value


def _state_norms(model: Callable[..., Any], batch: Any, loss: Loss | None, time: int) -> np.ndarray | None:
    """Norm of dL/dh_t over rows, units and layers; ``None`` where no state can be seen in the order of time."""
    if any(getattr(part, "bidirectional", False) for part in modules(model)):
        return None
    inputs = inputs_of(batch)
    steps = inputs.shape[time] if isinstance(inputs, Tensor) and inputs.dim() > time else None
    with watched_states(model) as offsets:
        value = _loss(loss, model(inputs), batch, time)
    runs = [run for run in offsets.by_owner.values() if sum(len(part) for part in run) == steps]
    if not runs or not value.requires_grad:
        return None
    return _norms(value, runs)


def _norms(value: Tensor, runs: Sequence[Sequence[Tensor]]) -> np.ndarray:
    offsets = [offset for run in runs for offset in run]
    gradients = iter(torch.autograd.grad(value.sum(), offsets, allow_unused=True))
    total: np.ndarray = np.zeros(1)
    for run in runs:
        parts = [torch.zeros(len(o)) if (g := next(gradients)) is None else _step_norms(g) for o in run]
        total = np.hypot(total, torch.cat([part.double() for part in parts]).numpy())
    return total


def _step_norms(gradient: Tensor) -> Tensor:
    """Norms of the slices along the first dimension, in float64 lest squares underflow: ``(T,)``."""
    return gradient.detach().double().flatten(1).norm(dim=1).cpu()


def _input_norms(model: Callable[..., Any], batch: Any, loss: Loss | None, time: int) -> np.ndarray:
    inputs = inputs_of(batch)
    if not isinstance(inputs, Tensor):
        raise TypeError(message("batch", "hold a tensor of inputs", type(inputs).__name__))
    if inputs.is_floating_point():
        x = inputs.detach().clone().requires_grad_()
        offsets = Offsets()
        offsets.by_owner[0] = [x]
        value = _loss(loss, model(x), batch, time)
    else:
        with watched_embeddings(model) as offsets:
            value = _loss(loss, model(inputs), batch, time)
    if not offsets.all() or not value.requires_grad:
        hint = "Pass float inputs, or a model with nn.Embedding"
        raise ValueError(message("model", "depend on its input through something with a gradient", "nothing", hint))
    gradients = torch.autograd.grad(value.sum(), offsets.all(), allow_unused=True)
    place = min(time, inputs.dim() - 1)
    found = [_step_norms(g.movedim(place, 0).unsqueeze(-1)).numpy() for g in gradients if g is not None]
    return np.sqrt(np.sum(np.square(found), axis=0)) if found else np.zeros(inputs.shape[place])
