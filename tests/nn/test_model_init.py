"""Initial weights of a whole model: the scales of the authors' code, and nothing else touched."""

import math

import pytest
import torch
from torch import Tensor, nn

from remanence.nn import SequenceModel

N = 128
SYMBOLS = 10


def model(core: str, init: str, **options: object) -> SequenceModel:
    torch.manual_seed(0)
    return SequenceModel(SYMBOLS, core, 9, hidden_size=N, init=init, **options)


def assert_std(values: Tensor, expected: float) -> None:
    """The spread of normal numbers, within five standard errors."""
    assert abs(values.std().item() / expected - 1) < 5 / math.sqrt(2 * values.numel())


def test_gates_read_input_and_state_by_one_xavier_matrix() -> None:
    core = model("LSTM", "xavier").core
    expected = math.sqrt(2 / (N + N + SYMBOLS))
    for gate in range(4):
        rows = slice(gate * N, (gate + 1) * N)
        assert_std(core.weight_ih_l0[rows], expected)
        assert_std(core.weight_hh_l0[rows], expected)
    assert core.bias_ih_l0.abs().max() <= 1 / math.sqrt(N + SYMBOLS)


@pytest.mark.parametrize(("init", "expected"), [("xavier", math.sqrt(2 / (N + SYMBOLS))), ("kaiming", math.sqrt(0.2))])
def test_an_rnn_keeps_its_recurrent_start(init: str, expected: float) -> None:
    core = model("OrthRNN", init, recurrent_init="henaff").core
    assert_std(core.weight_ih_l0, expected)
    torch.testing.assert_close(core.weight_hh_l0 @ core.weight_hh_l0.T, torch.eye(N))
    assert core.bias_ih_l0.abs().max() > 1 / math.sqrt(N)


def test_score_and_head_are_xavier_too() -> None:
    made = model("RelRNN", "kaiming", recent=3, relevant=3, recurrent_init="henaff")
    assert_std(made.core.weight_score_l0, math.sqrt(2 / (N + 1)))
    assert_std(made.head.weight, math.sqrt(2 / (N + 9)))


def test_torch_draws_what_it_always_drew() -> None:
    torch.manual_seed(0)
    plain = SequenceModel(SYMBOLS, "RelLSTM", 9, hidden_size=N)
    same = model("RelLSTM", "torch").state_dict()
    assert all(torch.equal(value, same[name]) for name, value in plain.state_dict().items())


def test_every_layer_and_direction_is_filled() -> None:
    core = model("LSTM", "xavier", num_layers=2, bidirectional=True).core
    for suffix, columns in (("l0", SYMBOLS), ("l0_reverse", SYMBOLS), ("l1", 2 * N), ("l1_reverse", 2 * N)):
        assert_std(getattr(core, f"weight_ih_{suffix}"), math.sqrt(2 / (N + N + columns)))


def test_bad_names_and_foreign_cores_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`init` must be .*'torch'"):
        model("LSTM", "orthogonal")
    with pytest.raises(ValueError, match="`init` must be 'torch' for LSTM"):
        SequenceModel(SYMBOLS, nn.LSTM(SYMBOLS, N), 9, init="xavier")
