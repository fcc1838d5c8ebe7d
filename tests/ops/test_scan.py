"""The functional scan: what the layers do not show of it."""

from __future__ import annotations

import pytest
import torch

from remanence import nn, ops
from remanence.testing import assert_matches, sharpen_

DOUBLE = torch.float64


def _layer_and_data() -> tuple[nn.RelLSTM, torch.Tensor]:
    layer = sharpen_(nn.RelLSTM(2, 4, recent=4, relevant=6, dtype=DOUBLE))
    return layer, torch.randn(60, 3, 2, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))


def test_gradient_of_the_offset_is_that_of_the_state() -> None:
    """dL/dh_t through the offset equals finite differences of pushing h_t."""
    layer, x = _layer_and_data()
    offset = torch.zeros(60, 3, 4, dtype=DOUBLE, requires_grad=True)
    cotangent = torch.randn(60, 3, 4, dtype=DOUBLE)

    def loss(offset: torch.Tensor) -> torch.Tensor:
        output, _, _ = ops.scan(x, layer.weights(), spec=layer.spec, h_offset=offset)
        return (output * cotangent).sum()

    assert torch.autograd.gradcheck(loss, offset, fast_mode=True)


def test_a_forced_log_replays_the_choices() -> None:
    layer, x = _layer_and_data()
    output, _, log = ops.scan(x, layer.weights(), spec=layer.spec)
    assert (log.displaced >= 0).sum(dim=0).min() >= 5
    again, _, same = ops.scan(x, layer.weights(), spec=layer.spec, forced_log=log)
    assert torch.equal(again, output)
    assert torch.equal(same.slot, log.slot)
    nobody = ops.Log(torch.full_like(log.slot, -1), torch.full_like(log.slot, -1))
    other, final, _ = ops.scan(x, layer.weights(), spec=layer.spec, forced_log=nobody)
    assert (final.relevant_step == -1).all()
    assert not torch.equal(other, output)


def test_lengths_freeze_rows_and_zero_their_output() -> None:
    layer, x = _layer_and_data()
    lengths = torch.tensor([60, 17, 3])
    output, state, _ = ops.scan(x, layer.weights(), spec=layer.spec, lengths=lengths)
    assert torch.count_nonzero(output[17:, 1]) == 0
    assert state.step.tolist() == [60, 17, 3]
    _, short, _ = ops.scan(x[:17], layer.weights(), spec=layer.spec)
    fields = {name: field[1] for name, field in state._asdict().items()}
    assert_matches(fields, {name: field[1] for name, field in short._asdict().items()})


def test_vmap_over_the_reference() -> None:
    """The reference goes through functorch: per-sample gradients without a loop."""
    layer, x = _layer_and_data()

    def loss(parameters: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        output, _ = torch.func.functional_call(layer, parameters, (row[:, None],))
        return output.pow(2).sum()

    parameters = {name: value.detach() for name, value in layer.named_parameters()}
    per_row = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 1))(parameters, x[:12])
    alone = torch.func.grad(loss)(parameters, x[:12, 1])
    assert_matches({name: value[1] for name, value in per_row.items()}, alone)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # torch's own rules use it
def test_forward_mode_differentiation() -> None:
    layer, x = _layer_and_data()
    x = x[:12]
    _, tangent = torch.func.jvp(lambda x: layer(x)[0], (x,), (torch.ones_like(x),))
    leaf = x.clone().requires_grad_()
    cotangent = torch.randn_like(layer(leaf)[0])
    (gradient,) = torch.autograd.grad((layer(leaf)[0] * cotangent).sum(), leaf)
    assert_matches({"pairing": (tangent * cotangent).sum()}, {"pairing": gradient.sum().detach()})
