import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence import theory
from remanence.testing import assert_agrees
from remanence.theory import random_sets


@given(seed=st.integers(0, 10**6), kappa=st.integers(1, 3), k=st.integers(0, 8))
@settings(max_examples=30, deadline=None)
def test_transfer_is_the_polynomial_and_obeys_the_bound(seed, kappa, k):
    t = 2
    sets = random_sets(np.random.default_rng(seed), t + k, kappa)
    coefficients = theory.sparse_chi(sets, t, k)
    value = theory.sparse_transfer(0.6, sets, t, k)
    assert_agrees(value, (0.6 ** np.arange(k + 1) * coefficients).sum())
    depth = theory.read_depth(sets, t, k)
    assert value.real >= theory.dependency_bound(0.6, depth, kappa)


def test_attending_everything_is_the_uniform_case():
    sets = {step: frozenset(range(1, step + 1)) for step in range(1, 10)}
    assert_agrees(theory.sparse_transfer(-0.4, sets, 3, 6), theory.uniform_transfer(-0.4, 3, 6)[-1])
    assert_agrees(theory.sparse_chi(sets, 3, 6), theory.chi(3, 6, 6))


def test_without_reads_only_the_recurrence_is_left():
    assert theory.sparse_transfer(0.5, {}, 1, 4) == 0.5**4
    assert theory.read_depth({}, 1, 4) == 4
