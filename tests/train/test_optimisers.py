import math

import pytest
import torch
from torch import nn

from remanence.nn import ExpRNN, SequenceModel
from remanence.testing import assert_matches
from remanence.train import AveragingSGD, OptimiserConfig, ScheduleConfig, make_optimiser, parameter_groups
from remanence.train._optimisers import decay_, rate_factor


def steps(optimiser_of, count=5, decay=0.0):
    """Weights after some steps on a fixed quadratic, from the same start."""
    torch.manual_seed(0)
    layer = nn.Linear(3, 2, dtype=torch.float64)
    inputs = torch.randn(7, 3, dtype=torch.float64)
    optimiser = optimiser_of(layer)
    for _ in range(count):
        optimiser.zero_grad()
        (layer(inputs) ** 2).mean().backward()
        decay_(optimiser, decay)
        optimiser.step()
    return {name: value.detach() for name, value in layer.state_dict().items()}


def ours(**options):
    return lambda layer: make_optimiser(layer, OptimiserConfig(**options))


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({"name": "sgd", "momentum": 0.9}, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
        ({"name": "sgd", "l2": 0.3}, lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.3)),
        ({"name": "rmsprop", "smoothing": 0.9}, lambda p: torch.optim.RMSprop(p, lr=0.1, alpha=0.9)),
        ({"name": "adam", "l2": 0.3}, lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.3)),
    ],
)
def test_optimisers_are_torchs(options, theirs):
    mine = steps(ours(learning_rate=0.1, **options))
    assert_matches(mine, steps(lambda layer: theirs(layer.parameters())))


def test_decoupled_decay_is_adamw_and_l2_is_not():
    adamw = steps(lambda layer: torch.optim.AdamW(layer.parameters(), lr=0.1, weight_decay=0.3))
    assert_matches(steps(ours(name="adamw", learning_rate=0.1, decoupled_decay=0.3), decay=0.3), adamw)
    l2 = steps(ours(name="adam", learning_rate=0.1, l2=0.3))
    assert not torch.allclose(l2["weight"], adamw["weight"])


def test_for_sgd_l2_and_decoupled_decay_are_the_same():
    l2 = steps(ours(name="sgd", learning_rate=0.1, l2=0.3))
    assert_matches(steps(ours(name="sgd", learning_rate=0.1, decoupled_decay=0.3), decay=0.3), l2)


def test_running_average_and_summed_momentum_make_the_same_steps():
    """The lecture notes: alpha = beta and eps = delta (1 - beta)."""
    average = steps(ours(name="sgd", learning_rate=0.1, momentum=0.9, momentum_form="average"))
    assert_matches(average, steps(lambda layer: torch.optim.SGD(layer.parameters(), lr=0.1 * (1 - 0.9), momentum=0.9)))


def test_bias_correction_makes_the_average_of_a_constant_gradient_the_gradient():
    weight = nn.Parameter(torch.zeros(3, dtype=torch.float64))
    optimiser = AveragingSGD([weight], lr=1.0, momentum=0.9, bias_correction=True)
    for _ in range(4):
        weight.grad = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
        optimiser.step()
    assert_matches({"weight": weight.detach()}, {"weight": torch.tensor([-4.0, 8.0, -2.0], dtype=torch.float64)})


def test_groups_hold_every_parameter_once():
    model = SequenceModel(5, "ExpRNN", 5, encoder="embedding", embedding_size=4, hidden_size=8)
    groups = parameter_groups(model, OptimiserConfig(learning_rate=0.2, l2=0.1, embedding_l2=0.01))
    names = [name for group in groups for name in group["names"]]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    found = {group["name"]: (group["names"], group["lr"], group["weight_decay"]) for group in groups}
    assert found["orthogonal"] == (["core.weight_hh_skew_l0"], 0.02, 0.1)
    assert found["embedding"] == (["encoder.embedding.weight"], 0.2, 0.01)


def test_the_orthogonal_learning_rate_can_be_set():
    config = OptimiserConfig(learning_rate=0.2, orthogonal_learning_rate=0.05)
    assert parameter_groups(ExpRNN(3, 4), config)[0]["lr"] == 0.05


def test_schedules_have_their_closed_forms():
    def factors(updates, **options):
        return [rate_factor(ScheduleConfig(**options), t, 8, plateau_drops=2) for t in updates]

    assert factors([0, 5], name="constant") == [1.0, 1.0]
    assert factors([0, 1, 3], name="inverse") == [1.0, 1 / 2, 1 / 4]
    assert factors([0, 6], name="inverse", period=3) == [1.0, 1 / 3]
    assert factors([0, 8, 20], name="cosine", fraction=1 / 32) == [1.0, 1 / 32, 1 / 32]
    assert math.isclose(factors([4], name="cosine", fraction=0.5)[0], 0.75)
    assert factors([3], name="plateau", factor=0.25) == [1 / 16]
