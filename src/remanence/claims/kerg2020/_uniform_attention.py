"""Kerg et al. 2020, appendix A.3: uniform attention, from the combinatorics to Theorem 1."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
import torch

from remanence import nn, theory
from remanence.claims._framework import amount, claim, relative_gap
from remanence.claims._types import Evidence

from ._gradient_paths import run_scan

ROUNDING = 1e-9
_exact_claim = partial(claim, tolerance=f"{ROUNDING:g}, relative: float64 sums of up to a few hundred terms")
_SLACK = 1 + 1e-9


def _error(have: float, want: float) -> float:
    return abs(have - want) / (abs(want) or 1.0)


@_exact_claim(
    "kerg2020/lemma09",
    place="Lemma 9",
    printed="omega(s) = S_1^s / s! + sum_l delta_{s-l,0} omega(l): the coefficients depend on s - l alone",
    measures="relative error of the recursion for s up to 8, delta from D(z) = 1 - exp(sum (-1)^l S_l z^l / l)",
)
def omega_by_recursion(quick: bool) -> Evidence:
    worst = 0.0
    for t, k in ((1, 12), (3, 40)):
        sums = theory.power_sums(t, k, 8)
        exact = theory.omega(t, 0, k, 8)
        delta = theory.omega_constants(sums)
        for s in range(2, 9):
            value = sums[1] ** s / math.factorial(s) + sum(delta[s - m] * exact[m] for m in range(s))
            worst = max(worst, _error(value, exact[s]))
    return Evidence(worst <= ROUNDING, numbers={"relative error, greatest": worst})


@_exact_claim(
    "kerg2020/eq149",
    place="Remark 11, Eqs 144 to 149",
    printed="the constant of omega(4) is -(S_4 + 2 S_2^2) / 8",
    corrected="it is -(2 S_4 + S_2^2) / 8: (2, 2) is counted twice, since both its factors have the same multiplicity",
    measures="relative error of omega(4) with either constant, t = 2, k = 10",
)
def constant_of_omega_four(quick: bool) -> Evidence:
    sums = theory.power_sums(2, 10, 4)
    exact = theory.omega(2, 0, 10, 4)
    errors = []
    for printed in (True, False):
        delta = theory.omega_constants(sums, printed=printed)
        value = sums[1] ** 4 / 24 + sum(delta[4 - m] * exact[m] for m in range(4))
        errors.append(_error(value, exact[4]))
    numbers = {"error as printed": errors[0], "error corrected": errors[1]}
    return Evidence(errors[0] <= ROUNDING, errors[1] <= ROUNDING, numbers)


@claim(
    "kerg2020/remark12",
    place="Remark 12",
    printed="the delta are made of S_j with j >= 2, which converge; delta_{1,0} = 0",
    measures="delta_{1,0}, and how much delta_{2..6,0} still move from T = 10^3 to 10^4 and from 10^4 to 10^5",
    tolerance="the second change must be below a fifth of the first: S_2 has 1/T left",
)
def deltas_converge(quick: bool) -> Evidence:
    rows = [np.array(theory.omega_constants(theory.power_sums(2, 10**e, 6))) for e in (3, 4, 5)]
    first, second = (float(np.abs(b - a).max()) for a, b in pairwise(rows))
    zero = float(abs(rows[0][1]))
    return Evidence(zero == 0 and second < first / 5, numbers={"delta_1": zero, "change 1": first, "change 2": second})


@_exact_claim(
    "kerg2020/proposition3",
    place="Proposition 3",
    printed="omega(s) = sum_r psi_{s-r} S_1^r / r!, psi summed over parts in falling order (partitions)",
    corrected="psi sums over all orders (compositions); the two agree up to s = 4 and part at s = 5",
    measures="relative error for s up to 8 with either psi, t = 2, k = 12; first s that fails",
)
def omega_as_a_polynomial(quick: bool) -> Evidence:
    sums = theory.power_sums(2, 12, 8)
    exact = theory.omega(2, 0, 12, 8)
    errors = {}
    for printed in (True, False):
        values = [theory.omega_polynomial(sums, s, printed=printed) for s in range(1, 9)]
        errors[printed] = [_error(value, exact[s]) for s, value in enumerate(values, start=1)]
    wrong = [s for s, error in enumerate(errors[True], start=1) if error > ROUNDING]
    numbers = {"error as printed": max(errors[True]), "error corrected": max(errors[False])}
    return Evidence(not wrong, max(errors[False]) <= ROUNDING, numbers | {"first s that fails": min(wrong, default=0)})


def _asymptotic_sums(t: int, end: float, degree: int) -> list[float]:
    """Power sums up to ``end`` far beyond what can be added up, by digamma and Hurwitz zeta."""
    place = torch.tensor([float(t), end], dtype=torch.float64)
    first = torch.digamma(place)
    higher = [torch.special.zeta(torch.tensor(float(m), dtype=torch.float64), place) for m in range(2, degree + 1)]
    return [end - t, float(first[1] - first[0]), *(float(z[0] - z[1]) for z in higher)]


@claim(
    "kerg2020/remark13",
    place="Remark 13",
    printed="omega(s) ~ (ln T)^s / s! + sum psi (ln T)^r / r! as T grows",
    measures="ratio of both sides, s = 3, t = 2, at T = 10^4, 10^16, 10^64",
    tolerance="the distance from 1 must fall with T and be below 2 % at 10^64: it goes as 1 / ln T",
    assumptions="t >= 2, else ln beta_{t-1} is not defined; psi over compositions from s = 5 on",
)
def omega_grows_with_the_logarithm(quick: bool) -> Evidence:
    s = 3
    ratios = []
    for power in (4, 16, 64):
        sums = _asymptotic_sums(2, 10.0**power, s)
        logarithm = [sums[0], power * math.log(10), *sums[2:]]
        ratios.append(theory.omega_polynomial(sums, s) / theory.omega_polynomial(logarithm, s))
    away = [abs(ratio - 1) for ratio in ratios]
    holds = away[0] > away[1] > away[2] and away[2] < 0.02
    return Evidence(holds, numbers={f"ratio at 10^{p}": r for p, r in zip((4, 16, 64), ratios, strict=True)})


@_exact_claim(
    "kerg2020/eq129",
    place="Eqs 129 and 220",
    printed="chi_{0:k}(s) = 1_{k=s} + sum_i theta_{0:k-i}(s-i) / (t+k-i)",
    measures="greatest relative error over t, k <= 12 and s <= k",
    assumptions="k >= s, with theta(0) = 1 also at k = s",
)
def chi_by_theta(quick: bool) -> Evidence:
    worst = 0.0
    for t in (1, 3):
        for k in range(13):
            exact = theory.chi(t, k, k)
            for s in range(k + 1):
                terms = (theory.theta(t, k - i, s - i)[s - i] / (t + k - i) for i in range(s + 1))
                worst = max(worst, _error(float(sum(terms)) + (k == s), exact[s]))
    return Evidence(worst <= ROUNDING, numbers={"relative error, greatest": worst})


@claim(
    "kerg2020/lemma10",
    place="Lemma 10",
    printed="theta_{0:k}(s) lies between two binomial sums of omega, for all k >= s >= 1",
    measures="violations over t <= 4, k <= 16, s <= 6",
    tolerance="none: inequalities, with one part in 10^9 for rounding",
)
def theta_is_enclosed(quick: bool) -> Evidence:
    wrong = tried = 0
    for t in range(1, 5):
        for k in range(1, 17):
            for s in range(1, min(k, 6) + 1):
                low, high = theory.theta_bounds(t, k, s)
                value = theory.theta(t, k, s)[s]
                wrong += not low <= value * _SLACK <= high * _SLACK**2
                tried += 1
    return Evidence(wrong == 0, numbers={"violations": wrong, "cases": tried})


@claim(
    "kerg2020/lemma11",
    place="Lemma 11",
    printed="chi_{0:k}(s) lies between two binomial sums of omega, for all s >= 0 and k >= 1",
    corrected="for k >= s; below, chi is 0 and the lower bound is not",
    measures="violations over t <= 4, k <= 16, s <= 6, with k >= s and without",
    tolerance="none: inequalities, with one part in 10^9 for rounding",
)
def chi_is_enclosed(quick: bool) -> Evidence:
    wrong = {"k >= s": 0, "k < s": 0}
    for t in range(1, 5):
        for k in range(1, 17):
            for s in range(7):
                if t + k - s <= 0:
                    continue
                low, high = theory.chi_bounds(t, k, s)
                value = theory.chi(t, k, s)[s]
                which = "k < s"
                if k >= s:
                    which = "k >= s"
                wrong[which] += not low <= value * _SLACK <= high * _SLACK**2
    numbers = {f"violations, {name}": count for name, count in wrong.items()}
    return Evidence(sum(wrong.values()) == 0, wrong["k >= s"] == 0, numbers)


@claim(
    "kerg2020/lemma12",
    place="Lemma 12",
    printed="chi differs from its lower bound by Theta(1/T), for every s",
    corrected="by 0 at s = 0, O(T^-2) at s = 1, Theta(1/T) at s = 2, and (ln T)^(s-2) / T after",
    measures="T times the remainder for s = 0 .. 4 at t = 2 and two T a factor of 16 apart",
    tolerance="s = 1 must fall by at least 8, s = 2 stay within 5 %, s = 3, 4 grow by at least 20 %",
)
def remainder_of_chi(quick: bool) -> Evidence:
    ends = amount(quick, (500, 8000), (5000, 80000))
    left = {}
    for k in ends:
        exact = theory.chi(2, k, 4)
        left[k] = [(2 + k) * float(exact[s] - theory.chi_bounds(2, k, s)[0]) for s in range(5)]
    near = left[ends[0]]
    far = left[ends[1]]
    numbers = {f"T x remainder, s = {s}": far[s] for s in range(5)} | {"s = 3, at the lesser T": near[3]}
    theta = [0.9 * near[s] < far[s] < 1.1 * near[s] and far[s] > 1e-6 for s in range(5)]
    shape = abs(far[0]) < 1e-9 and far[1] < near[1] / 8 and abs(far[2] / near[2] - 1) < 0.05
    return Evidence(all(theta), shape and far[3] > 1.2 * near[3] and far[4] > 1.2 * near[4], numbers)


@claim(
    "kerg2020/remark15",
    place="Remark 15, Eq. 216",
    printed="the difference between Lemma 10's bounds converges to zero as T grows",
    corrected="it tends to 2/t at s = 2 and grows with ln T from s = 3 on",
    measures="difference of the bounds at t = 2, s = 2 and 3, for two T",
    tolerance="zero would be below 0.01",
    expected="fails as printed",
)
def bounds_do_not_meet(quick: bool) -> Evidence:
    ends = amount(quick, (200, 3000), (1000, 30000))
    gaps = {}
    for s in (2, 3):
        for k in ends:
            low, high = theory.theta_bounds(2, k, s)
            gaps[f"s = {s}, k = {k}"] = high - low
    return Evidence(all(gaps[f"s = {s}, k = {ends[1]}"] < 0.01 for s in (2, 3)), numbers=gaps)


@_exact_claim(
    "kerg2020/eq121",
    place="Remark 8, Eq. 121",
    printed="with uniform attention and a linear cell, ds_{t+k}/dh_t = sum_s V^s chi_{0:k}(s)",
    measures="relative difference from autograd through the real layer with v_a = 0, and from p(lambda) in linear time",
    assumptions="v_a = 0 makes attention exactly uniform and X = Y = 0, without the remark's approximation",
)
def uniform_gradient_on_a_real_layer(quick: bool) -> Evidence:
    eigenvalues = [0.6, -0.8, 0.3]
    t = 3
    k = 12
    layer = nn.MemRNN(1, 3, nonlinearity="identity", combine="sum", dtype=torch.float64)
    rotation = torch.linalg.qr(torch.randn(3, 3).double())[0]
    with torch.no_grad():
        layer.get_parameter("weight_hh_l0").copy_(
            rotation @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ rotation.T
        )
        layer.get_parameter("weight_score_l0").zero_()
    offset = torch.zeros(t + k, 1, 3, dtype=torch.float64, requires_grad=True)
    last = run_scan(layer, torch.randn(t + k, 1, 1).double(), offset)[-1, 0]
    exact = torch.stack([torch.autograd.grad(value, offset, retain_graph=True)[0][t - 1, 0] for value in last])
    weights = theory.chi(t, k, k)
    powers = [torch.linalg.matrix_power(layer.get_parameter("weight_hh_l0").detach(), s) for s in range(k + 1)]
    series = sum((float(weights[s]) * powers[s] for s in range(k + 1)), torch.zeros_like(rotation))
    p = torch.tensor([theory.uniform_transfer(value, t, k)[-1].real for value in eigenvalues], dtype=torch.float64)
    errors = [relative_gap(form, exact) for form in (series, rotation @ torch.diag(p) @ rotation.T)]
    return Evidence(max(errors) <= ROUNDING, numbers={"error of the series": errors[0], "error of p": errors[1]})


EIGENVALUES = (0.5, 0.7, 0.9, -0.5, -0.9, 0.2 + 0.6j)


def measured_exponent(eigenvalue: complex, end: int) -> float:
    """Slope of ln |p(lambda)| against ln T over the last factor of four."""
    size = np.abs(theory.uniform_transfer(eigenvalue, 1, end))
    return float(np.log(size[-1] / size[end // 4]) / np.log((end + 1) / (end // 4 + 1)))


@claim(
    "kerg2020/proposition4",
    place="Proposition 4, Eq. 248",
    printed="each eigenvalue's part behaves as c / T + c' T^(lambda - 1): exponent max(-1, Re lambda - 1)",
    corrected=(
        "as T^(lambda/(1-lambda) - 1), with no separate 1/T: exponent Re(lambda/(1-lambda)) - 1, which is positive, a "
        "growing gradient, for real lambda > 1/2; the inner sum of Eq. 260 depends on q"
    ),
    measures="slope of ln |p(lambda)| at T = 10^6 (4 x 10^4 when quick) for six eigenvalues",
    tolerance="0.02, or 2 % of an exponent above one: what is left of the next power of T",
)
def exponent_of_uniform_attention(quick: bool) -> Evidence:
    end = amount(quick, 40_000, 1_000_000)
    found = {value: measured_exponent(value, end) for value in EIGENVALUES}

    def near(value: complex, exponent: float) -> bool:
        return abs(found[value] - exponent) < 0.02 * max(1.0, abs(exponent))

    printed = all(near(value, theory.printed_exponent(value)) for value in EIGENVALUES)
    corrected = all(near(value, theory.growth_exponent(value)) for value in EIGENVALUES)
    return Evidence(printed, corrected, {f"exponent, {value:g}": slope for value, slope in found.items()})


@claim(
    "kerg2020/theorem1",
    place="Theorem 1",
    printed="for normal V with eigenvalues of modulus below 1 the norm of ds_T/dh_t is Omega(1/T)",
    corrected="Omega(1/T) if some eigenvalue has |lambda - 1/2| <= 1/2; V = -I/2 falls as T^(-4/3)",
    measures="exponent of -1/2, and least exponent over 12 eigenvalues in that disc, greatest over 12 outside it",
    tolerance="0.03: what is left of the next power of T",
    assumptions="as a bound on grad L: grad_{s_T} L not orthogonal to that eigenvector",
)
def lower_bound_of_uniform_attention(quick: bool) -> Evidence:
    end = amount(quick, 20_000, 200_000)
    angles = np.arange(12) * 2 * np.pi / 12 + 0.1
    inside = [0.5 + 0.45 * np.exp(1j * angle) for angle in angles]
    outside = [v for v in (0.5 + 0.55 * np.exp(1j * angle) for angle in angles) if abs(v) < 0.98]
    half = measured_exponent(-0.5, end)
    least = min(measured_exponent(complex(v), end) for v in inside)
    greatest = max(measured_exponent(complex(v), end) for v in outside)
    numbers = {"exponent of -1/2": half, "least in the disc": least, "greatest outside": greatest}
    return Evidence(half >= -1.03, least >= -1.03 and greatest < -1, numbers)


@claim(
    "kerg2020/remark17",
    place="Remark 17, Eq. 268",
    printed="normality is not needed: the Frobenius norm is at least the root of the sum of |eigenvalue|^2",
    measures="least ratio over random matrices V, and of p(V) against max |p(lambda)|",
    tolerance="none: an inequality, with one part in 10^9 for rounding",
)
def frobenius_norm_bounds_eigenvalues(quick: bool) -> Evidence:
    least = math.inf
    for _ in range(amount(quick, 20, 200)):
        v = torch.randn(4, 4).double() / 4
        weights = theory.chi(2, 10, 10)
        polynomial = sum(float(weights[s]) * torch.linalg.matrix_power(v, s) for s in range(11))
        for matrix in (v, polynomial):
            eigenvalues = torch.linalg.eigvals(matrix).abs()
            least = min(least, float(torch.linalg.matrix_norm(matrix) / eigenvalues.norm()))
    return Evidence(least >= 1 / _SLACK, numbers={"norm / root of the sum, least": least})
