"""Every claim gives the expected verdict, and another one when what it checks is broken."""

from __future__ import annotations

import dataclasses
import importlib

import numpy as np
import pytest
import torch

from remanence import claims, nn
from remanence.claims._framework import measure
from remanence.claims.notes._attention import softmax_attention
from remanence.tasks import _power_law
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


def proving_half(original):
    """A certificate that promises twice the contraction that it has proved."""

    def certificate(layer):
        found = original(layer)
        parts = tuple(dataclasses.replace(part, factor=part.factor / 2) for part in found.layers)
        return dataclasses.replace(found, layers=parts)

    return certificate


def screening_as_printed(original):
    """A layer whose states are screened ``relevant`` steps after their entry."""
    return lambda *sizes, recent, relevant: original(*sizes, recent=relevant, relevant=relevant)


def reading_with_the_query(original):
    """A layer whose tanh score depends on the query."""
    return lambda *sizes, score, **options: original(*sizes, score="mlp" if score == "tanh" else score, **options)


def not_a_rotation(original):
    return lambda matrix: (matrix / torch.linalg.matrix_norm(matrix, 2), None)


def climbing_when_truncated(original):
    """Gradients of the truncated model that point uphill and are far too long."""

    def gradient(instance, weight, window=None):
        return original(instance, weight, window) * (1 if window is None else -50)

    return gradient


def keeping_every_matrix(original):
    """Attention whose matrices stay alive from head to head."""
    kept = []

    def attention(query, key, value):
        kept.append((query @ key.mT).softmax(dim=-1))
        return kept[-1] @ value

    return attention


def forming_the_matrix(original):
    return lambda query, key, value, projection: softmax_attention(query, key, value)


def thresholding(original):
    """Gradient descent that sets small weights to zero."""

    class Thresholding(original):
        def step(self, closure=None):
            super().step(closure)
            for weights in self.param_groups[0]["params"]:
                weights.data[weights.abs() < 0.1] = 0.0

    return Thresholding


def exact_on_average(original):
    """An estimate of attention without bias: the exact one and noise."""

    def attention(query, key, value, projection, scale):
        return softmax_attention(query, key, value) + torch.randn(len(projection), 1, 1)

    return attention


def periodic_chain(original):
    return lambda: np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])


SCALED = times(1.01)
PATHS, THEORY = "remanence.probes.closed_forms", "remanence.theory"
NN, HERE = "remanence.nn", "remanence.claims."
LINEAR = "remanence.theory:LinearGaussianRNN"

# Claim -> module, attribute, what to put in its place.

MUTATIONS = {
    "kerg2020/lemma01": (PATHS, "partial_by_state", SCALED),
    "kerg2020/lemma02": (PATHS, "state_jacobian", SCALED),
    "kerg2020/lemma03": (THEORY, "chain_sum", SCALED),
    "kerg2020/lemma04": (THEORY, "chain_sum", with_options(printed=True)),
    "kerg2020/lemma05": (PATHS, "partial_by_macro", SCALED),
    "kerg2020/lemma06": (PATHS, "partial_by_state", SCALED),
    "kerg2020/lemma07": (PATHS, "partial_by_macro", SCALED),
    "kerg2020/lemma08": ("remanence.ops._cells", "activate", lambda o: lambda kind, weights, z: z.sin()),
    "kerg2020/lemma09": (THEORY, "omega_constants", lambda o: lambda *a, **k: [1.01 * value for value in o(*a, **k)]),
    "kerg2020/lemma10": (THEORY, "theta", times(2)),
    "kerg2020/lemma11": (THEORY, "chi", times(2)),
    "kerg2020/lemma12": (THEORY, "chi", SCALED),
    "kerg2020/proposition1": (PATHS, "partial_by_state", SCALED),
    "kerg2020/proposition2": (PATHS, "state_jacobian", SCALED),
    "kerg2020/proposition3": (THEORY, "omega_polynomial", SCALED),
    "kerg2020/proposition4": (THEORY, "uniform_transfer", power_law_as_printed),
    "kerg2020/corollary1": (PATHS, "state_jacobian", SCALED),
    "kerg2020/theorem1": (THEORY, "uniform_transfer", power_law_as_printed),
    "kerg2020/theorem2": (THEORY, "dependency_bound", times(10)),
    "kerg2020/theorem2-growth": (THEORY, "sparse_transfer", always(1.0)),
    "kerg2020/remark04": (PATHS, "score_by_state", SCALED),
    "kerg2020/remark05": (PATHS, "score_by_state", SCALED),
    "kerg2020/remark06": (PATHS, "split_paths", SCALED),
    "kerg2020/remark12": (THEORY, "omega_constants", lambda o: lambda sums: [0.0, *([sums[1]] * 6)]),
    "kerg2020/remark13": (THEORY, "omega_polynomial", lambda o: lambda sums, s: sums[0]),
    "kerg2020/remark15": (THEORY, "theta_bounds", always((1.0, 1.0))),
    "kerg2020/remark17": ("torch.linalg", "matrix_norm", lambda o: lambda matrix: o(matrix, 2)),
    "kerg2020/remark21": (THEORY, "sparse_transfer", always(1.0)),
    "kerg2020/eq42": (PATHS, "factor", SCALED),
    "kerg2020/eq121": (THEORY, "chi", SCALED),
    "kerg2020/eq129": (THEORY, "theta", SCALED),
    "kerg2020/eq149": (THEORY, "omega", SCALED),
    "kerg2020/section4": (THEORY, "dependency_bound", times(100)),
    "kerg2020/algorithm1": (NN, "RelRNN", screening_as_printed),
    "kerg2020/overflow": ("remanence.nn", "RelRNN", with_options(combine="half")),
    "kerg2020/first-scores": ("remanence.nn:RelRNN", "trace", even_trace),
    "kerg2020/memory": (NN, "RelLSTM", lambda o: lambda *a, recent, relevant, **k: nn.MemLSTM(*a, **k)),
    "kerg2020/state-memory": ("remanence.nn", "RelLSTM", lambda o: lambda *a, **k: nn.MemLSTM(*a)),
    "kerg2020/figure10-11": (NN, "RelRNN", lambda o: lambda *a, recent, relevant: o(*a, recent=recent, relevant=5)),
    "ke2017/receivers": (NN, "SABRNN", with_options(keep="k")),
    "ke2017/windows": ("remanence.nn:SABRNN", "cut_masks", always((None, None))),
    "ke2017/query": (NN, "SABRNN", reading_with_the_query),
    "ke2017/zero-gradient": (NN, "SABRNN", with_options(score="mlp")),
    "ke2017/constant-read": (NN, "SABRNN", with_options(score="mlp")),
    "ke2017/linear-time": (NN, "SABRNN", with_options(keep="k")),
    "ke2017/complexity": (NN, "SABRNN", with_options(sparse="backward")),
    "ke2017/table3": (HERE + "ke2017._sparse_backtracking", "TABLE_3", lambda o: (0.9, 0.197)),
    "miller2018/lemma1": (THEORY, "sufficient_window", always(1)),
    "miller2018/lemma2": (THEORY, "gradient_gap", times(1e-6)),
    "miller2018/figure1-slope": ("torch.linalg", "qr", not_a_rotation),
    "miller2018/lemma3": (THEORY, "gradient_smoothness", times(1e-3)),
    "miller2018/proposition2": (THEORY, "weight_gap", times(1e-6)),
    "miller2018/theorem1": (HERE + "miller2018._truncation:Instance", "gradient", climbing_when_truncated),
    "miller2018/constant-steps": (THEORY, "weight_gap", times(1e9)),
    "miller2018/stable-rnn": ("remanence.nn:StableRNN", "certificate", proving_half),
    "miller2018/stable-lstm": ("remanence.nn:StableLSTM", "certificate", proving_half),
    "miller2018/authors-lstm": (HERE + "miller2018._contraction", "authors_projection", lambda o: zero_weights),
    "shen2019/decay": (
        LINEAR,
        "mutual_information",
        lambda o: lambda self, steps, start: 1 / np.arange(1.0, steps + 1),
    ),
    "shen2019/poles": (LINEAR, "poles", lambda o: property(lambda self: 1.1 * o.fget(self))),
    "shen2019/variance": (LINEAR, "variances", times(0.01)),
    "shen2019/recursion": (LINEAR, "covariances", lambda o: lambda self, n, start: o(self, n, start)[:, ::-1]),
    "shen2019/generating-function": (LINEAR, "generating_function", SCALED),
    "shen2019/eq46": ("remanence.tasks:BinaryPowerLaw", "covariance", SCALED),
    "shen2019/eq47": (HERE + "shen2019._mutual_information", "eq46", times(2)),
    "shen2019/eq52": ("math", "atanh", SCALED),
    "shen2019/markov": (HERE + "shen2019._mutual_information", "_reversible_chain", periodic_chain),
    "shen2019/ising": (HERE + "shen2019._mutual_information", "boltzmann", lambda o: lambda n, k: o(n, {**k, 2: 0.1})),
    "shen2019/bias": (
        HERE + "shen2019._mutual_information",
        "information_from_counts",
        lambda o: lambda *counts: o(*counts[:3], "plug-in"),
    ),
    "shen2019/figure5": ("remanence.tasks:BinaryPowerLaw", "covariance", lambda o: lambda *a: o(*a) ** 1.5),
    "shen2019/parameters": ("torch.nn", "Embedding", lambda o: lambda symbols, size: o(symbols + 1, size)),
    "shen2019/generation": ("remanence.nn:Transformer", "__init__", with_options(context=8)),
    "notes/1.1": (NN, "RNN", with_options(nonlinearity="relu")),
    "notes/1.2": ("torch", "tanh", lambda o: lambda h: o(2 * h)),
    "notes/1.3": (HERE + "notes._optimisation", "recurrence", lambda o: lambda w, h, *a: h + o(w, h, *a)),
    "notes/2.1": ("remanence.train", "AveragingSGD", with_options(bias_correction=True)),
    "notes/2.2": ("remanence.train", "AveragingSGD", with_options(bias_correction=True)),
    "notes/2.3": ("remanence.train", "AveragingSGD", with_options(bias_correction=True)),
    "notes/3.1": (THEORY, "attention_cost", always(Cost(1, 1))),
    "notes/3.1s": (HERE + "notes._attention", "softmax_attention", keeping_every_matrix),
    "notes/3.2a": ("remanence.nn", "separable_attention", SCALED),
    "notes/3.2b": ("remanence.nn", "separable_attention", lambda o: lambda q, k, v, causal=False: torch.rand_like(v)),
    "notes/3.2c": (THEORY, "attention_cost", always(Cost(1, 1))),
    "notes/3.3a": ("torch.nn.functional", "scaled_dot_product_attention", SCALED),
    "notes/3.3b": (NN, "random_feature_attention", forming_the_matrix),
    "notes/3.4": ("remanence.nn", "positive_random_features", times(1.1)),
    "notes/3.4n": (NN, "random_feature_attention", exact_on_average),
    "notes/3.5": (THEORY, "random_feature_variance", times(2)),
    "notes/4.1": ("torch.optim", "SGD", with_options(momentum=0.5)),
    "notes/4.2": (HERE + "notes._optimisation", "regularised_loss", lambda o: lambda ls, w, g: o(ls, w, g / len(ls))),
    "notes/4.3a": ("torch.optim", "AdamW", lambda o: lambda w, lr, weight_decay: torch.optim.SGD(w, lr=lr)),
    "notes/4.3b": ("torch.optim", "AdamW", lambda o: lambda w, lr, weight_decay: torch.optim.Adam(w, lr=lr)),
    "notes/4.3c": ("torch.optim", "Adam", lambda o: lambda weights, lr, eps: torch.optim.SGD(weights, lr=lr)),
    "notes/4.4": ("torch.optim", "SGD", thresholding),
}


# What of a claim's own file may be mutated: the statement's own formulas, instances and numbers, nothing that measures.
STATEMENTS = {
    "TABLE_3",
    "_reversible_chain",
    "authors_projection",
    "boltzmann",
    "eq46",
    "gradient",
    "information_from_counts",
    "recurrence",
    "regularised_loss",
    "softmax_attention",
}


def test_no_mutation_touches_what_measures():
    own = {attribute for place, attribute, _ in MUTATIONS.values() if place.startswith(HERE)}
    assert own == STATEMENTS


def test_every_claim_is_mutated():
    assert set(MUTATIONS) == {id for id, claim in CLAIMS.items() if not claim.stored}


@pytest.fixture
def nothing_kept():
    """What a broken recipe computed must not be remembered for the tests that follow."""
    kept = (_power_law._factor, _power_law._amplitudes)
    for function in kept:
        function.cache_clear()
    yield
    for function in kept:
        function.cache_clear()


@pytest.mark.usefixtures("nothing_kept")
@pytest.mark.parametrize("name", sorted(MUTATIONS))
def test_a_claim_turns_when_what_it_checks_is_broken(name, monkeypatch):
    place, attribute, mutate = MUTATIONS[name]
    module, _, inner = place.partition(":")
    owner = importlib.import_module(module)
    owner = getattr(owner, inner) if inner else owner
    monkeypatch.setattr(owner, attribute, mutate(getattr(owner, attribute)))
    assert not measure(CLAIMS[name], quick=True).agrees
