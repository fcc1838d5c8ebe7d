"""Multi-head attention: equal to torch's where torch has it, to its own functional forms elsewhere."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from remanence.nn._attention_state import CacheState, RunningState
from remanence.nn._linear_attention import random_feature_attention, separable_attention
from remanence.nn._multi_head_attention import KINDS, MultiHeadAttention

WIDTH, HEADS = 8, 2
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
every_kind = pytest.mark.parametrize("kind", KINDS)


def double(**options) -> MultiHeadAttention:
    return MultiHeadAttention(WIDTH, HEADS, dtype=torch.float64, **options)


def sequence(length: int = 7, rows: int = 3) -> torch.Tensor:
    return torch.randn(length, rows, WIDTH, dtype=torch.float64, requires_grad=True)


def torch_twin(attention: MultiHeadAttention) -> nn.MultiheadAttention:
    twin = nn.MultiheadAttention(WIDTH, HEADS, bias=attention.in_proj_bias is not None, dtype=torch.float64)
    twin.load_state_dict(attention.state_dict())
    return twin


@causal_or_not
@pytest.mark.parametrize("bias", [True, False])
def test_softmax_equals_torch_outputs_and_gradients(causal, bias):
    attention = double(causal=causal, bias=bias)
    for name, parameter in attention.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    twin, x = torch_twin(attention), sequence()
    mask = torch.ones(7, 7, dtype=torch.bool).triu(1) if causal else None
    expected, _ = twin(x, x, x, attn_mask=mask, need_weights=False)
    output, _ = attention(x)
    assert_close(output, expected)
    cotangent = torch.randn_like(output)
    got = torch.autograd.grad(output, [x, *attention.parameters()], cotangent)
    wanted = torch.autograd.grad(expected, [x, *twin.parameters()], cotangent)
    assert_close(got, wanted)


def test_softmax_over_a_memory_with_padding_equals_torch():
    attention, x, memory = double(), sequence(), sequence(5)
    padded = torch.zeros(5, 3, dtype=torch.bool)
    padded[3:, 1] = True
    expected, _ = torch_twin(attention)(x, memory, memory, key_padding_mask=padded.T, need_weights=False)
    assert_close(attention(x, memory=memory, key_padding_mask=padded)[0], expected)


@causal_or_not
@pytest.mark.parametrize("kind", KINDS[1:])
def test_linear_kinds_equal_their_functions(kind, causal):
    attention, x = double(kind=kind, causal=causal), sequence()
    heads = nn.functional.linear(x, attention.in_proj_weight, attention.in_proj_bias).unflatten(-1, (3, HEADS, -1))
    query, key, value = heads.permute(2, 1, 3, 0, 4)
    if kind == "separable":
        read = separable_attention(query, key, value, causal=causal)
    else:
        read = random_feature_attention(query, key, value, attention.projection, causal=causal)
    assert_close(attention(x)[0], attention.out_proj(read.permute(2, 0, 1, 3).flatten(-2)))


@every_kind
def test_a_memory_of_the_input_itself_is_self_attention(kind):
    attention, x = double(kind=kind), sequence()
    assert_close(attention(x, memory=x)[0], attention(x)[0])
    assert_close(attention(x[:, 0], memory=x[:, 0])[0], attention(x)[0][:, 0])


@every_kind
@causal_or_not
def test_masked_positions_do_not_exist(kind, causal):
    attention, x = double(kind=kind, causal=causal), sequence(rows=1)
    padded = torch.tensor([True, False, False, True, False, True, True])
    output, state = attention(x, key_padding_mask=padded.unsqueeze(1))
    expected, expected_state = attention(x[~padded])
    assert_close(output[~padded], expected)
    assert output.isfinite().all()
    if causal:
        more = sequence(rows=1)
        assert_close(attention(more, state)[0], attention(more, expected_state)[0])
        assert torch.equal(state.step, expected_state.step)
        assert_close(output[0, 0], attention.out_proj.bias)  # sees nothing, reads 0


def test_masks_follow_the_layout_of_the_input():
    attention, x = double(batch_first=True), sequence()
    padded = torch.rand(7, 3) < 0.3
    padded[0] = False
    first, _ = attention(x.transpose(0, 1), key_padding_mask=padded.T)
    attention.batch_first = False
    assert_close(first.transpose(0, 1), attention(x, key_padding_mask=padded)[0])
    assert_close(attention(x[:, 1], key_padding_mask=padded[:, 1])[0], first[1])


@pytest.mark.parametrize("context", [1, 3, 7, 20])
def test_context_is_how_far_a_step_sees(context):
    attention, x = double(causal=True, context=context), sequence(9, 1)
    output, state = attention(x)
    (gradient,) = torch.autograd.grad(output[8].sum(), x)
    seen = gradient.flatten(1).any(1).nonzero().flatten().tolist()
    assert seen == list(range(max(0, 9 - context), 9))
    assert state.key.shape[2] == context - 1
    if context >= 9:
        unlimited = double(causal=True)
        unlimited.load_state_dict(attention.state_dict())
        assert_close(unlimited(x)[0], output)


def test_state_kinds():
    assert isinstance(double(causal=True).initial_state(2), CacheState)
    for kind in KINDS[1:]:
        state = double(causal=True, kind=kind).initial_state(2)
        assert isinstance(state, RunningState)
        assert state.total.shape[:3] == (1, 2, HEADS)
    assert double()(sequence())[1] is None


@every_kind
def test_large_inputs_stay_finite(kind):
    attention = MultiHeadAttention(WIDTH, HEADS, kind=kind, causal=True)
    x = (1e3 * torch.randn(100, 2, WIDTH)).requires_grad_()
    output, state = attention(x)
    output.sum().backward()
    assert output.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert all(field.isfinite().all() for field in state)


@every_kind
def test_half_precision_and_autocast(kind):
    attention = MultiHeadAttention(WIDTH, HEADS, kind=kind, causal=True, dtype=torch.bfloat16)
    output, state = attention(torch.randn(5, 2, WIDTH, dtype=torch.bfloat16))
    assert attention(torch.randn(5, 2, WIDTH, dtype=torch.bfloat16), state)[0].dtype == output.dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert attention.float()(torch.randn(5, 2, WIDTH))[0].isfinite().all()


def test_dropout_acts_in_training_only():
    attention, x = double(dropout=0.5), sequence()
    assert not torch.equal(attention(x)[0], attention(x)[0])
    attention.eval()
    assert torch.equal(attention(x)[0], attention(x)[0])


def test_features_have_their_own_seed():
    options = {"kind": "positive-random-features", "features": 6}
    first, second, third = (double(feature_seed=seed, **options) for seed in (3, 3, 4))
    assert torch.equal(first.projection, second.projection)
    assert not torch.equal(first.projection, third.projection)
    assert not torch.equal(first.projection[0], first.projection[1])
    assert first.projection.shape == (HEADS, 6, 4)
    assert "projection" in first.state_dict()
    first.redraw_features(torch.Generator().manual_seed(4))
    assert torch.equal(first.projection, third.projection)
    first.reset_parameters()
    assert torch.equal(first.projection, second.projection)


def test_features_are_orthogonal_on_request():
    for orthogonal in (True, False):
        rows = double(kind="positive-random-features", features=4, orthogonal=orthogonal).projection[0]
        gram = rows @ rows.T
        assert torch.allclose(gram, gram.diagonal().diag()) == orthogonal


def test_default_number_of_features():
    assert double(kind="positive-random-features").features == 6  # ceil(4 ln 4)
    assert MultiHeadAttention(2, 2, kind="positive-random-features").features == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"width": 7}, "`width` must be a multiple of heads=2; got 7"),
        ({"width": 0}, "`width` must be an int >= 1"),
        ({"heads": 0}, "`heads` must be an int >= 1"),
        ({"kind": "linear"}, "`kind` must be one of"),
        ({"dropout": 1.5}, "`dropout` must be"),
        ({"dropout": 0.1, "kind": "separable"}, "`dropout` must be 0 unless kind='softmax'"),
        ({"context": 4}, "`context` must be None unless causal"),
        ({"context": 4, "causal": True, "kind": "separable"}, "`context` must be None unless causal"),
        ({"context": 0, "causal": True}, "`context` must be an int >= 1"),
        ({"features": 4}, "must be left out unless kind='positive-random-features'"),
        ({"feature_seed": 4}, "must be left out unless kind='positive-random-features'"),
        ({"orthogonal": False, "kind": "separable"}, "must be left out unless kind='positive-random-features'"),
        ({"features": 0, "kind": "positive-random-features"}, "`features` must be an int >= 1"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        MultiHeadAttention(**{"width": WIDTH, "heads": HEADS, **options})


def test_bad_calls_are_named():
    attention, causal, x = double(), double(causal=True), sequence()
    with pytest.raises(ValueError, match="`memory` must be None when causal"):
        causal(x, memory=x)
    with pytest.raises(ValueError, match="`state` must be None unless causal"):
        attention(x, causal.initial_state(3))
    with pytest.raises(ValueError, match="`causal` must be True"):
        attention.initial_state(3)
    with pytest.raises(ValueError, match=r"`memory` must have shape \(S, 3, 8\)"):
        attention(x, memory=x[:, :2])
    with pytest.raises(ValueError, match=r"`memory` must be torch\.float64 on cpu"):
        attention(x, memory=x.float())
    with pytest.raises(ValueError, match="`key_padding_mask` must have shape"):
        attention(x, key_padding_mask=torch.zeros(3, 7, dtype=torch.bool))
    with pytest.raises(TypeError, match="`key_padding_mask` must be a bool tensor"):
        attention(x, key_padding_mask=torch.zeros(7, 3))
    with pytest.raises(ValueError, match="`kind` must be 'positive-random-features'"):
        attention.redraw_features()
    with pytest.raises(TypeError, match="`state` must be a CacheState"):
        causal(x, double(causal=True, kind="separable").initial_state(3))
