"""Linear attention against worked examples, the explicit n x n definition, and the theory of random features."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from remanence.nn._feature_sums import CHUNK
from remanence.nn._linear_attention import (
    orthogonal_gaussian_projection,
    positive_random_features,
    random_feature_attention,
    random_feature_logits,
    separable_attention,
)

SHAPE = (2, 3)  # batch and heads
LENGTHS = [1, 2, 3, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 5]
causal_or_not = pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])


def triple(length: int, size: int = 4, scale: float = 1.0, keys: int | None = None) -> list[torch.Tensor]:
    lengths = (length, keys or length, keys or length)
    tensors = [torch.randn(*SHAPE, steps, size, dtype=torch.float64) for steps in lengths]
    return [(x * factor).requires_grad_() for x, factor in zip(tensors, (scale, scale, 1.0), strict=True)]


def past(length: int) -> torch.Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def explicit_separable(query, key, causal):
    """The n x n matrix by its definition: the softmax over positions taken anew for every query."""
    allowed = past(len(query[0, 0])) if causal else torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool)
    shares = key.unsqueeze(-3).masked_fill(~allowed.unsqueeze(-1), -math.inf).softmax(-2)
    return (query.softmax(-1).unsqueeze(-2) * shares).sum(-1)


def explicit_random(query, key, projection, causal):
    """The n x n matrix of the kernel's estimates, normalised row by row; in logarithms."""
    query_logits, key_logits = random_feature_logits(query, key, projection, query.shape[-1] ** -0.5)
    kernel = (query_logits.unsqueeze(-2) + key_logits.unsqueeze(-3)).logsumexp(-1)
    return (kernel.masked_fill(~past(kernel.shape[-1]), -math.inf) if causal else kernel).softmax(-1)


def assert_same_with_gradients(output, expected, inputs):
    assert_close(output, expected)
    cotangent = torch.randn_like(expected)
    got, wanted = (torch.autograd.grad(y, inputs, cotangent) for y in (output, expected))
    assert_close(got, wanted)


# Worked by hand. With logits ln 3 and 0 a softmax over two gives 3/4 and 1/4.
#   softmax_row(Q) = [[3/4, 1/4], [1/2, 1/2]],   softmax_col(K) = [[1/4, 1/2], [3/4, 1/2]]
#   A = softmax_row(Q) softmax_col(K)^T = [[5/16, 11/16], [3/8, 5/8]],   V = [16, 32]
HAND_QUERY = torch.tensor([[math.log(3), 0], [0, 0]], dtype=torch.float64)
HAND_KEY = torch.tensor([[0, 0], [math.log(3), 0]], dtype=torch.float64)
HAND_VALUE = torch.tensor([[16.0], [32.0]], dtype=torch.float64)


def test_separable_attention_worked_by_hand():
    expected = torch.tensor([[27.0], [26.0]], dtype=torch.float64)
    assert_close(separable_attention(HAND_QUERY, HAND_KEY, HAND_VALUE), expected)


def test_causal_separable_attention_worked_by_hand():
    # The first query sees the first key alone; the second sees both, as above.
    expected = torch.tensor([[16.0], [26.0]], dtype=torch.float64)
    assert_close(separable_attention(HAND_QUERY, HAND_KEY, HAND_VALUE, causal=True), expected)


def test_random_feature_attention_worked_by_hand():
    # One feature w = ln 2, scale 1: f(k) = 2^k e^(-k^2/2); keys 0 and 1 weigh 1 and 2/sqrt(e), whatever the query.
    query, key = torch.tensor([[5.0], [-3.0]]).double(), torch.tensor([[0.0], [1.0]]).double()
    projection = torch.tensor([[math.log(2)]], dtype=torch.float64)
    late = 2 / math.sqrt(math.e)
    mean = (16 + 32 * late) / (1 + late)
    output = random_feature_attention(query, key, HAND_VALUE, projection, scale=1.0)
    assert_close(output, torch.full((2, 1), mean, dtype=torch.float64))
    output = random_feature_attention(query, key, HAND_VALUE, projection, scale=1.0, causal=True)
    assert_close(output, torch.tensor([[16.0], [mean]], dtype=torch.float64))


@causal_or_not
@pytest.mark.parametrize("length", LENGTHS)
def test_separable_equals_its_definition(length, causal):
    query, key, value = triple(length)
    expected = explicit_separable(query, key, causal) @ value
    assert_same_with_gradients(separable_attention(query, key, value, causal=causal), expected, (query, key, value))


@causal_or_not
@pytest.mark.parametrize("length", LENGTHS)
def test_random_features_equal_their_definition(length, causal):
    query, key, value = triple(length)
    projection = torch.randn(7, 4, dtype=torch.float64)
    expected = explicit_random(query, key, projection, causal) @ value
    output = random_feature_attention(query, key, value, projection, causal=causal)
    assert_same_with_gradients(output, expected, (query, key, value))


@settings(max_examples=30, deadline=None)
@given(length=st.integers(1, 200), exponent=st.floats(-3, 3), seed=st.integers(0, 10_000))
def test_causal_forms_are_right_at_every_length_and_size(length, exponent, seed):
    torch.manual_seed(seed)
    query, key, value = triple(length, scale=10.0**exponent)
    assert_close(separable_attention(query, key, value, causal=True), explicit_separable(query, key, True) @ value)
    projection = torch.randn(5, 4, dtype=torch.float64)
    expected = explicit_random(query, key, projection, True) @ value
    assert_close(random_feature_attention(query, key, value, projection, causal=True), expected)


def test_keys_may_outnumber_queries():
    query, key, value = triple(3, keys=8)
    assert_close(separable_attention(query, key, value), explicit_separable(query, key, False) @ value)


def test_rows_are_distributions_of_rank_at_most_d():
    query, key, _ = triple(9, size=3)
    matrix = separable_attention(query, key, torch.eye(9, dtype=torch.float64).expand(*SHAPE, 9, 9))
    assert (matrix >= 0).all()
    assert_close(matrix.sum(-1), torch.ones(*SHAPE, 9, dtype=torch.float64))
    assert (torch.linalg.matrix_rank(matrix) == 3).all()
    assert (torch.linalg.matrix_rank(torch.softmax(query @ key.mT, -1)) > 3).all()


def test_causal_rows_are_distributions_over_the_past():
    query, key, _ = triple(70, size=3)
    identity = torch.eye(70, dtype=torch.float64).expand(*SHAPE, 70, 70)
    matrices = [separable_attention(query, key, identity, causal=True)]
    matrices.append(random_feature_attention(query, key, identity, torch.randn(5, 3).double(), causal=True))
    for matrix in matrices:
        assert (matrix >= 0).all()
        assert not matrix.triu(1).any()
        assert_close(matrix.sum(-1), torch.ones(*SHAPE, 70, dtype=torch.float64))


@causal_or_not
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_large_inputs_stay_finite_and_within_the_values(dtype, causal):
    query, key, value = (x.to(dtype).detach().requires_grad_() for x in triple(150, scale=1e3))
    projection = torch.randn(9, 4).to(dtype)
    outputs = [separable_attention(query, key, value, causal=causal)]
    outputs.append(random_feature_attention(query, key, value, projection, causal=causal))
    for output in outputs:
        assert output.dtype == dtype
        assert output.isfinite().all()
        assert output.abs().max() <= value.abs().max() * (1 + 4 * torch.finfo(dtype).eps)
        gradients = torch.autograd.grad(output.sum(), (query, key, value))
        assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("offset", [-1e4, 1e4])
def test_a_shift_of_the_keys_cancels(offset):
    query, key, value = triple(130)
    for causal in (False, True):
        shifted = separable_attention(query, key + offset, value, causal=causal)
        # The shifted logits themselves are rounded to eps * offset.
        limit = abs(offset) * torch.finfo(torch.float64).eps * value.abs().max()
        assert (shifted - separable_attention(query, key, value, causal=causal)).abs().max() <= limit


@causal_or_not
def test_masked_keys_do_not_exist(causal):
    query, key, value = triple(8)
    projection = torch.randn(5, 4, dtype=torch.float64)
    kept = torch.tensor([1, 2, 5, 7])
    padded = torch.ones(*SHAPE, 8, dtype=torch.bool)
    padded[..., kept] = False
    few = [x[..., kept, :] for x in (query, key, value)]
    for attend in (separable_attention, partial(random_feature_attention, projection=projection)):
        output = attend(query, key, value, causal=causal, key_padding_mask=padded)
        assert_close(output[..., kept, :], attend(*few, causal=causal))
        if causal:
            assert not output[..., 0, :].any()
        gradient = torch.autograd.grad(output.sum(), value)[0]
        assert not gradient[padded].any()


def test_nothing_to_see_reads_nothing():
    query, key, value = triple(3)
    everything = torch.ones(*SHAPE, 3, dtype=torch.bool)
    for causal in (False, True):
        output = separable_attention(query, key, value, causal=causal, key_padding_mask=everything)
        assert not output.any()
        assert all(g.isfinite().all() for g in torch.autograd.grad(output.sum(), (query, key, value)))


class LargestTensor(TorchDispatchMode):
    """Records the most elements that any operation returned."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        tensors = tree_leaves(result)
        sizes = [x.numel() for x in tensors if isinstance(x, torch.Tensor)]
        self.elements = max(self.elements, *sizes, 0)
        return result


def largest(attend, length: int) -> int:
    query, key, value = (torch.randn(length, 4, requires_grad=True) for _ in range(3))
    with LargestTensor() as record:
        attend(query, key, value).sum().backward()
    return record.elements


@causal_or_not
@pytest.mark.parametrize("kind", ["separable", "random"])
def test_the_square_matrix_is_never_formed(kind, causal):
    projection = torch.randn(6, 4)

    def attend(query, key, value):
        if kind == "separable":
            return separable_attention(query, key, value, causal=causal)
        return random_feature_attention(query, key, value, projection, causal=causal)

    short, long = largest(attend, 1024), largest(attend, 4096)
    assert long <= 4 * short  # forward and backward, every intermediate, grow in proportion
    assert long <= 4096 * CHUNK  # at most one chunk of columns, far from 4096 * 4096


def saved_bytes(attend, length: int) -> int:
    """Bytes that wait for the backward pass, each storage counted once."""
    sizes = {}

    def record(x):
        sizes[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(record, lambda x: x):
        output = attend(*(torch.randn(length, 4, requires_grad=True) for _ in range(3)))
    assert output.requires_grad  # and the graph, which holds the storages, is still alive
    return sum(sizes.values())


@pytest.mark.parametrize(
    "attend", [separable_attention, partial(random_feature_attention, projection=torch.ones(6, 4))]
)
def test_training_memory_is_linear(attend):
    short, middle, long = (saved_bytes(partial(attend, causal=True), length) for length in (1024, 2048, 3072))
    assert long - middle == middle - short  # every further step costs the same


def test_the_recorder_sees_a_square_matrix():
    assert largest(lambda q, k, v: torch.softmax(q @ k.T, -1) @ v, 512) == 512**2


# Random features: with many independent draws a mean is off by more than 5 standard errors once in 1.7 million, and
# the seed is fixed.
DRAWS = 20_000
QUERY = torch.tensor([0.3, -0.5, 0.2, 0.1], dtype=torch.float64)
KEY = torch.tensor([-0.2, 0.4, 0.6, 0.3], dtype=torch.float64)


def kernel_draws(orthogonal: bool, features: int, draws: int = DRAWS) -> torch.Tensor:
    generator = torch.Generator().manual_seed(4)
    if orthogonal:
        drawn = [orthogonal_gaussian_projection(features, 4, generator, dtype=torch.float64) for _ in range(draws)]
        projections = torch.stack(drawn)
    else:
        projections = torch.randn(draws, features, 4, generator=generator, dtype=torch.float64)
    flat = projections.flatten(0, 1)
    product = positive_random_features(QUERY, flat) * positive_random_features(KEY, flat)
    return product.unflatten(0, (draws, features)).sum(-1) * draws  # the features were divided by sqrt(draws * m) each


@pytest.mark.parametrize("orthogonal", [False, True], ids=["iid", "orthogonal"])
def test_features_are_unbiased_for_the_kernel(orthogonal):
    draws = kernel_draws(orthogonal, 8, 4000 if orthogonal else DRAWS)
    standard_error = draws.std() / math.sqrt(len(draws))
    assert (draws.mean() - (QUERY @ KEY).exp()).abs() < 5 * standard_error


@pytest.mark.parametrize("features", [1, 4, 16])
def test_variance_of_independent_features(features):
    draws = kernel_draws(False, features)
    theory = (2 * QUERY @ KEY).exp() * ((QUERY + KEY).square().sum().exp() - 1) / features
    deviations = (draws - draws.mean()).square()
    standard_error = deviations.std() / math.sqrt(DRAWS)
    assert (deviations.mean() - theory).abs() < 5 * standard_error


def test_orthogonal_features_vary_less():
    assert kernel_draws(True, 4, 4000).var() < kernel_draws(False, 4, 4000).var()


def normalised_errors(features: int) -> torch.Tensor:
    """Errors of the normalised output at one place, over independent draws of the features."""
    query, key, value = QUERY.unsqueeze(0), torch.stack([KEY, -KEY]), HAND_VALUE / 16
    exact = torch.softmax(query @ key.T, -1) @ value
    generator = torch.Generator().manual_seed(0)
    projections = torch.randn(DRAWS, features, 4, generator=generator, dtype=torch.float64)
    return (random_feature_attention(query, key, value, projections, scale=1.0) - exact).flatten()


def test_the_normalised_output_is_biased_and_converges():
    few, many = normalised_errors(8), normalised_errors(128)
    assert few.mean().abs() > 5 * few.std() / math.sqrt(DRAWS)  # the features are unbiased, their quotient is not
    assert many.mean().abs() < few.mean().abs()
    assert many.square().mean() < few.square().mean() / 8  # the squared error falls like 1/m, here by about 16


@pytest.mark.parametrize(("features", "size"), [(3, 5), (5, 5), (13, 5), (2, 1)])
def test_orthogonal_projection(features, size):
    projection = orthogonal_gaussian_projection(features, size, torch.Generator().manual_seed(1), dtype=torch.float64)
    assert projection.shape == (features, size)
    for block in projection.split(size):
        gram = block @ block.T
        assert_close(gram, gram.diagonal().diag())
    again = orthogonal_gaussian_projection(features, size, torch.Generator().manual_seed(1), dtype=torch.float64)
    assert torch.equal(projection, again)


def test_rows_of_the_orthogonal_projection_are_standard_gaussian():
    generator = torch.Generator().manual_seed(2)
    rows = torch.stack([orthogonal_gaussian_projection(1, 3, generator, dtype=torch.float64)[0] for _ in range(4000)])
    standard_error = 1 / math.sqrt(4000)
    assert (rows.mean(0).abs() < 5 * standard_error).all()
    assert ((rows.T @ rows / 4000 - torch.eye(3)).abs() < 5 * math.sqrt(2) * standard_error).all()
    assert (rows.pow(4).mean() - 3).abs() < 5 * math.sqrt(96 / 12000)  # var of a fourth power of N(0, 1) is 96


def test_bad_arguments_are_named():
    query, key, value = torch.zeros(3, 4), torch.zeros(5, 4), torch.zeros(5, 2)
    with pytest.raises(ValueError, match="`key` must have 3 steps when causal; got 5"):
        separable_attention(query, key, value, causal=True)
    with pytest.raises(ValueError, match="`key` must have shape"):
        separable_attention(torch.zeros(3, 2), key, value)
    with pytest.raises(ValueError, match="`value` must have shape"):
        separable_attention(query, key, value[:4])
    with pytest.raises(TypeError, match="`causal` must be a bool"):
        separable_attention(query, key, value, causal=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`key_padding_mask` must have shape"):
        separable_attention(query, key, value, key_padding_mask=torch.zeros(3, dtype=torch.bool))
    with pytest.raises(TypeError, match="`key_padding_mask` must be a bool tensor"):
        separable_attention(query, key, value, key_padding_mask=torch.zeros(5))
    with pytest.raises(ValueError, match="`projection` must have shape"):
        random_feature_attention(query, key, value, torch.zeros(6, 3))
    with pytest.raises(ValueError, match="`scale` must be a finite number > 0"):
        random_feature_attention(query, key, value, torch.zeros(6, 4), scale=0.0)
    with pytest.raises(ValueError, match="`projection` must have shape"):
        positive_random_features(query, torch.zeros(6, 3))
    with pytest.raises(ValueError, match="`features` must be an int >= 1"):
        orthogonal_gaussian_projection(0, 3)
    with pytest.raises(ValueError, match="`size` must be an int >= 1"):
        orthogonal_gaussian_projection(3, 0)
