"""minGRU, minLSTM, the linear recurrent unit and the delta rule against their published equations, step by step."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from remanence import nn
from remanence.testing import assert_matches

DOUBLE = torch.float64
LAYERS = [nn.MinGRU, nn.MinLSTM, nn.LRU, nn.DeltaRule, nn.ScreenedDeltaRule]


def _min_gru(layer, x):
    (wz, wn), (bz, bn) = layer.weight_ih_l0.chunk(2), layer.bias_ih_l0.chunk(2)
    h = x.new_zeros(x.shape[1], layer.hidden_size)
    for x_t in x:
        z = torch.sigmoid(x_t @ wz.T + bz)
        h = (1 - z) * h + z * (x_t @ wn.T + bn)
        yield h


def _min_lstm(layer, x):
    (wi, wf, wn), (bi, bf, bn) = layer.weight_ih_l0.chunk(3), layer.bias_ih_l0.chunk(3)
    h = x.new_zeros(x.shape[1], layer.hidden_size)
    for x_t in x:
        i, f = torch.sigmoid(x_t @ wi.T + bi), torch.sigmoid(x_t @ wf.T + bf)
        h = f / (f + i) * h + i / (f + i) * (x_t @ wn.T + bn)
        yield h


def _lru(layer, x):
    eigenvalues = torch.exp(torch.complex(-layer.weight_nu.exp(), layer.weight_theta.exp()))
    b = torch.complex(*layer.weight_in) * layer.weight_gamma.exp()[:, None]
    c = torch.complex(*layer.weight_out)
    z = torch.zeros(x.shape[1], layer.hidden_size, dtype=torch.complex128)
    for x_t in x:
        z = eigenvalues * z + x_t.to(z.dtype) @ b.T
        yield (z @ c.T).real + x_t @ layer.weight_skip.T


def _delta_rule(layer, x):
    held = [torch.zeros(layer.hidden_size, layer.key_size, dtype=DOUBLE) for _ in range(x.shape[1])]
    for x_t in x:
        outputs = []
        for row, x_tb in enumerate(x_t):
            q, k = layer.weight_query @ x_tb, layer.weight_key @ x_tb
            q, k = q / q.norm(), k / k.norm()
            beta = torch.sigmoid(layer.weight_beta @ x_tb + layer.bias_beta)
            forgotten = held[row] @ (torch.eye(layer.key_size) - beta * torch.outer(k, k))
            held[row] = forgotten + beta * torch.outer(layer.weight_value @ x_tb, k)
            outputs.append(held[row] @ q)
        yield torch.stack(outputs)


def _screened_delta_rule(layer, x):
    """All associations so far are ranked anew at every step: those of the greatest worth are held."""
    rows = x.shape[1]
    matrices = [torch.zeros(layer.hidden_size, layer.key_size, dtype=DOUBLE) for _ in range(rows)]
    past: list[list] = [[] for _ in range(rows)]
    for x_t in x:
        outputs = []
        for row, x_tb in enumerate(x_t):
            q, k, v = layer.weight_query @ x_tb, layer.weight_key @ x_tb, layer.weight_value @ x_tb
            q, k = q / q.norm(), k / k.norm()
            beta = torch.sigmoid(layer.weight_beta @ x_tb + layer.bias_beta)
            error = v - matrices[row] @ k
            matrices[row] = matrices[row] + beta * torch.outer(error, k)
            past[row].append((float((beta * error).detach().norm()), k, v))
            held = sorted(past[row], key=lambda item: -item[0])[: layer.relevant]
            scores = torch.stack([(q * layer.weight_gamma) @ key for _, key, _ in held]) * layer.key_size**0.5
            read = scores.softmax(0) @ torch.stack([value for _, _, value in held])
            outputs.append(matrices[row] @ q + read)
        yield torch.stack(outputs)


EQUATIONS = dict(zip(LAYERS, [_min_gru, _min_lstm, _lru, _delta_rule, _screened_delta_rule], strict=True))


@pytest.fixture(params=LAYERS, ids=lambda cls: cls.__name__)
def layer(request):
    torch.manual_seed(0)
    return _make(request.param)


def _make(kind, **options):
    few = {"relevant": 3} if kind is nn.ScreenedDeltaRule else {}
    return kind(3, 4, dtype=DOUBLE, **few, **options)


@pytest.fixture
def x():
    return torch.randn(23, 2, 3, dtype=DOUBLE, generator=torch.Generator().manual_seed(0))


def test_the_published_equations(layer, x):
    """Outputs and gradients of the parallel form are those of the loop."""
    found = {}
    for name, output in (("loop", torch.stack(list(EQUATIONS[type(layer)](layer, x)))), ("ours", layer(x)[0])):
        gradients = torch.autograd.grad(output.pow(2).sum(), list(layer.parameters()))
        names = [f"grad.{key}" for key, _ in layer.named_parameters()]
        found[name] = {"output": output} | dict(zip(names, gradients, strict=True))
    assert_matches(found["ours"], found["loop"])


def test_any_length_of_the_parallel_scan_is_the_loop():
    for length in (1, 2, 3, 7, 8, 9):
        decay = torch.rand(length, 2, 3, dtype=DOUBLE)
        drive, h = torch.randn_like(decay), torch.randn(2, 3, dtype=DOUBLE)
        start, values = h, []
        for a, b in zip(decay, drive, strict=True):
            h = a * h + b
            values.append(h)
        assert_matches({"h": nn.linear_scan(decay, drive, start)}, {"h": torch.stack(values)})


def test_chunks_and_single_steps_give_the_whole(layer, x):
    output, final = layer(x)
    for sizes in ([1] * 23, [5, 1, 9, 8]):
        state, outputs = None, []
        for piece in x.split(sizes):
            y, state = layer(piece, state)
            outputs.append(y)
        assert_matches({"output": torch.cat(outputs), "value": state.value}, {"output": output, "value": final.value})
        assert torch.equal(state.step, final.step)
    y, state = layer.step(x[0])
    assert_matches({"first": y}, {"first": output[0]})
    assert_matches({"second": layer.step(x[1], state)[0]}, {"second": output[1]})


def test_reset_is_a_fresh_start_and_nan_does_not_survive_it(layer, x):
    reset = torch.zeros(23, 2, dtype=torch.bool)
    reset[7, 0] = reset[0, 1] = True
    _, before = layer(x.flip(0))
    before.value[0, 1] = torch.nan
    output, state = layer(x, before, reset=reset)
    fresh, fresh_state = layer(x[7:, :1])
    assert_matches({"output": output[7:, :1]}, {"output": fresh})
    assert_matches({"output": output[:, 1:]}, {"output": layer(x[:, 1:])[0]})
    assert state.step.tolist() == [[16, 23]]
    assert_matches({"value": state.value[:, :1]}, {"value": fresh_state.value})


def test_rows_of_unequal_length(layer, x):
    rows = [x[:9, 0], x[:23, 1]]
    packed, state = layer(pack_sequence(rows, enforce_sorted=False))
    for number, row in enumerate(rows):
        output, alone = layer(row)
        padded, _ = torch.nn.utils.rnn.pad_packed_sequence(packed)
        assert_matches({"output": padded[: len(row), number]}, {"output": output})
        assert_matches({"value": state.value[:, number]}, {"value": alone.value})
        assert state.step[0, number] == len(row)


def test_layouts_and_state(layer, x):
    first = _make(type(layer), batch_first=True)
    first.load_state_dict(layer.state_dict())
    output, state = layer(x)
    assert_matches({"output": first(x.transpose(0, 1))[0].transpose(0, 1)}, {"output": output})
    assert state.nbytes == layer.initial_state(2).nbytes
    assert [field.shape for field in layer.initial_state()] == [field[:, 0].shape for field in state]
    with pytest.raises(ValueError, match=r"state\.value"):
        layer(x, layer.initial_state(3))


def test_the_gradient_is_the_derivative(layer, x):
    state = layer(x)[1].value.detach().requires_grad_()

    def run(x, value):
        return layer(x, layer.initial_state(2)._replace(value=value))[0]

    assert torch.autograd.gradcheck(run, (x[:6].clone().requires_grad_(), state), fast_mode=True)


def test_eigenvalues_start_in_their_ring():
    radius = nn.LRU(3, 200, least_radius=0.5, greatest_radius=0.8).eigenvalues.abs()
    assert (radius > 0.5 - 1e-6).all()
    assert (radius < 0.8 + 1e-6).all()
    with pytest.raises(ValueError, match=r"below 1; got 0.9 and 1.0"):
        nn.LRU(3, 4, greatest_radius=1.0)


def test_the_delta_rule_replaces_what_a_key_held():
    """With beta 1 the second value written under one key is all that is read."""
    layer = nn.DeltaRule(3, 1, key_size=1, dtype=DOUBLE)
    with torch.no_grad():
        for name, values in {"query": [1, 0, 0], "key": [1, 0, 0], "value": [0, 1, 0], "beta": [0, 0, 0]}.items():
            getattr(layer, f"weight_{name}").copy_(torch.tensor([values]))
        layer.bias_beta.fill_(40.0)
    x = torch.tensor([[1.0, 5.0, 0.0], [1.0, -2.0, 0.0]], dtype=DOUBLE)
    assert_matches({"read": layer(x)[0][:, 0]}, {"read": torch.tensor([5.0, -2.0], dtype=DOUBLE)})


def test_the_screened_delta_rule_holds_what_was_not_foreseen():
    """One key, beta 1: the error of each value is its distance from the one before; the two largest are held."""
    layer = nn.ScreenedDeltaRule(3, 1, key_size=1, relevant=2, dtype=DOUBLE)
    with torch.no_grad():
        for name, values in {"query": [1, 0, 0], "key": [1, 0, 0], "value": [0, 1, 0], "beta": [0, 0, 0]}.items():
            getattr(layer, f"weight_{name}").copy_(torch.tensor([values]))
        layer.bias_beta.fill_(40.0)
    x = torch.tensor([[1.0, value, 0.0] for value in (5.0, 5.5, 2.0, 2.0, -4.0)], dtype=DOUBLE)
    output, state = layer(x)
    _, _, values, worths = layer._unpack(state.value)
    assert_matches({"values": values.flatten()}, {"values": torch.tensor([5.0, -4.0], dtype=DOUBLE)})
    assert_matches({"worths": worths.flatten()}, {"worths": torch.tensor([5.0, 6.0], dtype=DOUBLE)})
    assert_matches({"read": output[-1]}, {"read": torch.tensor([-4.0 + 0.5], dtype=DOUBLE)})  # the matrix, and the mean


def test_minlstm_has_no_zero_over_zero():
    layer = nn.MinLSTM(1, 1)
    with torch.no_grad():
        layer.weight_ih_l0.fill_(-1e4)
    assert layer(torch.ones(3, 1, 1))[0].isfinite().all()


@pytest.mark.parametrize("name", [cls.__name__ for cls in LAYERS])
def test_a_model_has_them_by_name(name):
    model = nn.SequenceModel(5, name, 6, hidden_size=4)
    output, state = model(torch.randint(5, (7, 2)))
    assert output.shape == (7, 2, 6)
    assert int(state.step[0, 0]) == 7
