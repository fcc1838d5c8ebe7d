"""Stable recurrences against truncated ones: the bounds of Miller and Hardt 2018 with every constant spelt out.

``h_t = phi_w(h_{t-1}, x_t)`` with ``phi(0, 0) = 0`` and ``h_0 = 0``; the truncated state ``h^k_t`` starts from zero k
steps before. The paper writes O(); a bound without its constant cannot be checked, so they are derived here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from remanence._validate import positive_int, real

TANH_CURVATURE = 4 / (3 * math.sqrt(3))
"""Greatest second derivative of tanh."""


@dataclass(frozen=True)
class Constants:
    """What is known of a recurrence and its loss; all norms are Euclidean.

    Args:
        contraction: lambda, Lipschitz constant of phi in h, at least 0 and below 1.
        state: bound on the states, ``L_x B_x / (1 - lambda)`` or better.
        weight: Lipschitz constant of phi in w.
        state_curvature: Lipschitz constant of d phi / dh in h.
        weight_of_state: Lipschitz constant of d phi / dw in h.
        state_of_weight: Lipschitz constant of d phi / dh in w.
        weight_curvature: Lipschitz constant of d phi / dw in w.
        loss: Lipschitz constant of the loss in the last state.
        loss_curvature: Lipschitz constant of its gradient.

    Example:
        >>> Constants(contraction=0.5, state=2.0, weight=1.0).drift
        2.0
    """

    contraction: float
    state: float
    weight: float
    state_curvature: float = 0.0
    weight_of_state: float = 0.0
    state_of_weight: float = 0.0
    weight_curvature: float = 0.0
    loss: float = 1.0
    loss_curvature: float = 1.0

    def __post_init__(self) -> None:
        real("contraction", self.contraction, least=0, below=1)

    @property
    def drift(self) -> float:
        """How far apart two runs get for each unit of difference between their weights: ``L_w / (1 - lambda)``."""
        return self.weight / (1 - self.contraction)


def tanh_constants(
    contraction: float, input_bound: float, *, loss: float = 1.0, loss_curvature: float = 1.0
) -> Constants:
    """Constants of ``tanh(W h + u_t)`` as a function of W (Frobenius norm).

    They hold while ``|W|_2 <= lambda`` and ``|u_t| <= input_bound``.

    Args:
        contraction: lambda.
        input_bound: ``L_x B_x``, the greatest norm of what the input adds.
        loss: Lipschitz constant of the loss.
        loss_curvature: of its gradient.

    Example:
        >>> tanh_constants(0.5, 1.0).state
        2.0
    """
    state = input_bound / (1 - contraction)
    mixed = 1 + TANH_CURVATURE * contraction * state
    curvature = TANH_CURVATURE * contraction**2
    bend = TANH_CURVATURE * state**2
    return Constants(contraction, state, state, curvature, mixed, mixed, bend, loss, loss_curvature)


def state_gap(constants: Constants, k: int) -> float:
    """Lemma 1: ``|h_t - h^k_t| <= lambda^k H``, H the bound on the states.

    Example:
        >>> state_gap(Constants(0.5, 2.0, 1.0), 3)
        0.25
    """
    return constants.contraction**k * constants.state


def sufficient_window(contraction: float, input_bound: float, epsilon: float) -> int:
    """The least k of Lemma 1: ``k >= ln(L_x B_x / ((1 - lambda) epsilon)) / ln(1 / lambda)``.

    Args:
        contraction: lambda, below 1.
        input_bound: ``L_x B_x``.
        epsilon: greatest gap allowed.

    Example:
        >>> sufficient_window(0.5, 1.0, 0.25)
        3
    """
    real("contraction", contraction, least=0, below=1)
    real("epsilon", epsilon, above=0)
    reach = input_bound / ((1 - contraction) * epsilon)
    if reach <= 1:
        return 0
    if contraction == 0:
        return 1
    # Rounding must not ask for a step more where the window is exactly a whole number.
    return math.ceil(math.log(reach) / math.log(1 / contraction) - 1e-12)


def gradient_gap(constants: Constants, k: int) -> float:
    r"""Lemma 2: the gradients of the last loss with and without truncation differ by at most ``gamma k lambda^k``.

    The gradient is a sum over i of ``g M_1 .. M_i N_i``, M the Jacobians in h and N those in w. Terms ``i >= k`` are
    missing from the truncated one: ``L_p L_w lambda^k / (1 - lambda)``. The others see states that differ by
    ``lambda^(k-j) H`` at distance j, so each of their factors moves by that times its Lipschitz constant. Together::

        gamma = L_w (L_p + b_p H) / (1 - lambda) + L_p H (b_wh + L_w b_hh / (1 - lambda)) / lambda

    Args:
        constants: of the recurrence and the loss.
        k: window, at least 1.

    Example:
        >>> gradient_gap(Constants(0.5, 2.0, 1.0), 1)
        3.0
    """
    positive_int("k", k)
    c = constants
    room = 1 - constants.contraction
    through_reads = c.loss * c.state * (c.weight_of_state + c.weight * c.state_curvature / room)
    gamma = c.weight * (c.loss + c.loss_curvature * c.state) / room
    if c.contraction:
        gamma += through_reads / c.contraction
    return gamma * k * c.contraction**k


def gradient_smoothness(constants: Constants) -> float:
    """Lemma 3: beta, the Lipschitz constant of the gradient in the weights.

    With ``D = L_w / (1 - lambda)`` the drift of the states::

        beta = (b_p D L_w + L_p (b_wh D + b_ww)) / (1 - lambda) + L_p L_w (b_hh D + b_hw) / (1 - lambda)^2

    Example:
        >>> gradient_smoothness(Constants(0.5, 2.0, 1.0))
        4.0
    """
    c = constants
    room = 1 - constants.contraction
    once = c.loss_curvature * c.drift * c.weight + c.loss * (c.weight_of_state * c.drift + c.weight_curvature)
    twice = c.loss * c.weight * (c.state_curvature * c.drift + c.state_of_weight)
    return once / room + twice / room**2


def weight_gap(constants: Constants, k: int, steps: int, rate: float) -> float:
    """Proposition 2: after N projected steps of size rate/t, ``|w - w^k| <= rate gamma k lambda^k N^(rate beta + 1)``.

    Args:
        constants: of the recurrence and the loss.
        k: window.
        steps: N.
        rate: alpha.

    Example:
        >>> weight_gap(Constants(0.5, 2.0, 1.0), k=1, steps=1, rate=0.5)
        1.5
    """
    return rate * gradient_gap(constants, k) * steps ** (rate * gradient_smoothness(constants) + 1)


def output_gap(constants: Constants, k: int, steps: int, output: float = 1.0, rate: float = 1.0) -> float:
    """Theorem 1: the outputs after N steps differ by at most ``L_f (D |w - w^k| + lambda^k H)``.

    Args:
        constants: of the recurrence and the loss.
        k: window.
        steps: N.
        output: L_f, Lipschitz constant of the prediction in the state.
        rate: alpha, 1 in the paper.

    Example:
        >>> output_gap(Constants(0.5, 2.0, 1.0), k=1, steps=1)
        7.0
    """
    return output * (constants.drift * weight_gap(constants, k, steps, rate) + state_gap(constants, k))


def training_window(constants: Constants, steps: int, epsilon: float, output: float = 1.0, rate: float = 1.0) -> int:
    """The least k with :func:`output_gap` at most epsilon, beyond which it stays there.

    Example:
        >>> constants = Constants(0.5, 2.0, 1.0)
        >>> output_gap(constants, training_window(constants, 10, 0.1), 10) <= 0.1
        True
    """
    real("epsilon", epsilon, above=0)
    k = 1
    if constants.contraction:
        # k lambda^k falls from k = 1 / ln(1 / lambda) on.
        k = max(1, math.ceil(1 / math.log(1 / constants.contraction)))
    while output_gap(constants, k, steps, output, rate) > epsilon:
        k += 1
    return k
