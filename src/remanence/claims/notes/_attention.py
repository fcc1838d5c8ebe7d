"""Lecture notes, question 3: attention, its cheaper forms, and random features."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from remanence import nn, theory
from remanence.claims._framework import amount, claim, gap_of
from remanence.claims._types import Evidence

ROUNDING = 1e-12
_SIGMAS = 5.0
_BY_CHANCE = "5 standard errors of the mean of the draws: a false alarm once in two million"


def _draw(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def _multiplications(run: Callable[[], object]) -> int:
    """Multiplications of the matrix products that a function performs."""
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops() // 2


def softmax_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The definition, without scaling: ``softmax(Q K^T) V``, ``(n, d)``."""
    return (query @ key.mT).softmax(dim=-1) @ value


@claim(
    "notes/3.1",
    place="question 3.1",
    printed="one head takes Theta(n^2 d) time; h heads of full width, one after the other, n^2 d h + n d^2 h",
    measures="multiplications counted on the real products, against the formula; growth when n doubles",
    tolerance="none: integers",
)
def softmax_attention_is_quadratic(quick: bool) -> Evidence:
    d = 8
    heads = 3

    def run(n: int) -> Tensor:
        parts = [softmax_attention(_draw(n, d), _draw(n, d), _draw(n, d)) for _ in range(heads)]
        return torch.cat(parts, dim=1) @ _draw(heads * d, d)

    counted = {n: _multiplications(lambda n=n: run(n)) for n in (64, 128)}
    exact = all(counted[n] == theory.attention_cost("softmax", n, d, heads=heads).time for n in counted)
    return Evidence(exact, numbers={f"multiplications at n = {n}": count for n, count in counted.items()})


@claim(
    "notes/3.1s",
    place="question 3.1, space",
    printed="heads computed one after the other need n^2 h + 2 n d h + n d numbers at once",
    corrected="the n x n matrix of one head is gone when the next begins: n^2 + O(n d h)",
    measures="most numbers alive at once while 4 heads run in turn, n = 256, d = 4",
    tolerance=(
        "the corrected form up to a factor of 3 (softmax holds its input and its output); the printed one is 4 n^2"
    ),
)
def heads_in_turn_share_one_matrix(quick: bool) -> Evidence:
    from remanence.probes import peak_bytes

    n = 256
    d = 4
    heads = 4
    inputs = [_draw(3, n, d) for _ in range(heads)]

    def run() -> Tensor:
        return torch.cat([softmax_attention(*triple) for triple in inputs], dim=1)

    peak = peak_bytes(run) / 8
    once = theory.attention_cost("softmax", n, d, heads=heads).space
    numbers = {"numbers alive": peak, "n^2 h": float(heads * n * n), "n^2 + O(n d h)": float(once)}
    return Evidence(peak >= heads * n * n, once <= peak <= 3 * once, numbers)


@claim(
    "notes/3.2a",
    place="question 3.2",
    printed="every row of softmax_row(Q) softmax_col(K)^T is a distribution",
    measures="least entry and greatest |row sum - 1| of the layer's own matrix, read off with V = I",
    tolerance=f"{ROUNDING:g}: rounding of float64 sums",
)
def separable_rows_are_distributions(quick: bool) -> Evidence:
    n = 40
    matrix = nn.separable_attention(3 * _draw(n, 5), 3 * _draw(n, 5), torch.eye(n, dtype=torch.float64))
    least = float(matrix.min())
    off = float((matrix.sum(dim=1) - 1).abs().max())
    return Evidence(least >= 0 and off <= ROUNDING, numbers={"least entry": least, "greatest |sum - 1|": off})


@claim(
    "notes/3.2b",
    place="question 3.2",
    printed="separable attention is less expressive than softmax attention: its matrix has rank at most d",
    measures="rank of the matrices of both, n = 24, d = 4, and of causal separable attention",
    tolerance="numerical rank with torch's default threshold",
    assumptions="the non-causal form: the causal one normalises every row anew and may have full rank",
)
def separable_attention_has_low_rank(quick: bool) -> Evidence:
    n = 24
    d = 4
    query = _draw(n, d)
    key = _draw(n, d)
    eye = torch.eye(n, dtype=torch.float64)
    ranks = {
        "rank, separable": nn.separable_attention(query, key, eye),
        "rank, softmax": softmax_attention(2 * query, 2 * key, eye),
        "rank, causal separable": nn.separable_attention(query, key, eye, causal=True),
    }
    found = {name: int(torch.linalg.matrix_rank(matrix)) for name, matrix in ranks.items()}
    holds = found["rank, separable"] <= d < found["rank, softmax"]
    return Evidence(holds, numbers=found)


@claim(
    "notes/3.2c",
    place="question 3.2",
    printed=(
        "for n much greater than d separable attention is faster, because its softmaxes touch 2 n d numbers, not n^2"
    ),
    corrected=(
        "the saving needs the order Q (K^T V), Theta(n d^2); (Q K^T) V with the same softmaxes stays Theta(n^2 d)"
    ),
    measures="multiplications of the layer and of the other order, n = 256 and 512, d = 8",
    tolerance="none: integers",
)
def separable_attention_is_linear(quick: bool) -> Evidence:
    d = 8

    def counted(n: int) -> tuple[int, int]:
        query = _draw(n, d)
        key = _draw(n, d)
        value = _draw(n, d)
        layer = _multiplications(lambda: nn.separable_attention(query, key, value))
        direct = _multiplications(lambda: (query.softmax(dim=1) @ key.softmax(dim=0).mT) @ value)
        return layer, direct

    layer, direct = counted(256)
    layer_twice, direct_twice = counted(512)
    linear = layer_twice == 2 * layer and layer == theory.attention_cost("separable", 256, d).time
    numbers = {"growth of the layer": layer_twice / layer, "growth of the other order": direct_twice / direct}
    return Evidence(direct_twice == 2 * direct, linear, numbers)


@claim(
    "notes/3.3a",
    place="question 3.3",
    printed="standard attention is D^-1 A V with A = exp(Q K^T) and D = diag(A 1)",
    measures="greatest difference from torch's own attention",
    tolerance=f"{ROUNDING:g}: rounding",
)
def attention_is_normalised_exponentials(quick: bool) -> Evidence:
    query = _draw(20, 4)
    key = _draw(20, 4)
    value = _draw(20, 4)
    exponentials = (query @ key.mT).exp()
    written = exponentials @ value / exponentials.sum(dim=1, keepdim=True)
    exact = torch.nn.functional.scaled_dot_product_attention(query[None], key[None], value[None], scale=1.0)[0]
    gap = gap_of(written, exact)
    return Evidence(gap <= ROUNDING, numbers={"gap": gap})


@claim(
    "notes/3.3b",
    place="question 3.3, cost",
    printed="with a_ij = f(q_i) . f(k_j), A V takes O(n d^2)",
    corrected="f(Q) (f(K)^T V) takes Theta(n m d); A V with A formed takes n^2 d",
    measures="multiplications of the layer's function, features included, and of A V, n = 256 and 512, m = 32, d = 4",
    tolerance="none: integers",
)
def random_features_are_linear(quick: bool) -> Evidence:
    d = 4
    m = 32

    def counted(n: int) -> tuple[int, int]:
        query = _draw(n, d)
        key = _draw(n, d)
        value = _draw(n, d)
        projection = _draw(m, d)
        layer = _multiplications(lambda: nn.random_feature_attention(query, key, value, projection))
        formed = (query @ key.mT).exp()
        return layer, _multiplications(lambda: formed @ value)

    layer, formed = counted(256)
    layer_twice, formed_twice = counted(512)
    cost = theory.attention_cost("random-features", 256, d, features=m).time
    printed = formed <= 256 * d * d and formed_twice <= 512 * d * d
    numbers = {"A V": formed, "n d^2": 256 * d * d, "layer": layer, "4 n m d": cost}
    return Evidence(printed, layer == cost and layer_twice == 2 * layer, numbers)


def _estimates(query: Tensor, key: Tensor, m: int, draws: int) -> Tensor:
    """Independent estimates of exp(q . k) by the layer's features: ``(draws,)``."""
    projection = _draw(draws * m, query.shape[-1])
    products = [nn.positive_random_features(x[None], projection)[0] for x in (query, key)]
    return (products[0] * products[1]).reshape(draws, m).sum(dim=1) * draws


@claim(
    "notes/3.4",
    place="question 3.4",
    printed="random features estimate a_ij without bias",
    measures="mean of many estimates of exp(q . k) with m = 4, in standard errors from the exact value",
    tolerance=_BY_CHANCE,
)
def random_features_are_unbiased(quick: bool) -> Evidence:
    query = 0.3 * _draw(3)
    key = 0.3 * _draw(3)
    estimates = _estimates(query, key, 4, amount(quick, 20_000, 200_000))
    error = float(estimates.std()) / math.sqrt(len(estimates))
    sigmas = abs(float(estimates.mean()) - math.exp(float(query @ key))) / error
    return Evidence(sigmas <= _SIGMAS, numbers={"standard errors": sigmas, "mean": float(estimates.mean())})


@claim(
    "notes/3.4n",
    place="question 3.4, the output",
    printed="so Attention_approx estimates standard attention by sampling, without bias as its entries",
    corrected="numerator and denominator are unbiased, their quotient is not; the bias falls with m",
    measures="bias of the normalised output in standard errors at m = 8, and its size at m = 64",
    tolerance=f"{_BY_CHANCE}; four times that many must be exceeded to call it biased",
)
def normalised_output_is_biased(quick: bool) -> Evidence:
    query = _draw(1, 3)
    key = _draw(6, 3)
    value = _draw(6, 2)
    exact = softmax_attention(query, key, value)

    def bias(m: int, draws: int) -> tuple[float, float]:
        outputs = nn.random_feature_attention(query, key, value, _draw(draws, m, 3), scale=1.0)[:, 0]
        off = outputs.mean(dim=0) - exact[0]
        return float(off.norm()), float((off / (outputs.std(dim=0) / math.sqrt(draws))).abs().max())

    draws = amount(quick, 10_000, 60_000)
    small, sigmas = bias(8, draws)
    large, _ = bias(64, draws // 4)
    numbers = {"bias at m = 8": small, "standard errors": sigmas, "bias at m = 64": large}
    return Evidence(sigmas <= _SIGMAS, sigmas > 4 * _SIGMAS and large < small, numbers)


@claim(
    "notes/3.5",
    place="question 3.5",
    printed="more features give less variance at more cost: the variance is e^(2 q.k) (e^(|q+k|^2) - 1) / m",
    measures="variance of many estimates against the formula, m = 4 and 16",
    tolerance="15 %: the variance of a long-tailed estimate from 20,000 draws or more",
    assumptions="independent features; orthogonal ones have less",
)
def variance_falls_with_features(quick: bool) -> Evidence:
    query = torch.tensor([0.3, -0.2, 0.1]).double()
    key = torch.tensor([0.2, 0.4, -0.3]).double()
    ratios = {}
    for m in (4, 16):
        estimates = _estimates(query, key, m, amount(quick, 20_000, 100_000))
        ratios[m] = float(estimates.var() / theory.random_feature_variance(query, key, m))
    holds = all(abs(ratio - 1) < 0.15 for ratio in ratios.values())
    return Evidence(holds, numbers={f"measured / formula, m = {m}": ratio for m, ratio in ratios.items()})
