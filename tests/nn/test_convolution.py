"""Dilated causal convolutions: a worked example, torch's own convolution, and the exact receptive field."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from remanence.nn._convolution import CausalConvolution


def all_ones(**options) -> CausalConvolution:
    core = CausalConvolution(1, 1, dtype=torch.float64, **options)
    for parameter in core.parameters():
        nn.init.ones_(parameter) if parameter.dim() == 3 else nn.init.zeros_(parameter)
    return core


def test_worked_by_hand():
    # Kernel of two ones: the block makes x + (1, 2, 1) * x, so an impulse of 1 at step 0 gives 1 + 1, 2, 1, 0.
    impulse = torch.tensor([[1.0], [0.0], [0.0], [0.0]], dtype=torch.float64)
    output, _ = all_ones(depth=1, kernel_size=2)(impulse)
    assert output.flatten().tolist() == [2, 2, 1, 0]


def test_a_single_block_equals_padded_torch_convolutions():
    core, x = CausalConvolution(3, 5, 1, 4, dtype=torch.float64), torch.randn(2, 3, 12, dtype=torch.float64)
    inner = x
    for convolution in core.convolutions:
        inner = convolution(nn.functional.pad(inner, (3, 0))).relu()
    expected = (core.skip(x.transpose(1, 2)) + inner.transpose(1, 2)).relu()
    assert_close(core(x.permute(2, 0, 1))[0], expected.transpose(0, 1))


@pytest.mark.parametrize(("depth", "kernel_size"), [(1, 1), (1, 3), (2, 2), (3, 2), (3, 3), (4, 2)])
def test_the_receptive_field_is_exact(depth, kernel_size):
    core = all_ones(depth=depth, kernel_size=kernel_size)
    length = core.receptive_field + 5
    x = torch.ones(length, 1, 1, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(core(x)[0][-1].sum(), x)
    seen = gradient.flatten().nonzero().flatten()
    assert length - seen.min() == core.receptive_field == 1 + 2 * (kernel_size - 1) * (2**depth - 1)


def test_the_state_is_what_the_receptive_field_needs():
    state = CausalConvolution(2, 4, 3, 3).initial_state(5)
    assert state.input.shape == (1, 5, 2, 2)
    assert state.hidden.shape == (1, 5, 2 + 2 * 4 + 2 * 8, 4)
    assert state.step.tolist() == [[0] * 5]


def test_dropout_acts_in_training_only():
    core, x = CausalConvolution(3, 8, 2, dropout=0.5), torch.randn(9, 2, 3)
    assert not torch.equal(core(x)[0], core(x)[0])
    core.eval()
    assert torch.equal(core(x)[0], core(x)[0])


def test_no_skip_weights_where_sizes_agree():
    assert not list(CausalConvolution(4, 4, 2).skip.parameters())
    assert list(CausalConvolution(3, 4, 2).skip.parameters())


@pytest.mark.parametrize("name", ["input_size", "channels", "depth", "kernel_size"])
def test_bad_sizes_are_named(name):
    with pytest.raises(ValueError, match=f"`{name}` must be an int >= 1; got 0"):
        CausalConvolution(**({"input_size": 2, "channels": 3, "depth": 1} | {name: 0}))  # type: ignore[arg-type]


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="`dropout` must be"):
        CausalConvolution(2, 3, 1, dropout=2.0)
    with pytest.raises(TypeError, match="`batch_first` must be a bool"):
        CausalConvolution(2, 3, 1, batch_first=None)  # type: ignore[arg-type]
