"""Where the gradient through time stops."""

from __future__ import annotations

import pytest
import torch

from remanence import nn
from remanence.testing import assert_matches, collect

DOUBLE = torch.float64


def _reach(layer: torch.nn.Module, length: int = 12, step: int = -1) -> list[int]:
    """Steps whose input gets gradient from one output."""
    x = torch.randn(length, 1, 2, dtype=DOUBLE, requires_grad=True)
    (gradient,) = torch.autograd.grad(layer(x)[0][step].sum(), x)
    return gradient[:, 0].abs().sum(dim=1).nonzero()[:, 0].tolist()


@pytest.mark.parametrize("cell", [nn.RNN, nn.LSTM, nn.GRU])
def test_truncation_cuts_before_multiples_of_k(cell: type) -> None:
    assert _reach(cell(2, 3, cuts=nn.TruncatedBPTT(5), dtype=DOUBLE)) == [10, 11]
    assert _reach(cell(2, 3, cuts=nn.TruncatedBPTT(5, offset=-1), dtype=DOUBLE)) == [9, 10, 11]
    assert _reach(cell(2, 3, cuts=nn.TruncatedBPTT(1), dtype=DOUBLE)) == [11]
    assert _reach(cell(2, 3, dtype=DOUBLE)) == list(range(12))


def test_cuts_are_counted_by_the_rows_own_steps() -> None:
    """Chunks do not move the cuts; a reset does."""
    layer, x = nn.LSTM(2, 3, cuts=nn.TruncatedBPTT(4), dtype=DOUBLE), torch.randn(13, 2, 2, dtype=DOUBLE)
    assert_matches(collect(layer, x, chunks=[3, 3, 7]), collect(layer, x))
    reset = torch.zeros(13, 2, dtype=torch.bool)
    reset[6, 0] = True
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(layer(leaf, reset=reset)[0][-1].sum(), leaf)
    reached = [gradient[:, row].abs().sum(dim=1).nonzero()[:, 0].tolist() for row in range(2)]
    assert reached == [[10, 11, 12], [12]]


def test_reads_stay_open_across_a_cut_unless_they_are_cut() -> None:
    options = {"recent": 3, "relevant": 0, "dtype": DOUBLE}
    # Step 9, read at step 11, has itself read steps 7 and 8, and so on: reads alone reach the start.
    assert _reach(nn.RelRNN(2, 3, cuts=nn.TruncatedBPTT(5), **options)) == list(range(12))
    assert _reach(nn.RelRNN(2, 3, cuts=nn.TruncatedBPTT(5, reads="cut"), **options)) == [10, 11]


def test_h_detach_cuts_h_and_never_c() -> None:
    """With p = 1 all that is left is the cell: gradient still reaches every step."""
    layer, x = nn.HDetachLSTM(2, 3, p=1.0, dtype=DOUBLE), torch.randn(8, 2, 2, dtype=DOUBLE)
    w = layer.weights()
    leaf = x.clone().requires_grad_()
    h = c = torch.zeros(2, 3, dtype=DOUBLE)
    outputs = []
    for x_t in leaf:
        gates = x_t @ w.ih.T + w.bias_ih + h.detach() @ w.hh.T + w.bias_hh
        i, f, g, o = gates.chunk(4, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    expected = torch.autograd.grad(torch.stack(outputs).pow(2).sum(), [leaf, *layer.parameters()])
    actual = torch.autograd.grad(layer(leaf)[0].pow(2).sum(), [leaf, *layer.parameters()])
    names = ["input", *(name for name, _ in layer.named_parameters())]
    assert_matches(dict(zip(names, actual, strict=True)), dict(zip(names, expected, strict=True)))
    assert _reach(layer, 8) == list(range(8))


def test_h_detach_draws_once_a_step_for_the_whole_batch_and_only_in_training() -> None:
    cuts = nn.HDetach(0.5)
    torch.manual_seed(0)
    mask, none = cuts.masks(torch.zeros(4000, 3, dtype=torch.int64), training=True)
    assert none is None
    assert torch.equal(mask[:, 0], mask[:, 1])
    # 4,000 draws: four standard deviations are 0.032
    assert abs(float(mask[:, 0].double().mean()) - 0.5) < 4 * (0.25 / 4000) ** 0.5
    assert cuts.masks(torch.zeros(4, 3, dtype=torch.int64), training=False) == (None, None)
    assert nn.HDetach(0.0).masks(torch.zeros(4, 3, dtype=torch.int64), training=True) == (None, None)


def test_h_detach_changes_gradients_only_and_is_off_in_evaluation() -> None:
    torch.manual_seed(0)
    layer, x = nn.HDetachLSTM(2, 3, p=0.5, dtype=DOUBLE), torch.randn(20, 2, 2, dtype=DOUBLE)
    plain = nn.LSTM(2, 3, dtype=DOUBLE)
    plain.load_state_dict(layer.state_dict())
    assert torch.equal(layer(x)[0], plain(x)[0])
    first, second = collect(layer, x), collect(layer, x)
    assert not torch.equal(first["grad.input"], second["grad.input"])
    assert_matches(collect(layer.eval(), x), collect(plain, x))


@pytest.mark.parametrize("make", [nn.RelLSTM, nn.MemGRU, nn.SABRNN], ids=lambda make: make.__name__)
def test_cutting_the_reads_is_detaching_the_state(make: type) -> None:
    """A cut that also cuts the reads is what ``state.detach()`` does between calls, in empty slots too."""
    torch.manual_seed(0)
    plain = make(2, 3, backend="reference", dtype=DOUBLE)
    cut = make(2, 3, backend="reference", cuts=nn.TruncatedBPTT(4, reads="cut"), dtype=DOUBLE)
    cut.load_state_dict(plain.state_dict())
    x = torch.randn(7, 2, 2, dtype=DOUBLE)

    def gradients(run) -> dict[str, torch.Tensor]:
        start = plain.initial_state(2)
        start = start._replace(relevant=start.relevant.clone().requires_grad_())
        leaf = x.clone().requires_grad_()
        output, final = run(leaf, start)
        loss = output[4:].square().sum() + final.relevant.sum() + final.recent.square().sum()
        found = torch.autograd.grad(loss, [leaf, start.relevant], allow_unused=True, materialize_grads=True)
        return dict(zip(("input", "relevant"), found, strict=True))

    def in_two_calls(leaf, start):
        _, between = plain(leaf[:4], start)
        output, final = plain(leaf[4:], between.detach())
        return torch.cat([leaf.new_zeros(4, *output.shape[1:]), output]), final

    actual = gradients(cut)
    assert not actual["relevant"].any()
    assert_matches(actual, gradients(in_two_calls))
