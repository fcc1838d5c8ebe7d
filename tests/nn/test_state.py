"""The state as a value."""

from __future__ import annotations

import pytest
import torch

from remanence import nn
from remanence.testing import assert_matches

DOUBLE = torch.float64


def test_no_rows_can_be_selected() -> None:
    state = nn.RelLSTM(2, 3).initial_state(4).select([])
    assert {field.shape[1] for field in state} == {0}


def test_select_and_cat_are_inverse() -> None:
    layer = nn.RelLSTM(3, 4, recent=3, relevant=2)
    _, state = layer(torch.randn(9, 4, 3))
    mask = torch.tensor([True, False, True, False])
    parts = nn.State.cat([state.select(mask), state.select([1]), state.select(slice(3, 4))])
    for name, field, back in zip(nn.State._fields, state, parts.select([0, 2, 1, 3]), strict=True):
        assert torch.equal(back, field), name


def test_cat_fills_growing_memories_with_empty_slots() -> None:
    layer, x = nn.MemRNN(3, 4, dtype=DOUBLE), torch.randn(9, 2, 3, dtype=DOUBLE)
    _, short = layer(x[:4, :1])
    _, long = layer(x[:, 1:])
    joined = nn.State.cat([short, long])
    assert joined.recent.shape == (1, 2, 9, 4)
    more = torch.randn(3, 2, 3, dtype=DOUBLE)
    output, _ = layer(more, joined)
    expected = torch.cat([layer(more[:, :1], short)[0], layer(more[:, 1:], long)[0]], dim=1)
    assert_matches({"output": output}, {"output": expected})


def test_detach_cuts_everything_and_nothing_else_does() -> None:
    layer = nn.RelLSTM(3, 4, recent=3, relevant=2)
    _, state = layer(torch.randn(9, 2, 3))
    assert state.s.requires_grad
    assert state.recent.requires_grad
    assert state.relevant.requires_grad
    assert not state.recent_score.requires_grad
    assert not any(field.requires_grad for field in state.detach())


def test_to_keeps_counters_integer() -> None:
    state = nn.RelLSTM(3, 4).initial_state(2).to(torch.float64)
    assert {field.dtype for field in state} == {torch.float64, torch.int64}


def test_nbytes_counts_all_fields() -> None:
    state = nn.RelLSTM(3, 4, recent=3, relevant=2).initial_state(1)
    floats = 4 + 4 + 3 * 4 + 3 + 2 * 4 + 2  # s, c, recent, its scores, relevant, its scores
    assert state.nbytes == 4 * floats + 8 * (2 + 1)


def test_torch_hx_in_and_out() -> None:
    layer, x = nn.RelLSTM(3, 4, recent=0, relevant=0, dtype=DOUBLE), torch.randn(5, 2, 3, dtype=DOUBLE)
    h, c = torch.randn(2, 1, 2, 4, dtype=DOUBLE)
    output, state = layer(x, (h, c))
    reference = torch.nn.LSTM(3, 4, dtype=DOUBLE)
    reference.load_state_dict(layer.state_dict())
    expected, (h_n, c_n) = reference(x, (h, c))
    ours = dict(zip(("output", "h", "c"), (output, *state.hx), strict=True))
    assert_matches(ours, dict(zip(("output", "h", "c"), (expected, h_n, c_n), strict=True)))


def test_hx_starts_with_an_empty_memory_at_step_zero() -> None:
    layer = nn.RelGRU(3, 4, recent=3, relevant=2, dtype=DOUBLE)
    h = torch.randn(1, 2, 4, dtype=DOUBLE)
    _, state = layer(torch.randn(2, 2, 3, dtype=DOUBLE), h)
    assert state.step.tolist() == [[2, 2]]
    assert torch.count_nonzero(state.recent[0, :, 2]) == 0


def test_a_long_stream_keeps_its_size() -> None:
    layer = nn.RelLSTM(3, 4, recent=3, relevant=2)
    state = layer.initial_state(1)
    size = state.nbytes
    with torch.inference_mode():
        for _ in range(200):
            _, state = layer.step(torch.randn(1, 3), state)
    assert state.nbytes == size
    assert state.step.item() == 200


def test_nothing_lives_on_the_module_between_calls() -> None:
    layer, x = nn.RelLSTM(3, 4), torch.randn(15, 2, 3)
    before = set(vars(layer))
    first = layer(x)[0]
    layer(torch.randn(7, 5, 3))
    assert torch.equal(layer(x)[0], first)
    assert set(vars(layer)) == before


def test_counts_survive_a_cast_to_half_precision():
    layer = nn.RelLSTM(3, 4, recent=2, relevant=1)
    _, state = layer(torch.randn(3, 2, 3))
    state = state._replace(step=torch.full_like(state.step, 1001))
    there = state.to(torch.bfloat16)
    assert there.step.tolist() == [[1001, 1001]]
    assert there.s.dtype == torch.bfloat16


@pytest.mark.parametrize("name", ["LSTM", "RelLSTM", "RelRNN"])
def test_unpacking_as_a_pair_names_the_remedy(name: str) -> None:
    layer = nn.get_model(name)(3, 4)
    with pytest.raises(ValueError, match=r"h, c = state\.hx"):
        _, (_h, _c) = layer(torch.zeros(5, 2, 3))
    state = layer(torch.zeros(5, 2, 3))[1]
    s, c, *others = state
    assert (s is state.s, c is state.c, len(others)) == (True, True, len(state) - 2)
