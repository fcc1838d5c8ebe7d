"""Recurrent matrices that start, or stay, orthogonal."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from remanence import nn
from remanence.nn import _orthogonal
from remanence.nn._exponential import matrix_exponential
from remanence.nn.init import block_skew, cayley_angles, fill_recurrent_, henaff_angles, initial_skew
from remanence.testing import assert_matches

DOUBLE = torch.float64
ORTHOGONALITY = 1e-6  # the bound that the layer promises in float32, after any number of updates


def _defect(matrix: Tensor) -> float:
    matrix = matrix.detach().double()
    return float((matrix @ matrix.T - torch.eye(len(matrix), dtype=DOUBLE)).abs().max())


@pytest.mark.parametrize("kind", ["henaff", "cayley", "random"])
@pytest.mark.parametrize("size", [7, 8])
def test_orthogonal_starts(kind: str, size: int) -> None:
    torch.manual_seed(0)
    weight = fill_recurrent_(torch.empty(4 * size, size, dtype=DOUBLE), kind)
    for block in weight.split(size):
        assert _defect(block) < ORTHOGONALITY
        assert float(torch.linalg.det(block)) > 0
    assert not torch.equal(weight[:size], weight[size : 2 * size])


def test_angles_lie_where_their_authors_put_them() -> None:
    torch.manual_seed(0)
    henaff, cayley = henaff_angles(10_000), cayley_angles(10_000)
    assert -math.pi <= henaff.min() < -3.1
    assert -0.1 < henaff.max() <= 0
    assert -1 <= cayley.min() < -0.99
    assert -0.01 < cayley.max() <= 0


def test_henaff_is_a_rotation_of_planes_by_its_angles() -> None:
    skew = block_skew(torch.tensor([0.3], dtype=DOUBLE), 2)
    rotation = torch.tensor([[math.cos(0.3), math.sin(0.3)], [-math.sin(0.3), math.cos(0.3)]], dtype=DOUBLE)
    assert_matches({"rotation": torch.linalg.matrix_exp(skew)}, {"rotation": rotation})


@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 30.0])
def test_the_exponential_and_its_gradient_are_those_of_torch(scale: float) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(9, 9, dtype=DOUBLE).triu(1) * scale
    skew = (matrix - matrix.T).requires_grad_()
    seen = torch.randn(9, 9, dtype=DOUBLE)
    ours = matrix_exponential(skew)
    theirs = torch.linalg.matrix_exp(skew)
    (our_gradient,) = torch.autograd.grad(ours, skew, seen)
    (their_gradient,) = torch.autograd.grad(theirs, skew, seen)
    assert_matches({"value": ours, "gradient": our_gradient}, {"value": theirs, "gradient": their_gradient})


def test_the_exponential_works_under_transforms_and_on_values_that_are_not_finite() -> None:
    batch = torch.randn(3, 4, 4, dtype=DOUBLE)
    assert_matches(
        {"mapped": torch.vmap(matrix_exponential)(batch)}, {"mapped": torch.stack(list(map(matrix_exponential, batch)))}
    )
    assert not matrix_exponential(torch.full((2, 2), math.inf, dtype=DOUBLE)).isfinite().any()


def test_random_start_is_the_logarithm_of_a_rotation() -> None:
    torch.manual_seed(0)
    skew = initial_skew(6, "random")
    assert torch.equal(skew, -skew.T)


def test_orth_rnn_starts_orthogonal_and_is_then_free() -> None:
    layer = nn.OrthRNN(3, 8)
    assert _defect(layer.weight_hh_l0) < ORTHOGONALITY
    with torch.no_grad():
        layer.weight_hh_l0.add_(0.1)
    assert _defect(layer.recurrent_weight("_l0")) > ORTHOGONALITY


@pytest.mark.parametrize("base_every", [None, 7])
def test_exp_rnn_stays_orthogonal_after_many_updates(base_every: int | None) -> None:
    torch.manual_seed(0)
    layer = nn.ExpRNN(3, 16, base_every=base_every)
    optimiser = torch.optim.RMSprop(nn.orthogonal_parameter_groups(layer, lr=0.05, orthogonal_lr=0.05))
    start = layer.recurrent_weight("_l0").detach().clone()
    for _ in range(60):
        optimiser.zero_grad()
        layer(torch.randn(5, 4, 3))[0].pow(2).mean().backward()
        optimiser.step()
        layer.project_()
    weight = layer.recurrent_weight("_l0").detach()
    assert _defect(weight) < ORTHOGONALITY
    assert float((weight - start).abs().max()) > 0.1  # it really moved
    assert (float(layer.weight_hh_base_l0.sum()) == 16) == (base_every is None)


def test_changing_the_base_changes_nothing_else() -> None:
    layer, x = nn.ExpRNN(3, 8, dtype=DOUBLE), torch.randn(5, 2, 3, dtype=DOUBLE)
    before = layer(x)[0]
    layer.change_base_()
    assert_matches({"output": layer(x)[0]}, {"output": before})
    assert torch.count_nonzero(layer.weight_hh_skew_l0) == 0


def test_the_exponential_is_computed_once_per_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, calls = nn.ExpRNN(3, 8), []
    monkeypatch.setattr(_orthogonal, "matrix_exponential", lambda a: calls.append(1) or matrix_exponential(a))
    state = layer.initial_state(2)
    with torch.no_grad():
        for _ in range(5):
            _, state = layer.step(torch.randn(2, 3), state)
        assert len(calls) == 1
        layer.weight_hh_skew_l0.mul_(0.5)
        fresh, _ = layer.step(torch.zeros(2, 3), state)
        assert len(calls) == 2
    assert_matches({"output": fresh.double()}, {"output": layer.step(torch.zeros(2, 3), state)[0].double()})


def test_only_the_upper_triangle_counts() -> None:
    layer, x = nn.ExpRNN(3, 8), torch.randn(5, 2, 3)
    layer(x)[0].sum().backward()
    assert torch.count_nonzero(layer.weight_hh_skew_l0.grad.tril()) == 0


def test_parameter_groups_hold_every_parameter_once() -> None:
    model = torch.nn.ModuleList([nn.ExpRNN(3, 8), nn.GORU(8, 4), torch.nn.Linear(4, 2)])
    groups = nn.orthogonal_parameter_groups(model, lr=1e-2)
    assert [group["lr"] for group in groups] == [1e-2, 1e-3]
    assert len(groups[1]["params"]) == 2
    assert {id(p) for group in groups for p in group["params"]} == {id(p) for p in model.parameters()}


@pytest.mark.parametrize(("rotations", "size"), [("fft", 8), ("fft", 2), ("tunable", 6)])
def test_goru_turns_by_an_orthogonal_matrix(rotations: str, size: int) -> None:
    layer = nn.GORU(3, size, rotations=rotations, dtype=DOUBLE)
    assert _defect(layer.rotation("_l0")) < ORTHOGONALITY


def test_goru_rotation_by_hand() -> None:
    """Four coordinates, butterfly: first (0,1) and (2,3) by a quarter turn, then (0,2) and (1,3) by nothing."""
    layer = nn.GORU(1, 4, dtype=DOUBLE)
    with torch.no_grad():
        layer.rotation_l0.copy_(torch.tensor([[math.pi / 2, 0.0], [0.0, 0.0]], dtype=DOUBLE))
    turned = layer.rotation("_l0") @ torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=DOUBLE)
    assert_matches({"turned": turned}, {"turned": torch.tensor([-2.0, 1.0, 3.0, 4.0], dtype=DOUBLE)})
    with torch.no_grad():
        layer.rotation_l0.copy_(torch.tensor([[0.0, 0.0], [math.pi / 2, 0.0]], dtype=DOUBLE))
    turned = layer.rotation("_l0") @ torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=DOUBLE)
    assert_matches({"turned": turned}, {"turned": torch.tensor([-3.0, 2.0, 1.0, 4.0], dtype=DOUBLE)})


def test_tunable_rotation_pairs_neighbours_and_wraps_around() -> None:
    layer = nn.GORU(1, 4, rotations="tunable", capacity=2, dtype=DOUBLE)
    with torch.no_grad():
        layer.rotation_l0.copy_(torch.tensor([[0.0, 0.0], [0.0, math.pi / 2]], dtype=DOUBLE))
    turned = layer.rotation("_l0") @ torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=DOUBLE)
    assert_matches({"turned": turned}, {"turned": torch.tensor([4.0, 2.0, 3.0, -1.0], dtype=DOUBLE)})


def test_goru_step_by_its_equations() -> None:
    layer, x = nn.GORU(3, 4, dtype=DOUBLE), torch.randn(6, 2, 3, dtype=DOUBLE)
    u_r, u_g, u_c = layer.weight_ih_l0.chunk(3)
    w_r, w_g = layer.weight_hh_l0.chunk(2)
    b_r, b_g = layer.bias_ih_l0.chunk(2)
    q, h, outputs = layer.rotation("_l0"), torch.zeros(2, 4, dtype=DOUBLE), []
    for x_t in x:
        r = torch.sigmoid(x_t @ u_r.T + h @ w_r.T + b_r)
        g = torch.sigmoid(x_t @ u_g.T + h @ w_g.T + b_g)
        h = g * h + (1 - g) * nn.modrelu(r * (h @ q.T) + x_t @ u_c.T, layer.bias_modrelu_l0)
        outputs.append(h)
    assert_matches({"output": layer(x)[0]}, {"output": torch.stack(outputs)})


def test_modrelu_by_hand() -> None:
    z, bias = torch.tensor([3.0, -3.0, 0.5, -0.5, 0.0]), torch.tensor(-1.0)
    assert nn.modrelu(z, bias).tolist() == [2.0, -2.0, 0.0, 0.0, 0.0]
    assert nn.modrelu(z, torch.tensor(1.0)).tolist() == [4.0, -4.0, 1.5, -1.5, 0.0]
