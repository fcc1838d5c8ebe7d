"""Stable layers: what is certified holds under attack, and what does not hold is refused."""

import copy
import json
import math
import re
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from remanence.nn._certificate import NotCertifiedError
from remanence.nn._recurrent import LSTM, RNN
from remanence.nn._stable import StableLSTM, StableRNN
from remanence.nn.cuts import HDetach
from remanence.ops import Full

F64: dict[str, Any] = {"dtype": torch.float64}
PROJECTED: dict[str, Any] = {"proj_size": 2}
NONLINEARITIES = ["tanh", "relu", "modrelu", "identity"]


def scramble_(layer, scale: float = 3.0):
    """Great random weights, as a wild optimiser step leaves them."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_().mul_(scale)
    return layer


def worst_ratio(step, distance, bounds, rows: int = 32, updates: int = 80) -> float:
    """The greatest ratio of distances after and before a step that gradient ascent finds over pairs and an input.

    Args:
        step: maps a list of state parts ``(rows, n)`` and an input ``(rows, m)`` to a list of state parts.
        distance: maps a list of differences to ``(rows,)``.
        bounds: ``(size, bound)`` of every state part, then of the input.
    """
    *parts, driven = bounds
    raw = [torch.randn(rows, size, **F64).mul(2).requires_grad_() for size, _ in [*parts, *parts, driven]]
    with torch.no_grad():  # half the pairs start close to each other, where the step is nearly linear
        for first, second in zip(raw[: len(parts)], raw[len(parts) : -1], strict=True):
            second[::2] = first[::2] + 1e-3 * torch.randn_like(first[::2])
    optimiser = torch.optim.Adam(raw, lr=0.1)
    worst = 0.0
    for _ in range(updates):
        limits = [bound for _, bound in [*parts, *parts, driven]]
        values = [bound * part.tanh() for part, bound in zip(raw, limits, strict=True)]
        one, other, x = values[: len(parts)], values[len(parts) : -1], values[-1]
        before = distance([a - b for a, b in zip(one, other, strict=True)])
        after = distance([a - b for a, b in zip(step(one, x), step(other, x), strict=True)])
        ratio = after / before
        worst = max(worst, float(ratio.detach().nan_to_num().max()))
        optimiser.zero_grad()
        (-ratio.clamp(min=1e-9).log().sum()).backward()
        optimiser.step()
    return worst


def worst_rnn_ratio(layer, input_bound: float = 2.0) -> float:
    def step(parts, x):
        return [layer(x.unsqueeze(0), parts[0].unsqueeze(0))[1].hx.squeeze(0)]

    bounds = [(layer.hidden_size, 2.0), (layer.input_size, input_bound)]
    return worst_ratio(step, lambda differences: differences[0].norm(dim=1), bounds)


def worst_lstm_ratio(layer, cell_bound: float, input_bound: float) -> float:
    def step(parts, x):
        h, c = layer(x.unsqueeze(0), tuple(part.unsqueeze(0) for part in parts))[1].hx
        return [h.squeeze(0), c.squeeze(0)]

    bounds = [(layer.hidden_size, 1.0), (layer.hidden_size, cell_bound), (layer.input_size, input_bound)]
    return worst_ratio(step, lambda differences: torch.cat(differences, dim=1).abs().amax(dim=1), bounds)


def assert_not_above(worst: float, factor: float):
    """The attack worked, and found nothing above the factor but rounding."""
    assert worst > 0
    assert_close(max(worst, factor), factor)


# ---- StableRNN ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nonlinearity", NONLINEARITIES)
def test_rnn_factor_is_never_exceeded(nonlinearity):
    for seed in range(3):
        torch.manual_seed(seed)
        layer = scramble_(StableRNN(3, 5, nonlinearity=nonlinearity, contraction=0.9, **F64), 1.0)
        layer.project_()
        assert_not_above(worst_rnn_ratio(layer), layer.certificate().factor)


def test_the_attack_finds_the_factor_of_a_linear_rnn():
    layer = StableRNN(2, 3, nonlinearity="identity", contraction=0.9, **F64)
    with torch.no_grad():
        layer.get_parameter("weight_hh_l0").copy_(torch.diag(torch.tensor([0.75, 0.125, 0.125])))
    assert layer.certificate().factor == 0.75
    worst = worst_rnn_ratio(layer)
    assert worst > 0.74
    assert_not_above(worst, 0.75)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("nonlinearity", NONLINEARITIES)
def test_rnn_is_certified_from_the_start_and_after_every_projection(nonlinearity, dtype):
    layer = StableRNN(3, 8, 2, nonlinearity, bidirectional=True, contraction=0.97, dtype=dtype)
    assert layer.certificate().factor <= 0.97
    scramble_(layer)
    with pytest.raises(NotCertifiedError):
        layer.certificate()
    layer.project_()
    certificate = layer.certificate()
    assert [part.suffix for part in certificate.layers] == ["_l0", "_l0_reverse", "_l1", "_l1_reverse"]
    assert certificate.factor == max(part.factor for part in certificate.layers) <= 0.97


def test_rnn_projection_touches_recurrent_matrices_only():
    layer = scramble_(StableRNN(3, 8))
    before = copy.deepcopy(layer.state_dict())
    layer.project_()
    changed = {name for name, value in layer.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"weight_hh_l0"}


def test_a_jump_of_modrelu_is_refused_with_the_reason_and_projected_away():
    layer = StableRNN(3, 4, nonlinearity="modrelu")
    with torch.no_grad():
        layer.get_parameter("bias_modrelu_l0").copy_(torch.tensor([-0.5, 0.0, 0.125, -1.0]))
    with pytest.raises(NotCertifiedError, match=r"factor inf in _l0 \(modReLU bias .*jump.* 0.125, at most 0\)"):
        layer.certificate()
    layer.project_()
    assert layer.get_parameter("bias_modrelu_l0").tolist() == [-0.5, 0.0, 0.0, -1.0]
    assert layer.certificate().factor <= 0.99


def test_a_positive_modrelu_bias_really_breaks_the_contraction():
    layer = StableRNN(2, 2, nonlinearity="modrelu", bias=False, **F64)
    with torch.no_grad():
        layer.get_parameter("bias_modrelu_l0").fill_(0.125)
    x = torch.zeros(1, 2, 2, **F64)
    near = torch.tensor([[1.0, 1.0], [-1.0, -1.0]], **F64) * 2.0**-10
    output, _ = layer(x, near.unsqueeze(0))
    assert (output[0, 0] - output[0, 1]).norm() > (near[0] - near[1]).norm()


# ---- StableLSTM -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("contraction", "forget", "input_bound"), [(0.99, 0.6, 1.0), (0.9, 0.7, 0.5), (0.8, 0.6, 3.0)])
def test_lstm_factor_is_never_exceeded(contraction, forget, input_bound):
    options = {"contraction": contraction, "forget": forget, "input_bound": input_bound}
    for seed in range(3):
        torch.manual_seed(seed)
        layer = scramble_(StableLSTM(3, 4, **options, **F64), 1.0)
        layer.project_()
        certificate = layer.certificate()
        part = certificate.layers[0]
        assert part.cell_bound is not None
        assert part.cell_bound <= 1 / (1 - forget)
        worst = worst_lstm_ratio(layer, part.cell_bound, input_bound)
        assert certificate.factor <= contraction
        assert_not_above(worst, certificate.factor)


def test_the_limits_give_exactly_the_factor_that_was_asked_for():
    layer = StableLSTM(1, 2, contraction=0.9, forget=0.6, **F64)
    room = 0.9 - 0.6
    wanted = {"i": room, "f": (1 - 0.6) * room, "g": room / 4, "o": room}
    with torch.no_grad():
        for gate, block in zip(wanted, layer.get_parameter("weight_hh_l0").chunk(4), strict=True):
            block.fill_(wanted[gate] / 2)
        layer.get_parameter("weight_ih_l0").fill_(math.log(0.6 / 0.4) - wanted["f"])
        layer.get_parameter("bias_ih_l0").zero_()
        layer.get_parameter("bias_hh_l0").zero_()
    layer.project_()
    part = layer.certificate().layers[0]
    assert_close(part.factor, 0.9)
    assert_close(part.cell_bound, 2.5)
    assert [bound.name for bound in part.bounds][:2] == ["forget gate", "row sum of W_i"]
    assert all(bound.margin >= 0 for bound in part.bounds)


def test_certificate_follows_its_formula():
    layer = StableLSTM(1, 1, contraction=0.95, input_bound=2.0, bias="single", **F64)
    with torch.no_grad():
        layer.get_parameter("weight_hh_l0").copy_(torch.tensor([[0.1], [-0.05], [0.02], [-0.2]]))
        layer.get_parameter("weight_ih_l0").copy_(torch.tensor([[9.0], [-0.1], [9.0], [9.0]]))
        layer.get_parameter("bias_ih_l0").copy_(torch.tensor([9.0, -0.3, 9.0, 9.0]))
    part = layer.certificate().layers[0]
    gate = 1 / (1 + math.exp(-(0.05 + 2 * 0.1 - 0.3)))
    rows = [float(torch.tensor(value)) for value in (0.1, 0.05, 0.02, 0.2)]
    assert_close(part.bounds[0].value, gate)
    assert_close(part.factor, gate + rows[1] / (4 * (1 - gate)) + rows[0] / 4 + rows[2] + rows[3] / 4)
    assert part.input_bound == 2.0


def test_weights_that_were_never_projected_are_certified_if_they_deserve_it():
    layer = StableLSTM(3, 4)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(0.25)
        layer.get_parameter("bias_ih_l0").fill_(-1.0)
        layer.get_parameter("bias_hh_l0").fill_(0.5)  # beyond its own limit, and yet the sum leaves the gate shut
    certificate = layer.certificate()
    assert certificate.factor < 0.99
    before = copy.deepcopy(layer.state_dict())
    layer.project_()
    assert torch.equal(layer.get_parameter("weight_hh_l0"), before["weight_hh_l0"])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("bias", [True, False, "single"])
def test_lstm_is_certified_from_the_start_and_after_every_projection(bias, dtype):
    layer = StableLSTM(3, 8, 2, bias=bias, bidirectional=True, dtype=dtype)
    assert layer.certificate().factor <= 0.99
    scramble_(layer)
    with pytest.raises(NotCertifiedError):
        layer.certificate()
    layer.project_()
    certificate = layer.certificate()
    assert [part.suffix for part in certificate.layers] == ["_l0", "_l0_reverse", "_l1", "_l1_reverse"]
    assert all(bound.holds for part in certificate.layers for bound in part.bounds)


def test_lstm_projection_is_idempotent_only_shrinks_and_leaves_the_rest():
    layer = scramble_(StableLSTM(3, 8))
    before = copy.deepcopy(layer.state_dict())
    layer.project_()
    once = copy.deepcopy(layer.state_dict())
    layer.project_()
    for name, value in layer.state_dict().items():
        assert torch.equal(value, once[name])
        assert (value <= before[name]).all() if "bias" in name else (value.abs() <= before[name].abs()).all()
        others = [0, 2, 3]
        if name != "weight_hh_l0":
            for gate in others:
                assert torch.equal(value.chunk(4)[gate], before[name].chunk(4)[gate])


def test_authors_forget_bias_is_refused_although_their_norms_hold():
    # Column norms and forget bias as the authors' code leaves them: the gate stands open, whatever W_f and U_f are.
    layer = StableLSTM(3, 4, **F64)
    with torch.no_grad():
        for name in ("bias_ih_l0", "bias_hh_l0"):
            getattr(layer, name)[4:8] = 10.0
    with pytest.raises(NotCertifiedError, match=r"forget gate 1, at most 0.6; forget bias 20, at most 0"):
        layer.certificate()
    assert worst_lstm_ratio(layer, cell_bound=2.5, input_bound=1.0) > layer.contraction
    layer.project_()
    assert layer.certificate().factor <= 0.99


def test_column_norms_do_not_bound_the_forget_gate():
    layer = StableLSTM(3, 8, bias=False, **F64)
    with torch.no_grad():
        layer.get_parameter("weight_hh_l0")[8:16] = 0
        layer.get_parameter("weight_hh_l0")[8] = (
            0.155  # every column sums to the authors' limit; the row to eight times that
        )
        layer.get_parameter("weight_ih_l0")[8:16] = 0
        layer.get_parameter("weight_ih_l0")[8] = 0.25
    with pytest.raises(NotCertifiedError, match=r"forget gate 0\.8797.*, at most 0\.6; row sum of W_f 1\.24"):
        layer.certificate()


def test_upper_layers_see_outputs_and_dropout_enlarges_them():
    layer = StableLSTM(3, 4, 3, dropout=0.5, input_bound=7.0)
    assert [part.input_bound for part in layer.certificate().layers] == [7.0, 2.0, 2.0]
    assert [part.input_bound for part in StableLSTM(3, 4, 2, dropout=1.0).certificate().layers] == [1.0, 1.0]


def test_states_of_a_run_from_zero_stay_in_the_certified_domain():
    layer = scramble_(StableLSTM(3, 4, batch_first=True, **F64))
    layer.project_()
    certificate = layer.certificate()
    h = c = torch.zeros(1, 20, 4, **F64)
    for _ in range(50):
        _, state = layer(torch.rand(20, 1, 3, **F64).mul(2).sub(1).sign(), (h, c))
        h, c = state.hx
        assert h.abs().max() <= 1
        assert c.abs().max() <= certificate.layers[0].cell_bound


# ---- both -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stable", "plain"), [(StableRNN, RNN), (StableLSTM, LSTM)])
def test_a_stable_layer_runs_as_the_plain_one_with_its_weights(stable, plain):
    layer = stable(3, 4, 2, cuts=HDetach(0.5)).eval()
    same = plain(3, 4, 2)
    same.load_state_dict(layer.state_dict())
    x = torch.randn(6, 2, 3)
    assert torch.equal(layer(x)[0], same(x)[0])


@pytest.mark.parametrize("kind", [StableRNN, StableLSTM])
def test_certificate_reads_well_and_goes_to_json(kind):
    certificate = kind(3, 4, 2).certificate()
    data = json.loads(json.dumps(certificate.to_dict()))
    assert data["factor"] == certificate.factor
    assert data["margin"] == certificate.contraction - certificate.factor >= 0
    assert [part["suffix"] for part in data["layers"]] == ["_l0", "_l1"]
    assert data["layers"][0]["bounds"][0]["margin"] == certificate.layers[0].bounds[0].margin
    assert str(certificate).startswith(f"contraction by {certificate.factor:.4g} a step in {certificate.norm}")
    with pytest.raises(AttributeError):
        certificate.contraction = 0.5


@pytest.mark.parametrize("kind", [StableRNN, StableLSTM])
@pytest.mark.parametrize("name", ["weight_hh_l0", "weight_ih_l0", "bias_ih_l0"])
def test_weights_that_are_not_finite_are_refused(kind, name):
    layer = kind(3, 4)
    with torch.no_grad():
        getattr(layer, name)[0] = math.nan
    with pytest.raises(NotCertifiedError, match=f"`{name}` must be finite"):
        layer.certificate()
    with pytest.raises(ValueError, match=f"`{name}` must be finite"):
        layer.project_()


@pytest.mark.parametrize("kind", [StableRNN, StableLSTM])
@pytest.mark.parametrize("option", [{"memory": Full()}, {"combine": "sum"}, {"output": "hidden"}, {"max_steps": 3}])
def test_options_of_a_memory_do_not_exist(kind, option):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{next(iter(option))}'"):
        kind(3, 4, **option)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: StableRNN(3, 4, contraction=1.0), "`contraction` must be a finite number > 0 and < 1; got 1.0"),
        (lambda: StableRNN(3, 4, contraction=0.0), "`contraction` must be a finite number > 0 and < 1; got 0.0"),
        (lambda: StableLSTM(3, 4, contraction=0.6), "`contraction` must be a finite number >= 0.600001 and < 1"),
        (lambda: StableLSTM(3, 4, forget=1.0), "`forget` must be a finite number > 0 and < 1; got 1.0"),
        (lambda: StableLSTM(3, 4, forget=0.5), "`forget` must be so great that logit"),
        (lambda: StableLSTM(3, 4, input_bound=0.0), "`input_bound` must be a finite number > 0; got 0.0"),
        (lambda: StableLSTM(3, 4, **PROJECTED), "`proj_size` must be absent"),
    ],
)
def test_bad_arguments_are_named(make, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        make()


@pytest.mark.parametrize("kind", [StableRNN, StableLSTM])
def test_layers_without_storage_are_made_unprojected(kind):
    assert kind(3, 4, device="meta").weight_hh_l0.is_meta
