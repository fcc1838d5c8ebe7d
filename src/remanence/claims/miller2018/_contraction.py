"""Miller and Hardt 2018: which layers are certain to contract, sought out with an adversary."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from remanence import nn
from remanence.claims._framework import amount, claim
from remanence.claims._types import Evidence

Step = Callable[[Tensor, Tensor], Tensor]


def worst_ratio(
    step: Step, distance: Callable[[Tensor], Tensor], draw: Callable[[], list[Tensor]], climbs: int
) -> float:
    """The greatest |phi(a) - phi(b)| / |a - b| that random pairs and gradient ascent from them find.

    Args:
        step: one step of the layer, of states ``(P, m)`` and inputs ``(P, d)``.
        distance: norm of differences, ``(P,)``.
        draw: pairs and inputs inside the domain, two states and one input; its greatest entries are the limits of the
            ascent.
        climbs: steps of ascent.
    """
    first, second, inputs = (x.requires_grad_() for x in draw())
    limits = [x.detach().abs().amax(dim=0) for x in (first, second, inputs)]
    best = 0.0
    optimiser = torch.optim.Adam([first, second, inputs], lr=0.05)
    for _ in range(climbs):
        ratios = distance(step(first, inputs) - step(second, inputs)) / distance(first - second)
        best = max(best, float(ratios.detach().nan_to_num(0.0).max()))
        gradients = torch.autograd.grad(-ratios.clamp(min=1e-12).log().sum(), [first, second, inputs])
        for x, gradient in zip((first, second, inputs), gradients, strict=True):
            x.grad = gradient.nan_to_num(0.0)
        optimiser.step()
        with torch.no_grad():
            for x, limit in zip((first, second, inputs), limits, strict=True):
                x.clamp_(-limit, limit)
    return best


def _box(pairs: int, size: int, limit: float) -> Tensor:
    return (2 * torch.rand(pairs, size, dtype=torch.float64) - 1) * limit


def _rnn_step(layer: nn.StableRNN) -> Step:
    return lambda h, x: layer(x[None], h[None])[0][0]


@claim(
    "miller2018/stable-rnn",
    place="Stability, classical RNN",
    printed="|W| < 1 / L_rho makes the step a contraction",
    measures="greatest ratio found by an adversary over pairs of states and inputs, against the certificate 0.9",
    tolerance="none: an inequality, with one part in 10^9 for rounding",
    assumptions="1-Lipschitz nonlinearity: tanh and relu here",
)
def stable_rnn_contracts(quick: bool) -> Evidence:
    numbers = {}
    holds = True
    for nonlinearity in ("tanh", "relu"):
        layer = nn.StableRNN(3, 6, nonlinearity=nonlinearity, contraction=0.9, dtype=torch.float64)
        with torch.no_grad():
            layer.get_parameter("weight_hh_l0").mul_(20)
        layer.project_()
        pairs = amount(quick, 32, 200)
        found = worst_ratio(
            _rnn_step(layer),
            lambda x: x.norm(dim=-1),
            lambda pairs=pairs: [_box(pairs, 6, 1.0), _box(pairs, 6, 1.0), _box(pairs, 3, 1.0)],
            amount(quick, 30, 200),
        )
        factor = layer.certificate().factor
        numbers[f"ratio found, {nonlinearity}"] = found
        holds = holds and found <= factor * (1 + 1e-9)
    return Evidence(holds, numbers={**numbers, "certificate": 0.9})


def _lstm_step(layer: nn.LSTM) -> Step:
    n = layer.hidden_size

    def step(joint: Tensor, x: Tensor) -> Tensor:
        c = joint[None, :, :n]
        h = joint[None, :, n:]
        _, state = layer(x[None], (h.contiguous(), c.contiguous()))
        return torch.cat([state.c[0], state.s[0]], dim=-1)

    return step


def _joint_box(pairs: int, n: int, cell: float) -> Tensor:
    return torch.cat([_box(pairs, n, cell), _box(pairs, n, 1.0)], dim=1)


def _greatest(x: Tensor) -> Tensor:
    return x.abs().amax(dim=-1)


@claim(
    "miller2018/stable-lstm",
    place="Stability, LSTM (the starred case)",
    printed="bounds on the gates' matrices make the LSTM a contraction",
    measures=(
        "greatest ratio in max(|c|, |h|) found by an adversary on the certificate's domain, against the certificate"
    ),
    tolerance="none: an inequality, with one part in 10^9 for rounding",
    assumptions="row sums, forget bias at most 0, |x| <= 1, |c| <= 1 / (1 - F), |h| <= 1",
)
def stable_lstm_contracts(quick: bool) -> Evidence:
    layer = nn.StableLSTM(3, 5, contraction=0.95, dtype=torch.float64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter *= 20
    layer.project_()
    certificate = layer.certificate()
    cell = certificate.layers[0].cell_bound or 1.0
    pairs = amount(quick, 32, 200)
    found = worst_ratio(
        _lstm_step(layer),
        _greatest,
        lambda: [_joint_box(pairs, 5, cell), _joint_box(pairs, 5, cell), _box(pairs, 3, 1.0)],
        amount(quick, 30, 200),
    )
    numbers = {"ratio found": found, "certificate": certificate.factor}
    return Evidence(found <= certificate.factor * (1 + 1e-9), numbers=numbers)


AUTHORS_LIMITS = {"i": 0.395, "f": 0.155, "g": 0.099, "o": 0.395}
AUTHORS_INPUT = 0.25
AUTHORS_FORGET = 0.6


def authors_projection(layer: nn.LSTM) -> None:
    """Rescales every column of the recurrent blocks and of the forget gate's input block to a given absolute sum."""
    with torch.no_grad():
        for block, limit in zip(layer.get_parameter("weight_hh_l0").chunk(4), AUTHORS_LIMITS.values(), strict=True):
            block *= limit / block.abs().sum(dim=0)
        block = layer.get_parameter("weight_ih_l0").chunk(4)[1]
        block *= AUTHORS_INPUT / block.abs().sum(dim=0)


def seek_wide_rows(layer: nn.LSTM, climbs: int) -> None:
    """Climbs, from random weights, to where one row of every bounded block is as wide as the projection allows."""
    matrices = layer.get_parameter("weight_hh_l0"), layer.get_parameter("weight_ih_l0")
    with torch.no_grad():
        for bias in (layer.get_parameter("bias_ih_l0"), layer.get_parameter("bias_hh_l0")):
            bias.zero_()
    for _ in range(climbs):
        authors_projection(layer)
        blocks = (*matrices[0].chunk(4), matrices[1].chunk(4)[1])
        width = torch.stack([block.abs().sum(dim=1).max() for block in blocks]).sum()
        with torch.no_grad():
            for matrix, slope in zip(matrices, torch.autograd.grad(width, matrices), strict=True):
                matrix += 0.05 * slope
    authors_projection(layer)


@claim(
    "miller2018/authors-lstm",
    place="Stability, LSTM: the projection of the published code",
    printed="sums of columns 0.395, 0.155, 0.099, 0.395 and 0.25 keep forget gates below 0.6 and the LSTM contractive",
    corrected=(
        "forget gates are bounded by sums of rows of W_f and U_f and by the bias; with those (StableLSTM) it is one"
    ),
    measures=(
        "greatest forget gate and greatest ratio on |c| <= 1 / (1 - 0.6), found by search over weights, under the "
        "authors' projection, and over pairs of states"
    ),
    tolerance="none: an inequality",
)
def authors_projection_is_not_enough(quick: bool) -> Evidence:
    n = 12
    d = 12
    layer = nn.LSTM(d, n, dtype=torch.float64)
    seek_wide_rows(layer, amount(quick, 60, 200))
    forget = layer.get_parameter("weight_hh_l0").chunk(4)[1], layer.get_parameter("weight_ih_l0").chunk(4)[1]
    reach = torch.cat(forget, dim=1).detach().abs().sum(dim=1)
    gate = float(torch.sigmoid(reach).max())
    pairs = 64
    cell = 1 / (1 - AUTHORS_FORGET)
    found = worst_ratio(
        _lstm_step(layer),
        _greatest,
        lambda: [_joint_box(pairs, n, cell), _joint_box(pairs, n, cell), _box(pairs, d, 1.0)],
        amount(quick, 60, 200),
    )
    stable = stable_lstm_contracts(quick)
    numbers = {"forget gate": gate, "ratio found": found, "ratio with rows": stable.numbers["ratio found"]}
    return Evidence(gate <= AUTHORS_FORGET and found < 1, stable.printed, numbers)
