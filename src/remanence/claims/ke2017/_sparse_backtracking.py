"""Ke et al. 2017: which states sparse attentive backtracking reads, who gets gradient, and what it costs."""

from __future__ import annotations

import math
from functools import partial
from statistics import fmean

import torch
from torch import Tensor

from remanence import nn
from remanence.claims._cells import Cells, result_of, trained
from remanence.claims._framework import claim, gap_of, relative_gap, stored_claim
from remanence.claims._types import Evidence, Number
from remanence.experiments import StoredCell
from remanence.ops.reference import scan

ROUNDING = 1e-10
_exact_claim = partial(claim, tolerance=f"{ROUNDING:g}: two float64 computations of the same sums in another order")
T = 40
N = 6


def _layer(**options: object) -> nn.SABRNN:
    """A SAB layer whose scores spread, in float64; options as in the layer."""
    defaults: dict[str, object] = {"top_k": 4, "every": 2, "dtype": torch.float64}
    layer = nn.SABRNN(3, N, **{**defaults, **options})  # type: ignore[arg-type]
    with torch.no_grad():
        layer.get_parameter("weight_key_l0").normal_(std=0.1)  # more, and the unbounded sum of Eq. 4 saturates the cell
        layer.get_parameter("weight_query_l0").normal_(std=0.3)
    return layer


def _gradient_by_step(layer: nn.SABRNN, x: Tensor) -> Tensor:
    """Norm of the gradient that each state gets from the last output: ``(T,)``."""
    offset = torch.zeros(len(x), 1, N, dtype=torch.float64, requires_grad=True)
    cut_h, cut_c = layer.cut_masks(x, None, None)
    output, *_ = scan(x, layer.weights(), None, spec=layer.spec, cut_h=cut_h, cut_c=cut_c, h_offset=offset)
    (gradient,) = torch.autograd.grad(output[-1].sum(), offset)
    return gradient[:, 0].norm(dim=1)


def _last_read(layer: nn.SABRNN, x: Tensor) -> tuple[set[int], set[int]]:
    """Steps that the last step holds, and those of them with a positive weight."""
    trace = layer.trace(x)[0]
    steps = trace.steps[-1, 0]
    weights = trace.weights[-1, 0]
    return {int(s) for s in steps if s >= 0}, {int(s) for s, w in zip(steps, weights, strict=True) if w > 0}


@claim(
    "ke2017/receivers",
    place="section 3.5, Eqs 2 to 4",
    printed="all but the k_top best states are masked out, and gradient flows to those with a positive weight alone",
    corrected=(
        "the k-th best is the threshold: k - 1 have a positive weight, and the k-th gets gradient through the threshold"
    ),
    measures="states with gradient from the last output when the recurrence is cut everywhere, k_top = 4, one hop",
    tolerance="none: a gradient is exactly zero or not",
)
def exactly_k_states_get_gradient(quick: bool) -> Evidence:
    layer = _layer(truncate=1, hops="one")
    x = torch.randn(T, 1, 3).double()
    receivers = {int(i) for i in _gradient_by_step(layer, x).nonzero()[:, 0]} - {T - 1}
    held, weighted = _last_read(layer, x)
    numbers = {"with gradient": len(receivers), "with weight": len(weighted)}
    corrected = receivers == held and len(receivers) == 4 and len(weighted) == 3
    return Evidence(receivers == weighted and len(weighted) == 4, corrected, numbers)


@claim(
    "ke2017/windows",
    place="section 3.1 and figure 2",
    printed="gradient that reaches a stored state goes on for a truncated window around it, k_trunc steps at most",
    measures="states with gradient against the windows of the states read, k_trunc = 5",
    tolerance="none: sets of steps",
    assumptions="one hop (section 7.2); windows end before the steps with (t + 1) mod k_trunc = 0",
)
def gradient_stays_in_windows(quick: bool) -> Evidence:
    k = 5
    x = torch.randn(T, 1, 3).double()
    layer = _layer(truncate=k, hops="one", every=3)
    found = {int(i) for i in _gradient_by_step(layer, x).nonzero()[:, 0]}
    ends = [*_last_read(layer, x)[0], T - 1]
    expected = {j for end in ends for j in range(end + 1) if (j + 1) // k == (end + 1) // k}
    return Evidence(found == expected, numbers={"with gradient": len(found), "in the windows": len(expected)})


def _change_with_query(score: str) -> float:
    """How much the outputs change when the query's weights do."""
    torch.manual_seed(1)
    layer = _layer(score=score)
    x = torch.randn(T, 1, 3).double()

    def run() -> Tensor:  # the printed score as the paper defines it, query and all
        if score == "affine":
            return quadratic_definition(layer, x, 4, 2)
        return layer(x)[0]

    before = run()
    with torch.no_grad():
        layer.get_parameter("weight_query_l0").add_(torch.randn_like(layer.get_parameter("weight_query_l0")))
    return gap_of(run(), before)


@_exact_claim(
    "ke2017/query",
    place="Eqs 1 and 2",
    printed="a_i(t) is the salience of state i at the present time t: what is read depends on the present state",
    corrected=(
        "the query's term is the same for all i and cancels in a_i - a_k: what is read depends on the stored "
        "states alone"
    ),
    measures="change of the outputs when w_2 changes: printed score, the published code's tanh score, an MLP",
)
def selection_ignores_the_query(quick: bool) -> Evidence:
    changes = {score: _change_with_query(score) for score in ("affine", "tanh", "mlp")}
    static = max(changes["affine"], changes["tanh"])
    numbers = {f"change, {score}": change for score, change in changes.items()}
    return Evidence(static > 1e-3, static <= ROUNDING and changes["mlp"] > 1e-3, numbers)


@claim(
    "ke2017/zero-gradient",
    place="Eq. 1",
    printed="w_2 and the bias are learned",
    corrected="w_2 and a bias shared by all states get a gradient of exactly zero",
    measures="greatest gradient of w_2, of the bias and of w_1",
    tolerance="none: exactly zero",
    expected="fails as printed",
)
def query_weights_are_never_learned(quick: bool) -> Evidence:
    layer = _layer()
    layer(torch.randn(T, 2, 3).double())[0].square().sum().backward()
    sizes = {}
    for name in ("weight_query_l0", "weight_score_l0", "weight_key_l0"):
        gradient = getattr(layer, name).grad
        sizes[name] = 0.0
        if gradient is not None:
            sizes[name] = float(gradient.abs().max())
    learned = sizes["weight_query_l0"] > 0 or sizes["weight_score_l0"] > 0
    return Evidence(
        learned,
        numbers={"w_2": sizes["weight_query_l0"], "bias": sizes["weight_score_l0"], "w_1": sizes["weight_key_l0"]},
    )


@_exact_claim(
    "ke2017/constant-read",
    place="figure 3",
    printed="attention is computed anew at every step, one row of the figure per step",
    corrected="between two writes to the memory all rows are identical",
    measures="greatest change of the weights from one step to the next, where nothing was stored, k_att = 5",
    expected="fails as printed",
)
def read_is_constant_between_writes(quick: bool) -> Evidence:
    layer = _layer(every=5)
    x = torch.randn(T, 2, 3).double()
    trace = layer.trace(x)[0]
    change = (trace.weights[1:] - trace.weights[:-1]).abs().amax(dim=(1, 2))
    stored = torch.tensor([t % 5 == 0 for t in range(1, T)])  # the state of step t - 1 was stored before step t
    between = float(change[~stored].max())
    at_writes = float(change[stored].max())
    return Evidence(between > ROUNDING, numbers={"between writes": between, "at writes": at_writes})


def quadratic_definition(layer: nn.SABRNN, x: Tensor, top_k: int, every: int) -> Tensor:
    """The paper's equations as they stand: score every stored state at every step, cut at the k-th: ``(T, n)``."""
    weights = layer.weights()
    assert weights.query is not None
    assert weights.key is not None
    assert weights.score is not None
    h = x.new_zeros(N)
    stored = []
    outputs = []
    for t, x_t in enumerate(x[:, 0]):
        pre = weights.ih @ x_t + weights.hh @ h
        for bias in (weights.bias_ih, weights.bias_hh):
            if bias is not None:
                pre = pre + bias
        h = pre.tanh()
        if stored:
            memory = torch.stack(stored)
            scores = memory @ weights.key + weights.query @ h + weights.score
            threshold = scores.topk(min(top_k, len(stored))).values[-1]
            h = h + (scores - threshold).relu() @ memory
        if (t + 1) % every == 0:
            stored.append(h)
        outputs.append(h)
    return torch.stack(outputs)


@_exact_claim(
    "ke2017/linear-time",
    place="section 7.1",
    printed="the forward pass can be done in time linear in t, although the published code is quadratic",
    measures=(
        "relative difference of outputs and gradients between the layer, which keeps k_top states, and the definition"
    ),
    assumptions="a static score: a state that has left the best k_top never returns",
)
def keeping_the_best_is_exact(quick: bool) -> Evidence:
    layer = _layer()
    x = torch.randn(T, 1, 3).double()
    names = ("weight_hh_l0", "weight_key_l0", "weight_ih_l0")
    runs = []
    for output in (layer(x)[0][:, 0], quadratic_definition(layer, x, 4, 2)):
        gradients = torch.autograd.grad(output.square().sum(), [getattr(layer, name) for name in names])
        runs.append([output.detach(), *gradients])
    errors = [relative_gap(a, b) for a, b in zip(*runs, strict=True)]
    return Evidence(max(errors) <= ROUNDING, numbers={"error, outputs": errors[0], "error, gradients": max(errors[1:])})


@claim(
    "ke2017/complexity",
    place="section 7.1",
    printed="forward O(t n^2) in time; inference O(t n) in space",
    corrected=(
        "scoring all stored states adds O(t^2 n); with the static score, keeping the best k_top makes it "
        "O(t (n^2 + k n)) in time and O(k n) in space"
    ),
    measures="scores that the definition computes, growth from t = 200 to 400; entries of the layer's state",
    tolerance="none: integers",
)
def cost_of_scoring_the_memory(quick: bool) -> Evidence:
    every = 2
    scored = {t: sum(step // every for step in range(t)) for t in (200, 400)}
    layer = _layer(every=every)
    with torch.no_grad():
        sizes = [layer(torch.randn(t, 1, 3).double())[1].nbytes for t in (20, 200)]
    ratio = scored[400] / scored[200]
    numbers = {"scores, t = 400 / t = 200": ratio, "bytes, t = 20": sizes[0], "bytes, t = 200": sizes[1]}
    return Evidence(ratio <= 2 and sizes[1] > sizes[0], ratio > 3.9 and sizes[0] == sizes[1], numbers)


TABLE_3 = (0.359, 0.197)
"""Accuracy and cross entropy of full BPTT as printed."""


@claim(
    "ke2017/table3",
    place="Table 3, row of full BPTT",
    printed="an accuracy of 35.9 % comes with a cross entropy of 0.197",
    corrected=(
        "a wrong answer costs at least ln 2, since some other class is at least as likely: 0.444 is the least possible"
    ),
    measures="least cross entropy of a classifier that is wrong in 64.1 % of its answers",
    tolerance="none: arithmetic",
    assumptions="both over the same answers",
    expected="fails as printed",
)
def accuracy_and_entropy_do_not_fit(quick: bool) -> Evidence:
    accuracy, entropy = TABLE_3
    least = least_cross_entropy(accuracy)
    return Evidence(least <= entropy, numbers={"least cross entropy": least})


def least_cross_entropy(accuracy: float) -> float:
    """A wrong answer gives its own class at least the probability of the right one, so that is at most 1/2."""
    return (1 - accuracy) * math.log(2)


@stored_claim(
    "ke2017/figure3",
    stored="ke2017/figure-3",
    place="section 4, figure 3",
    printed="SAB's attention on Copy quickly focuses on the first ten steps, which hold the digits",
    measures="share of the answering steps' attention on the steps that show a symbol after each stage",
    tolerance="above one half in the end, and more than in the beginning",
    assumptions="'even' is the share of such steps among all that are ever stored",
)
def sparse_attention_focuses(cells: Cells) -> Evidence:
    runs: dict[int, list[StoredCell]] = {}
    for cell in cells.at():
        runs.setdefault(cell.place["updates"], []).append(cell)
    shares = {stage: [result_of(cell, "attention")["on_symbols"] for cell in runs[stage]] for stage in sorted(runs)}
    first, *_, end = shares.values()
    focused = min(end) > max(0.5, *first)
    numbers: dict[str, Number] = {f"{stage} updates": fmean(found) for stage, found in shares.items()}
    last = runs[max(runs)]
    numbers |= {"even": result_of(last[0], "attention")["even"], **last[0].state.validation}
    return Evidence(focused, numbers=numbers, runs=trained(last, lambda cell: not focused, lambda cell: "SAB"))
