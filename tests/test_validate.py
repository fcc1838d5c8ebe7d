import math

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from remanence import _validate


@pytest.mark.parametrize(
    ("check", "error", "text"),
    [
        (lambda: _validate.positive_int("n", 0), ValueError, "`n` must be an int >= 1; got 0"),
        (lambda: _validate.positive_int("n", -1, minimum=0), ValueError, "`n` must be an int >= 0; got -1"),
        (lambda: _validate.positive_int("n", True), TypeError, "`n` must be an int >= 1; got True (bool)"),
        (lambda: _validate.positive_int("n", 2.0), TypeError, "`n` must be an int >= 1; got 2.0 (float)"),
        (lambda: _validate.positive_int("n", "8"), TypeError, "`n` must be an int >= 1; got '8' (str)"),
        (
            lambda: _validate.positive_int("n", 2**63),
            ValueError,
            "`n` must be an int >= 1 and <= 9223372036854775807; got",
        ),
        (lambda: _validate.real("r", 1e39), ValueError, "`r` must be a finite number; got 1e+39"),
        (lambda: _validate.real("r", 10**400), ValueError, "`r` must be a finite number; got 1000"),
        (lambda: _validate.real("r", math.nan), ValueError, "`r` must be a finite number; got nan"),
        (
            lambda: _validate.real("r", 2, above=0, most=1),
            ValueError,
            "`r` must be a finite number > 0 and <= 1; got 2",
        ),
        (lambda: _validate.real("r", 0, above=0), ValueError, "`r` must be a finite number > 0; got 0"),
        (lambda: _validate.real("r", 1.0, above=0, below=1), ValueError, "number > 0 and < 1; got 1.0"),
        (lambda: _validate.real("r", None), TypeError, "`r` must be a finite number; got None (NoneType)"),
        (lambda: _validate.probability("p", 1.1), ValueError, "`p` must be a finite number >= 0 and <= 1; got 1.1"),
        (lambda: _validate.probability("p", False), TypeError, "got False (bool)"),
        (lambda: _validate.boolean("b", 1), TypeError, "`b` must be a bool; got 1 (int)"),
        (lambda: _validate.one_of("s", "summ", ["sum", "half"]), ValueError, "got 'summ'. Did you mean 'sum'?"),
        (lambda: _validate.one_of("s", "zebra", ["sum", "half"]), ValueError, "one of 'sum', 'half'; got 'zebra'"),
        (lambda: _validate.one_of("s", 1, [None, True]), ValueError, "`s` must be one of None, True; got 1"),
        (
            lambda: _validate.shape("x", torch.zeros(2, 3), ("T", 4)),
            ValueError,
            "`x` must have shape (T, 4); got (2, 3)",
        ),
        (lambda: _validate.shape("x", torch.zeros(2), (3,)), ValueError, "`x` must have shape (3,); got (2,)"),
        (lambda: _validate.shape("x", torch.zeros(2), ("T", 3)), ValueError, "`x` must have shape (T, 3); got (2,)"),
        (
            lambda: _validate.shape("x", [1], ("T",)),
            TypeError,
            "`x` must be a tensor and have shape (T,); got [1] (list)",
        ),
    ],
)
def test_refusal_names_the_argument_the_expectation_and_what_came(check, error, text):
    with pytest.raises(error) as caught:
        check()
    assert text in str(caught.value)


def test_no_suggestion_without_a_near_name():
    with pytest.raises(ValueError, match=r"got 'zebra'$"):
        _validate.one_of("s", "zebra", ["sum", "half"])


@given(st.integers(1, 2**63 - 1))
def test_every_count_passes_unchanged(value):
    assert _validate.positive_int("n", value) == value


@given(st.floats(min_value=0, max_value=1))
def test_every_probability_passes_unchanged(value):
    assert _validate.probability("p", value) == value


def test_numpy_numbers_become_plain_ones():
    assert type(_validate.positive_int("n", numpy.int64(3))) is int
    assert type(_validate.real("r", numpy.float32(0.5))) is float


def test_checked_values_come_back():
    tensor = torch.zeros(2, 3)
    assert _validate.shape("x", tensor, ("T", 3)) is tensor
    assert _validate.one_of("s", None, [None, "sum"]) is None
    assert _validate.boolean("b", False) is False
