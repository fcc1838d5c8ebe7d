"""Clipping: torch's bits where torch's norm is finite, and no stop where it is not though every entry is."""

import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from remanence.tasks import Copy
from remanence.testing import assert_matches
from remanence.train import NonFiniteError, clip_gradients_, resume, train


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "run"


def parameters(seed: int, scale: float = 1.0, dtype=torch.float32) -> list[nn.Parameter]:
    """Two parameters with gradients, and one without."""
    generator = torch.Generator().manual_seed(seed)
    made = [nn.Parameter(torch.zeros(shape, dtype=dtype)) for shape in ((3, 4), (5,), (2,))]
    for parameter in made[:2]:
        parameter.grad = torch.randn(parameter.shape, generator=generator).to(dtype) * scale
    return made


def gradients(made: list[nn.Parameter]) -> list[torch.Tensor]:
    return [parameter.grad.clone() for parameter in made if parameter.grad is not None]


def clipped(seed: int, scale: float, limits: tuple[float | None, float | None], dtype=torch.float32) -> dict:
    """What clipping leaves of gradients of a certain size, and the norm before, in units of that size."""
    made = parameters(seed, scale, dtype)
    norm = clip_gradients_(made, *limits) / scale
    return dict(enumerate(gradients(made))) | {"norm": torch.tensor(norm, dtype=dtype)}


@given(seed=st.integers(0, 2**30), limit=st.floats(1e-3, 1e3), scale=st.sampled_from([1e-3, 1.0, 1e15]))
def test_bits_are_those_of_torch_where_its_norm_is_finite(seed, limit, scale):
    mine, theirs = parameters(seed, scale), parameters(seed, scale)
    assert clip_gradients_(mine, limit, None) == float(nn.utils.clip_grad_norm_(theirs, limit))
    assert all(map(torch.equal, gradients(mine), gradients(theirs)))


@given(seed=st.integers(0, 2**30), limits=st.tuples(st.floats(1e-3, 1), st.none()) | st.just((None, 0.1)))
def test_squares_that_overflow_do_not_matter(seed, limits):
    huge, ordinary = 2.0**100, 2.0**20
    exact = clipped(seed, huge, limits, torch.float64)
    assert_matches(clipped(seed, huge, limits), exact, clipped(seed, ordinary, limits))


def test_a_limit_above_a_large_norm_changes_nothing():
    huge = parameters(0, 1e30)
    before = gradients(huge)
    clip_gradients_(huge, 1e37, None)
    assert all(map(torch.equal, gradients(huge), before))


@pytest.mark.parametrize("bad", [math.inf, math.nan])
@pytest.mark.parametrize("limits", [(1.0, None), (None, 1.0), (None, None)])
def test_an_entry_that_is_not_finite_is_told_and_left_alone(bad, limits):
    made = parameters(0)
    assert made[0].grad is not None
    made[0].grad[1, 1] = bad
    before = gradients(made)
    assert not math.isfinite(clip_gradients_(made, *limits))
    assert all(torch.equal(a, b) for a, b in zip(gradients(made)[1:], before[1:], strict=True))


def steep(monkeypatch, extra):
    """Changes the loss of Copy by `extra` of loss and output."""
    real = Copy.loss
    monkeypatch.setattr(Copy, "loss", lambda self, output, batch: extra(real(self, output, batch), output))


def test_a_run_goes_on_where_only_the_sum_of_squares_overflows(faults, folder, monkeypatch):
    steep(monkeypatch, lambda loss, output: loss * 1e30)
    assert train(faults.tiny_config(), folder).status == "done"


def test_it_ends_with_the_same_weights_after_a_stop(faults, folder, tmp_path, monkeypatch):
    steep(monkeypatch, lambda loss, output: loss * 1e30)
    whole = tmp_path / "whole"
    train(faults.tiny_config(), whole)
    faults.stop_midway(folder, faults.tiny_config())
    resume(folder)
    assert faults.same_end(folder, whole)


def test_without_clipping_the_overflow_stops_the_run_and_names_the_group(faults, folder, monkeypatch):
    steep(monkeypatch, lambda loss, output: loss * 1e30)
    with pytest.raises(NonFiniteError, match=r"update 0: .* \(group other \(squared gradient\): .*weight_ih"):
        train(faults.tiny_config(loop={"clip_norm": None}), folder)


def test_an_infinite_gradient_names_step_and_group(faults, folder, monkeypatch):
    def endless(loss, output):
        one = output.flatten()[0]
        return loss + (one - one.detach()).sqrt()  # zero, with an infinite slope

    steep(monkeypatch, endless)
    with pytest.raises(
        NonFiniteError, match=r"update 0: the gradient is not finite \(group other \(gradient\): .*head"
    ):
        train(faults.tiny_config(), folder)
