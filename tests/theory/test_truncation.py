import math

import pytest
import torch

from remanence import theory
from remanence.testing import assert_agrees, assert_estimates


def test_the_window_of_lemma_1_is_the_least_that_its_bound_gives():
    for contraction in (0.3, 0.9, 0.99):
        k = theory.sufficient_window(contraction, 2.0, 1e-3)
        constants = theory.Constants(contraction, 2.0 / (1 - contraction), 1.0)
        assert theory.state_gap(constants, k) <= 1e-3 < theory.state_gap(constants, k - 1)


def test_nothing_to_do_where_the_states_are_within_epsilon_anyway():
    assert theory.sufficient_window(0.5, 1.0, 2.0) == 0
    assert theory.sufficient_window(0.0, 1.0, 0.1) == 1


@pytest.mark.parametrize("contraction", [1.0, -0.1, math.nan])
def test_no_bound_without_a_contraction(contraction):
    with pytest.raises(ValueError, match="contraction"):
        theory.Constants(contraction, 1.0, 1.0)


def test_the_training_window_keeps_the_output_gap_and_one_less_does_not():
    constants = theory.Constants(0.6, 2.0, 1.0)
    k = theory.training_window(constants, 20, 1e-2)
    assert theory.output_gap(constants, k, 20) <= 1e-2 < theory.output_gap(constants, k - 1, 20)


def test_a_linear_scalar_recurrence_reaches_the_smoothness_exactly():
    """h = w sum(lambda^i), loss cos(h): the second derivative at its peak is beta."""
    contraction, length = 0.5, 60
    gain = sum(contraction**i for i in range(length))
    constants = theory.Constants(contraction, 1 / (1 - contraction), 1.0)
    weight = torch.tensor(0.0, dtype=torch.float64)
    curvature = torch.func.grad(torch.func.grad(lambda w: (w * gain).cos()))(weight)
    assert_agrees(-float(curvature), theory.gradient_smoothness(constants))


def test_cost_grows_by_the_orders_it_names():
    def times(n, **options):
        return theory.attention_cost(length=n, width=4, **options).time

    assert times(200, kind="softmax") == 4 * times(100, kind="softmax")
    assert times(200, kind="separable") == 2 * times(100, kind="separable")
    assert times(100, kind="random-features", features=20) == 2 * times(100, kind="random-features", features=10)
    single, double = (theory.attention_cost("softmax", 100, 4, heads=h) for h in (1, 2))
    assert double.space < 2 * single.space  # one attention matrix at a time


def test_variance_of_random_features_is_that_of_many_draws(seed):
    query, key = torch.tensor([0.3, -0.2], dtype=torch.float64), torch.tensor([0.1, 0.4], dtype=torch.float64)
    x = torch.randn(400_000, 2, dtype=torch.float64)
    sizes = (query @ query + key @ key) / 2
    draws = (x @ (query + key) - sizes).exp()
    expected = float(theory.random_feature_variance(query, key, 1))
    assert_estimates(float(draws.var()), expected)
