"""Whether a recurrence contracts, how fast it forgets, and how long a window is enough."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from remanence._validate import real
from remanence._wording import number_of
from remanence.figures import Axis, Curve, Figure, log_axis
from remanence.ops import RNNCell, ScanSpec, Weights
from remanence.ops.states import map_tensors

from ._observe import modules, recurrent_spec, recurrent_weights
from ._reach import NoGradientError, gradient_reach
from ._result import ProbeResult
from ._steps import last_steps
from ._subject import Model, Subject, subject_of
from ._truncation import last_output, output_gap

STRIDES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32, 64, 128, 160, 256, 320)
"""Steps that a model may take together, as convolutions do before a recurrent layer."""


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

    kind: ClassVar[str] = "stability"

    contraction: float | None
    """A factor by which every step brings states nearer, proved from the weights; ``None`` if they prove none."""
    lyapunov: float
    """Mean growth of the logarithm of a small difference per step, the largest exponent, along the given run."""
    method: Literal["jacobians", "gradients", "none"]
    """Whether the exponent comes from the recurrence's own Jacobians or from the decay of the gradient; "none" for a
    model without gradients, whose exponent is not a number."""
    epsilon: float
    window_by_lemma: int | None
    """The k that keeps outputs within epsilon by Lemma 1 of Miller and Hardt 2018: needs a proved contraction."""
    window_measured: int | None
    """The k that does so on the given run; ``None`` if none that is shorter than the run does."""
    interval: tuple[float, float] | None = None
    """95 % of the exponent, where it comes from the decay of the gradient."""
    horizon: int | None = None
    """Steps beyond which the gradient is exactly zero, as in a convolution; the exponent is then -inf."""
    steps: int | None = None
    """Length of the run: a change by less than a factor e over all of it is no clear one."""
    any_length: bool = True
    """Whether the model runs on other lengths; if not, ``window_measured`` is ``None`` because none could be tried."""

    @property
    def memory_length(self) -> float:
        """Steps after which a small difference has fallen by a factor e; infinite if it does not fall."""
        if self.lyapunov < 0:
            return -1 / self.lyapunov
        return math.inf

    @property
    def verdict(self) -> str:
        """How long a difference lasts, which window is enough, and whether that is proved."""
        return "; ".join(part for part in (self._forgets(), self._window_words(), self._proof()) if part)

    def _forgets(self) -> str:
        if self.method == "none":
            return ""
        if self.horizon is not None:
            return f"forgets all at once: nothing older than {number_of(self.horizon, 'step')} arrives"
        exponent = f"exponent {self.lyapunov:+.4g} per step"
        low, high = self.interval or (self.lyapunov, self.lyapunov)
        if self.steps is not None and abs(self.lyapunov) * self.steps < 1:
            return f"holds: a small difference neither falls nor grows clearly ({exponent})"
        if low <= 0 <= high:
            return f"too noisy to say whether it forgets ({exponent})"
        if self.lyapunov > 0:
            return f"does not forget: a small difference grows ({exponent})"
        return f"forgets: a small difference falls by a factor e in {self.memory_length:.3g} steps ({exponent})"

    def _window_words(self) -> str:
        if not self.any_length:
            return "no shorter window was tried, because the model runs on one length only"
        if self.window_measured is None:
            return f"no shorter window keeps outputs within {self.epsilon:g}"
        return f"{last_steps(self.window_measured)} alone give outputs within {self.epsilon:g}"

    def _proof(self) -> str:
        if self.contraction is None:
            return "no proof of contraction"
        return f"contracts by {self.contraction:.4g} (proved)"

    def figures(self) -> list[Figure]:
        """The fall of a difference, as measured and as proved; none where it does not fall step by step."""
        if not math.isfinite(self.lyapunov):
            return []
        steps = range(101)
        measured = [math.exp(min(self.lyapunov * step, 700.0)) for step in steps]
        curves = [Curve("measured exponent", steps, measured)]
        if self.contraction is not None:
            curves.append(Curve("proved", steps, [self.contraction**step for step in steps]))
        y = log_axis("difference of two states", [value for curve in curves for value in curve.y])
        return [Figure("Stability", self.verdict, tuple(curves), Axis("steps"), y)]


def stability(
    model: Model,
    batch: object,
    *,
    epsilon: float = 1e-3,
    batch_first: bool | None = None,
    training: bool = False,
) -> Stability:
    """Proves the contraction where the weights allow it, and estimates it along a run otherwise.

    Args:
        model: any callable on sequences. If its only memory is one recurrent layer without slots, of this library or
            of torch, the exponent comes from Jacobians; otherwise from :func:`gradient_reach`.
        batch: a typical input, ``(T, B, ...)``.
        epsilon: tolerance on the outputs for the windows.
        batch_first: whether time is the second dimension; ``None`` asks the model, or measures it.
        training: whether to keep training mode, with its dropout; by default the model is probed in evaluation mode.

    Example:
        >>> stability(torch.nn.LSTM(2, 4), torch.randn(60, 2, 2)).method
        'jacobians'
    """
    real("epsilon", epsilon, above=0)
    subject = subject_of(model, batch, batch_first=batch_first, training=training)
    with subject.untouched():
        contraction, bound = _certified(model, _recurrence(model))
        found = _exponent(subject)
        measured = _measured_window(subject, epsilon)
    by_lemma = None
    if contraction is not None:
        by_lemma = _window(contraction, bound, epsilon)
    windows = {"window_by_lemma": by_lemma, "window_measured": measured}
    run = {"steps": subject.layout.steps, "any_length": subject.layout.any_length}
    return Stability(contraction=contraction, epsilon=epsilon, **run, **windows, **found)


def _exponent(subject: Subject) -> dict[str, Any]:
    """The largest exponent, what it comes from, and how sure it is: fields of the result."""
    by_jacobians = _recurrence_exponent(subject)
    if by_jacobians is not None and recurrent_spec(subject.model) is not None:
        return {"lyapunov": by_jacobians, "method": "jacobians"}
    no_exponent = {"lyapunov": math.nan, "method": "none"}
    try:
        reach = gradient_reach(subject.model, subject)
    except NoGradientError:
        return no_exponent
    if reach.horizon < 0:  # rounding to integers, say, lets no gradient through
        return no_exponent
    # Attention over a layer's outputs sees what the layer has forgotten: the gradient then hardly falls.
    if by_jacobians is not None and reach.trend != "stable":
        return {"lyapunov": by_jacobians, "method": "jacobians"}
    decay = reach.decay
    if reach.trend == "cut off" or decay is None:
        return {"lyapunov": -math.inf, "method": "gradients", "horizon": reach.horizon}
    per_step = decay.change / max(subject.layout.steps - 2, 1)
    scale = 0.0
    if decay.rate:
        scale = per_step / decay.rate
    low, high = decay.interval
    return {"lyapunov": per_step, "method": "gradients", "interval": (scale * low, scale * high)}


def _recurrence_exponent(subject: Subject) -> float | None:
    """From the Jacobians of the model's only recurrent layer; ``None`` if its steps are not those of the inputs."""
    recurrence = _recurrence(subject.model)
    if recurrence is None:
        return None
    inputs = _layer_inputs(subject, recurrence.layer)
    if inputs is None or len(inputs) != subject.layout.steps:
        return None
    return lyapunov_exponent(recurrence.spec, recurrence.weights, inputs)


def _layer_inputs(subject: Subject, layer: nn.Module) -> Tensor | None:
    """What a layer inside the model is given, ``(T, B, input_size)``; ``None`` unless it is one tensor in one call."""
    calls: list[tuple[object, ...]] = []
    hook = layer.register_forward_pre_hook(lambda part, args: calls.append(args))
    try:
        with torch.no_grad():
            subject.run(subject.inputs)
    finally:
        hook.remove()
    if len(calls) != 1 or not calls[0] or not isinstance(calls[0][0], Tensor):
        return None
    inputs = calls[0][0]
    if inputs.dim() == 2:
        return inputs.unsqueeze(1)
    if layer.batch_first:
        return inputs.transpose(0, 1)
    return inputs


def _measured_window(subject: Subject, epsilon: float) -> int | None:
    """The least window from which on all last outputs stay within epsilon; ``None`` if only the whole does.

    Windows in equal ratios are tried from the longest on; then the first that is too short is approached by halves.
    All of them lack whole strides, because a model with a stride sees other steps together if less is cut off.
    """
    length = subject.layout.steps
    if not subject.layout.any_length:
        return None
    with torch.no_grad():
        whole = _last(subject, length)

        def is_enough(k: int) -> bool:
            try:
                part = _last(subject, k)
            except Exception:  # whatever a foreign model throws: it does not run on so few steps
                return False
            # A gap that is not a number is none to rely on, hence <= and not >.
            return output_gap(whole, part) <= epsilon

        stride = next((size for size in STRIDES if size < length and is_enough(length - size)), None)
        if stride is None:
            return None
        windows = range(1 + (length - 1) % stride, length, stride)
        tried = sorted({round(1.3**power) for power in range(60) if round(1.3**power) <= len(windows)})
        kept = list(itertools.takewhile(lambda count: is_enough(windows[count - 1]), reversed(tried)))
        enough = min(kept, default=len(windows))
        too_short = max((count for count in tried if count < enough), default=0)
        while enough - too_short > 1:
            middle = (enough + too_short) // 2
            if is_enough(windows[middle - 1]):
                enough = middle
            else:
                too_short = middle
    return windows[enough - 1]


def _last(subject: Subject, k: int) -> Tensor:
    """The output after the last k steps: ``(1, B, C)``."""
    return subject.by_row(last_output(subject, subject.layout.steps, k)).unsqueeze(0)


def _window(contraction: float, bound: float, epsilon: float) -> int:
    """Least k with ``contraction^k bound <= epsilon``."""
    if bound <= epsilon:
        return 0
    if contraction == 0:
        return 1
    return math.ceil(math.log(bound / epsilon) / -math.log(contraction) - 1e-12)


@dataclasses.dataclass(frozen=True)
class _Recurrence:
    """A recurrent layer, as a kind of scan and its weights."""

    layer: nn.Module
    spec: ScanSpec
    weights: Weights


def _recurrence(model: object) -> _Recurrence | None:
    """The model's only recurrent layer, if it has no memory and runs forward."""
    specs = {part: spec for part in modules(model) if (spec := recurrent_spec(part)) is not None}
    if len(specs) != 1:
        return None
    (layer, spec), *_ = specs.items()
    if layer.num_layers != 1 or layer.bidirectional or getattr(layer, "proj_size", 0) or spec.has_memory:
        return None
    return _Recurrence(layer, spec, recurrent_weights(layer))


def _certified(model: object, recurrence: _Recurrence | None) -> tuple[float | None, float]:
    """A proved factor below 1 and a bound on the states, from the layer's certificate or a spectral norm."""
    certificate = getattr(model, "certificate", None)
    if callable(certificate):
        try:
            found: Any = certificate()
        except ValueError:
            return None, math.inf
        cells = [layer.cell_bound or 1.0 for layer in found.layers]
        return found.factor, max(cells) * math.sqrt(getattr(model, "hidden_size", 1))
    if recurrence is None or recurrence.spec.cell != RNNCell("tanh"):
        return None, math.inf
    recurrent = recurrence.weights.hh.detach().double()
    norm = float(torch.linalg.matrix_norm(recurrent, 2))
    if norm < 1:
        return norm, math.sqrt(len(recurrent))
    return None, math.inf


def lyapunov_exponent(spec: ScanSpec, weights: Weights, x: Tensor) -> float:
    """Largest exponent along a run: power iteration with the transposed Jacobians, from the end to the start.

    The input ``x`` is ``(T, B, input_size)``; the mean over its rows is taken.
    """
    weights = map_tensors(lambda weight: weight.detach().double(), weights)
    projected = spec.cell.project(x.detach().double(), weights)
    n = spec.cell.hidden_size(weights)
    state = torch.zeros(x.shape[1], n * (1 + spec.cell.has_c), dtype=torch.float64)
    states = []

    def step(joint: Tensor, inputs: Tensor) -> Tensor:
        s = joint[:, :n]
        c = joint[:, n:]
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
