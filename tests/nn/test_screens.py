"""Every screen beyond beta, worked by hand: who enters, who is replaced, and what a gate learns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch

from remanence import nn, ops
from remanence.ops._screens import SCREENS
from remanence.testing import assert_matches, sharpen_

DOUBLE = torch.float64
BEYOND_BETA = [name for name in SCREENS if name != "attention"]


def _weighted_layer(recent: int, relevant: int, screen: str | ops.Screen) -> nn.RelRNN:
    """A layer whose state is its input and whose attention weights are known: exp(4 tanh(x)), whatever the query."""
    options = {"nonlinearity": "identity", "combine": "sum", "backend": "reference", "dtype": DOUBLE}
    layer = nn.RelRNN(1, 1, recent=recent, relevant=relevant, screen=screen, **options)
    values = {"weight_ih": 1.0, "weight_hh": 0.0, "bias_ih": 0.0, "bias_hh": 0.0}
    values |= {"weight_query": 0.0, "weight_key": 1.0, "weight_score": 4.0}
    with torch.no_grad():
        for name, value in values.items():
            getattr(layer, f"{name}_l0").fill_(value)
    return layer


def _row(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=DOUBLE)[:, None, None]


def _with_weights(*weights: float) -> torch.Tensor:
    """Inputs that get these unnormalised attention weights, as one row."""
    return _row(*(math.atanh(math.log(weight) / 4) for weight in weights))


def _entered(layer: nn.RelRNN, x: torch.Tensor) -> list[int]:
    (trace,) = layer.trace(x)
    return trace.entered[:, 0].tolist()


def test_the_mean_lets_a_later_state_in_where_the_sum_does_not() -> None:
    """recent = 2, relevant = 1, weights 1 1 1 1 2 1 1; sums of what was received, in the relevant set too.

    step 0: buffer 0      sum(0) = 1
    step 1: buffer 0 1    sum(0) = 3/2, sum(1) = 1/2
    step 2: 0 takes the free slot.             buffer 1 2 | 0: 1/3 each
    step 3: 1 has (1/2 + 1/3)/2 < (11/6)/3.    buffer 2 3 | 0: 1/3 each
    step 4: 2 has (2/3)/2 < (13/6)/4.          buffer 3 4 | 0: 1/4 1/2 1/4
    step 5: 3 has (1/3 + 1/4)/2 < (29/12)/5.   buffer 4 5 | 0: 1/2 1/4 1/4
    step 6: 4 has (1/2 + 1/2)/2 > (32/12)/6 = 4/9: replaces 0, though its sum 1 is below 0's 3/2 in the buffer.
    """
    x = _with_weights(1, 1, 1, 1, 2, 1, 1)
    assert _entered(_weighted_layer(2, 1, "attention"), x) == [-1, -1, 0, -1, -1, -1, -1]
    layer = _weighted_layer(2, 1, "mean")
    assert _entered(layer, x) == [-1, -1, 0, -1, -1, -1, 4]
    _, state = layer(x)
    actual = {"recent": state.recent_score[0, 0], "relevant": state.relevant_score[0, 0]}
    # Step 6 stands in slot 0, step 5 in slot 1; step 4 is read with 2/4 once more.
    expected = {"recent": torch.tensor([1 / 4, 1 / 2]), "relevant": torch.tensor([1.5])}
    assert_matches(actual, {name: value.double() for name, value in expected.items()})


def test_a_fair_start_under_uniform_attention() -> None:
    """With equal weights the sum never lets anybody in after the first; the mean of the first wears off to equal."""
    x = _with_weights(*[1.0] * 40)
    assert max(_entered(_weighted_layer(4, 2, "attention"), x)) == 1
    _, state = _weighted_layer(4, 2, "mean")(x)
    mean = state.relevant_score[0, 0] / (40 - state.relevant_step[0, 0])
    assert state.relevant_step.tolist() == [[[0, 1]]]  # nobody is strictly better than 1/6 a query
    assert ((mean > 1 / 6) & (mean < 1 / 4)).all()


def test_a_state_of_norm_zero_makes_room() -> None:
    """Weights 1 1 2 1 1: a weight of 1 is a state of 0. Step 2 has beta 2/4 + 2/4 = 1, less than step 0's 3/2."""
    x = _with_weights(1, 1, 2, 1, 1)
    assert _entered(_weighted_layer(2, 1, "attention"), x) == [-1, -1, 0, -1, -1]
    layer = _weighted_layer(2, 1, "value")
    assert _entered(layer, x) == [-1, -1, 0, -1, 2]
    _, state = layer(x)
    assert_matches({"beta": state.relevant_score[0, 0]}, {"beta": torch.tensor([1.0], dtype=DOUBLE)})


def _gated(weight: float = 1.0, bias: float = 0.0) -> nn.RelRNN:
    """Uniform attention, one recent and one relevant state; the gate is sigmoid(weight m + bias)."""
    layer = _weighted_layer(1, 1, "learned")
    with torch.no_grad():
        layer.weight_score_l0.zero_()
        layer.weight_gate_l0.fill_(weight)
        layer.bias_gate_l0.fill_(bias)
    return layer


def test_the_gate_decides_who_enters() -> None:
    x = _row(-1.0, 0.5, 2.0, 0.0, 3.0, 0.0)
    assert _entered(_gated(), x) == [-1, 0, 1, 2, -1, 4]
    assert _entered(_gated(weight=-1.0), x) == [-1, 0, -1, -1, -1, -1]


def test_the_gate_weighs_the_read_and_its_gradient_is_the_derivative() -> None:
    """Two states h = 2 and m = -1, scores 0: r = (h + g m)/(1 + g), so dr/db = g (1 - g) (m - h)/(1 + g)^2."""
    layer, x = _gated(bias=0.3), _row(-1.0, 2.0)
    output, _ = layer(x)
    gate = 1 / (1 + math.exp(1.0 - 0.3))
    read = (2.0 - gate) / (1 + gate)
    slope = gate * (1 - gate) * -3.0 / (1 + gate) ** 2
    gradients = torch.autograd.grad(output[1].sum(), [layer.bias_gate_l0, layer.weight_gate_l0])
    actual = {"s": output[1, 0], "bias": gradients[0], "weight": gradients[1]}
    expected = {"s": [2.0 + read], "bias": [slope], "weight": [-slope]}  # m = -1
    assert_matches(actual, {name: torch.tensor(value, dtype=DOUBLE) for name, value in expected.items()})


def _copying_layer() -> nn.RelRNN:
    """Its states are its inputs of two features, attention is uniform, the gate knows nothing yet."""
    options = {"nonlinearity": "identity", "combine": "sum", "backend": "reference", "dtype": DOUBLE}
    layer = nn.RelRNN(2, 2, bias=False, recent=1, relevant=1, screen="learned", **options)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(torch.eye(2))
        layer.weight_hh_l0.zero_()
        layer.weight_score_l0.zero_()
        layer.weight_gate_l0.copy_(torch.tensor([0.01, 0.0]))
    return layer


def test_the_gate_learns_what_to_keep() -> None:
    """One input of twelve is marked in its second feature, and its first is asked for at the end."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(12, 64, 2, dtype=DOUBLE, generator=generator)
    x[..., 1] = 0.0
    x[-1] = 0.0
    marked, rows = torch.randint(10, (64,), generator=generator), torch.arange(64)
    x[marked, rows, 1] = 1.0
    asked = x[marked, rows, 0]
    layer = _copying_layer()

    def share_held() -> float:
        return float((layer(x)[1].relevant_step[0, :, 0] == marked).double().mean())

    before = share_held()
    optimiser = torch.optim.Adam([layer.weight_gate_l0, layer.bias_gate_l0], lr=0.1)
    for _ in range(40):
        optimiser.zero_grad()
        (layer(x)[0][-1, :, 0] - asked).pow(2).mean().backward()
        optimiser.step()
    assert before < 0.3
    assert share_held() > 0.9


def test_a_gate_has_parameters_only_where_there_is_something_to_screen() -> None:
    names = dict(nn.RelLSTM(2, 3, num_layers=2, screen="learned").named_parameters())
    assert names["weight_gate_l1"].shape == (3,)
    assert names["bias_gate_l0"].shape == (1,)
    assert "weight_gate_l0" not in dict(nn.RelLSTM(2, 3, recent=4, relevant=0, screen="learned").named_parameters())
    assert "weight_gate_l0" not in dict(nn.RelLSTM(2, 3).named_parameters())


def test_the_newest_make_a_longer_buffer() -> None:
    """A buffer of 2 and the 3 newest of the older ones are a buffer of 5."""
    x = torch.randn(20, 2, 2, dtype=DOUBLE)
    screened = sharpen_(nn.RelRNN(2, 3, recent=2, relevant=3, screen="newest", backend="reference", dtype=DOUBLE))
    limited = nn.MemRNN(2, 3, limit=5, backend="reference", dtype=DOUBLE)
    limited.load_state_dict(screened.state_dict())
    output, state = screened(x)
    assert_matches({"output": output}, {"output": limited(x)[0]})
    assert state.relevant_step[0].sort(dim=1).values.tolist() == [[15, 16, 17]] * 2


def test_random_holds_every_step_equally_often() -> None:
    """5 of 40 steps under 2,000 seeds: every step is held 250 times, give or take five standard deviations."""
    steps = torch.arange(40)[None]
    judged = ops.Judged(torch.zeros(1, 40), steps, 40 - steps, torch.zeros(1, 40, 1))
    no_weights = ops.Weights(torch.zeros(1, 1), torch.zeros(1, 1))
    held = torch.zeros(40)
    for seed in range(2000):
        held[ops.Random(seed).relevance(judged, no_weights)[0].topk(5).indices] += 1
    expected, share = 250, 5 / 40
    assert (held - expected).abs().max() < 5 * math.sqrt(2000 * share * (1 - share))


def test_random_holds_the_greatest_hashes_and_another_seed_holds_others() -> None:
    x = torch.randn(40, 2, 2, dtype=DOUBLE)
    found = []
    for seed in (0, 1):
        layer = nn.RelRNN(2, 3, recent=4, relevant=5, screen=ops.Random(seed), backend="reference", dtype=DOUBLE)
        _, state = layer(x)
        steps = torch.arange(36)[None]
        judged = ops.Judged(torch.zeros(1, 36), steps, steps, torch.zeros(1, 36, 1))
        best = ops.Random(seed).relevance(judged, layer.weights())[0].topk(5).indices.sort().values.tolist()
        assert state.relevant_step[0].sort(dim=1).values.tolist() == [best, best]
        found.append(best)
    assert found[0] != found[1]


@pytest.mark.parametrize("screen", BEYOND_BETA)
def test_a_forced_log_replays_the_choices(screen: str) -> None:
    options = {"recent": 3, "relevant": 4, "screen": screen, "backend": "reference", "dtype": DOUBLE}
    layer, x = sharpen_(nn.RelLSTM(2, 4, **options)), torch.randn(60, 3, 2, dtype=DOUBLE)
    call = {"spec": layer.spec, "backend": "reference"}
    output, final, log = ops.scan(x, layer.weights(), **call)
    assert (log.displaced >= 0).any(dim=0).all()
    again, same_final, same = ops.scan(x, layer.weights(), forced_log=log, **call)
    assert torch.equal(again, output)
    assert torch.equal(same.displaced, log.displaced)
    assert torch.equal(same_final.relevant_score, final.relevant_score)
    nobody = ops.Log(torch.full_like(log.slot, -1), torch.full_like(log.slot, -1))
    assert not torch.equal(ops.scan(x, layer.weights(), forced_log=nobody, **call)[0], output)


@pytest.mark.parametrize("screen", BEYOND_BETA)
def test_rows_of_unequal_length_are_screened_alone(screen: str) -> None:
    options = {"recent": 3, "relevant": 2, "screen": screen, "backend": "reference", "dtype": DOUBLE}
    layer, x = sharpen_(nn.RelGRU(2, 4, **options)), torch.randn(30, 2, 2, dtype=DOUBLE)
    call = {"spec": layer.spec, "backend": "reference"}
    _, state, _ = ops.scan(x, layer.weights(), lengths=torch.tensor([30, 17]), **call)
    _, short, _ = ops.scan(x[:17, 1:], layer.weights(), **call)
    fields = {name: field[1:] for name, field in state._asdict().items()}
    assert_matches(fields, short._asdict())


def test_the_kernel_refuses_by_name_and_an_unknown_screen_is_named() -> None:
    with pytest.raises(ValueError, match="screen"):
        nn.RelLSTM(2, 3, screen="men")
    with pytest.raises(ValueError, match="`seed` must be an int >= 0"):
        ops.Random(-1)
    if ops.backend_report()["active"] == "fused":
        with pytest.raises(ValueError, match=r"the screen _Oldest\(\) is not in the fused kernel"):
            nn.RelLSTM(2, 3, screen=_Oldest(), backend="fused")(torch.zeros(4, 1, 2))


@dataclass(frozen=True)
class _Oldest(ops.Screen):
    """A screen of somebody else's."""

    def relevance(self, judged: ops.Judged, weights: ops.Weights) -> torch.Tensor:
        return judged.age.to(judged.score)


def test_a_screen_of_ones_own_runs_on_the_reference() -> None:
    layer = nn.RelLSTM(2, 3, recent=2, relevant=2, screen=_Oldest())
    _, state = layer(torch.randn(12, 1, 2))
    assert state.relevant_step.tolist() == [[[0, 1]]]
