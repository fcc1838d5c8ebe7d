"""Shen 2019, Appendices B to E and G: sequences of known mutual information, and how well it is estimated."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import torch

from remanence import probes, tasks
from remanence.claims._framework import amount, claim
from remanence.claims._types import Evidence
from remanence.probes import Estimator, information_from_counts

_ROUNDING = 1e-9
_EXACTLY = f"{_ROUNDING:g}: two float64 computations of the same numbers"


def eq46(theta: np.ndarray) -> np.ndarray:
    """The paper's mutual information of the signs of two Gaussian numbers with covariance cos(theta)."""
    parts = (np.pi - theta) * np.log(np.pi - theta) + theta * np.log(theta)
    return (np.pi * np.log(2 / np.pi) + parts) / np.pi


def _integrated(covariance: float) -> float:
    """The same by integrating the density: P(both positive) = integral of phi(x) Phi(c x / sqrt(1 - c^2)), x > 0."""
    x = torch.linspace(0, 12, 200_001, dtype=torch.float64)
    inner = torch.special.ndtr(covariance * x / math.sqrt(1 - covariance**2))
    equal = 2 * float(torch.trapezoid(torch.exp(-(x**2) / 2) * inner, x)) / math.sqrt(2 * math.pi)
    return math.log(2) + equal * math.log(equal) + (1 - equal) * math.log(1 - equal)


@claim(
    "shen2019/eq46",
    place="Eqs 44 to 46",
    printed="I(theta) = (pi ln(2/pi) + (pi - theta) ln(pi - theta) + theta ln theta) / pi",
    measures=(
        "gap from a numerical integral of the density over covariances 0.05 to 0.95, and from the information of the "
        "binary power law task, which inverts it"
    ),
    tolerance=f"{_ROUNDING:g}: the trapezoid rule's error",
)
def signs_of_gaussian_numbers(quick: bool) -> Evidence:
    covariances = np.linspace(0.05, 0.95, amount(quick, 5, 19))
    integrated = np.array([_integrated(c) for c in covariances])
    gap = float(np.abs(eq46(np.arccos(covariances)) - integrated).max())
    lags = torch.arange(1, 100)
    inverted = eq46(np.arccos(tasks.BinaryPowerLaw().covariance(lags).numpy()))
    back = float(np.abs(inverted - 0.1 * lags.numpy() ** -0.4).max())
    return Evidence(max(gap, back) < _ROUNDING, numbers={"gap from the integral": gap, "gap after inverting": back})


@claim(
    "shen2019/eq47",
    place="Eq. 47",
    printed="covariances sqrt(A / 2 pi) d^(-gamma/2) give I(d) = A d^-gamma at large d",
    corrected="pi sqrt(A / 2) d^(-gamma/2)",
    measures="I(d) / (A d^-gamma) at d = 10^6, A = 0.1, gamma = 0.4",
    tolerance="0.01: the next term of the expansion is of the order of the covariance squared, 0.002",
)
def constant_of_the_covariance(quick: bool) -> Evidence:
    amplitude = 0.1
    exponent = 0.4
    distance = 1e6
    constants = {"printed": math.sqrt(amplitude / (2 * math.pi)), "corrected": math.pi * math.sqrt(amplitude / 2)}
    ratios = {}
    for name, constant in constants.items():
        covariance = np.array(constant * distance ** (-exponent / 2))
        ratios[name] = float(eq46(np.arccos(covariance))) / (amplitude * distance**-exponent)
    numbers = {f"ratio, {name}": ratio for name, ratio in ratios.items()}
    return Evidence(abs(ratios["printed"] - 1) < 0.01, abs(ratios["corrected"] - 1) < 0.01, numbers)


def chain_information(transition: np.ndarray, symbols: np.ndarray, lag: int) -> float:
    """Exact mutual information of the symbols that the states of a stationary Markov chain show."""
    values, vectors = np.linalg.eig(transition.T)
    law = np.abs(np.real(vectors[:, np.abs(values - 1).argmin()]))
    joint = (law / law.sum())[:, None] * np.linalg.matrix_power(transition, lag)
    shown = np.eye(symbols.max() + 1)[symbols]
    joint = shown.T @ joint @ shown
    product = np.outer(joint.sum(1), joint.sum(0))
    seen = joint > 0
    ratio = joint[seen] / product[seen] - 1
    # Sums of p ln(p / q) lose digits where p is nearly q; (1 + r) ln(1 + r) - r has no cancelling first order.
    return float((product[seen] * ((1 + ratio) * np.log1p(ratio) - ratio)).sum() + product[~seen].sum())


def _pairs_chain(p: float) -> tuple[np.ndarray, np.ndarray]:
    """Appendix C's sequence: states "0 of 01", "1 of 01", "1 of 10", "0 of 10", and what they show."""
    fresh = [p, 0, 1 - p, 0]
    return np.array([[0, 1, 0, 0], fresh, [0, 0, 0, 1], fresh]), np.array([0, 1, 1, 0])


@claim(
    "shen2019/eq52",
    place="Eq. 52 and figure 4",
    printed="random pairs 01 and 10 keep I = 4 p (p-1) artanh((1-2p)^2) + ln(2 + 4 p (p-1)) at all lags above 1",
    measures="gap from the exact information of the sequence's Markov chain at lags 2, 3, 10 and 1001",
    tolerance=_EXACTLY,
)
def repetitive_sequences_never_forget(quick: bool) -> Evidence:
    worst = 0.0
    for p in (0.05, 0.3, 0.9):
        printed = 4 * p * (p - 1) * math.atanh((1 - 2 * p) ** 2) + math.log(2 + 4 * p * (p - 1))
        chain = _pairs_chain(p)
        worst = max(worst, *(abs(chain_information(*chain, lag) - printed) for lag in (2, 3, 10, 1001)))
    return Evidence(worst < _ROUNDING, numbers={"gap, greatest": worst})


@claim(
    "shen2019/markov",
    place="section 1",
    printed="in n-gram and hidden Markov models mutual information falls exponentially",
    corrected="if the chain is irreducible and aperiodic, at the rate 2 ln |second eigenvalue|; else it may not fall",
    measures="slope of ln I in random hidden chains and in a trigram model over lags 5 to 20, against the rate; "
    "I(1000) in Appendix C's chain",
    tolerance="0.02 of the rate: smaller eigenvalues still count at short lags",
)
def hidden_chains_fall_exponentially(quick: bool) -> Evidence:
    hidden = max(_slope_gap(_reversible_chain(), np.array([0, 0, 1])) for _ in range(amount(quick, 3, 20)))
    trigram = _slope_gap(*_trigram_chain(np.array([[0.1, 0.6], [0.4, 0.9]])))
    kept = chain_information(*_pairs_chain(0.9), 1000)
    slope = "slope against the rate, greatest relative gap"
    numbers = {f"{slope}, hidden": hidden, f"{slope}, trigrams": trigram, "I(1000), periodic chain": kept}
    aperiodic = max(hidden, trigram) < 0.02
    return Evidence(aperiodic and kept < _ROUNDING, aperiodic, numbers)


def _slope_gap(matrix: np.ndarray, symbols: np.ndarray) -> float:
    rate = 2 * math.log(np.sort(np.abs(np.linalg.eigvals(matrix)))[-2])
    logs = [math.log(chain_information(matrix, symbols, lag)) for lag in (5, 20)]
    return abs((logs[1] - logs[0]) / 15 / rate - 1)


def _trigram_chain(ones: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States are the last two bits; ``ones[a, b]`` is the chance of a one after a and b. The later bit is shown."""
    matrix = np.zeros((4, 4))
    for (before, last), chance in np.ndenumerate(ones):
        matrix[2 * before + last, 2 * last : 2 * last + 2] = 1 - chance, chance
    return matrix, np.array([0, 1, 0, 1])


def _reversible_chain() -> np.ndarray:
    """Three states with a second eigenvalue of 0.9 and a third of 0.3: slow enough to be seen, far enough apart."""
    mixed = torch.linalg.qr(torch.cat([torch.ones(3, 1), torch.randn(3, 2)], dim=1).double())[0].numpy()
    matrix = mixed @ np.diag([1.0, 0.9, 0.3]) @ mixed.T
    if matrix.min() < 0:
        return _reversible_chain()
    return matrix


def boltzmann(spins: int, couplings: dict[int, float]) -> np.ndarray:
    """Probabilities of all states of an open Ising chain, exp(-sum K(j - i) s_i s_j) / Z: ``(2,) * spins``."""
    states = np.array(list(itertools.product((-1, 1), repeat=spins)))
    energy = sum(k * (states[:, d:] * states[:, :-d]).sum(1) for d, k in couplings.items())
    weights = np.exp(-energy)
    return (weights / weights.sum()).reshape((2,) * spins)


@claim(
    "shen2019/ising",
    place="Appendix G, Eq. 62",
    printed="with neighbours alone coupled, p(s_t | past) = exp(-beta J s_{t-1} s_t) / 2 cosh(beta J s_{t-1})",
    measures="greatest gap over all histories of a chain of 8 spins, from the list of all its states",
    tolerance=_EXACTLY,
)
def neighbours_make_a_markov_chain(quick: bool) -> Evidence:
    spins = 8
    worst = 0.0
    for coupling in (-1.0, 0.4):
        chances = boltzmann(spins, {1: coupling})
        printed = np.exp(-coupling * np.outer([-1, 1], [-1, 1])) / (2 * np.cosh(coupling))
        for t in range(1, spins):
            joint = chances.sum(axis=tuple(range(t + 1, spins)))
            worst = max(worst, float(np.abs(joint / joint.sum(-1, keepdims=True) - printed).max()))
    return Evidence(worst < _ROUNDING, numbers={"gap, greatest": worst})


def _mean_bias(estimator: Estimator, alphabet: int, pairs: int, trials: int) -> float:
    """Mean estimate for independent even symbols, whose information is zero."""
    generator = np.random.default_rng(0)
    drawn = generator.multinomial(pairs, np.full(alphabet**2, alphabet**-2.0), size=trials)
    first, second = np.divmod(np.arange(alphabet**2), alphabet)
    return float(information_from_counts(drawn, first, second, estimator).mean())


@claim(
    "shen2019/bias",
    place="Appendix D.1, Eqs 53 and 54",
    printed="the digamma estimator is less biased than putting frequencies for probabilities",
    corrected="from three symbols on; for two both are too high by 1 / 2N",
    measures="mean estimate for independent symbols: 2 symbols at N = 500 and 27 at N = 5,000, against plug-in",
    tolerance="0.05 of plug-in's for 'equal', a hundredth for 'far less'",
)
def digamma_is_less_biased(quick: bool) -> Evidence:
    trials = amount(quick, 1, 5)
    two = {name: _mean_bias(name, 2, 500, 20_000 * trials) for name in ("plug-in", "grassberger")}
    many = {name: _mean_bias(name, 27, 5000, 300 * trials) for name in ("plug-in", "grassberger")}
    ratios = [abs(found["grassberger"] / found["plug-in"]) for found in (two, many)]
    numbers = {f"bias, 2 symbols, {name}": value for name, value in two.items()}
    numbers |= {f"bias, 27 symbols, {name}": value for name, value in many.items()}
    return Evidence(max(ratios) < 0.95, abs(ratios[0] - 1) < 0.05 and ratios[1] < 0.01, numbers)


def _fitted_exponent(exponent: float, sequences: int) -> float:
    task = tasks.BinaryPowerLaw(length=512, exponent=exponent)
    bits = task.draw(sequences, task.stream("train", seed=0)).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        law = probes.mutual_information(bits, probes.logarithmic_lags(250, 25)).fit(threshold=1e-3)
    if law is None or law.exponent is None:
        return math.nan
    return law.exponent


@claim(
    "shen2019/figure5",
    place="Appendix D.1 and figure 5",
    printed="the estimator finds the exponent gamma of binary sequences with I = 0.1 d^-gamma, gamma from 0.1 to 1",
    measures="greatest difference of fitted and true gamma",
    tolerance="0.05: from fewer and shorter sequences than the paper's 10,000 of 1,000 bits",
)
def estimator_finds_the_exponent(quick: bool) -> Evidence:
    exponents = amount(quick, (0.2, 0.4, 0.8), tuple(np.arange(1, 11) / 10))
    found = {gamma: _fitted_exponent(gamma, amount(quick, 1000, 4000)) for gamma in exponents}
    worst = max(abs(value - gamma) for gamma, value in found.items())
    return Evidence(worst < 0.05, numbers={f"gamma {gamma:g}": value for gamma, value in found.items()})


def _parameters(core: torch.nn.RNNBase) -> tuple[int, int]:
    """With embedding and readout of two symbols: torch's count, and with one bias for each gate instead of two."""
    model = torch.nn.ModuleList([torch.nn.Embedding(2, 2), core, torch.nn.Linear(core.hidden_size, 2)])
    count = sum(parameter.numel() for parameter in model.parameters())
    return count, count - core.get_parameter("bias_hh_l0").numel()


@claim(
    "shen2019/parameters",
    place="Appendix E.1",
    printed="an RNN of width 32 has 1190 parameters, an LSTM of width 4 only 126",
    measures="parameters with embedding and readout; torch's layers, less their second bias",
    tolerance="none: counts",
    assumptions="one bias for each gate, as in Keras; torch's layers have two and count 1222 and 142",
)
def parameter_counts(quick: bool) -> Evidence:
    rnn = _parameters(torch.nn.RNN(2, 32))
    lstm = _parameters(torch.nn.LSTM(2, 4))
    numbers = {"RNN": rnn[1], "LSTM": lstm[1], "RNN in torch": rnn[0], "LSTM in torch": lstm[0]}
    return Evidence((rnn[1], lstm[1]) == (1190, 126), numbers=numbers)
