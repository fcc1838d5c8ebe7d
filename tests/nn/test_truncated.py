"""TruncatedRNN against the double loop that defines it, over our layers and torch's."""

import copy
import pickle
import re
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence, unpack_sequence
from torch.testing import assert_close
from torch.utils import _pytree

from remanence.nn._memory_layers import MemRNN, RelLSTM
from remanence.nn._recurrent import GRU, LSTM, RNN
from remanence.nn._stable import StableRNN
from remanence.nn._truncated import TruncatedRNN, TruncatedState

SIZE, HIDDEN, LENGTH, BATCH = 3, 5, 9, 2
LAYERS: dict[str, Any] = {
    "RNN": RNN,
    "LSTM": partial(LSTM, num_layers=2),
    "GRU": GRU,
    "MemRNN": MemRNN,
    "RelLSTM": partial(RelLSTM, recent=2, relevant=1),
    "nn.RNN": partial(nn.RNN, num_layers=2),
    "nn.LSTM": nn.LSTM,
    "nn.LSTM projected": partial(nn.LSTM, proj_size=2),
    "nn.GRU": partial(nn.GRU, num_layers=2),
}


@pytest.fixture(params=LAYERS)
def layer(request):
    return LAYERS[request.param](SIZE, HIDDEN, dtype=torch.float64)


@pytest.fixture(params=[1, 4, LENGTH + 5], ids="k={}".format)
def window(request):
    return request.param


@pytest.fixture
def x():
    return torch.randn(LENGTH, BATCH, SIZE, dtype=torch.float64, requires_grad=True)


def flat(state) -> list[torch.Tensor]:
    return _pytree.tree_leaves(state)


def windows_from_zero(layer, x, window):
    """The definition: one run per output."""
    return torch.stack([layer(x[max(0, t - window + 1) : t + 1])[0][-1] for t in range(len(x))])


def windows_from_the_full_run(layer, x, window):
    """The definition: one run per output, from the detached state of the full run."""
    outputs = []
    for t in range(len(x)):
        begin = max(0, t - window + 1)
        start = None
        if begin:
            start = _pytree.tree_map(torch.Tensor.detach, layer(x[:begin])[1])
        outputs.append(layer(x[begin : t + 1], start)[0][-1])
    return torch.stack(outputs)


def assert_same_with_gradients(got, expected, inputs):
    assert_close(got, expected)
    cotangent = torch.randn_like(expected)
    options: dict[str, Any] = {"allow_unused": True, "materialize_grads": True}
    assert_close(
        torch.autograd.grad(got, inputs, cotangent, **options),
        torch.autograd.grad(expected, inputs, cotangent, **options),
    )


DEFINITIONS = {"zero": windows_from_zero, "carried": windows_from_the_full_run}
both = pytest.mark.parametrize("start", DEFINITIONS)


@both
def test_equals_the_double_loop_gradients_included(layer, x, window, start):
    got, _ = TruncatedRNN(layer, window, start)(x)
    assert_same_with_gradients(got, DEFINITIONS[start](layer, x, window), [x, *layer.parameters()])


@both
def test_a_window_as_long_as_the_row_is_the_full_run(layer, x, start):
    for window in (LENGTH, 2 * LENGTH):
        got, _ = TruncatedRNN(layer, window, start)(x)
        assert_same_with_gradients(got, layer(x)[0], [x, *layer.parameters()])


def test_carried_outputs_and_state_are_those_of_the_full_run(layer, x, window):
    got, after = TruncatedRNN(layer, window, "carried")(x)
    expected, expected_after = layer(x)
    assert_close(got, expected)
    assert_close(flat(after), flat(expected_after))
    assert not any(field.requires_grad for field in flat(after))


@both
def test_gradient_reaches_exactly_the_window(layer, x, window, start):
    output, _ = TruncatedRNN(layer, window, start)(x)
    for t in range(LENGTH):
        (gradient,) = torch.autograd.grad(output[t].sum(), x, retain_graph=True)
        reached = (gradient != 0).any(dim=2).all(dim=1)
        assert reached.tolist() == [t - window < past <= t for past in range(LENGTH)]
        assert torch.equal(reached, (gradient != 0).any(dim=2).any(dim=1))


def test_values_before_the_window_do_not_matter_from_zero(layer, x):
    model = TruncatedRNN(layer, 3)
    other = x.detach().clone()
    other[:4] = torch.nan
    assert torch.equal(model(other)[0][6:], model(x)[0][6:])


def test_carried_gradient_reaches_a_given_state_within_the_window(x):
    layer = GRU(SIZE, HIDDEN, dtype=torch.float64)
    h = torch.randn(1, BATCH, HIDDEN, dtype=torch.float64, requires_grad=True)
    output, _ = TruncatedRNN(layer, 4, "carried")(x, h)
    assert_close(output, layer(x, h)[0])
    reached = [bool(torch.autograd.grad(step.sum(), h, retain_graph=True)[0].any()) for step in output[:4]]
    assert reached == [True] * 4
    assert torch.autograd.grad(output[4:].sum(), h, allow_unused=True, materialize_grads=True)[0].eq(0).all()


@pytest.mark.parametrize("sizes", [[1] * LENGTH, [4, 1, 4]], ids=str)
def test_chunks_equal_the_whole_from_zero_gradients_included(layer, x, window, sizes):
    model = TruncatedRNN(layer, window)
    whole, whole_state = model(x)
    outputs, state = [], None
    for chunk in x.split(sizes):
        output, state = model(chunk, state)
        outputs.append(output)
    assert_same_with_gradients(torch.cat(outputs), whole, [x, *layer.parameters()])
    assert_close(flat(state), flat(whole_state))


@both
def test_step_by_step_equals_the_whole(layer, x, start):
    model = TruncatedRNN(layer, 3, start)
    state = model.initial_state(BATCH)
    for x_t, expected in zip(x, model(x)[0], strict=True):
        output, state = model.step(x_t, state)
        assert_close(output, expected)


@both
def test_unbatched_equals_one_row(layer, x, start):
    model = TruncatedRNN(layer, 3, start)
    expected, _ = model(x)
    got, state = model(x[:5, 0])
    rest, _ = model(x[5:, 0], state)
    assert_close(torch.cat([got, rest]), expected[:, 0])
    again, _ = model.step(x[0, 0], model.initial_state())
    assert_close(again, expected[0, 0])


@both
@pytest.mark.parametrize("kind", [LSTM, nn.LSTM])
def test_batch_first_is_the_layers(kind, x, start):
    layer = kind(SIZE, HIDDEN, dtype=torch.float64)
    other = kind(SIZE, HIDDEN, batch_first=True, dtype=torch.float64)
    other.load_state_dict(layer.state_dict())
    model = TruncatedRNN(other, 3, start)
    expected, state = TruncatedRNN(layer, 3, start)(x)
    got, got_state = model(x.transpose(0, 1))
    assert model.batch_first
    assert_close(got.transpose(0, 1), expected)
    assert_close(flat(got_state), flat(state))
    assert_close(model.step(x[0])[0], expected[0])


@both
def test_packed_rows_are_independent(layer, start):
    model = TruncatedRNN(layer, 3, start)
    rows = [torch.randn(length, SIZE, dtype=torch.float64) for length in (4, 7, 1)]
    packed, state = model(pack_sequence(rows, enforce_sorted=False))
    following = torch.randn(2, len(rows), SIZE, dtype=torch.float64)
    after, _ = model(following, state)
    for number, (row, output) in enumerate(zip(rows, unpack_sequence(packed), strict=True)):
        expected, row_state = model(row)
        assert_close(output, expected)
        assert_close(after[:, number], model(following[:, number], row_state)[0])


@both
def test_sizes_are_named(layer, x, start):
    model = TruncatedRNN(layer, 3, start)
    assert (model.input_size, model.hidden_size, model.batch_first) == (SIZE, HIDDEN, False)
    assert model(x)[0].shape == (LENGTH, BATCH, model.output_size)
    assert f"window=3, start='{start}'" in repr(model)


@both
def test_copies_and_pickles_give_the_same(layer, x, start):
    model = TruncatedRNN(layer, 3, start)
    expected = model(x)[0]
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin(x)[0], expected)


def test_state_from_zero_has_a_fixed_size_and_the_usual_methods(x):
    model = TruncatedRNN(nn.GRU(SIZE, HIDDEN, dtype=torch.float64), 4)
    _, state = model(x)
    assert isinstance(state, TruncatedState)
    assert state.input.shape == (1, BATCH, 3, SIZE)
    assert torch.equal(state.input[0, 1], x[-3:, 1])
    assert state.step.tolist() == [[LENGTH] * BATCH]
    assert state.nbytes == model.initial_state(BATCH).nbytes
    assert state.input.requires_grad
    assert not state.detach().input.requires_grad
    twice = TruncatedState.cat([state.select([1]), state.select([0])])
    assert torch.equal(twice.input, state.input.flip(1))


@pytest.mark.parametrize("nonlinearity", ["tanh", "identity"])
def test_truncation_error_of_a_stable_rnn_decays_as_promised(nonlinearity):
    # Lemma 1: |h_t - h_t^k| <= lambda^k |h_{t-k}| <= lambda^k L_x B_x / (1 - lambda), with L_x the norm of W_ih.
    layer = StableRNN(SIZE, 8, nonlinearity=nonlinearity, bias=False, contraction=0.8, dtype=torch.float64)
    nn.init.normal_(layer.get_parameter("weight_hh_l0"))
    layer.project_()
    factor = layer.certificate().factor
    x = nn.functional.normalize(torch.randn(60, 4, SIZE, dtype=torch.float64), dim=2)
    full, _ = layer(x)
    reach = torch.linalg.matrix_norm(layer.get_parameter("weight_ih_l0"), ord=2) / (1 - factor)
    for window in (1, 2, 5, 10, 20):
        error = (TruncatedRNN(layer, window)(x)[0] - full).norm(dim=2)
        assert error[:window].max() < error[window:].max()
        assert (error[window:] <= factor**window * full[:-window].norm(dim=2)).all()
        assert error.max() <= factor**window * reach


# ---- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: TruncatedRNN(nn.GRU(3, 4), 0), ValueError, "`window` must be an int >= 1; got 0"),
        (lambda: TruncatedRNN(nn.GRU(3, 4), 2.0), TypeError, "`window` must be an int >= 1; got 2.0"),  # type: ignore
        (lambda: TruncatedRNN(nn.GRU(3, 4), 2, "carry"), ValueError, "Did you mean 'carried'?"),  # type: ignore
        (lambda: TruncatedRNN(nn.Linear(3, 4), 2), TypeError, "`layer` must be a recurrent layer"),
        (lambda: TruncatedRNN(GRU(3, 4, bidirectional=True), 2), ValueError, "`layer` must run forward only"),
        (lambda: TruncatedRNN(nn.GRU(3, 4, bidirectional=True), 2), ValueError, "`layer` must run forward only"),
        (
            lambda: TruncatedRNN(GRU(3, 4, 2, dropout=0.5), 2, "carried"),
            ValueError,
            "`layer` must have dropout 0 with start='carried'; got 0.5",
        ),
    ],
)
def test_bad_arguments_are_named(make, error, text):
    with pytest.raises(error, match=re.escape(text)):
        make()


@pytest.mark.parametrize(
    ("start", "state", "error", "text"),
    [
        ("zero", torch.zeros(1, 2, 4), TypeError, "`state` must be a TruncatedState; got Tensor"),
        ("zero", TruncatedRNN(nn.GRU(3, 4), 5).initial_state(2), ValueError, "`state.input` must have shape"),
        ("zero", TruncatedRNN(nn.GRU(3, 4), 3).initial_state(1), ValueError, "`state.input` must have shape"),
        ("carried", TruncatedRNN(nn.GRU(3, 4), 3).initial_state(2), TypeError, "`state` must be a state of the"),
    ],
)
def test_a_wrong_state_is_refused(start, state, error, text):
    with pytest.raises(error, match=re.escape(text)):
        TruncatedRNN(nn.GRU(3, 4), 3, start)(torch.randn(5, 2, 3), state)


@both
def test_a_state_of_another_batch_is_refused_by_our_layers(start):
    model = TruncatedRNN(GRU(3, 4), 3, start)
    with pytest.raises(ValueError, match="`state"):
        model(torch.randn(5, 2, 3), model.initial_state(1))


@pytest.mark.parametrize("shape", [(5,), (5, 2, 4), (0, 2, 3), (5, 2, 3, 1)], ids=str)
def test_wrong_input_is_refused(shape):
    with pytest.raises(ValueError, match="`input` must"):
        TruncatedRNN(nn.GRU(3, 4), 3)(torch.zeros(shape))
