"""Whether a recurrence contracts, how fast it forgets, and how long a window is enough."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from remanence._validate import message, real
from remanence.figures import Axis, Curve, Figure, log_axis
from remanence.ops import ScanSpec, Weights

from ._observe import CELLS, inputs_of, is_batch_first, modules, torch_spec, torch_weights, untouched
from ._reach import gradient_reach
from ._result import ProbeResult
from ._truncation import truncation_gap


@dataclasses.dataclass(frozen=True)
class Stability(ProbeResult):
    """Contraction and memory length of a model.

    Example:
        >>> layer = torch.nn.RNN(1, 2, bias=False)
        >>> _ = layer.weight_hh_l0.data.copy_(0.5 * torch.eye(2))
        >>> found = stability(layer, torch.zeros(50, 1, 1))
        >>> found.contraction, round(found.lyapunov - math.log(0.5), 6)
        (0.5, 0.0)
    """

    contraction: float | None
    """A factor by which every step brings states nearer, proved from the weights; ``None`` if they prove none."""
    lyapunov: float
    """Mean growth of the logarithm of a small difference per step, the largest exponent, along the given run."""
    method: Literal["jacobians", "gradients"]
    """Whether the exponent comes from the recurrence's own Jacobians or from the decay of the gradient."""
    epsilon: float
    window_by_lemma: int | None
    """The k that keeps outputs within epsilon by Lemma 1 of Miller and Hardt 2018: needs a proved contraction."""
    window_measured: int | None
    """The k that does so on the given run; ``None`` if none does."""

    @property
    def memory_length(self) -> float:
        """Steps after which a small difference has fallen by a factor e; infinite if it does not fall."""
        return -1 / self.lyapunov if self.lyapunov < 0 else math.inf

    @property
    def verdict(self) -> str:
        """Certified or not, exponent, and the window."""
        proof = (
            f"contracts by {self.contraction:.4g} (proved)"
            if self.contraction is not None
            else "no proof of contraction"
        )
        window = "no window" if self.window_measured is None else f"{self.window_measured} steps"
        kept = f"{window} keep(s) outputs within {self.epsilon:g}"
        return f"{proof}; exponent {self.lyapunov:+.4g} a step, memory of {self.memory_length:.3g} steps; {kept}"

    def figures(self) -> list[Figure]:
        """The fall of a difference, as measured and as proved."""
        steps = range(101)
        measured = [math.exp(min(self.lyapunov * step, 700.0)) for step in steps]
        curves = [Curve("measured exponent", steps, measured)]
        if self.contraction is not None:
            curves.append(Curve("proved", steps, [self.contraction**step for step in steps]))
        y = log_axis("difference of two states", [value for curve in curves for value in curve.y])
        return [Figure("Stability", self.verdict, tuple(curves), Axis("steps"), y)]


def stability(
    model: Callable[..., Any], batch: Any, *, epsilon: float = 1e-3, batch_first: bool | None = None
) -> Stability:
    """Certifies the contraction where the weights allow it, and estimates it along a run where they do not.

    Args:
        model: any callable on sequences. Exponents come from Jacobians for a single recurrent layer without a memory,
            of this library or of torch; otherwise from :func:`gradient_reach`.
        batch: a typical input, ``(T, B, ...)``.
        epsilon: how far outputs may be off for the windows.
        batch_first: whether time is the second dimension; ``None`` asks the model's layers.

    Example:
        >>> stability(torch.nn.LSTM(2, 4), torch.randn(60, 2, 2)).method
        'jacobians'
    """
    real("epsilon", epsilon, above=0)
    inputs = inputs_of(batch)
    time = 1 if is_batch_first(model, batch_first) else 0
    if not isinstance(inputs, Tensor):
        raise TypeError(message("batch", "hold a tensor of inputs", type(inputs).__name__))
    length = inputs.shape[time]
    with untouched(model):
        recurrence = _recurrence(model)
        contraction, bound = _certified(model, recurrence)
        if recurrence is not None and inputs.dim() == 3:
            exponent = lyapunov_exponent(*recurrence, inputs.transpose(0, 1) if time else inputs)
            method: Literal["jacobians", "gradients"] = "jacobians"
        else:
            decay = gradient_reach(model, batch, batch_first=batch_first).decay
            exponent, method = (-math.inf if decay is None else decay.change / max(length - 2, 1)), "gradients"
        ks = sorted({min(length, round(1.3**i)) for i in range(60)})
        measured = truncation_gap(model, inputs, ks, batch_first=batch_first).sufficient(epsilon)
    by_lemma = None if contraction is None else _window(contraction, bound, epsilon)
    return Stability(contraction, exponent, method, epsilon, by_lemma, measured)


def _window(contraction: float, bound: float, epsilon: float) -> int:
    """Least k with ``contraction^k bound <= epsilon``."""
    if bound <= epsilon:
        return 0
    return 1 if contraction == 0 else math.ceil(math.log(bound / epsilon) / -math.log(contraction) - 1e-12)


def _recurrence(model: Any) -> tuple[ScanSpec, Weights] | None:
    """Kind and weights of the model's only recurrent layer, if it has no memory and runs forward."""
    parts = modules(model)
    layers = [p for p in parts if type(p) in CELLS or isinstance(getattr(p, "spec", None), ScanSpec)]
    if len(layers) != 1:
        return None
    layer: Any = layers[0]
    if layer.num_layers != 1 or layer.bidirectional or getattr(layer, "proj_size", 0):
        return None
    spec = torch_spec(layer) if isinstance(layer, nn.RNNBase) else layer.spec
    weights = torch_weights(layer) if isinstance(layer, nn.RNNBase) else layer.weights()
    return None if spec.has_memory else (spec, weights)


def _certified(model: Any, recurrence: tuple[ScanSpec, Weights] | None) -> tuple[float | None, float]:
    """A proved factor below 1 and a bound on the states, from the layer's certificate or a spectral norm."""
    certificate = getattr(model, "certificate", None)
    if callable(certificate):
        try:
            found: Any = certificate()
        except ValueError:
            return None, math.inf
        cells = [layer.cell_bound or 1.0 for layer in found.layers]
        return found.factor, max(cells) * math.sqrt(getattr(model, "hidden_size", 1))
    if recurrence is None or recurrence[0].cell.name != "rnn" or recurrence[0].nonlinearity != "tanh":
        return None, math.inf
    norm = float(torch.linalg.matrix_norm(recurrence[1].hh.detach().double(), 2))
    return (norm, math.sqrt(recurrence[1].hh.shape[0])) if norm < 1 else (None, math.inf)


def lyapunov_exponent(spec: ScanSpec, weights: Weights, x: Tensor) -> float:
    """Largest exponent along a run: power iteration with the transposed Jacobians, from the end to the start.

    Args:
        spec: what kind of layer.
        weights: its parameters.
        x: ``(T, B, input_size)``; rows are averaged.
    """
    exact: list[Any] = [None if w is None else w.detach().double() for w in weights]
    weights = Weights(*exact)
    projected = spec.cell.project(x.detach().double(), weights)
    n = spec.cell.hidden_size(weights)
    size = 2 * n if spec.cell.has_c else n
    state, states = torch.zeros(x.shape[1], size, dtype=torch.float64), []

    def step(joint: Tensor, inputs: Tensor) -> Tensor:
        s, c = joint[:, :n], joint[:, n:]
        return torch.cat(spec.cell.step(weights, inputs, s, c, s), dim=1)

    with torch.no_grad():
        for inputs in projected:
            states.append(state)
            state = step(state, inputs)
    generator = torch.Generator().manual_seed(0)
    covector = torch.randn(state.shape, generator=generator, dtype=torch.float64)
    logs = []
    for before, inputs in zip(reversed(states), projected.flip(0), strict=True):
        covector = covector / covector.norm(dim=1, keepdim=True)
        with torch.enable_grad():
            joint = before.requires_grad_()
            (covector,) = torch.autograd.grad(step(joint, inputs), joint, covector)
        norm = covector.norm(dim=1)
        if bool((norm == 0).any()):
            return -math.inf
        logs.append(float(norm.log().mean()))
    settled = logs[len(logs) // 10 :]  # the first directions are still random
    return sum(settled) / len(settled)
