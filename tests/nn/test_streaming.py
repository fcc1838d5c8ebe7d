"""The protocol that the attending and convolving cores share, over every kind of core."""

import copy
import pickle
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence
from torch.testing import assert_close

from remanence.nn._convolution import CausalConvolution
from remanence.nn._multi_head_attention import MultiHeadAttention
from remanence.nn._transformer import Transformer

SIZE = 6
LENGTH = 11
CORES = {
    "attention-softmax": partial(MultiHeadAttention, SIZE, 2, causal=True),
    "attention-context": partial(MultiHeadAttention, SIZE, 2, causal=True, context=4),
    "attention-separable": partial(MultiHeadAttention, SIZE, 2, causal=True, kind="separable"),
    "attention-random": partial(MultiHeadAttention, SIZE, 2, causal=True, kind="positive-random-features"),
    "transformer": partial(Transformer, SIZE, 2, 3),
    "transformer-context": partial(Transformer, SIZE, 2, 3, context=3),
    "transformer-separable": partial(Transformer, SIZE, 2, 3, kind="separable"),
    "transformer-random": partial(Transformer, SIZE, 2, 3, kind="positive-random-features", features=5),
    "convolution": partial(CausalConvolution, SIZE, 5, 2),
    "convolution-same-size": partial(CausalConvolution, SIZE, SIZE, 2, 2),
    "convolution-pointwise": partial(CausalConvolution, SIZE, 4, 1, 1),
}
FAST = ("attention-context", "convolution")
FAST_AND_SLOW = [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CORES]
GROWING = {"attention-softmax", "transformer"}


@pytest.fixture(params=CORES)
def name(request):
    return request.param


@pytest.fixture
def core(name):
    return CORES[name](dtype=torch.float64)


def sequence(rows: int = 3, length: int = LENGTH) -> torch.Tensor:
    return torch.randn(length, rows, SIZE, dtype=torch.float64, requires_grad=True)


def in_chunks(core, x, sizes):
    outputs, state = [], core.initial_state(x.shape[1])
    for chunk in x.split(sizes):
        output, state = core(chunk, state)
        outputs.append(output)
    return torch.cat(outputs), state


def test_sizes_are_named(core):
    output, _ = core(sequence())
    assert core.input_size == SIZE
    assert core.hidden_size == core.output_size == output.shape[-1]
    assert output.shape[:2] == (LENGTH, 3)


@pytest.mark.parametrize("sizes", [[1] * LENGTH, [4, 1, 6], [10, 1], [1, 10]], ids=str)
def test_chunks_equal_the_whole_gradients_included(core, sizes):
    x = sequence()
    whole, whole_state = core(x)
    chunked, chunked_state = in_chunks(core, x, sizes)
    assert_close(chunked, whole)
    assert torch.equal(chunked_state.step, whole_state.step)
    cotangent = torch.randn_like(whole)
    parameters = [x, *core.parameters()]
    expected = torch.autograd.grad(whole, parameters, cotangent, allow_unused=True, materialize_grads=True)
    got = torch.autograd.grad(chunked, parameters, cotangent, allow_unused=True, materialize_grads=True)
    assert_close(got, expected)


@settings(max_examples=10, deadline=None)
@given(cut=st.integers(1, 149), seed=st.integers(0, 1000))
@pytest.mark.parametrize("kind", ["separable", "positive-random-features"])
def test_long_linear_streams_may_be_cut_anywhere(kind, cut, seed):
    torch.manual_seed(seed)
    core = MultiHeadAttention(SIZE, 2, kind=kind, causal=True, dtype=torch.float64)
    x = 3 * sequence(1, 150).detach()
    assert_close(in_chunks(core, x, [cut, 150 - cut])[0], core(x)[0])


@pytest.mark.parametrize("kind", ["separable", "positive-random-features"])
@pytest.mark.parametrize("loud_first", [True, False])
def test_a_loud_past_or_future_does_not_overflow(kind, loud_first):
    core = MultiHeadAttention(SIZE, 2, kind=kind, causal=True, dtype=torch.float64)
    loudness = torch.full((150, 1, 1), 1.0, dtype=torch.float64)
    loudness[:80] *= 1e4 if loud_first else 1e-4
    x = loudness * sequence(2, 150).detach()
    whole, state = core(x)
    assert whole.isfinite().all()
    assert all(field.isfinite().all() for field in state)
    assert_close(in_chunks(core, x, [80, 1, 69])[0], whole)


def test_step_by_step_equals_the_whole(core):
    x = sequence()
    state, outputs = core.initial_state(3), []
    for x_t in x:
        output, state = core.step(x_t, state)
        outputs.append(output)
    assert_close(torch.stack(outputs), core(x)[0])


def test_the_initial_state_is_no_state(core):
    x = sequence()
    assert_close(core(x, core.initial_state(3))[0], core(x)[0])


def test_no_output_depends_on_the_future_or_on_other_rows(core):
    x = sequence()
    for step in (0, 5, LENGTH - 1):
        (gradient,) = torch.autograd.grad(core(x)[0][step, 1].sum(), x)
        assert not gradient[step + 1 :].any()
        assert not gradient[:, [0, 2]].any()
        assert gradient[step, 1].any() or isinstance(core, Transformer) or step == 0


def test_batch_first_only_transposes(name):
    core = CORES[name](dtype=torch.float64)
    other = CORES[name](dtype=torch.float64, batch_first=True)
    other.load_state_dict(core.state_dict())
    x = sequence()
    output, state = core(x)
    other_output, other_state = other(x.transpose(0, 1))
    assert_close(other_output.transpose(0, 1), output)
    assert_close(tuple(other_state), tuple(state))


def test_unbatched_is_a_batch_of_one_without_its_dimension(core):
    x = sequence(1)
    output, state = core(x)
    bare_output, bare_state = core(x[:6, 0])
    rest, bare_state = core(x[6:, 0], bare_state)
    assert_close(torch.cat([bare_output, rest]), output[:, 0])
    assert [field.shape for field in bare_state] == [field.squeeze(1).shape for field in state]
    last, _ = core.step(x[0, 0], core.initial_state())
    assert_close(last, output[0, 0])


def test_padding_of_a_packed_sequence_never_enters(core):
    rows = [sequence(1, length)[:, 0].detach() for length in (4, 7, 2)]
    packed = pack_sequence(rows, enforce_sorted=False)
    output, state = core(packed)
    assert isinstance(output, PackedSequence)
    assert torch.equal(output.batch_sizes, packed.batch_sizes)
    more = sequence(3, 3)
    after, _ = core(more, state)
    for number, (row, got) in enumerate(zip(rows, unpack_sequence(output), strict=True)):
        expected, row_state = core(row)
        assert_close(got, expected)
        assert_close(after[:, number], core(more[:, number], row_state)[0])
        assert state.step[0, number] == len(row)


def test_the_state_has_a_fixed_size_unless_it_says_otherwise(core, name):
    sizes = {core(sequence(3, length))[1].nbytes for length in (1, 5, 20)}
    assert (len(sizes) == 1) == (name not in GROWING)
    if name not in GROWING:
        assert sizes == {core.initial_state(3).nbytes}


def test_rows_of_a_state_can_be_selected_and_joined(core):
    x = sequence(3)
    _, state = core(x[:6])
    expected, _ = core(x[6:], state)
    mask = torch.tensor([True, False, True])
    for rows in ([2, 0], torch.tensor([2, 0]), slice(1, 3), mask):
        got, _ = core(x[6:, rows], state.select(rows))
        assert_close(got, expected[:, rows])
    joined = type(state).cat([state.select([1, 2]), state.select([0])])
    got, _ = core(x[6:, [1, 2, 0]], joined)
    assert_close(got, expected[:, [1, 2, 0]])


def test_rows_of_different_age_can_be_joined(core):
    x = sequence(2)
    _, old = core(x[:6, :1])
    _, young = core(x[:2, 1:])
    got, _ = core(x[6:], type(old).cat([old, young]))
    assert_close(got[:, :1], core(x[6:, :1], old)[0])
    assert_close(got[:, 1:], core(x[6:, 1:], young)[0])


def test_detach_is_the_cut_between_calls(core):
    x = sequence()
    _, state = core(x[:6])
    assert not any(field.requires_grad for field in state.detach())
    output, _ = core(x[6:], state.detach())
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert not gradient[:6].any()


def test_a_state_can_be_moved_and_cast(core):
    state = core.initial_state(2).to(torch.float32)
    kinds = {field.dtype for field in state}
    assert kinds == {torch.float32, torch.int64}
    assert core.float()(torch.randn(4, 2, SIZE), state)[0].dtype == torch.float32


def test_copies_and_stored_weights_compute_the_same(core, name):
    x = sequence()
    expected, _ = core(x)
    other = CORES[name](dtype=torch.float64)
    other.load_state_dict(core.state_dict())
    for twin in (other, copy.deepcopy(core), pickle.loads(pickle.dumps(core))):
        assert torch.equal(twin(x)[0], expected)
    assert repr(other) == repr(core)


def test_two_calls_are_equal(core):
    x = sequence()
    assert torch.equal(core(x)[0], core(x)[0])


def test_meta_device(name):
    core = CORES[name](device="meta")
    output, state = core(torch.empty(LENGTH, 2, SIZE, device="meta"))
    output, state = core(torch.empty(LENGTH, 2, SIZE, device="meta"), state)
    assert output.is_meta
    assert all(field.is_meta for field in state)


def test_functional_call(core):
    x = sequence()
    weights = {key: 2 * weight for key, weight in core.state_dict().items()}
    output, _ = torch.func.functional_call(core, weights, (x,))
    core.load_state_dict(weights)
    assert_close(output, core(x)[0])


def test_gradients_are_right_through_the_state_too(core):
    x = 0.5 * sequence(2, 5).detach().requires_grad_()

    def run(x):
        first, state = core(x[:3])
        return first, core(x[3:], state)[0]

    assert torch.autograd.gradcheck(run, x)


# torch's own scaled dot product, under the softmax kinds, has no second derivative on every path.
@pytest.mark.parametrize("name", [name for name in CORES if not name.endswith(("softmax", "transformer", "context"))])
def test_second_derivatives_are_right(core):
    x = 0.5 * sequence(1, 3).detach().requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: core(x)[0], x)


@pytest.mark.parametrize("name", FAST_AND_SLOW)
def test_compiles_as_one_graph(core):
    start, rest = sequence(3, 6), sequence(3, 5)
    expected, state = core(start)
    torch._dynamo.reset()
    compiled = torch.compile(core, fullgraph=True, backend="aot_eager")
    output, compiled_state = compiled(start)
    assert_close(output, expected)
    assert_close(torch.autograd.grad(output.sum(), start), torch.autograd.grad(expected.sum(), start))
    assert_close(compiled(rest, compiled_state.detach())[0], core(rest, state)[0])


@pytest.mark.parametrize("name", FAST_AND_SLOW)
def test_exports(core):
    x = sequence().detach()
    program = torch.export.export(core, (x,))
    assert_close(program.module()(x)[0], core(x)[0])


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (torch.zeros(4, 2, SIZE + 1, dtype=torch.float64), "features"),
        (torch.zeros(4, dtype=torch.float64), "`input` must have shape"),
        (torch.zeros(4, 2, 3, SIZE, dtype=torch.float64), "`input` must have shape"),
        (torch.zeros(0, 2, SIZE, dtype=torch.float64), "at least one step"),
        (torch.zeros(4, 0, SIZE, dtype=torch.float64), "at least one step"),
        (torch.zeros(4, 2, SIZE), "dtype torch.float64"),
        (torch.zeros(4, 2, SIZE, dtype=torch.float64, device="meta"), "device"),
    ],
)
def test_bad_input_is_named(core, bad, said):
    with pytest.raises(ValueError, match=said):
        core(bad)


def test_bad_states_are_named(core):
    x = sequence(2)
    with pytest.raises(ValueError, match=r"`state\.\w+` must have shape"):
        core(x, core.initial_state(3))
    with pytest.raises(ValueError, match=r"`state\.\w+` must have shape"):
        core(x, core.initial_state())
    with pytest.raises(ValueError, match=r"`state\.\w+` must be torch\.float64 on cpu"):
        core(x, core.initial_state(2).to(torch.float32))
    with pytest.raises(TypeError, match="`state` must be a"):
        core(x, (x, x))
    with pytest.raises(ValueError, match="`batch_size` must be an int >= 1"):
        core.initial_state(0)


def test_bad_steps_are_named(core):
    with pytest.raises(ValueError, match="`input_t` must have shape"):
        core.step(torch.zeros(2, 3, SIZE, dtype=torch.float64), None)
    with pytest.raises(TypeError, match="`input_t` must be a tensor"):
        core.step([1.0], None)
