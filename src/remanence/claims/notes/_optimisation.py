"""Lecture notes, questions 1, 2 and 4: recurrences, running averages, and two ways to keep weights small."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from remanence import nn, train
from remanence.claims._framework import amount, claim, gap_of
from remanence.claims._types import Evidence

ROUNDING = 1e-12
_BY_ROUNDING = f"{ROUNDING:g}: float64 sums of a few hundred terms of order one"
_exact_claim = partial(claim, tolerance=_BY_ROUNDING)


@_exact_claim(
    "notes/1.1",
    place="question 1.1",
    printed="h_t = W sigma(h_{t-1}) + U x_t + b and g_t = sigma(W g_{t-1} + U x_t + b) are the same: g_t = sigma(h_t)",
    measures="greatest difference of the layer, which is the second, from the first over 50 steps, from two starts",
    assumptions="g_0 = sigma(h_0)",
)
def recurrences_are_equivalent(quick: bool) -> Evidence:
    n = 6
    steps = 50
    layer = nn.RNN(3, n, dtype=torch.float64)
    x = torch.randn(steps, 1, 3).double()
    projected = x[:, 0] @ layer.get_parameter("weight_ih_l0").T + sum(
        layer.get_parameter(f"bias_{part}_l0") for part in ("ih", "hh")
    )
    h = torch.randn(n).double()
    inside = []
    start = h
    for u in projected:
        h = recurrence(layer.get_parameter("weight_hh_l0"), h, u, torch.tanh)
        inside.append(h.tanh())
    gaps = [gap_of(layer(x, g[None, None])[0][:, 0], torch.stack(inside)) for g in (start.tanh(), start.tanh() + 0.1)]
    numbers = {"gap": gaps[0], "gap from a start that breaks g_0 = sigma(h_0)": gaps[1]}
    return Evidence(gaps[0] <= ROUNDING, numbers=numbers)


def recurrence(w: Tensor, h: Tensor, u: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """One step of the question's h_t = W sigma(h_{t-1}) + U x_t + b, what the input adds being u: ``(n,)``."""
    return w @ activation(h) + u


def _state_jacobian(w: Tensor, inputs: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """Derivative of the last state by the first, of h_t = W sigma(h_{t-1}) + u_t."""

    def run(h: Tensor) -> Tensor:
        for u in inputs:
            h = recurrence(w, h, u, activation)
        return h

    return torch.func.jacrev(run)(torch.zeros(len(w), dtype=w.dtype))


@claim(
    "notes/1.2",
    place="question 1.2",
    printed=(
        "if the greatest eigenvalue of W^T W is at most delta^2 / gamma^2, then |dh_T/dh_0| <= delta^T, which vanishes"
    ),
    measures="spectral norm of dh_T/dh_0 against delta^T on random instances with tanh (gamma = 1)",
    tolerance="none: it is an inequality, with one part in 10^9 for rounding",
)
def small_weights_make_gradients_vanish(quick: bool) -> Evidence:
    worst = 0.0
    steps = 12
    delta = 0.9
    for _ in range(amount(quick, 10, 100)):
        w = torch.randn(5, 5).double()
        w *= delta / torch.linalg.matrix_norm(w, 2)
        jacobian = _state_jacobian(w, 0.1 * torch.randn(steps, 5).double(), torch.tanh)
        worst = max(worst, float(torch.linalg.matrix_norm(jacobian, 2)) / delta**steps)
    rotation = torch.linalg.qr(torch.randn(5, 5).double())[0]
    attained = torch.linalg.matrix_norm(
        _state_jacobian(delta * rotation, torch.zeros(steps, 5).double(), torch.tanh), 2
    )
    numbers = {"norm / delta^T, greatest": worst, "the same for a rotation at rest": float(attained) / delta**steps}
    return Evidence(max(numbers.values()) <= 1 + 1e-9, numbers=numbers)


@claim(
    "notes/1.3",
    place="question 1.3",
    printed="a greatest eigenvalue above the limit is necessary and not sufficient for the gradient to explode",
    measures="growth of the norm over 30 linear steps: 2 I (explodes), a nilpotent matrix of norm 2 (does not), 0.9 I",
    tolerance="none: powers of two and zeros are exact",
)
def great_weights_are_necessary_not_sufficient(quick: bool) -> Evidence:
    eye = torch.eye(2).double()
    matrices = {"2 I": 2 * eye, "nilpotent": torch.tensor([[0.0, 2.0], [0.0, 0.0]]).double(), "0.9 I": 0.9 * eye}
    inputs = torch.zeros(30, 2).double()
    norms = {
        name: float(torch.linalg.matrix_norm(_state_jacobian(w, inputs, lambda h: h), 2))
        for name, w in matrices.items()
    }
    holds = norms["2 I"] == 2.0**30 and norms["nilpotent"] == 0 and norms["0.9 I"] < 1
    return Evidence(holds, numbers={f"norm of {name}": norm for name, norm in norms.items()})


def running_average(gradients: Tensor, beta: float, rates: Tensor, start: float = 0.0) -> Tensor:
    """Updates of the library's optimiser: ``-rate v_t`` with ``v_t = beta v_{t-1} + (1 - beta) g_t``; ``(T,)``."""
    weight = torch.zeros(1, dtype=gradients.dtype, requires_grad=True)
    updates = []
    optimiser = train.AveragingSGD([weight], lr=1.0, momentum=beta)
    optimiser.state[weight] = {"step": torch.zeros(()), "average": torch.full_like(weight, start)}
    for gradient, rate in zip(gradients, rates, strict=True):
        before = weight.detach().clone()
        optimiser.param_groups[0]["lr"] = float(rate)
        weight.grad = gradient[None]
        optimiser.step()
        updates.append((weight.detach() - before)[0])
    return torch.stack(updates)


def momentum(gradients: Tensor, alpha: float, rates: Tensor, start: float = 0.0) -> Tensor:
    """Updates ``-v_t`` with ``v_t = alpha v_{t-1} + rate g_t``: ``(T,)``."""
    v = torch.tensor(start, dtype=gradients.dtype)
    updates = []
    for gradient, rate in zip(gradients, rates, strict=True):
        v = alpha * v + rate * gradient
        updates.append(-v)
    return torch.stack(updates)


@_exact_claim(
    "notes/2.1",
    place="question 2.1",
    printed="momentum and a running average are the same with alpha = beta and epsilon = delta (1 - beta)",
    measures="difference of the updates; the same when the step changes half-way, and from v_0 = 1",
    assumptions="v_0 = 0 and a constant step: the two other numbers show that both are needed",
)
def momentum_is_a_running_average(quick: bool) -> Evidence:
    beta = 0.9
    gradients = torch.randn(100).double()
    constant = torch.full((100,), 0.3, dtype=torch.float64)
    falling = torch.where(torch.arange(100) < 50, constant, constant / 10)
    gaps = {}
    for name, rates, start in (("gap", constant, 0.0), ("step falls", falling, 0.0), ("v_0 = 1", constant, 1.0)):
        average = running_average(gradients, beta, rates, start)
        gaps[name] = gap_of(momentum(gradients, beta, rates * (1 - beta), start), average)
    holds = gaps["gap"] <= ROUNDING and gaps["step falls"] > 1e-3 and gaps["v_0 = 1"] > 1e-3
    return Evidence(holds, numbers=gaps)


@_exact_claim(
    "notes/2.2",
    place="question 2.2",
    printed="unrolled, the update is -delta (1 - beta) sum_i beta^(t-i) g_i",
    measures="greatest difference from the recursion over 100 steps",
)
def running_average_unrolled(quick: bool) -> Evidence:
    beta = 0.9
    delta = 0.3
    gradients = torch.randn(100).double()
    updates = running_average(gradients, beta, torch.full((100,), delta, dtype=torch.float64))
    age = torch.arange(100)[:, None] - torch.arange(100)
    unrolled = -delta * (1 - beta) * torch.where(age >= 0, beta ** age.clamp(min=0).double(), 0.0) @ gradients
    return Evidence(gap_of(updates, unrolled) <= ROUNDING, numbers={"gap": gap_of(updates, unrolled)})


@_exact_claim(
    "notes/2.3",
    place="question 2.3",
    printed="E[v_t] = E[g] (1 - beta^t) + delta, and (E[v_t] - delta) / (1 - beta^t) removes the bias",
    corrected="E[v_t] = E[g] (1 - beta^t), without the step size delta; v_t / (1 - beta^t) is unbiased",
    measures="E[v_t] by the recursion on the mean E[g] = 2, against both formulas, delta = 0.1",
)
def running_average_is_biased(quick: bool) -> Evidence:
    beta = 0.9
    delta = 0.1
    mean = 2.0
    steps = torch.arange(1, 31).double()
    expected_v = -running_average(torch.full((30,), mean).double(), beta, torch.ones(30).double())
    formula = mean * (1 - beta**steps)
    printed = gap_of(expected_v, formula + delta)
    corrected = gap_of(expected_v, formula)
    unbiased = gap_of(expected_v / (1 - beta**steps), torch.full((30,), mean).double())
    numbers = {"gap as printed": printed, "gap corrected": corrected, "bias left after rescaling": unbiased}
    return Evidence(printed <= ROUNDING, corrected <= ROUNDING and unbiased <= ROUNDING, numbers)


def _train(make: Callable[[list[Tensor]], torch.optim.Optimizer], penalty: float, decay: float = 0.0) -> Tensor:
    """Weights after 50 steps on a fixed quadratic, with an L2 penalty in the loss or a decay after the step."""
    target = torch.linspace(-1, 1, 8).double()
    scale = torch.logspace(-1, 0.5, 8).double()
    weights = torch.ones(8).double().requires_grad_()
    optimiser = make([weights])
    for _ in range(50):
        loss = (scale * (weights - target).square()).sum() + penalty * weights.square().sum()
        (weights.grad,) = torch.autograd.grad(loss, weights)
        before = weights.detach().clone()
        optimiser.step()
        with torch.no_grad():
            weights -= decay * before
    return weights.detach()


@claim(
    "notes/4.1",
    place="question 4.1",
    printed="for plain SGD an L2 penalty gamma is weight decay with lambda = 2 eta gamma",
    measures="difference of the weights after 50 steps: SGD, SGD with momentum, Adam",
    tolerance=f"{_BY_ROUNDING}; with momentum and for Adam the difference must show (above 10^-3)",
    assumptions="no momentum: with it, and for Adam, the two differ",
)
def penalty_is_decay_for_sgd(quick: bool) -> Evidence:
    rate = 0.02
    gamma = 0.5
    makers: dict[str, Callable[[list[Tensor]], torch.optim.Optimizer]] = {
        "SGD": lambda w: torch.optim.SGD(w, lr=rate),
        "momentum": lambda w: torch.optim.SGD(w, lr=rate, momentum=0.9),
        "Adam": lambda w: torch.optim.Adam(w, lr=rate),
    }
    gaps = {name: gap_of(_train(make, gamma), _train(make, 0.0, 2 * rate * gamma)) for name, make in makers.items()}
    holds = gaps["SGD"] <= ROUNDING and min(gaps["momentum"], gaps["Adam"]) > 1e-3
    return Evidence(holds, numbers={f"gap with {name}": gap for name, gap in gaps.items()})


def regularised_loss(losses: Tensor, theta: Tensor, gamma: float) -> Tensor:
    """Question 4's J: the mean over examples of L + gamma |theta|^2."""
    return (losses + gamma * theta.square().sum()).mean()


@_exact_claim(
    "notes/4.2",
    place="question 4.2",
    printed=(
        "Adam with L2 takes the gradient of (sum of losses + gamma |theta|^2) / m, the penalty inside the mean over m"
    ),
    corrected=(
        "the loss of question 4 has the penalty in every example's loss, so its gradient is 2 gamma theta, not 2 "
        "gamma theta / m"
    ),
    measures="penalty's part of the gradient of the mean regularised loss over m = 16, against both readings",
)
def penalty_is_not_divided_by_the_batch(quick: bool) -> Evidence:
    m = 16
    gamma = 0.3
    theta = torch.randn(5).double().requires_grad_()
    x = torch.randn(m, 5).double()
    plain, regularised = (
        torch.autograd.grad(regularised_loss((x @ theta).square(), theta, g), theta)[0] for g in (0.0, gamma)
    )
    part = regularised - plain
    printed = gap_of(part, 2 * gamma * theta / m)
    corrected = gap_of(part, 2 * gamma * theta)
    return Evidence(printed <= ROUNDING, corrected <= ROUNDING, {"gap as printed": printed, "gap corrected": corrected})


def _shrink_in_adam(penalty: float, decay: float, steps: int) -> tuple[float, float]:
    """How much of two weights is left, one with small and one with large zero-mean gradients."""
    scale = torch.tensor([1e-3, 1e1]).double()
    noise = torch.randn(steps, 2, 200).double() * scale[:, None]
    weights = torch.ones(2, 200).double().requires_grad_()
    optimiser = torch.optim.AdamW([weights], lr=1e-3, weight_decay=decay / 1e-3)
    for gradient in noise:
        weights.grad = gradient + 2 * penalty * weights.detach()
        optimiser.step()
    small, large = weights.detach().mean(dim=1).tolist()
    return small, large


@claim(
    "notes/4.3a",
    place="question 4.3, Adam with L2",
    printed="in Adam with an L2 penalty the weights with small gradients shrink more than those with large ones",
    measures="mean of 200 weights that start at 1, after Adam with gamma = 0.01: gradients of 10^-3 against 10",
    tolerance="the small-gradient weights must lose at least twice as much: the ratio of gradients is 10^4",
)
def adam_with_l2_shrinks_small_gradients_more(quick: bool) -> Evidence:
    small, large = _shrink_in_adam(0.01, 0.0, amount(quick, 100, 400))
    return Evidence(1 - small > 2 * abs(1 - large), numbers={"left, small gradients": small, "left, large": large})


@claim(
    "notes/4.3b",
    place="question 4.3, Adam with weight decay",
    printed="with decoupled decay the shrinking is proportional to the weight itself, whatever its gradients",
    measures="mean of 200 weights that start at 1 under decay 10^-3 a step: gradients of 10^-3 against 10",
    tolerance="0.02: the mean of 200 weights that take random steps of 10^-3",
)
def adam_with_decay_shrinks_alike(quick: bool) -> Evidence:
    steps = amount(quick, 100, 400)
    small, large = _shrink_in_adam(0.0, 1e-3, steps)
    expected = (1 - 1e-3) ** steps
    holds = max(abs(small - expected), abs(large - expected)) < 0.02
    return Evidence(holds, numbers={"left, small gradients": small, "left, large": large, "expected": expected})


@_exact_claim(
    "notes/4.3c",
    place="question 4.3, update rule",
    printed="the update divides by sqrt(r + delta)",
    corrected="Algorithm 8.7, to which the question refers, and torch divide by sqrt(r) + delta",
    measures="one step of torch.optim.Adam with gradient 10^-8 and delta = 10^-8, against both",
)
def adam_adds_delta_outside_the_root(quick: bool) -> Evidence:
    rate = 1.0
    delta = 1e-8
    gradient = 1e-8
    weight = torch.zeros(1).double().requires_grad_()
    weight.grad = torch.full((1,), gradient, dtype=torch.float64)
    torch.optim.Adam([weight], lr=rate, eps=delta).step()
    step = -float(weight.detach())
    printed = gradient / (gradient**2 + delta) ** 0.5
    corrected = gradient / (gradient + delta)
    numbers = {"step of torch": step, "as printed": printed, "corrected": corrected}
    return Evidence(abs(step - printed) <= ROUNDING, abs(step - corrected) <= ROUNDING, numbers)


@claim(
    "notes/4.4",
    place="question 4.4",
    printed="L2 regularisation makes weights sparse, which weight decay avoids",
    corrected="an L2 penalty shrinks weights and sets none to zero; an L1 penalty does",
    measures="weights that are exactly zero after SGD with L2 on a quadratic with 1,000 random targets, 1,000 steps",
    tolerance="none: a count",
    expected="fails as printed",
)
def l2_does_not_make_weights_sparse(quick: bool) -> Evidence:
    target = torch.randn(1000).double()
    gamma = 0.5
    weights = torch.zeros(1000).double().requires_grad_()
    optimiser = torch.optim.SGD([weights], lr=0.05, weight_decay=2 * gamma)
    for _ in range(1000):
        weights.grad = 2 * (weights.detach() - target)
        optimiser.step()
    lasso = target.sign() * (target.abs() - gamma / 2).clamp(min=0)
    zeros = {"zeros with L2": int((weights == 0).sum()), "zeros with L1, at the optimum": int((lasso == 0).sum())}
    off = gap_of(weights, target / (1 + gamma))
    return Evidence(zeros["zeros with L2"] > 0, numbers={**zeros, "from the optimum of L2, greatest": off})
