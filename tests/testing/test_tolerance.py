"""The tolerance rule itself: it passes what it should and fails what it should."""

from __future__ import annotations

import pytest
import torch

from remanence.nn import RelRNN
from remanence.testing import assert_matches, check_names, check_recurrent_layer, relative_error, tolerance
from remanence.testing._tolerance import FLOAT64_LIMIT, FLOOR

ONE = torch.ones(3, dtype=torch.float64)


def test_float64_must_agree_to_rounding() -> None:
    assert_matches({"x": ONE * (1 + FLOAT64_LIMIT / 2)}, {"x": ONE})
    with pytest.raises(AssertionError, match="x: error"):
        assert_matches({"x": ONE * (1 + 2 * FLOAT64_LIMIT)}, {"x": ONE})


def test_float32_may_be_twice_as_bad_as_plain_float32() -> None:
    plain = (ONE * (1 + 1e-4)).float()
    assert_matches({"x": (ONE * (1 + 1.9e-4)).float()}, {"x": ONE}, {"x": plain})
    with pytest.raises(AssertionError, match="x: error"):
        assert_matches({"x": (ONE * (1 + 2.2e-4)).float()}, {"x": ONE}, {"x": plain})
    with pytest.raises(ValueError, match="plain"):
        assert_matches({"x": ONE.float()}, {"x": ONE})


def test_the_floor() -> None:
    assert tolerance(torch.float32, 0.0) == FLOOR * torch.finfo(torch.float32).eps


def test_integers_must_be_equal_and_names_the_same() -> None:
    with pytest.raises(AssertionError, match="not equal"):
        assert_matches({"n": torch.tensor([1, 2])}, {"n": torch.tensor([1, 3])})
    with pytest.raises(AssertionError, match="only in one"):
        assert_matches({"a": ONE}, {"b": ONE})
    with pytest.raises(ValueError, match="shape"):
        assert_matches({"a": ONE}, {"a": ONE[:2]})


@pytest.mark.parametrize("odd", [torch.nan, torch.inf, -torch.inf])
def test_non_finite_values_match_only_themselves(odd: float) -> None:
    strange = ONE.clone()
    strange[1] = odd
    assert relative_error(strange, strange) == 0
    assert relative_error(strange, ONE) == float("inf")
    assert relative_error(ONE, strange) == float("inf")


class _Forgetful(RelRNN):
    """Breaks the contract: it keeps its last state to itself."""

    kept = None

    def forward(self, input, state=None, *, reset=None):
        output, self.kept = super().forward(input, state or self.kept, reset=reset)
        return output, self.kept


class _Peeking(RelRNN):
    """Breaks the contract: it sees its future."""

    def forward(self, input, state=None, *, reset=None):
        output, state = super().forward(input, state, reset=reset)
        return output + output.mean(dim=0), state


@pytest.mark.parametrize(
    ("layer", "caught_by"), [(_Forgetful, "determinism"), (_Peeking, "causality"), (_Peeking, "step_by_step")]
)
def test_the_checks_catch_a_broken_layer(layer: type, caught_by: str) -> None:
    checks = {
        check.name: check for check in check_recurrent_layer(lambda *a, **o: layer(*a, recent=4, relevant=6, **o))
    }
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        checks[caught_by]()


def test_check_names() -> None:
    assert set(check_names(slow=True)) == {"gradcheck", "double_backward", "compiles", "exports"}
    with pytest.raises(ValueError, match="without"):
        list(check_recurrent_layer(RelRNN, without=["nonsense"]))
