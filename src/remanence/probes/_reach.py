"""How far back the gradient reaches."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from remanence._validate import message, one_of, real
from remanence._wording import number_of
from remanence.figures import Axis, Curve, Figure

from ._fit import Decay, fit_decay
from ._layout import Layout
from ._observe import Offsets, modules, watched_embeddings, watched_states
from ._outputs import output_of
from ._result import ProbeResult
from ._steps import farthest, seen_words
from ._subject import Model, Subject, subject_of

Loss = Callable[[Any, Any], Tensor]
STABLE = math.log(1000.0)
"""Change of the log norm over the run, up or down, that still counts as stable."""
CLEAR = math.log(10.0)
"""Change of the log norm over the run that is not passed over as stable in words."""
NOTHING = 1e-5
"""Relative size of a gradient that counts as nothing: rounding in float32 leaves as much."""
RESOLUTION = float(torch.finfo(torch.float32).eps)
UNDERFLOW = -80.0
"""Log norm near the least number of float32; a zero after it has underflowed."""


class NoGradientError(ValueError):
    """Nothing of a model's output has a gradient."""


@dataclasses.dataclass(frozen=True)
class GradientReach(ProbeResult):
    """Log norm of the gradient against the distance from the end of the run.

    Example:
        >>> layer = torch.nn.RNN(1, 1, nonlinearity="relu", bias=False)
        >>> for weight in layer.parameters():
        ...     _ = torch.nn.init.constant_(weight, 0.5)
        >>> reach = gradient_reach(layer, torch.ones(12, 1, 1))
        >>> reach.trend, round(math.exp(reach.decay.rate), 6)
        ('vanishing', 0.5)
    """

    kind: ClassVar[str] = "gradient_reach"

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

    resolution: float = RESOLUTION
    """Relative rounding of the model's numbers: less than this share of the gradient at the last step is noise."""

    @property
    def underflows(self) -> bool:
        """Whether zeros beyond the horizon are numbers too small for floats, not a gradient that was cut."""
        return self.horizon >= 0 and bool(self.log_norm[self.horizon] < UNDERFLOW)

    @property
    def trend(self) -> Literal["vanishing", "stable", "exploding", "cut off", "unclear"]:
        """What the gradient does with distance.

        "cut off" if it is exactly zero beyond a horizon, "unclear" if it changes by much but no straight line shows it.
        """
        if np.isnan(self.log_norm).any() or np.isposinf(self.log_norm).any():
            return "exploding"
        if self.horizon < len(self.distance) - 1 and not self.underflows:
            return "cut off"
        if self.decay is None:
            return "unclear"
        low, high = self.decay.interval
        if abs(self.decay.change) <= STABLE and self._range() <= STABLE:
            return "stable"
        if low <= 0 <= high:
            return "unclear"
        if self.decay.change < 0:
            return "vanishing"
        return "exploding"

    def _range(self) -> float:
        """Between small and large log norms before the last step, apart from the 5 % at either end."""
        finite = self.log_norm[1:][np.isfinite(self.log_norm[1:])]
        low, high = np.percentile(finite, (5, 95))
        return float(high - low)

    def steps_left(self, share: float) -> int:
        """The farthest distance at which a share of the gradient at the last step is left; -1 if none arrives at all.

        Where nothing arrives at the last step itself, the share is one of the strongest gradient.

        Args:
            share: above 0, such as 0.5.

        Example:
            >>> halving = summarise(np.array([0.125, 0.25, 0.5, 1.0]), "inputs")
            >>> halving.steps_left(0.5), halving.steps_left(0.2)
            (1, 2)
        """
        return farthest(self.log_norm, real("share", share, above=0))

    @property
    def verdict(self) -> str:
        """How many steps are seen, in words; then trend, law and rate."""
        if self.horizon < 0:
            return "Sees nothing: no gradient arrives at any step; perturbation_reach needs none"
        return f"{self._steps_seen()}. {self._law()}"

    def _steps_seen(self) -> str:
        if np.isnan(self.log_norm).any() or np.isposinf(self.log_norm).any():
            return "Cannot say how far it sees: the gradient is not finite"
        if self.horizon == 0:
            return "Sees the present step only"
        words = seen_words(self.log_norm, "the gradient at the last step", "is left")
        noise = self.steps_left(self.resolution)
        if noise < self.horizon:
            words += f". Beyond {noise} it is noise"
        return f"Sees {words}"

    def _law(self) -> str:
        what = {"states": "dL/dh", "inputs": "dL/dx"}[self.source]
        if self.trend == "cut off":
            return f"{what} is exactly zero beyond {number_of(self.horizon, 'step')}"
        if self.decay is None:
            return f"{what}: too few steps to fit a law"
        low, high = self.decay.interval
        unit = {"exponential": "per step", "power": "as a power of the distance"}[self.decay.law]
        rate = f"{self.decay.rate:+.4g} {unit} (95 %: {low:+.4g} to {high:+.4g})"
        law = f"{self.decay.law} law"
        if low <= 0 <= high:
            law = "no clear law"
        words = f"{what} is {self.trend}, {law}, log norm {rate}"
        if self.trend == "stable" and law != "no clear law" and abs(self.decay.change) > CLEAR:
            moves = "falls" if self.decay.change < 0 else "rises"
            factor = f"{math.exp(abs(self.decay.change)):,.0f}"
            words = f"{what} {moves} by a factor of {factor} over the run, {law}, log norm {rate}"
        if self.trend == "unclear":
            words = f"{what} has no clear trend: log norm {rate}"
        if self.horizon < len(self.distance) - 1:
            words += f"; too small for floats beyond {self.horizon} steps"
        return words

    def figures(self) -> list[Figure]:
        """Log norm against distance, as figure 2 (left) of Kerg et al. 2020."""
        curve = Curve("measured", self.distance, self.log_norm)
        axes = (Axis("steps before the end"), Axis("ln |gradient|"))
        return [Figure("Gradient reach", self.verdict, (curve,), *axes, wide=True)]


def gradient_reach(
    model: Model,
    batch: object,
    loss: Loss | None = None,
    *,
    through: Literal["auto", "states", "inputs"] = "auto",
    batch_first: bool | None = None,
    training: bool = False,
) -> GradientReach:
    """Measures how far back the gradient of a loss reaches, in one run and one backward pass.

    Args:
        model: any callable on sequences. States are seen in the layers of this library, in torch's RNN, LSTM and GRU
            that run forward, and in torch's recurrent cells, wherever they are inside the model.
        batch: the input: a tensor ``(T, B, ...)``, a dictionary of tensors, a tuple that starts with either, or
            anything with ``inputs``.
        loss: ``loss(output, batch)``; ``None`` takes the sum of the last step's outputs, with random signs
            where that is constant, as behind a LayerNorm. The output is the model's
            result, its ``.logits``, or its first part.
        through: ``"states"`` for dL/dh_t, ``"inputs"`` for dL/dx_t (token inputs: dL/d embedding), ``"auto"`` for
            states where they can be seen.
        batch_first: whether time is the second dimension; ``None`` asks the model, or measures it.
        training: whether to keep training mode, with its dropout; by default the model is probed in evaluation mode.

    Example:
        >>> print(gradient_reach(torch.nn.LSTM(3, 8), torch.randn(200, 2, 3)).trend)
        vanishing
    """
    one_of("through", through, ("auto", "states", "inputs"))
    subject = subject_of(model, batch, batch_first=batch_first, training=training)
    with subject.untouched(), torch.enable_grad():
        if through != "inputs":
            norms = _state_norms(subject, loss)
            if norms is not None:
                return summarise(norms, "states", subject.resolution)
        if through == "states":
            hint = "Use through='inputs'"
            raise ValueError(message("model", "have states that can be seen", type(model).__name__, hint))
        return summarise(_input_norms(subject, loss), "inputs", subject.resolution)


def summarise(norms: np.ndarray, source: Literal["states", "inputs"], resolution: float = RESOLUTION) -> GradientReach:
    """The result for norms in the order of time."""
    backwards = norms[::-1]
    distance = np.arange(len(norms))
    with np.errstate(divide="ignore"):
        log_norm = np.log(backwards)
    horizon = int(np.flatnonzero(backwards).max(initial=-1))
    return GradientReach(distance, log_norm, source, horizon, fit_decay(distance[1:], log_norm[1:]), resolution)


def _losses(subject: Subject, loss: Loss | None, result: object) -> list[Tensor]:
    """The caller's loss; or two sums of the last outputs, plain and with random signs, of which one is felt.

    Behind a LayerNorm the plain sum is a constant, whatever the input.
    """
    if loss is None:
        last = subject.last(subject.read(result, subject.inputs))
        generator = torch.Generator().manual_seed(0)
        signs = torch.randint(2, last.shape, generator=generator).to(last) * 2 - 1
        return [last.sum(), (last * signs).sum()]
    value = loss(output_of(subject.joined(result)), subject.batch)
    if not isinstance(value, Tensor) or value.numel() != 1:
        raise ValueError(message("loss", "return one number as a tensor", repr(value)))
    return [value]


def _state_norms(subject: Subject, loss: Loss | None) -> np.ndarray | None:
    """Norm of dL/dh_t over rows, units and layers; ``None`` where no state can be seen in the order of time."""
    if any(getattr(part, "bidirectional", False) for part in modules(subject.model)):
        return None
    with watched_states(subject.model) as offsets:
        values = _losses(subject, loss, subject.run(subject.inputs))
    steps = subject.layout.steps
    runs = [run for run in offsets.by_owner.values() if sum(len(part) for part in run) == steps]
    if not runs or not values[0].requires_grad:
        return None
    return _felt([_norms(value, runs) for value in values])


def _felt(candidates: list[np.ndarray]) -> np.ndarray:
    """The first, unless its gradient is negligible compared with the last."""
    first = candidates[0]
    last = candidates[-1]
    if np.max(first) < NOTHING * np.max(last):
        return last
    return first


def _norms(value: Tensor, runs: Sequence[Sequence[Tensor]]) -> np.ndarray:
    offsets = [offset for run in runs for offset in run]
    norms = iter([_step_norms(gradient) for gradient in _gradients(value, offsets)])
    total: np.ndarray = np.zeros(1)
    for run in runs:
        total = np.hypot(total, torch.cat([next(norms) for _ in run]).numpy())
    return total


def _gradients(value: Tensor, offsets: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Of a value by offsets; zeros where one has no part in it."""
    return torch.autograd.grad(value.sum(), offsets, allow_unused=True, retain_graph=True, materialize_grads=True)


def _step_norms(gradient: Tensor) -> Tensor:
    """Norms of the slices along the first dimension, in float64 lest squares underflow: ``(T,)``."""
    return gradient.detach().abs().double().flatten(1).norm(dim=1).cpu()


def _input_norms(subject: Subject, loss: Loss | None) -> np.ndarray:
    """Norm of dL/dx_t, or of dL/d embedding for tokens, over rows and features."""
    if subject.is_tokens:
        with watched_embeddings(subject.model, subject.inputs) as offsets:
            values = _losses(subject, loss, subject.run(subject.inputs))
    else:
        x = subject.inputs.clone().requires_grad_()
        offsets = Offsets()
        offsets.by_owner[0] = [x]
        values = _losses(subject, loss, subject.run(x))
    if not offsets.all() or not values[0].requires_grad:
        hint = "Pass float inputs, or a model with nn.Embedding; perturbation_reach needs no gradient"
        raise NoGradientError(message("model", "give outputs that have a gradient", "none", hint))
    return _felt([_offset_norms(value, offsets.all(), subject.layout) for value in values])


def _offset_norms(value: Tensor, offsets: Sequence[Tensor], layout: Layout) -> np.ndarray:
    total = np.zeros(layout.steps)
    for gradient in _gradients(value, offsets):
        total = np.hypot(total, _step_norms(gradient.movedim(layout.time, 0).unsqueeze(-1)).numpy())
    return total
