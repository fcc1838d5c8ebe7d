"""The functional scan: what the layers do not show of it."""

from __future__ import annotations

import dataclasses

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


def test_nothing_happens_to_a_row_that_has_ended() -> None:
    """Resets and cuts behind a row's end change neither its state nor its gradient."""
    layer, x = _layer_and_data()
    lengths = torch.tensor([60, 17, 3])
    late = torch.zeros(60, 3, dtype=torch.bool)
    late[20:, 1:] = True
    spec = dataclasses.replace(layer.spec, cut_reads=True)
    leaf = x.clone().requires_grad_()
    for backend in ("reference", "auto"):
        found = []
        for mask in (None, late):
            options = {"reset": mask, "cut_h": mask, "cut_c": mask, "lengths": lengths, "backend": backend}
            _, state, _ = ops.scan(leaf, layer.weights(), spec=spec, **options)
            loss = sum(field.sum() for field in state if field.requires_grad)
            (gradient,) = torch.autograd.grad(loss, leaf)
            found.append(state.detach()._asdict() | {"gradient": gradient})
        assert_matches(found[1], found[0])


def test_cut_reads_reach_the_final_buffer_of_ragged_rows() -> None:
    """A cut at step 15 keeps gradient from the older states of a row that ends at 17."""
    layer, x = _layer_and_data()
    cut = torch.zeros(60, 3, dtype=torch.bool)
    cut[15] = True
    spec = dataclasses.replace(layer.spec, cut_reads=True)
    lengths = torch.tensor([60, 17, 20])
    for backend in ("reference", "auto"):
        leaf = x.clone().requires_grad_()
        options = {"cut_h": cut, "cut_c": cut, "lengths": lengths, "backend": backend}
        _, state, _ = ops.scan(leaf, layer.weights(), spec=spec, **options)
        (gradient,) = torch.autograd.grad(state.recent[1].sum(), leaf)
        assert gradient[:, 1].abs().sum(dim=1).nonzero()[:, 0].tolist() == [15, 16]
