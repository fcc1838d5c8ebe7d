"""The one tolerance rule: how far two computations of the same thing may differ."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

FLOOR = 16
"""Machine precisions that are always allowed."""

OWN_ERROR = 2
"""How much worse than the plain computation in the same precision another one may be."""

FLOAT64_LIMIT = 4096 * torch.finfo(torch.float64).eps
"""Two float64 computations agree to rounding: sums over time and features in another order, nothing more."""


def relative_error(actual: Tensor, exact: Tensor) -> float:
    """Largest deviation, relative to the largest exact value; infinite if one is finite where the other is not.

    Example:
        >>> relative_error(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0], dtype=torch.float64))
        0.5
    """
    if actual.shape != exact.shape:
        raise ValueError(f"`actual` must have the shape of `exact`, {tuple(exact.shape)}; got {tuple(actual.shape)}")
    if not exact.numel():
        return 0.0
    actual = actual.detach().to(torch.float64)
    odd = ~(exact.isfinite() & actual.isfinite())
    if bool(odd.any()):
        same = torch.equal(torch.nan_to_num(actual[odd]), torch.nan_to_num(exact[odd]))
        if not same or not torch.equal(actual.isnan(), exact.isnan()):
            return float("inf")
        actual = actual[~odd]
        exact = exact[~odd]
    if not exact.numel():
        return 0.0
    deviation = float((actual - exact).abs().max())
    size = float(exact.abs().max())
    if not size:
        return deviation
    return deviation / size


def assert_matches(
    actual: Mapping[str, Tensor], exact: Mapping[str, Tensor], plain: Mapping[str, Tensor] | None = None
) -> None:
    """Assert that named tensors agree with their exact values by the one rule.

    float64 must agree to rounding. Any lower precision may be off by at most twice the error of the plain computation
    in that precision, plus 16 machine precisions. Integers and booleans must be equal.

    Args:
        actual: what is tested.
        exact: the reference in float64.
        plain: the reference in the precision of ``actual``; needed below float64.

    Raises:
        AssertionError: naming every tensor that is off, its error and its limit.

    Example:
        >>> third = torch.tensor(1 / 3, dtype=torch.float64)
        >>> assert_matches({"third": third}, {"third": third})
    """
    if set(actual) != set(exact):
        raise AssertionError(f"different tensors: only in one are {sorted(set(actual) ^ set(exact))}")
    wrong = [line for name in exact if (line := _complaint(name, actual, exact, plain))]
    if wrong:
        raise AssertionError("\n".join(wrong))


def _complaint(
    name: str, actual: Mapping[str, Tensor], exact: Mapping[str, Tensor], plain: Mapping[str, Tensor] | None
) -> str:
    """What is wrong with one tensor, in words; empty if nothing is."""
    have = actual[name]
    want = exact[name]
    if not have.is_floating_point():
        if torch.equal(have, want):
            return ""
        return f"{name}: not equal"
    want = want.detach().double()
    error = relative_error(have, want)
    own_error = None
    if plain is not None:
        own_error = relative_error(plain[name], want)
    limit = tolerance(have.dtype, own_error)
    if error <= limit:
        return ""
    return f"{name}: error {error:.2e} above its limit {limit:.2e}"


def tolerance(dtype: torch.dtype, own_error: float | None) -> float:
    """The largest error allowed.

    Args:
        dtype: of the tested tensor.
        own_error: error of the plain computation in that precision; needed below float64.

    Example:
        >>> tolerance(torch.float32, own_error=1e-6) > 2e-6
        True
    """
    if dtype == torch.float64:
        return FLOAT64_LIMIT
    if own_error is None:
        raise ValueError(
            f"`plain` must be given to judge {dtype}: the limit is set by the plain computation's own error"
        )
    return OWN_ERROR * own_error + FLOOR * torch.finfo(dtype).eps
