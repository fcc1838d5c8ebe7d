"""Every claim gives the expected verdict, and another one when what it checks is broken."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

from remanence import claims, nn
from remanence.claims._framework import measure
from remanence.theory import Cost

CLAIMS = {claim.id: claim for claim in claims.list_claims()}


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_the_measured_verdict_is_the_expected_one(name):
    result = measure(CLAIMS[name], quick=True)
    assert result.agrees, f"{result.verdict}, expected {result.claim.expected}: {dict(result.numbers)}"


def times(factor):
    """The original's result, multiplied."""
    return lambda original: lambda *args, **options: original(*args, **options) * factor


def always(value):
    return lambda original: lambda *args, **options: value


def with_options(**forced):
    return lambda original: lambda *args, **options: original(*args, **{**options, **forced})


def with_best_law(law):
    return lambda original: lambda *args: [{**curve, "best": law} for curve in original(*args)]


def power_law_as_printed(original):
    def transfer(eigenvalue, t, k):
        steps = torch.arange(1, k + 2).double()
        return (1 / steps + steps ** (complex(eigenvalue).real - 1)).numpy()

    return transfer


def even_trace(original):
    def trace(layer, x):
        made = original(layer, x)[0]
        return (made._replace(weights=torch.full_like(made.weights, 0.05)),)

    return trace


def zero_weights(layer):
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()


def as_long_as_the_run(original):
    return lambda layer, length: length


SCALED = times(1.01)
PATHS, THEORY = "remanence.probes._paths", "remanence.theory"
HERE = "remanence.claims."
LINEAR = "remanence.theory:LinearGaussianRNN"

# Claim -> module, attribute, what to put in its place.
MUTATIONS = {
    "000.lemma01": (PATHS, "partial_by_state", SCALED),
    "000.lemma02": (PATHS, "state_jacobian", SCALED),
    "000.lemma03": (HERE + "_paths_000", "_chain_sum", SCALED),
    "000.lemma04": (HERE + "_paths_000", "_chain_sum", SCALED),
    "000.lemma05": (PATHS, "partial_by_macro", SCALED),
    "000.lemma06": (PATHS, "partial_by_state", SCALED),
    "000.lemma07": (PATHS, "partial_by_macro", SCALED),
    "000.lemma08": ("remanence.ops.cells", "_activate", lambda o: lambda spec, weights, z: z.sin()),
    "000.lemma09": (THEORY, "omega_constants", lambda o: lambda *a, **k: [1.01 * value for value in o(*a, **k)]),
    "000.lemma10": (THEORY, "theta", times(2)),
    "000.lemma11": (THEORY, "chi", times(2)),
    "000.lemma12": (THEORY, "chi", SCALED),
    "000.proposition1": (PATHS, "partial_by_state", SCALED),
    "000.proposition2": (PATHS, "state_jacobian", SCALED),
    "000.proposition3": (THEORY, "omega_polynomial", SCALED),
    "000.proposition4": (THEORY, "uniform_transfer", power_law_as_printed),
    "000.corollary1": (PATHS, "state_jacobian", SCALED),
    "000.theorem1": (THEORY, "uniform_transfer", power_law_as_printed),
    "000.theorem2": (THEORY, "dependency_bound", times(10)),
    "000.theorem2-growth": (THEORY, "sparse_transfer", always(1.0)),
    "000.remark04": (PATHS, "score_by_state", SCALED),
    "000.remark05": (PATHS, "score_by_state", SCALED),
    "000.remark06": (PATHS, "split_paths", SCALED),
    "000.remark12": (THEORY, "omega_constants", lambda o: lambda sums: [0.0, *([sums[1]] * 6)]),
    "000.remark13": (THEORY, "omega_polynomial", lambda o: lambda sums, s: sums[0]),
    "000.remark15": (THEORY, "theta_bounds", always((1.0, 1.0))),
    "000.remark17": ("torch.linalg", "matrix_norm", lambda o: lambda matrix: o(matrix, 2)),
    "000.remark21": (THEORY, "sparse_transfer", always(1.0)),
    "000.eq121": (THEORY, "chi", SCALED),
    "000.eq129": (THEORY, "theta", SCALED),
    "000.eq149": (THEORY, "omega", SCALED),
    "000.section4": (THEORY, "dependency_bound", times(100)),
    "000.algorithm1": (HERE + "_sparse_000", "screening_delay", lambda o: lambda nu, rho: (nu, nu)),
    "000.overflow": ("remanence.nn", "RelRNN", with_options(combine="half")),
    "000.first-scores": ("remanence.nn:RelRNN", "trace", even_trace),
    "000.memory": (HERE + "_sparse_000", "training_bytes", as_long_as_the_run),
    "000.state-memory": ("remanence.nn", "RelLSTM", lambda o: lambda *a, **k: nn.MemLSTM(*a)),
    "001.receivers": (HERE + "_backtracking_001", "_layer", with_options(keep="k")),
    "001.windows": ("remanence.nn:SABRNN", "_cut_masks", always((None, None))),
    "001.query": (HERE + "_backtracking_001", "_change_with_query", always(1.0)),
    "001.zero-gradient": (HERE + "_backtracking_001", "_layer", with_options(score="mlp")),
    "001.constant-read": (HERE + "_backtracking_001", "_layer", with_options(score="mlp")),
    "001.linear-time": (HERE + "_backtracking_001", "_layer", with_options(keep="k")),
    "001.complexity": (HERE + "_backtracking_001", "_layer", with_options(sparse="backward")),
    "001.table3": (HERE + "_backtracking_001", "least_cross_entropy", always(0.1)),
    "002.lemma1": (THEORY, "sufficient_window", always(1)),
    "002.lemma2": (THEORY, "gradient_gap", times(1e-6)),
    "002.figure1-slope": (HERE + "_stability_002", "_slope", always(-0.105)),
    "002.lemma3": (THEORY, "gradient_smoothness", times(1e-3)),
    "002.proposition2": (THEORY, "weight_gap", times(1e-6)),
    "002.theorem1": (HERE + "_stability_002", "_descend", lambda o: lambda i, *a: (i.weight, -50 * i.weight)),
    "002.constant-steps": (HERE + "_stability_002", "runaway_gap", lambda o: lambda k, n, constant: o(k, n, False)),
    "002.stable-rnn": (HERE + "_contraction_002", "worst_ratio", times(2)),
    "002.stable-lstm": (HERE + "_contraction_002", "worst_ratio", times(20)),
    "002.authors-lstm": (HERE + "_contraction_002", "authors_projection", lambda o: zero_weights),
    "003.decay": (LINEAR, "mutual_information", lambda o: lambda self, steps, start: 1 / np.arange(1.0, steps + 1)),
    "003.poles": (LINEAR, "poles", lambda o: property(lambda self: 1.1 * o.fget(self))),
    "003.variance": (LINEAR, "variances", times(0.01)),
    "003.recursion": (LINEAR, "covariances", lambda o: lambda self, n, start: o(self, n, start)[:, ::-1]),
    "003.generating-function": (LINEAR, "generating_function", SCALED),
    "003.eq46": (HERE + "_information_003", "eq46", SCALED),
    "003.eq47": (HERE + "_information_003", "eq46", times(2)),
    "003.eq52": (HERE + "_information_003", "chain_information", SCALED),
    "003.markov": (HERE + "_information_003", "chain_information", lambda o: lambda matrix, symbols, lag: 1 / lag),
    "003.ising": (HERE + "_information_003", "boltzmann", lambda o: lambda n, k: o(n, {**k, 2: 0.1})),
    "003.bias": (HERE + "_information_003", "_mean_bias", always(0.01)),
    "003.figure5": (HERE + "_information_003", "_fitted_exponent", times(1.5)),
    "003.parameters": (HERE + "_information_003", "_parameters", always((1222, 1222))),
    "003.generation": (HERE + "_models_003", "_operations", always(1)),
    "003.rnn": (HERE + "_models_003", "_of", with_best_law("power")),
    "003.lstm": (HERE + "_models_003", "_mean_xi", always(1.0)),
    "003.lstm-law": (HERE + "_models_003", "refitted", always(None)),
    "003.depth": (HERE + "_models_003", "_mean_xi", always(1.0)),
    "003.transformer": (HERE + "_models_003", "_of", with_best_law("exponential")),
    "003.context": (HERE + "_models_003", "refitted", always(None)),
    "003.held-out": (HERE + "_models_003", "_excess", times(0)),
    "003.held-out-more": (HERE + "_models_003", "_ratio", always(2.0)),
    "004.1.1": (HERE + "_optimisation_004", "_gap", always(1.0)),
    "004.1.2": (HERE + "_optimisation_004", "_state_jacobian", times(4)),
    "004.1.3": (HERE + "_optimisation_004", "_state_jacobian", times(4)),
    "004.2.1": (HERE + "_optimisation_004", "momentum", SCALED),
    "004.2.2": (HERE + "_optimisation_004", "running_average", SCALED),
    "004.2.3": (HERE + "_optimisation_004", "running_average", SCALED),
    "004.3.1": (THEORY, "attention_cost", always(Cost(1, 1))),
    "004.3.1s": ("remanence.probes._meter", "peak_bytes", always(10**9)),
    "004.3.2a": ("remanence.nn", "separable_attention", SCALED),
    "004.3.2b": ("remanence.nn", "separable_attention", lambda o: lambda q, k, v, causal=False: torch.rand_like(v)),
    "004.3.2c": (THEORY, "attention_cost", always(Cost(1, 1))),
    "004.3.3a": ("torch.nn.functional", "scaled_dot_product_attention", SCALED),
    "004.3.3b": (HERE + "_attention_004", "_multiplications", always(1)),
    "004.3.4": ("remanence.nn", "positive_random_features", times(1.1)),
    "004.3.4n": (HERE + "_attention_004", "_SIGMAS", lambda o: 1e9),
    "004.3.5": (THEORY, "random_feature_variance", times(2)),
    "004.4.1": (HERE + "_optimisation_004", "_train", lambda o: lambda make, penalty, decay=0.0: o(make, penalty)),
    "004.4.2": (HERE + "_optimisation_004", "_gap", always(0.0)),
    "004.4.3a": (HERE + "_optimisation_004", "_shrink_in_adam", always((1.0, 1.0))),
    "004.4.3b": (HERE + "_optimisation_004", "_shrink_in_adam", always((0.5, 0.9))),
    "004.4.3c": ("torch.optim", "Adam", lambda o: lambda weights, lr, eps: torch.optim.SGD(weights, lr=lr)),
    "004.4.4": (HERE + "_optimisation_004", "l2_optimum", always(torch.zeros(1000))),
}


def test_every_claim_is_mutated():
    assert set(MUTATIONS) == set(CLAIMS)


@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_claim_turns_when_what_it_checks_is_broken(name, monkeypatch):
    place, attribute, mutate = MUTATIONS[name]
    module, _, inner = place.partition(":")
    owner = importlib.import_module(module)
    owner = getattr(owner, inner) if inner else owner
    monkeypatch.setattr(owner, attribute, mutate(getattr(owner, attribute)))
    assert not measure(CLAIMS[name], quick=True).agrees
