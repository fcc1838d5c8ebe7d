"""Recursions against the sums that define them, and exponents against long runs."""

from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence import theory
from remanence.testing import assert_agrees, assert_estimates
from remanence.testing._tolerance import FLOAT64_LIMIT


def edge(t, i, before):
    return 1 / (t + i) + (i == 0 if before is None else i - before == 1)


def chain(t, indices):
    return prod(edge(t, i, before) for i, before in zip(indices, (None, *indices), strict=False))


@given(t=st.integers(1, 5), k=st.integers(0, 6))
@settings(max_examples=20, deadline=None)
def test_theta_and_chi_are_the_sums_over_chains(t, k):
    for s in range(1, 5):
        assert_agrees(theory.theta(t, k, s)[s], sum(chain(t, c) for c in combinations(range(k), s)))
        assert_agrees(theory.chi(t, k, s)[s], sum(chain(t, (*c, k)) for c in combinations(range(k), s)))


@given(t=st.integers(1, 5), low=st.integers(0, 2), high=st.integers(2, 7), s=st.integers(0, 4))
@settings(max_examples=20, deadline=None)
def test_omega_is_the_sum_over_products(t, low, high, s):
    products = (prod(1 / (t + i) for i in c) for c in combinations(range(low, high), s))
    assert_agrees(theory.omega(t, low, high, s)[s], sum(products))


@pytest.mark.parametrize("eigenvalue", [0.5, -0.9, 0.3 + 0.4j, 0.0])
def test_transfer_is_the_polynomial_in_chi(eigenvalue):
    k = 9
    polynomial = sum(eigenvalue**s * theory.chi(3, k, k)[s] for s in range(k + 1))
    assert_agrees(theory.uniform_transfer(eigenvalue, 3, k)[-1], polynomial)


def test_transfer_is_the_derivative_of_the_recurrence_itself():
    """Steps the linear recurrence with uniform attention by hand, with a unit added to h_t."""
    t, k, v = 2, 5, -0.7
    h, s = [], 0.0
    for step in range(1, t + k + 1):
        h.append(v * s + (step == t))
        s = h[-1] + sum(h) / step
    assert_agrees(theory.uniform_transfer(v, t, k)[-1].real, s)


@pytest.mark.parametrize("eigenvalue", [0.5, 0.7, -0.5, -0.9, 0.2 + 0.3j])
def test_growth_exponent_is_the_slope_of_a_long_run(eigenvalue):
    size = np.abs(theory.uniform_transfer(eigenvalue, 1, 40000))
    slope = np.log(size[-1] / size[len(size) // 2]) / np.log(2)
    assert_estimates(1 + abs(slope), 1 + abs(theory.growth_exponent(eigenvalue)))  # an exponent may be zero


def test_compositions_and_partitions_part_at_five():
    sums = theory.power_sums(2, 12, 6)
    for s in range(1, 7):
        exact = theory.omega(2, 0, 12, s)[s]
        assert_agrees(theory.omega_polynomial(sums, s), exact)
        printed = theory.omega_polynomial(sums, s, printed=True)
        if s < 5:
            assert_agrees(printed, exact)
        else:
            with pytest.raises(AssertionError):
                assert_agrees(printed, exact)


@given(t=st.integers(1, 4), k=st.integers(1, 12), s=st.integers(1, 5))
@settings(max_examples=40, deadline=None)
def test_bounds_enclose_from_s_on(t, k, s):
    if k < s:
        return
    slack = 1 + FLOAT64_LIMIT
    low, high = theory.theta_bounds(t, k, s)
    assert low <= theory.theta(t, k, s)[s] * slack
    assert theory.theta(t, k, s)[s] <= high * slack
    low, high = theory.chi_bounds(t, k, s)
    assert low <= theory.chi(t, k, s)[s] * slack
    assert theory.chi(t, k, s)[s] <= high * slack


def test_a_step_below_one_is_refused():
    with pytest.raises(ValueError, match="`t` must be an int >= 1; got 0"):
        theory.uniform_transfer(0.5, 0, 3)
