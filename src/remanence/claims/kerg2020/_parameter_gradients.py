"""Kerg et al. 2020, Lemmas 7 and 8 and Remark 6: gradients of the parameters, and what small attention weights mean."""

from __future__ import annotations

import dataclasses
from statistics import median

import torch
from torch import Tensor

from remanence import nn
from remanence.claims._cells import Cells, result_of, trained
from remanence.claims._framework import claim, gap_of, relative_gap, stored_claim
from remanence.claims._types import Evidence, Number
from remanence.experiments import StoredCell
from remanence.probes import closed_forms as closed
from remanence.probes.closed_forms import Recording
from remanence.runs import Values

from ._gradient_paths import ROUNDING, N, T, attentive_layer, run_scan

_BY_ROUNDING = f"{ROUNDING:g}: two float64 computations of the same sums"


def _run(layer: nn.RecurrentLayer) -> tuple[Tensor, Tensor, Tensor, Recording]:
    """Inputs, the loss as a function of s, dL/dh ``(T, n)`` and a recording of a random run."""
    x = torch.randn(T, 1, 3).double()
    offset = torch.zeros(T, 1, N, dtype=torch.float64, requires_grad=True)
    output = run_scan(layer, x, offset)
    loss = output.square().sum()
    (by_state,) = torch.autograd.grad(loss, offset, retain_graph=True)
    recording = closed.record(layer, x, 0, 0, T - 1)[0]
    return x, loss, by_state[:, 0], recording


@claim(
    "kerg2020/lemma07",
    place="Lemma 7",
    printed="dL/dtheta of the alignment is the sum of alpha_j dL/ds_t d2f h_j (sum_i (1_{i=j} - alpha_i) de_i/dtheta)",
    measures="greatest relative difference from autograd for theta = v_a",
    tolerance=_BY_ROUNDING,
)
def gradient_of_the_alignment(quick: bool) -> Evidence:
    layer = attentive_layer()
    _, loss, by_state, recording = _run(layer)
    (exact,) = torch.autograd.grad(loss, layer.get_parameter("weight_score_l0"))
    query, key, _ = recording.alignment
    total = torch.zeros(N, dtype=torch.float64)
    by_macro = _by_macro_states(recording, by_state)
    for t in range(T):
        alpha = recording.attention[t, : t + 1]
        h = recording.h[: t + 1]
        slopes = (query @ recording.previous(t) + h @ key.T).tanh()
        worth = h @ by_macro[t]
        total += (alpha * worth) @ (slopes - alpha @ slopes)
    error = relative_gap(total, exact)
    return Evidence(error <= ROUNDING, numbers={"relative gap": error})


def _by_macro_states(recording: Recording, by_state: Tensor) -> Tensor:
    """dL/ds_t for L = sum |s|^2: its own term, the next state's and the next query's; ``(T, n)``."""
    result = 2 * recording.s.clone()
    for t in reversed(range(T - 1)):
        result[t] += closed.state_jacobian(recording, t).T @ by_state[t + 1]
        result[t] += closed.partial_by_macro(recording, t + 1).T @ result[t + 1]
    return result


@claim(
    "kerg2020/lemma08",
    place="Lemma 8, Eq. 106",
    printed="dL/dV = sum_t s_{t-1} dL/dh_t diag(phi'(a_t)), where a_t is what phi makes h_{t+1} of (Eq. 105)",
    corrected="diag(phi'(a_{t-1})), as the proof's last line has it",
    measures="relative difference from autograd's gradient of V with either index",
    tolerance=_BY_ROUNDING,
)
def gradient_of_the_recurrence(quick: bool) -> Evidence:
    layer = attentive_layer()
    _, loss, by_state, recording = _run(layer)
    (exact,) = torch.autograd.grad(loss, layer.get_parameter("weight_hh_l0"))
    before = torch.stack([recording.previous(t) for t in range(T)])
    slope = 1 - (recording.inputs + before @ recording.weights.hh.T).tanh().square()
    corrected = (by_state * slope).T @ before
    printed = (by_state[:-1] * slope[1:]).T @ before[:-1]
    gaps = [relative_gap(value, exact) for value in (printed, corrected)]
    numbers = {"gap as printed": gaps[0], "gap corrected": gaps[1]}
    return Evidence(gaps[0] <= ROUNDING, gaps[1] <= ROUNDING, numbers)


def _shunned_layer(strength: float) -> nn.MemRNN:
    """Attention that shuns states whose first unit is high; only the second step's is."""
    layer = nn.MemRNN(3, N, dtype=torch.float64)
    with torch.no_grad():
        layer.get_parameter("weight_query_l0").zero_()
        layer.get_parameter("weight_key_l0").zero_()
        layer.get_parameter("weight_key_l0")[0, 0] = 5.0
        layer.get_parameter("weight_score_l0").zero_()
        layer.get_parameter("weight_score_l0")[0] = -strength
        layer.get_parameter("weight_ih_l0")[0] = torch.tensor([4.0, 0.0, 0.0])
        layer.get_parameter("weight_hh_l0")[0] = 0.0
    return layer


@claim(
    "kerg2020/remark06",
    place="Remark 6",
    printed="a state whose attention weights are all near 0 does not contribute to the gradient and to learning",
    corrected="its reads contribute in proportion to its greatest weight; it still acts through the recurrence",
    measures="norm of dL/dh_i of a shunned state, and of the part that goes over reads of it, for two strengths",
    tolerance="a weight of 10^-20 must leave less than 10^-15 over reads, and more than 10^-3 in total",
)
def shunned_states_still_act(quick: bool) -> Evidence:
    x = -torch.ones(T, 1, 3).double()
    x[1] = 1.0
    numbers = {}
    shares = []
    for strength in (3.0, 30.0):
        torch.manual_seed(0)
        recording, total = closed.record(_shunned_layer(strength), x, 0, 1, 3)
        deaf = recording.attention.clone()
        deaf[:, 1] = 0.0
        rest = closed.split_paths(dataclasses.replace(recording, attention=deaf), 1, 3).sum(dim=0)
        weight = float(recording.attention[:, 1].max())
        share = gap_of(total, rest)
        shares.append((weight, float(total.norm()), share))
        numbers |= {f"weight, strength {strength:g}": weight, f"total, {strength:g}": float(total.norm())}
        numbers[f"over reads, {strength:g}"] = share
    weight, total_norm, share = shares[1]
    printed = total_norm < 1e-3
    return Evidence(printed, weight < 1e-20 and share < 1e-15 and total_norm > 1e-3, numbers)


@stored_claim(
    "kerg2020/remark06-kinds",
    stored="kerg2020/dependencies",
    place="Remark 6, the observation",
    printed="most states are either relevant, read by most later steps, or not relevant, read by almost none",
    measures="shares of the states of models trained on Copy and Denoise at T = 100, with full and screened attention",
    tolerance="more than half of the states are of one of the two kinds, in the median over seeds of every cell",
    assumptions="read by most: by over half of them, at an even share or more; by almost none: by nine of ten of them, "
    "at less than a tenth of it",
)
def states_are_of_two_kinds(cells: Cells) -> Evidence:
    found = cells.at()
    shares: dict[str, list[Values]] = {}
    for cell in found:
        place = f"{cell.place['task']}, {cell.place['model']}"
        shares.setdefault(place, []).append(result_of(cell, "dependencies"))
    numbers: dict[str, Number] = {}
    for place, seeds in shares.items():
        kinds = (
            f"{100 * median(seed[kind] for seed in seeds):.0f} %" for kind in ("relevant", "irrelevant", "neither")
        )
        numbers[f"{place}: relevant, not relevant, neither"] = ", ".join(kinds)
    holds = all(median(seed["neither"] for seed in seeds) < 0.5 for seeds in shares.values())
    return Evidence(holds, numbers=numbers, runs=trained(found, lambda cell: not _is_of_two_kinds(cell)))


def _is_of_two_kinds(cell: StoredCell) -> bool:
    return result_of(cell, "dependencies")["neither"] < 0.5
