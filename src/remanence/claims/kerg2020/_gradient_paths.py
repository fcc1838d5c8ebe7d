"""Kerg et al. 2020, appendix A.2: gradient paths, checked on real layers against autograd."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from remanence import nn, probes
from remanence.claims._framework import claim, gap_of
from remanence.claims._types import Evidence
from remanence.ops.reference import scan
from remanence.probes import closed_forms as closed
from remanence.probes.closed_forms import Recording
from remanence.runs import Values

ROUNDING = 1e-10
T = 8
N = 4

exact_claim = partial(claim, tolerance=f"{ROUNDING:g}: two float64 computations of products of a few small matrices")


def attentive_layer() -> nn.MemRNN:
    """Full additive attention, tanh cell, with weights large enough that reads matter."""
    layer = nn.MemRNN(3, N, dtype=torch.float64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter *= 1.5
    return layer


def random_recording() -> Recording:
    return closed.record(attentive_layer(), torch.randn(T, 1, 3).double(), 0, 0, T - 1)[0]


def _read(recording: Recording, states: Tensor, previous: Tensor) -> Tensor:
    """psi_t written out: ``s_t`` as a function of ``h_1 .. h_t`` and ``s_{t-1}``, independent of the layer's code."""
    query, key, score = recording.alignment
    scores = (query @ previous + states @ key.T).tanh() @ score
    return states[-1] + scores.softmax(dim=0) @ states


def _partials(recording: Recording, k: int) -> tuple[Tensor, Tensor]:
    """Autograd's partial derivatives of s_k by h_0 .. h_k ``(k + 1, n, n)`` and by s_{k-1} ``(n, n)``."""
    states = recording.h[: k + 1]
    previous = recording.previous(k)
    by_states, by_macro = torch.func.jacrev(lambda h, s: _read(recording, h, s), argnums=(0, 1))(states, previous)
    return by_states.transpose(0, 1), by_macro


def total_derivatives(recording: Recording, t: int) -> tuple[list[Tensor], list[Tensor]]:
    """Autograd's total derivatives of s_j and of h_j by h_t, for j = t .. T-1, from the recurrence itself."""

    def run(offset: Tensor) -> tuple[Tensor, Tensor]:
        s = recording.previous(t)
        states = [*recording.h[:t]]
        macros = []
        for j in range(t, T):
            pre = recording.inputs[j] + recording.weights.hh @ s
            h = pre.tanh()
            if j == t:
                h = h + offset
            states.append(h)
            s = _read(recording, torch.stack(states), s)
            macros.append(s)
        return torch.stack(macros), torch.stack(states[t:])

    macros, states = torch.func.jacrev(run)(torch.zeros(N, dtype=torch.float64))
    return list(macros), list(states)


@exact_claim(
    "kerg2020/lemma01",
    place="Lemma 1, Eq. 11",
    printed="ds_{t+k+1}/dh_t is its partial derivatives by all later h and the last s times their total derivatives",
    measures="greatest difference between both sides, partials in closed form, totals by autograd",
)
def chain_rule_over_states(quick: bool) -> Evidence:
    recording = random_recording()
    t = 2
    gap = 0.0
    macros, states = total_derivatives(recording, t)
    for k in range(t + 1, T):
        right = closed.partial_by_state(recording, t, k) + closed.partial_by_macro(recording, k) @ macros[k - 1 - t]
        right += sum(closed.partial_by_state(recording, j, k) @ states[j - t] for j in range(t + 1, k + 1))
        gap = max(gap, gap_of(right, macros[k - t]))
    return Evidence(gap <= ROUNDING, numbers={"gap": gap})


@exact_claim(
    "kerg2020/lemma02",
    place="Lemma 2",
    printed="the same with J_k = ds_{k+1}/dh_k",
    corrected="the Jacobian is J_k = dh_{k+1}/ds_k, as Eq. 15 uses it and section 3 defines it",
    measures="greatest difference between both sides of Eq. 14 with either J",
)
def jacobian_is_of_state_by_macro(quick: bool) -> Evidence:
    recording = random_recording()
    t = 2
    k = T - 1
    macros, _ = total_derivatives(recording, t)

    def right(jacobian: Callable[[int], Tensor]) -> Tensor:
        total = closed.partial_by_state(recording, t, k) + closed.partial_by_macro(recording, k) @ macros[k - 1 - t]
        through = (closed.partial_by_state(recording, j + 1, k) @ jacobian(j) @ macros[j - t] for j in range(t, k))
        return total + sum(through)

    printed = gap_of(right(lambda j: closed.partial_by_state(recording, j, j + 1)), macros[k - t])
    corrected = gap_of(right(lambda j: closed.state_jacobian(recording, j)), macros[k - t])
    return Evidence(printed <= ROUNDING, corrected <= ROUNDING, {"gap as printed": printed, "gap corrected": corrected})


@exact_claim(
    "kerg2020/proposition1",
    place="Proposition 1, Eqs 3 and 41",
    printed="ds_{t+k}/dh_t is the sum over s of all products of s factors F and one E",
    measures=(
        "relative difference from autograd through the real layers: RNN, GRU, with Full and Screened memories; a GRU's "
        "leak carrying h or s"
    ),
    assumptions="strictly rising indices; a GRU's leak that carries h makes its macro-state (s, h)",
)
def gradient_is_a_sum_over_paths(quick: bool) -> Evidence:
    options: Values = {"dtype": torch.float64}
    layers = {
        "MemRNN": nn.MemRNN(3, N, **options),
        "RelRNN": nn.RelRNN(3, N, recent=2, relevant=2, **options),
        "MemGRU": nn.MemGRU(3, N, **options),
        "GRU": nn.GRU(3, N, **options),
    }
    x = torch.randn(9, 1, 3).double()
    errors = {name: probes.gradient_paths(layer, x, t=1, k=6).error for name, layer in layers.items()}
    errors["MemGRU whose leak carries s"] = probes.gradient_paths(layers["MemGRU"], x, t=1, k=6, leak="s").error
    return Evidence(max(errors.values()) <= ROUNDING, numbers={f"error, {name}": e for name, e in errors.items()})


@exact_claim(
    "kerg2020/lemma05",
    place="Lemma 5",
    printed="ds_t/ds_{t-1} = d2f sum_i alpha_i h_i (de_i/ds - sum_j alpha_j de_j/ds)",
    measures="greatest difference from autograd of the read written out",
)
def read_by_macro_state(quick: bool) -> Evidence:
    recording = random_recording()
    gap = max(gap_of(closed.partial_by_macro(recording, k), _partials(recording, k)[1]) for k in range(1, T))
    return Evidence(gap <= ROUNDING, numbers={"gap": gap})


@exact_claim(
    "kerg2020/lemma06",
    place="Lemma 6",
    printed="ds_k/dh_j = 1_{k=j} d1f + alpha_{j,k} d2f (I + X_{j,k})",
    measures="greatest difference from autograd of the read written out",
)
def read_by_state(quick: bool) -> Evidence:
    recording = random_recording()
    gap = 0.0
    for k in range(T):
        exact = _partials(recording, k)[0]
        gap = max(gap, *(gap_of(closed.partial_by_state(recording, j, k), exact[j]) for j in range(k + 1)))
    return Evidence(gap <= ROUNDING, numbers={"gap": gap})


def _exact_factor(recording: Recording, j: int, k: int) -> Tensor:
    """F by autograd: partials of the read, and the cell's Jacobian."""
    by_states, by_macro = _partials(recording, k)
    pre = recording.inputs[j + 1] + recording.weights.hh @ recording.s[j]
    jacobian = (1 - pre.tanh().square())[:, None] * recording.weights.hh
    factor = by_states[j + 1] @ jacobian
    if j == k - 1:
        return factor + by_macro
    return factor


@exact_claim(
    "kerg2020/corollary1",
    place="Corollary 1",
    printed="E and F written out with alpha, X, Y and J",
    measures="greatest difference of the closed forms from autograd, all pairs of steps",
)
def factors_in_closed_form(quick: bool) -> Evidence:
    recording = random_recording()
    pairs = [(j, k) for k in range(1, T) for j in range(k)]
    gap = max(gap_of(closed.factor(recording, j, k), _exact_factor(recording, j, k)) for j, k in pairs)
    return Evidence(gap <= ROUNDING, numbers={"gap": gap})


def _read_slope(recording: Recording, j: int, k: int) -> Tensor:
    """``I + X_{j,k}``: what the read of h_j by step k passes on, apart from its weight."""
    away = recording.h[j] - recording.attention[k, : k + 1] @ recording.h[: k + 1]
    return torch.eye(N, dtype=torch.float64) + torch.outer(away, closed.score_by_state(recording, j, k))


def _attention_part(recording: Recording, j: int, k: int) -> Tensor:
    """D of Eq. 87 for the read of h_j by step k: ``(I + X_{j,k}) J_{j-1}``, s = h + c."""
    return _read_slope(recording, j, k) @ closed.state_jacobian(recording, j - 1)


@exact_claim(
    "kerg2020/proposition2",
    place="Proposition 2, Eqs 86 and 87",
    printed="F_{k+1,j} = alpha D_{k+1,j} + 1_{k=j} R_{k+1}, with D_{k+1,j+1} given by Eq. 87",
    corrected="F_{k+1,j} = alpha D_{k+1,j+1} + 1_{k=j} R_{k+1}: the second index of D is one too low",
    measures="greatest difference of either form from autograd's F, pairs at least two steps apart",
)
def factors_as_attention_and_rest(quick: bool) -> Evidence:
    recording = random_recording()
    gaps = {"as printed": 0.0, "corrected": 0.0}
    for k in range(3, T):
        for j in range(1, k - 1):
            exact = _exact_factor(recording, j, k)
            weight = recording.attention[k, j + 1]
            gaps["corrected"] = max(gaps["corrected"], gap_of(weight * _attention_part(recording, j + 1, k), exact))
            gaps["as printed"] = max(gaps["as printed"], gap_of(weight * _attention_part(recording, j, k), exact))
    numbers = {f"gap {name}": gap for name, gap in gaps.items()}
    return Evidence(gaps["as printed"] <= ROUNDING, gaps["corrected"] <= ROUNDING, numbers)


@exact_claim(
    "kerg2020/remark04",
    place="Remark 4",
    printed="for s = h + c, E_k = 1_{k=0} I + alpha (I + X)",
    measures="greatest difference from autograd, t = 1 and all k; the layer's own attention weights",
)
def direct_terms_of_a_sum(quick: bool) -> Evidence:
    recording = random_recording()
    t = 1
    gap = 0.0
    eye = torch.eye(N, dtype=torch.float64)
    for k in range(t, T):
        term = eye * (k == t) + recording.attention[k, t] * _read_slope(recording, t, k)
        gap = max(gap, gap_of(term, _partials(recording, k)[0][t]))
    return Evidence(gap <= ROUNDING, numbers={"gap": gap})


@exact_claim(
    "kerg2020/remark05",
    place="Remark 5",
    printed="the additive score has de/dh = v_a^T diag(1 - tanh^2) U_a and de/ds = v_a^T diag(1 - tanh^2) W_a",
    measures="greatest difference from autograd over all pairs of steps",
)
def slopes_of_the_additive_score(quick: bool) -> Evidence:
    recording = random_recording()
    query, key, score = recording.alignment
    gap = 0.0

    def e(h: Tensor, s: Tensor) -> Tensor:
        return score @ (query @ s + key @ h).tanh()

    for k in range(1, T):
        for j in range(k + 1):
            by_h, by_s = torch.func.grad(e, argnums=(0, 1))(recording.h[j], recording.previous(k))
            gap = max(gap, gap_of(closed.score_by_state(recording, j, k), by_h))
            gap = max(gap, gap_of(closed.score_by_macro(recording, j, k), by_s))
    return Evidence(gap <= ROUNDING, numbers={"gap": gap})


def run_scan(layer: nn.RecurrentLayer, x: Tensor, offset: Tensor | None = None) -> Tensor:
    """Outputs of the layer on the reference, ``(T, B, n)``, with an offset on h."""
    return scan(x, layer.weights(), None, spec=layer.spec, h_offset=offset)[0]
