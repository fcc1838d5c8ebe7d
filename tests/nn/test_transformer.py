"""The Transformer core: its blocks against torch's, its positions, how far it sees."""

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from remanence.nn._multi_head_attention import KINDS
from remanence.nn._transformer import Transformer, sinusoidal_positions

WIDTH, HEADS = 8, 2


def sequence(length: int = 9, rows: int = 2) -> torch.Tensor:
    return torch.randn(length, rows, WIDTH, dtype=torch.float64, requires_grad=True)


def blocks(core: Transformer) -> Any:
    return core.blocks


def torch_layer(block: nn.Module) -> nn.TransformerEncoderLayer:
    """torch's own post-norm block with the same weights."""
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, dtype=torch.float64)
    names = {"attention": "self_attn", "attention_norm": "norm1", "expand": "linear1", "contract": "linear2"}
    names["feedforward_norm"] = "norm2"
    weights = {}
    for name, weight in block.state_dict().items():
        owner, _, rest = name.partition(".")
        weights[f"{names[owner]}.{rest}"] = weight
    layer.load_state_dict(weights)
    return layer


def test_blocks_equal_torch():
    core, x = Transformer(WIDTH, 2, HEADS, dtype=torch.float64), sequence()
    hidden = x + sinusoidal_positions(torch.arange(9), WIDTH, torch.float64).unsqueeze(1)
    mask = nn.Transformer.generate_square_subsequent_mask(9, dtype=torch.float64)
    for block in blocks(core):
        hidden = torch_layer(block)(hidden, src_mask=mask, is_causal=True)
    output, _ = core(x)
    assert_close(output, hidden)
    cotangent = torch.randn_like(output)
    assert_close(torch.autograd.grad(output, x, cotangent), torch.autograd.grad(hidden, x, cotangent))


def test_positions_worked_by_hand():
    # Width 4: wavelengths 2 pi and 2 pi * 100; sine and cosine alternate.
    rows = sinusoidal_positions(torch.tensor([0, 3]), 4, torch.float64)
    expected = [[0, 1, 0, 1], [math.sin(3), math.cos(3), math.sin(0.03), math.cos(0.03)]]
    assert_close(rows, torch.tensor(expected, dtype=torch.float64))


def test_positions_of_an_odd_width():
    assert sinusoidal_positions(torch.arange(5), 3).shape == (5, 3)
    assert Transformer(3, 1, 3)(torch.randn(5, 2, 3))[0].shape == (5, 2, 3)


def test_positions_are_what_tells_the_order():
    x = sequence(6, 1)
    order = torch.tensor([2, 0, 1, 3, 4, 5])
    with_positions = Transformer(WIDTH, 1, HEADS, dtype=torch.float64)
    without = Transformer(WIDTH, 1, HEADS, positions=None, dtype=torch.float64)
    assert_close(without(x[order])[0][5], without(x)[0][5])
    assert not torch.allclose(with_positions(x[order])[0][5], with_positions(x)[0][5])


def test_reach_is_depth_times_context():
    core, x = Transformer(WIDTH, 3, HEADS, context=3, dtype=torch.float64), sequence(12, 1)
    weighted = core(x)[0][11] @ torch.randn(WIDTH, dtype=torch.float64)  # a plain sum is constant under the norm
    (gradient,) = torch.autograd.grad(weighted.sum(), x)
    seen = gradient.flatten(1).any(1).nonzero().flatten().tolist()
    assert seen == list(range(12 - 1 - 3 * 2, 12))


def test_feedforward_is_four_times_the_width():
    block = blocks(Transformer(WIDTH, 1, HEADS))[0]
    assert block.expand.out_features == 4 * WIDTH
    assert blocks(Transformer(WIDTH, 1, HEADS, feedforward=5))[0].expand.out_features == 5


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_acts_in_training_only(kind):
    core, x = Transformer(WIDTH, 1, HEADS, dropout=0.5, kind=kind, dtype=torch.float64), sequence()
    assert not torch.equal(core(x)[0], core(x)[0])
    core.eval()
    assert torch.equal(core(x)[0], core(x)[0])
    assert blocks(core)[0].attention.dropout == (0.5 if kind == "softmax" else 0.0)


def test_every_block_has_its_own_features():
    options = {"kind": "positive-random-features", "feature_seed": 5}
    core, twin = Transformer(WIDTH, 2, HEADS, **options), Transformer(WIDTH, 2, HEADS, **options)
    first, second = (block.attention.projection for block in blocks(core))
    assert not torch.equal(first, second)
    assert torch.equal(first, blocks(twin)[0].attention.projection)
    core.redraw_features(torch.Generator().manual_seed(0))
    assert not torch.equal(blocks(core)[0].attention.projection, blocks(twin)[0].attention.projection)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_to_repeat_what_came_before(kind):
    # The output at t is asked for the input at t - 1: needs attention and positions together.
    core = Transformer(16, 1, 2, kind=kind)
    head = nn.Linear(16, 4)
    optimiser = torch.optim.Adam([*core.parameters(), *head.parameters()], lr=0.01)
    losses = []
    for _ in range(60):
        tokens = torch.randint(4, (8, 16))
        output, _ = core(nn.functional.one_hot(tokens, 16).float())
        loss = nn.functional.cross_entropy(head(output[1:]).flatten(0, 1), tokens[:-1].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) / 5 < 0.9 * math.log(4) < losses[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"width": 7}, "`width` must be a multiple of heads=2; got 7. The width is heads x head size"),
        ({"width": 0}, "`width` must be an int >= 1"),
        ({"depth": 0}, "`depth` must be an int >= 1"),
        ({"feedforward": 0}, "`feedforward` must be an int >= 1"),
        ({"positions": "learned"}, "`positions` must be one of 'sinusoidal', None"),
        ({"kind": "linear"}, "`kind` must be one of"),
        ({"dropout": -0.1}, "`dropout` must be"),
        ({"dropout": -0.1, "kind": "separable"}, "`dropout` must be"),
        ({"context": 3, "kind": "separable"}, "`context` must be None"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        Transformer(**{"width": WIDTH, "depth": 1, "heads": HEADS, **options})


def test_batch_first_must_be_a_bool():
    with pytest.raises(TypeError, match="`batch_first` must be a bool"):
        Transformer(WIDTH, 1, HEADS, batch_first=1)  # type: ignore[arg-type]


def test_a_state_of_another_depth_is_refused():
    core, deeper = (Transformer(WIDTH, depth, HEADS, dtype=torch.float64) for depth in (1, 2))
    with pytest.raises(ValueError, match=r"`state\.key` must have shape \(1, 2, slots, 2, 4\)"):
        core(sequence(), deeper.initial_state(2))
