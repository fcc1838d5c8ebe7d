import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence import probes
from remanence.probes._laws import best_law, find_regimes, student
from remanence.tasks import BinaryPowerLaw, Ising, Repetitive
from remanence.testing import assert_agrees, assert_estimates, assert_frequency, assert_sampled

LAGS = np.arange(1, 40)
NONE = np.zeros(len(LAGS))


@given(length=st.floats(2, 100), amplitude=st.floats(1e-3, 0.5))
@settings(max_examples=25, deadline=None)
def test_an_exponential_is_found_again(length, amplitude):
    law = best_law(LAGS, np.log(amplitude) - LAGS / length, NONE)
    assert law is not None
    assert law.law == "exponential"
    assert law.exponent is None
    assert_agrees([law.correlation_length, law.amplitude], [length, amplitude])
    assert_agrees(law.at(LAGS), amplitude * np.exp(-LAGS / length))


@given(exponent=st.floats(0.1, 2), amplitude=st.floats(1e-3, 0.5))
@settings(max_examples=25, deadline=None)
def test_a_power_law_is_found_again(exponent, amplitude):
    law = best_law(LAGS, np.log(amplitude) - exponent * np.log(LAGS), NONE)
    assert law is not None
    assert law.law == "power"
    assert law.correlation_length is None
    assert_agrees([law.exponent, law.amplitude], [exponent, amplitude])


def test_a_plateau_is_called_constant():
    noise = 0.01 * np.random.default_rng(0).standard_normal(len(LAGS))
    law = best_law(LAGS, noise - 2, np.full(len(LAGS), 0.01))
    assert law is not None
    assert law.law == "constant"
    assert law.bic["exponential"] > law.bic["constant"]


def test_intervals_cover_the_true_slope():
    generator, errors = np.random.default_rng(0), np.linspace(0.01, 0.2, len(LAGS))
    covered = 0
    for _ in range(200):
        law = best_law(LAGS, -LAGS / 10 + errors * generator.standard_normal(len(LAGS)), errors)
        assert law is not None
        assert law.correlation_length_interval is not None
        low, high = law.correlation_length_interval
        covered += low <= 10 <= high
    assert_frequency(covered, 200, 0.95)


def teststudents_point():
    known = {4: 2.7764451, 10: 2.2281389, 30: 2.0422725}
    assert_estimates([student(v) for v in known], list(known.values()))


def test_three_points_are_too_few():
    assert best_law(LAGS[:3], -LAGS[:3], NONE[:3]) is None
    assert find_regimes(LAGS[:3], -LAGS[:3], NONE[:3], 3) == ()


def test_an_exponential_that_turns_into_a_power_law_has_two_regimes():
    lags = probes.logarithmic_lags(1000, 50)
    logs = np.where(lags <= 15, -lags / 3, -5 - 0.3 * np.log(lags / 15))
    regimes = find_regimes(lags, logs, np.full(len(lags), 0.02), 3)
    assert [regime.law.law for regime in regimes] == ["exponential", "power"]
    assert regimes[0].longest in lags[np.searchsorted(lags, 15) + np.arange(-1, 2)]
    assert_agrees(regimes[1].law.exponent, 0.3)


def measured(task, count, lags):
    bits = task.draw(count, task.stream("train", seed=0)).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return probes.mutual_information(bits, lags)


def standard_error(interval):
    """Of an interval that holds 95 %."""
    low, high = interval
    return (high - low) / (2 * 1.96)


@pytest.mark.parametrize("exponent", [0.2, 0.5, 1.0])
def test_the_exponent_of_the_binary_task_is_measured(exponent):
    found = measured(BinaryPowerLaw(length=256, exponent=exponent), 1500, probes.logarithmic_lags(100, 20))
    law = found.fit(threshold=1e-3)
    assert law is not None
    assert law.law == "power"
    assert law.exponent_interval is not None
    assert_sampled(law.exponent, exponent, standard_error(law.exponent_interval))
    assert len(found.regimes(threshold=1e-3)) == 1


def test_the_correlation_length_of_the_ising_chain_is_measured():
    law = measured(Ising(length=256, coupling=-1.0), 1500, range(1, 10)).fit(shortest=3)
    assert law is not None
    assert law.correlation_length_interval is not None
    exact = -1 / (2 * math.log(math.tanh(1)))
    assert_sampled(law.correlation_length, exact, standard_error(law.correlation_length_interval))


def test_the_repetitive_sequence_is_constant_beyond_neighbours():
    law = measured(Repetitive(length=256, probability=0.8), 500, range(1, 30)).fit(shortest=2)
    assert law is not None
    assert law.law == "constant"


def test_a_law_can_be_asked_for_even_if_it_is_not_the_best():
    lags, logs = np.arange(1, 40), -0.5 * np.log(np.arange(1, 40))
    best, asked = best_law(lags, logs, np.zeros(39)), best_law(lags, logs, np.zeros(39), "exponential")
    assert best.law == "power"
    assert asked.law == "exponential"
    assert asked.aic["power"] == 0 < asked.aic["exponential"]
    assert asked.correlation_length > 0
