"""Shen 2019, section 4.1 and Appendix A: mutual information in linear networks with Gaussian output."""

from __future__ import annotations

import numpy as np
import torch

from remanence import theory
from remanence.claims._framework import amount, claim
from remanence.claims._types import Evidence

_ROUNDING = 1e-9
_EXACTLY = f"{_ROUNDING:g}: two float64 computations of the same numbers"
_STEPS = 20


def random_model(radius: float = 0.8, m: int = 4, d: int = 2) -> tuple[theory.LinearGaussianRNN, np.ndarray]:
    """A closed loop of a given spectral radius, and a generic covariance to start from."""
    loop = torch.randn(m + d, m + d).double().numpy()
    root = torch.randn(m + d, m + d).double().numpy()
    loop[m:, m:] = 0
    loop *= radius / np.abs(np.linalg.eigvals(loop)).max()
    return theory.LinearGaussianRNN(loop[:m, m:], loop[:m, :m], loop[m:, :m]), root @ root.T


def _slope(model: theory.LinearGaussianRNN, start: np.ndarray) -> float:
    first, last = 60, 160
    logs = np.log(model.mutual_information(last, start)[first:])
    return float(np.polyfit(np.arange(first, last), logs, 1)[0])


@claim(
    "shen2019/decay",
    place="section 4.1 and Appendix A",
    printed="in a linear network with Gaussian output mutual information falls exponentially",
    measures="slope of the exact ln I over steps 60 to 160, against twice the log of the closed loop's spectral radius",
    tolerance="0.1 of the rate: complex pairs of eigenvalues make it oscillate about the line",
    assumptions="the closed loop [[U_h, W_h], [U_o, 0]] contracts; a generic start",
)
def information_falls_exponentially(quick: bool) -> Evidence:
    worst = 0.0
    for radius in (0.7, 0.9):
        for _ in range(amount(quick, 3, 20)):
            model, start = random_model(radius)
            worst = max(worst, abs(_slope(model, start) / model.decay_rate - 1))
    return Evidence(worst < 0.1, numbers={"slope against 2 ln radius, greatest relative gap": worst})


@claim(
    "shen2019/poles",
    place="Appendix A, asymptotic analysis",
    printed="the exponent is set by the pole nearest the origin, by the weights alone and not by the start",
    measures="the nearest pole against 1 / spectral radius of the closed loop; slopes of ln I from two random starts",
    tolerance="rounding for the pole, 0.1 of the rate for the slopes",
    assumptions="generic starts",
)
def weights_alone_set_the_exponent(quick: bool) -> Evidence:
    gaps = []
    slopes = []
    for _ in range(amount(quick, 3, 20)):
        model, start = random_model()
        other = random_model()[1]
        gaps.append(abs(abs(model.poles[0]) * model.spectral_radius - 1))
        slopes.append(abs(_slope(model, start) - _slope(model, other)) / abs(model.decay_rate))
    numbers = {"pole, relative gap": float(max(gaps)), "slopes from two starts, relative gap": max(slopes)}
    return Evidence(max(gaps) < _ROUNDING and max(slopes) < 0.1, numbers=numbers)


@claim(
    "shen2019/variance",
    place="Appendix A, Eq. 37",
    printed="the covariance of x_t with itself never degenerates: no eigenvalue is below sigma^2",
    measures="least eigenvalue / sigma^2 over steps and random models",
    tolerance="none: an inequality, with one part in 10^9 for rounding",
)
def variances_do_not_degenerate(quick: bool) -> Evidence:
    least = np.inf
    for _ in range(amount(quick, 5, 50)):
        model, start = random_model()
        least = min(least, np.linalg.eigvalsh(model.variances(_STEPS, start)[1:]).min() / model.noise**2)
    return Evidence(bool(least >= 1 - _ROUNDING), numbers={"least eigenvalue / sigma^2": float(least)})


def _gap(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(found - exact).max() / np.abs(exact).max())


@claim(
    "shen2019/recursion",
    place="Eqs 5, 6, 12, 15 and 21",
    printed="S_t = U_o U_h^t S_hx + sum_{i<=t-2} U_o U_h^(t-1-i) W_h S_i",
    corrected="one U_h less in each term: S_t = U_o U_h^(t-1) S_hx + sum_{i<=t-2} U_o U_h^(t-2-i) W_h S_i",
    measures="relative gap from the powers of the closed loop of Eqs 3 and 4, which needs no sum",
    tolerance=_EXACTLY,
)
def recursion_has_a_factor_too_many(quick: bool) -> Evidence:
    model, start = random_model()
    exact = model.covariances(_STEPS, start)[1:]
    gaps = [_gap(model.recursion(_STEPS, start, printed=printed)[1:], exact) for printed in (True, False)]
    numbers = {"gap as printed": gaps[0], "gap corrected": gaps[1]}
    return Evidence(gaps[0] < _ROUNDING, gaps[1] < _ROUNDING, numbers)


@claim(
    "shen2019/generating-function",
    place="Eqs 7, 31 and 35",
    printed="S(z) = [I - U_o (I - U_h z)^-1 U_h W_h z^2]^-1 [U_o (I - U_h z)^-1 U_h S_hx z + S_00]",
    corrected="without the factor U_h in both brackets",
    measures="relative gap at random z from the sum of S_t z^t over powers of the closed loop",
    tolerance=_EXACTLY,
)
def generating_function_has_a_factor_too_many(quick: bool) -> Evidence:
    model, start = random_model()
    z = 0.5 * np.exp(1j)
    exact = np.tensordot(z ** np.arange(201), model.covariances(200, start), axes=1)
    gaps = [_gap(model.generating_function(z, start, printed=printed), exact) for printed in (True, False)]
    numbers = {"gap as printed": gaps[0], "gap corrected": gaps[1]}
    return Evidence(gaps[0] < _ROUNDING, gaps[1] < _ROUNDING, numbers)
