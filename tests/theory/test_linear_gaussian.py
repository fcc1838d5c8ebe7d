import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence import theory
from remanence.testing import assert_agrees, assert_estimates, assert_matches

STEPS = 12
SIGMAS = 5  # of a mean: a false alarm once in two million


def random_model(seed, m=4, d=2, radius=0.8, noise=0.7):
    """Closed loop of a given spectral radius, and a generic start: both from one seed."""
    generator = np.random.default_rng(seed)
    loop = generator.standard_normal((m + d, m + d))
    loop[m:, m:] = 0
    loop *= radius / np.abs(np.linalg.eigvals(loop)).max()
    root = generator.standard_normal((m + d, m + d))
    return theory.LinearGaussianRNN(loop[:m, m:], loop[:m, :m], loop[m:, :m], noise), root @ root.T


@given(seed=st.integers(0, 10**6), m=st.integers(1, 5), d=st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_recursion_series_and_closed_loop_agree(seed, m, d):
    model, start = random_model(seed, m, d)
    exact = {"covariance": torch.from_numpy(model.covariances(STEPS, start))}
    assert_matches({"covariance": torch.from_numpy(model.recursion(STEPS, start))}, exact)
    assert_agrees(model.series(STEPS, start), exact["covariance"].numpy())


def test_the_covariances_are_those_of_samples():
    model, start = random_model(1)
    generator, size = np.random.default_rng(0), 400_000
    chain = generator.multivariate_normal(np.zeros(6), start, size)
    first = chain[:, 4:]
    exact = model.covariances(5, start)
    for t in range(1, 6):
        chain = chain @ model.closed_loop.T
        chain[:, 4:] += model.noise * generator.standard_normal((size, 2))
        draws = chain[:, 4:, None] * first[:, None]
        assert (np.abs(draws.mean(0) - exact[t]) < SIGMAS * draws.std(0) / size**0.5).all()


def test_the_printed_recursion_is_another_one():
    model, start = random_model(2)
    exact, printed = model.covariances(STEPS, start), model.recursion(STEPS, start, printed=True)
    assert np.abs(printed[1:] - exact[1:]).max() > 0.1 * np.abs(exact[1:]).max()
    assert_agrees(model.series(STEPS, start, printed=True), printed)  # the document agrees with itself


@pytest.mark.parametrize("seed", range(5))
def test_information_falls_at_twice_the_logarithm_of_the_radius(seed):
    model, start = random_model(seed)
    span = 20, 120
    information = model.mutual_information(span[1], start)
    slope = np.polyfit(np.arange(*span), np.log(information[span[0] : span[1]]), 1)[0]
    assert_estimates(slope, model.decay_rate)


def test_poles_are_where_the_loop_cannot_be_inverted():
    model, start = random_model(3)
    pole = model.poles[0]
    near = np.abs(model.generating_function(pole * (1 - 1e-9), start)).max()
    assert near > 1e6 * np.abs(model.generating_function(pole * 0.5, start)).max()
    assert_agrees(np.abs(pole), 1 / model.spectral_radius)


def test_the_stationary_start_stays():
    model, _ = random_model(4)
    start = model.stationary()
    variances = torch.from_numpy(model.variances(5, start))
    assert_matches({"last": variances[-1]}, {"last": variances[0]})


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_variances_never_fall_below_the_noise(seed):
    model, start = random_model(seed)
    least = np.linalg.eigvalsh(model.variances(STEPS, start)[1:]).min()
    assert least >= model.noise**2 * (1 - np.finfo(float).eps * 64)


def test_scalar_information_is_that_of_the_correlation():
    model, start = random_model(5, m=3, d=1)
    across, within = model.covariances(4, start)[1:, 0, 0], model.variances(4, start)[:, 0, 0]
    exact = -0.5 * np.log(1 - across**2 / (within[0] * within[1:]))
    assert_agrees(model.mutual_information(4, start), exact)


def test_without_a_path_to_the_output_there_is_none():
    model = theory.LinearGaussianRNN(np.ones((2, 1)), 0.5 * np.eye(2), np.zeros((1, 2)))
    assert (model.mutual_information(5) == 0).all()


def test_bad_models_are_named():
    square = np.eye(2)
    with pytest.raises(ValueError, match=r"`recurrent_weight` must have shape \(2, 2\); got \(3, 3\)"):
        theory.LinearGaussianRNN(square, np.eye(3), square)
    with pytest.raises(ValueError, match="`noise` must be"):
        theory.LinearGaussianRNN(square, square, square, noise=0.0)
    with pytest.raises(ValueError, match="`closed_loop` must have a spectral radius < 1"):
        theory.LinearGaussianRNN(square, square, square).mutual_information(3)
    with pytest.raises(ValueError, match="`start` must have shape"):
        theory.LinearGaussianRNN(square, 0.1 * square, square).covariances(3, square)
