"""The tolerance rule for plain numbers and arrays, and the one for what is only estimated."""

from __future__ import annotations

import math

import numpy as np
import torch

from ._tolerance import FLOAT64_LIMIT, relative_error

ROUNDING = FLOAT64_LIMIT / torch.finfo(torch.float64).eps
"""Machine precisions that two computations of the same numbers may be apart."""

ESTIMATE = 0.05
"""How far, of its size, an estimate may be off: a slope of a finite run, a moment of a finite sample."""


STANDARD_ERRORS = 5.0
"""How many standard errors a sample may be off: less than one in a million is, if the errors are normal."""


def assert_agrees(actual: object, exact: object, computed_in: torch.dtype = torch.float64) -> None:
    """Assert that two computations of the same numbers agree to rounding, relative to the largest of them.

    Args:
        actual: a number, a sequence or an array, real or complex.
        exact: the same in shape, or a single number for all of them.
        computed_in: the lower of the precisions that the two were computed in, whatever they are stored in.

    Raises:
        AssertionError: naming the error and its limit.

    Example:
        >>> assert_agrees(0.1 + 0.2, 0.3)
        >>> assert_agrees(np.array([1.0, 2.0]), [1.0, 2.1])
        Traceback (most recent call last):
        AssertionError: error 4.76e-02 above its limit 9.09e-13
    """
    have, want = np.broadcast_arrays(np.asarray(actual), np.asarray(exact))
    error = max(relative_error(_float64(part(have)), _float64(part(want))) for part in (np.real, np.imag))
    limit = ROUNDING * torch.finfo(computed_in).eps
    if error > limit:
        raise AssertionError(f"error {error:.2e} above its limit {limit:.2e}")


def assert_estimates(measured: object, exact: object) -> None:
    """Assert that every estimate from a finite sample is within 5 % of the true value.

    Args:
        measured: a number, a sequence or an array.
        exact: the same in shape, or a single number for all of them.

    Raises:
        AssertionError: naming the worst.

    Example:
        >>> assert_estimates([0.98, 1.01], 1.0)
        >>> assert_estimates(1.2, 1.0)
        Traceback (most recent call last):
        AssertionError: off by 20.0 %, more than 5 %
    """
    off = np.abs(np.asarray(measured, dtype=float) - exact) / np.abs(np.asarray(exact, dtype=float))
    if not (off <= ESTIMATE).all():
        raise AssertionError(f"off by {100 * off.max():.1f} %, more than {100 * ESTIMATE:g} %")


def assert_sampled(measured: object, exact: object, error: object) -> None:
    """Assert that every number measured on a sample is within five of its standard errors.

    Args:
        measured: a number, a sequence or an array.
        exact: the same in shape, or a single number for all of them.
        error: the standard error, likewise.

    Raises:
        AssertionError: naming the worst.

    Example:
        >>> assert_sampled([0.9, 1.2], 1.0, error=0.1)
        >>> assert_sampled(1.6, 1.0, error=0.1)
        Traceback (most recent call last):
        AssertionError: off by 6.0 standard errors, more than 5
    """
    off = np.abs(np.asarray(measured, dtype=float) - exact) / np.asarray(error, dtype=float)
    if not (off <= STANDARD_ERRORS).all():
        raise AssertionError(f"off by {off.max():.1f} standard errors, more than {STANDARD_ERRORS:g}")


def assert_frequency(count: int, trials: int, probability: float) -> None:
    """Assert that an event occurred as often as its probability says, by :func:`assert_sampled`.

    Args:
        count: how often it came.
        trials: how often it could have come, each time independently.
        probability: of the event, between 0 and 1, neither of them.

    Raises:
        AssertionError: naming by how much it did not.

    Example:
        >>> assert_frequency(93, 100, 0.95)
        >>> assert_frequency(60, 100, 0.95)
        Traceback (most recent call last):
        AssertionError: off by 16.1 standard errors, more than 5
    """
    assert_sampled(count / trials, probability, math.sqrt(probability * (1 - probability) / trials))


def _float64(values: np.ndarray) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)
