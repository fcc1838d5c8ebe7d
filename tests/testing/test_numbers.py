import math

import numpy as np
import pytest
import torch

from remanence.testing import assert_agrees, assert_estimates, assert_frequency, assert_sampled

EPS = torch.finfo(torch.float64).eps


@pytest.mark.parametrize("exact", [3.0, [1.0, -2.0], np.array([1 + 2j, 3j]), math.inf, [math.inf, 1.0]])
def test_equal_numbers_agree(exact):
    assert_agrees(exact, exact)


def test_rounding_is_allowed_and_no_more():
    assert_agrees(1 + 100 * EPS, 1.0)
    with pytest.raises(AssertionError, match="above its limit"):
        assert_agrees(1 + 10_000 * EPS, 1.0)
    assert_agrees(1 + 10_000 * EPS, 1.0, torch.float32)


def test_errors_are_relative_to_the_largest():
    assert_agrees([1e6, 1e-9], [1e6, 0.0])
    with pytest.raises(AssertionError):
        assert_agrees([1.0, 1e-9], [1.0, 0.0])


@pytest.mark.parametrize(("actual", "exact"), [(math.inf, 1.0), (1.0, math.inf), (math.nan, 1.0), (1j, 1.0 + 0j)])
def test_other_kinds_of_numbers_do_not_agree(actual, exact):
    with pytest.raises(AssertionError):
        assert_agrees(actual, exact)


def test_estimates_may_be_off_a_little_each():
    assert_estimates([0.96, 104.0], [1.0, 100.0])
    with pytest.raises(AssertionError, match="off by 6"):
        assert_estimates([0.94, 100.0], [1.0, 100.0])
    with pytest.raises(AssertionError):
        assert_estimates(math.nan, 1.0)


def test_a_sample_may_be_off_by_its_own_error():
    assert_sampled([1.4, 90.0], [1.0, 100.0], [0.1, 10.0])
    with pytest.raises(AssertionError, match=r"off by 6\.0 standard errors"):
        assert_sampled([1.0, 160.0], [1.0, 100.0], [0.1, 10.0])
    with pytest.raises(AssertionError):
        assert_sampled(math.nan, 1.0, 0.1)


def test_how_often_something_happens():
    assert_frequency(190, 200, 0.95)
    for count in (0, 170):
        with pytest.raises(AssertionError, match="standard errors"):
            assert_frequency(count, 200, 0.95)
