"""Miller and Hardt 2018: stable recurrences are close to truncated ones, in outputs, gradients and weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from remanence import theory
from remanence.claims._framework import amount, claim
from remanence.claims._types import Evidence

_INEQUALITY = "none: an inequality, with one part in 10^9 for rounding"
_bounded_claim = partial(claim, tolerance=_INEQUALITY)
_SLACK = 1 + 1e-9


@dataclass(frozen=True)
class Instance:
    """``h_t = tanh(W h_{t-1} + u_t)`` with a loss ``v . h_T``, ``|v| = 1``, whose constants are known."""

    weight: Tensor
    inputs: Tensor
    readout: Tensor
    linear: bool = False

    def states(self, weight: Tensor, window: int | None = None) -> Tensor:
        """The last state, of the whole run or of its last ``window`` steps from zero: ``(n,)``."""
        h = torch.zeros(len(weight), dtype=weight.dtype)
        inputs = self.inputs
        if window is not None:
            inputs = inputs[len(inputs) - window :]
        for u in inputs:
            h = weight @ h + u
            if not self.linear:
                h = h.tanh()
        return h

    def gradient(self, weight: Tensor, window: int | None = None) -> Tensor:
        """Of the loss by W: ``(n, n)``."""
        weight = weight.detach().requires_grad_()
        return torch.autograd.grad(self.readout @ self.states(weight, window), weight)[0]

    def constants(self, contraction: float) -> theory.Constants:
        """With a linear loss: Lipschitz 1, curvature 0."""
        bound = float(self.inputs.norm(dim=1).max())
        return theory.tanh_constants(contraction, bound, loss=1.0, loss_curvature=0.0)


def gaussian_instance(norm: float, n: int = 6, length: int = 60, size: float = 0.5) -> Instance:
    """Gaussian W scaled to a spectral norm, Gaussian inputs."""
    weight = torch.randn(n, n).double()
    readout = torch.randn(n).double()
    weight *= norm / torch.linalg.matrix_norm(weight, 2)
    return Instance(weight, size * torch.randn(length, n).double() / n**0.5, readout / readout.norm())


@_bounded_claim(
    "miller2018/lemma1",
    place="Lemma 1",
    printed="states of the truncated model are within epsilon once k >= O(log(L_x B_x / ((1 - lambda) epsilon)))",
    measures=(
        "|h_t - h^k_t| / epsilon at k = ln(L_x B_x / ((1 - lambda) epsilon)) / ln(1 / lambda), random tanh instances"
    ),
    assumptions="phi(0, 0) = 0 and h_0 = 0; the O() hides 1 / ln(1 / lambda)",
)
def truncated_states_are_close(quick: bool) -> Evidence:
    worst = 0.0
    epsilon = 1e-3
    for norm in (0.5, 0.8, 0.9):
        for _ in range(amount(quick, 5, 40)):
            instance = gaussian_instance(norm, length=200)
            bound = float(instance.inputs.norm(dim=1).max())
            k = theory.sufficient_window(norm, bound, epsilon)
            gap = (instance.states(instance.weight) - instance.states(instance.weight, k)).norm()
            worst = max(worst, float(gap) / epsilon)
    return Evidence(worst <= _SLACK, numbers={"gap / epsilon, greatest": worst})


def _gradient_gaps(instance: Instance, windows: range) -> list[float]:
    whole = instance.gradient(instance.weight)
    return [float((whole - instance.gradient(instance.weight, k)).norm()) for k in windows]


@claim(
    "miller2018/lemma2",
    place="Lemma 2 and figure 1, left",
    printed=(
        "the gradients of the whole and the truncated model differ by exactly gamma k lambda^k, gamma = O(B_x "
        "(1-lambda)^-2)"
    ),
    corrected="by at most gamma k lambda^k, with the gamma of remanence.theory.gradient_gap",
    measures=(
        "gap / bound on Gaussian instances over k = 1 .. 30, and how much their ratio varies (an equality would not)"
    ),
    tolerance=_INEQUALITY + "; an equality would keep the ratio within a factor of 2 over k",
)
def truncated_gradients_are_close(quick: bool) -> Evidence:
    worst = 0.0
    spread = 1.0
    for norm in (0.5, 0.8, 0.9):
        for _ in range(amount(quick, 2, 15)):
            instance = gaussian_instance(norm)
            constants = instance.constants(norm)
            gaps = _gradient_gaps(instance, range(1, 31))
            ratios = [gap / theory.gradient_gap(constants, k) for k, gap in enumerate(gaps, start=1)]
            worst = max(worst, *ratios)
            spread = max(spread, max(ratios) / min(r for r in ratios if r > 0))
    numbers = {"gap / bound, greatest": worst, "ratio's spread over k": spread}
    return Evidence(spread < 2, worst <= _SLACK, numbers)


def _slope(instance: Instance) -> float:
    """Least-squares slope of ln(gap / k) over k = 5 .. 40, in a linear recurrence."""
    windows = range(5, 41)
    gaps = _gradient_gaps(instance, windows)
    logs = torch.tensor([math.log(gap / k) for gap, k in zip(gaps, windows, strict=True)])
    steps = torch.arange(len(logs)).float()
    return float(((steps - steps.mean()) * (logs - logs.mean())).sum() / (steps - steps.mean()).square().sum())


@claim(
    "miller2018/figure1-slope",
    place="figure 1, left",
    printed="on random Gaussian instances the gap falls like lambda^k",
    corrected=(
        "lambda^k bounds it; the slope is ln lambda only for lambda times an orthogonal matrix, Gaussian ones "
        "fall faster"
    ),
    measures="slope of ln(gap / k) in a linear recurrence of norm 0.9, orthogonal and Gaussian",
    tolerance="0.03 for the orthogonal slope: inputs are random; the Gaussian one must be twice as steep",
)
def gaussian_instances_fall_faster(quick: bool) -> Evidence:
    gaussian = gaussian_instance(0.9, 16, 150)
    orthogonal = gaussian_instance(0.9, 16, 150)
    rotation = torch.linalg.qr(torch.randn(16, 16).double())[0]
    slopes = {
        "Gaussian": _slope(Instance(gaussian.weight, gaussian.inputs, gaussian.readout, linear=True)),
        "orthogonal": _slope(Instance(0.9 * rotation, orthogonal.inputs, orthogonal.readout, linear=True)),
    }
    target = math.log(0.9)
    numbers = {"ln lambda": target} | {f"slope, {name}": slope for name, slope in slopes.items()}
    corrected = abs(slopes["orthogonal"] - target) < 0.03 and slopes["Gaussian"] < 2 * target
    return Evidence(abs(slopes["Gaussian"] - target) < 0.03, corrected, numbers)


@_bounded_claim(
    "miller2018/lemma3",
    place="Lemma 3",
    printed="the gradient is Lipschitz in the weights with beta = O((1 - lambda)^-3)",
    measures=(
        "|difference of gradients| / (beta |w - w'|) over random pairs, beta from remanence.theory.gradient_smoothness"
    ),
)
def gradients_are_smooth(quick: bool) -> Evidence:
    worst = 0.0
    for norm in (0.3, 0.6, 0.9):
        for _ in range(amount(quick, 5, 40)):
            instance = gaussian_instance(norm)
            beta = theory.gradient_smoothness(instance.constants(norm))
            other = instance.weight * 0.98 + 0.02 * norm * torch.randn(6, 6).double() / 6
            other *= min(1.0, norm / float(torch.linalg.matrix_norm(other, 2)))
            apart = float((other - instance.weight).norm())
            moved = float((instance.gradient(other) - instance.gradient(instance.weight)).norm())
            worst = max(worst, moved / (beta * apart))
    return Evidence(worst <= _SLACK, numbers={"change / (beta |w - w'|), greatest": worst})


def project_spectral(weight: Tensor, limit: float) -> Tensor:
    """The nearest matrix of spectral norm at most ``limit``: the Euclidean projection onto a convex set."""
    left, values, right = torch.linalg.svd(weight, full_matrices=False)
    return (left * values.clamp(max=limit)) @ right


def _descend(instance: Instance, k: int, steps: int, rate: float, norm: float) -> tuple[Tensor, Tensor]:
    """Weights of the whole and of the truncated model after projected steps of size rate / t from the same start."""
    whole = truncated = instance.weight
    for t in range(1, steps + 1):
        whole = project_spectral(whole - rate / t * instance.gradient(whole), norm)
        truncated = project_spectral(truncated - rate / t * instance.gradient(truncated, k), norm)
    return whole, truncated


@_bounded_claim(
    "miller2018/proposition2",
    place="Proposition 2 and figure 1, right",
    printed=(
        "after N projected steps of size alpha / t the weights differ by at most alpha gamma k lambda^k N^(alpha "
        "beta + 1)"
    ),
    measures="gap of the weights / bound on Gaussian instances, N = 20, alpha = 1 / beta",
    assumptions="Euclidean projection onto a convex set",
)
def trained_weights_are_close(quick: bool) -> Evidence:
    worst = 0.0
    steps = 20
    for norm in (0.5, 0.8):
        for k in (3, 8):
            for _ in range(amount(quick, 1, 5)):
                instance = gaussian_instance(norm, length=40)
                constants = instance.constants(norm)
                rate = 1 / theory.gradient_smoothness(constants)
                whole, truncated = _descend(instance, k, steps, rate, norm)
                gap = float((whole - truncated).norm())
                worst = max(worst, gap / theory.weight_gap(constants, k, steps, rate))
    return Evidence(worst <= _SLACK, numbers={"gap / bound, greatest": worst})


@_bounded_claim(
    "miller2018/theorem1",
    place="Theorem 1",
    printed="with k = O(log(gamma N^beta / epsilon)) the outputs after N steps of size 1/t differ by at most epsilon",
    measures="gap of the outputs / epsilon at the least k that the explicit bound gives",
    assumptions="as Proposition 2; f is L_f-Lipschitz (the readout, L_f = 1)",
)
def trained_outputs_are_close(quick: bool) -> Evidence:
    worst = 0.0
    largest = 0
    epsilon = 0.1
    norm = 0.3
    for _ in range(amount(quick, 2, 8)):
        instance = gaussian_instance(norm, length=200, size=0.2)
        constants = instance.constants(norm)
        k = theory.training_window(constants, 10, epsilon)
        whole, truncated = _descend(instance, k, 10, 1.0, norm)
        gap = instance.readout @ (instance.states(whole) - instance.states(truncated, k))
        worst = max(worst, abs(float(gap)) / epsilon)
        largest = max(largest, k)
    return Evidence(worst <= _SLACK, numbers={"gap / epsilon, greatest": worst, "k, greatest": largest})


def runaway_gap(k: int, steps: int, constant: bool) -> tuple[float, float]:
    """Gap of the weights and Proposition 2's bound where the loss curves downwards.

    ``h_t = h_{t-1} / 2 + w``, loss ``cos(h_T - c)`` with c such that the whole model starts at the top and never moves.
    The truncated one starts ``2^-k`` off the top and runs away: its distance doubles with every step of size 1 / beta.
    """
    contraction = 0.5
    length = 200
    constants = theory.Constants(contraction, state=2 / (1 - contraction), weight=1.0)  # for weights in [-2, 2]
    rate = 1 / theory.gradient_smoothness(constants)
    gains = [sum(contraction**i for i in range(span)) for span in (length, k)]
    centre = gains[0]
    weights = [1.0, 1.0]
    for t in range(1, steps + 1):
        step = rate
        if not constant:
            step = rate / t
        weights = [w + step * gain * math.sin(w * gain - centre) for w, gain in zip(weights, gains, strict=True)]
    return abs(weights[0] - weights[1]), theory.weight_gap(constants, k, steps, rate)


@_bounded_claim(
    "miller2018/constant-steps",
    place="figure 1 and Proposition 2, the step size",
    printed="without steps of size 1/t the bound on the weights no longer holds",
    measures="gap / bound after 25 steps on a constructed instance of negative curvature, steps constant and 1/t",
    assumptions="shown by construction: on the paper's random instances constant steps need not break it",
)
def constant_steps_break_the_bound(quick: bool) -> Evidence:
    ratios = {}
    for name, constant in (("1/t", False), ("constant", True)):
        gap, bound = runaway_gap(40, 25, constant)
        ratios[name] = gap / bound
    holds = ratios["1/t"] <= _SLACK < ratios["constant"]
    return Evidence(holds, numbers={f"gap / bound, steps {name}": ratio for name, ratio in ratios.items()})
