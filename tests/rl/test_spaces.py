"""Any Gymnasium space: what a policy sees of it, and what it can do in it."""

from __future__ import annotations

import gymnasium
import numpy
import pytest
import torch
from gymnasium import spaces

from remanence.rl import (
    Choices,
    Gaussian,
    MemoryPolicy,
    PolicyConfig,
    PPOConfig,
    actions_of,
    evaluate_policy,
    fields_of,
    load_policy,
    train_policy,
)
from remanence.rl._observations import read
from remanence.testing import assert_matches
from remanence.train import ModelConfig

NESTED = spaces.Dict(
    camera=spaces.Box(0, 255, (9, 8, 3), numpy.uint8),
    arm=spaces.Dict(angle=spaces.Box(-1, 1, (2, 2)), grip=spaces.Discrete(3, start=1)),
    switches=spaces.Tuple([spaces.MultiBinary(2), spaces.MultiDiscrete([2, 3])]),
    order=spaces.Text(40),
)


def test_every_part_of_a_nested_space_is_seen():
    fields = {field.name: field for field in fields_of(NESTED, words=True)}
    assert {name: (field.kind, field.shape) for name, field in fields.items()} == {
        "arm.angle": ("vector", (4,)),
        "arm.grip": ("vector", (3,)),
        "camera": ("picture", (9, 8, 3)),
        "order": ("text", (49,)),
        "switches.0": ("vector", (2,)),
        "switches.1": ("vector", (5,)),
    }


def test_choices_are_one_hot_and_count_from_their_start():
    seen = {
        "camera": numpy.ones((9, 8, 3), numpy.uint8),
        "arm": {"angle": numpy.arange(4.0).reshape(2, 2), "grip": 3},
        "switches": (numpy.array([0, 1]), numpy.array([1, 2])),
        "order": "left",
    }
    numbers = read(fields_of(NESTED), seen)
    assert numbers["arm.grip"].tolist() == [0, 0, 1]
    assert numbers["arm.angle"].tolist() == [0, 1, 2, 3]
    assert numbers["switches.1"].tolist() == [0, 1, 0, 0, 1]
    assert "order" not in numbers


def test_only_the_parts_that_are_asked_for():
    assert [field.name for field in fields_of(NESTED, only=("arm.grip",))] == ["arm.grip"]
    with pytest.raises(ValueError, match="`observe` must be one of"):
        fields_of(NESTED, only=("leg",))


@pytest.mark.parametrize(
    "space", [spaces.Sequence(spaces.Discrete(2)), spaces.Dict(a=spaces.Sequence(spaces.Discrete(2)))]
)
def test_a_space_that_no_policy_can_read_is_refused(space):
    with pytest.raises(ValueError, match="`observation space` must be made of Box"):
        fields_of(space)


def test_keys_may_have_any_name():
    names = ("robot.arm", "vectors", "keys", "type")  # dots join names, and the others are taken in a ModuleDict
    space = spaces.Dict(
        {name: spaces.Text(9) for name in names[1:]} | {names[0]: spaces.Dict({"a.b": spaces.Box(0, 1, (2,))})}
    )
    policy = MemoryPolicy(space, 2, "LSTM", words=True)
    seen = {name: name for name in names[1:]} | {names[0]: {"a.b": numpy.array([1.0, 2.0])}}
    numbers = read(policy.fields, seen)
    assert numbers["robot.arm.a.b"].tolist() == [1, 2]
    assert len(policy({name: part[None, None] for name, part in numbers.items()}).values) == 1


LAYOUTS = {"channels last": (40, 44, 3), "channels first": (3, 40, 44), "grey": (40, 44)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_large_picture_is_one_in_any_layout_and_its_bytes_are_scaled(layout):
    space = spaces.Box(0, 255, LAYOUTS[layout], numpy.uint8, seed=0)
    shown = space.sample()
    [field] = fields_of(space)
    assert (field.kind, field.shape[:2]) == ("picture", (40, 44))
    picture = field.read(shown)
    corner = {"channels last": shown[0, 1], "channels first": shown[..., 0, 1], "grey": shown[0, 1]}[layout]
    assert torch.equal(picture[0, 1], torch.from_numpy(numpy.atleast_1d(corner).astype(numpy.float32)) / 255)
    assert MemoryPolicy(space, 2, "LSTM")(picture[None, None]).values.shape == (1, 1)


def test_small_pictures_of_bytes_and_pictures_of_floats_are_taken_as_they_are():
    assert fields_of(spaces.Box(0, 255, (7, 7, 3), numpy.uint8))[0].scale == 1
    assert fields_of(spaces.Box(0, 1, (64, 64, 3)))[0].scale == 1


class Lamp(gymnasium.Env):
    """A lamp on the left or on the right of a screen; pays 1 for saying where it was one step before."""

    observation_space = spaces.Box(0, 255, (36, 40), numpy.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.side = int(self.np_random.integers(2))
        self.dark = False
        return self._seen(), {}

    def step(self, action):
        if not self.dark:
            self.dark = True
            return self._seen(), 0.0, False, False, {}
        return self._seen(), float(action == self.side), True, False, {}

    def _seen(self):
        screen = numpy.zeros((36, 40), numpy.uint8)
        if not self.dark:
            screen[10:20, 5 + 20 * self.side : 15 + 20 * self.side] = 200
        return screen


def test_large_pictures_are_learnt_from(tmp_path):
    if "Lamp-v0" not in gymnasium.registry:
        gymnasium.register("Lamp-v0", entry_point=Lamp)
    ppo = PPOConfig(steps=8, recurrence=8, batch=64)
    config = PolicyConfig("Lamp-v0", ModelConfig("LSTM", {"hidden_size": 16}), ppo, copies=16, frames=2560)
    assert (train_policy(config, tmp_path / "run").mean_return or 0) > 0.9


@pytest.mark.parametrize(
    ("space", "shown", "words"),
    [
        (spaces.Box(0, 1, (2,)), numpy.zeros(3), r"`observation` must fit \(2,\), as its space says; got \[\(3,\)\]"),
        (spaces.Dict(a=spaces.Box(0, 1, (2,))), {"a": numpy.zeros(3)}, "`observation a` must fit"),
        (
            spaces.Dict(a=spaces.Box(0, 1, (2,))),
            {"b": numpy.zeros(2)},
            r"have the part 'a', as its space says; got \['b'\]",
        ),
        (spaces.MultiDiscrete([2, 3]), numpy.array([2, 0]), r"choose from \(2, 3\)"),
        (spaces.Discrete(3, start=1), 0, "choose from"),
    ],
)
def test_an_observation_outside_of_its_space_is_named(space, shown, words):
    with pytest.raises(ValueError, match=words):
        read(fields_of(space), shown)


def test_a_policy_reads_all_fields_and_each_matters():
    policy = MemoryPolicy(NESTED, 3, "LSTM", words=True, hidden_size=6).double()
    seen = {field.name: torch.rand(4, 2, *field.shape).double() for field in policy.fields}
    seen["order"] = torch.randint(1, 9, (4, 2, 49))
    before = policy(seen).values
    for name in seen:
        changed = {**seen, name: (seen[name] + 1)}
        assert not torch.equal(policy(changed).values, before), name
    with pytest.raises(ValueError, match="`observations` must have the fields"):
        policy({"camera": seen["camera"]})


SPACES = {
    "discrete": spaces.Discrete(4, start=-1),
    "multi-discrete": spaces.MultiDiscrete([2, 3]),
    "multi-binary": spaces.MultiBinary(3),
    "box": spaces.Box(numpy.array([-1.0, 0.0], numpy.float32), numpy.array([1.0, 5.0], numpy.float32)),
}


@pytest.mark.parametrize("squash", [False, True])
@pytest.mark.parametrize("name", SPACES)
def test_what_is_drawn_lies_in_the_space(name, squash):
    space = SPACES[name]
    actions = actions_of(space, squash)
    drawn = actions.draw(3 * torch.randn(50, actions.outputs), torch.Generator().manual_seed(0))
    for action in drawn:
        given = actions.for_environment(action)
        assert space.contains(numpy.asarray(given, dtype=space.dtype) if isinstance(given, list) else given)


@pytest.mark.parametrize("name", ["discrete", "multi-discrete", "multi-binary"])
def test_chances_of_all_actions_sum_to_one_and_give_the_entropy(name):
    actions = actions_of(SPACES[name])
    given = torch.randn(actions.outputs, dtype=torch.float64)
    sizes = actions.sizes if isinstance(actions, Choices) else [actions.outputs]
    every = torch.cartesian_prod(*(torch.arange(size) for size in sizes))
    log_chances = torch.stack([actions.log_chance(given, action) for action in every])
    assert_matches({"sum": log_chances.exp().sum()}, {"sum": torch.ones((), dtype=torch.float64)})
    entropy = -(log_chances.exp() * log_chances).sum()
    assert_matches({"entropy": actions.entropy(given)}, {"entropy": entropy})


def test_a_gaussian_has_the_density_and_entropy_of_torch():
    box = actions_of(SPACES["box"]).double()
    with torch.no_grad():
        box.log_deviation.copy_(torch.tensor([0.3, -0.7]))
    given, action = torch.randn(5, 2).double(), torch.randn(5, 2).double()
    normal = torch.distributions.Normal(given, box.log_deviation.exp())
    expected = {"chance": normal.log_prob(action).sum(-1), "entropy": normal.entropy().sum(-1)}
    assert_matches({"chance": box.log_chance(given, action), "entropy": box.entropy(given)}, expected)


def test_a_squashed_gaussian_has_the_density_of_a_transformed_one():
    box = actions_of(SPACES["box"], squash=True).double()
    assert isinstance(box, Gaussian)
    given, drawn = torch.randn(5, 2).double(), torch.randn(5, 2).double().clamp(-1, 1)
    scale, middle = (box.high - box.low) / 2, (box.high + box.low) / 2
    parts = [torch.distributions.TanhTransform(), torch.distributions.AffineTransform(middle, scale)]
    squashed = torch.distributions.TransformedDistribution(torch.distributions.Normal(given, 1.0), parts)
    inside = parts[1](parts[0](drawn))
    assert_matches({"chance": box.log_chance(given, drawn)}, {"chance": squashed.log_prob(inside).sum(-1)})


def test_no_bounds_no_squashing():
    with pytest.raises(ValueError, match="`squash` must be False where actions have no bounds"):
        actions_of(spaces.Box(-numpy.inf, numpy.inf, (2,)), squash=True)


class Target(gymnasium.Env):
    """Shows where to go at the first step only; the reward is how near the action is at the second and last."""

    observation_space = spaces.Dict(where=spaces.Box(-1, 1, (1,)), first=spaces.Discrete(2))
    action_space = spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.where, self.step_number = float(self.np_random.choice([-0.8, 0.8])), 0
        return self._seen(), {}

    def step(self, action):
        self.step_number += 1
        ended = self.step_number == 2
        reward = -abs(float(action[0]) - self.where) if ended else 0.0
        return self._seen(), reward, ended, False, {}

    def _seen(self):
        first = self.step_number == 0
        return {"where": numpy.array([self.where * first], numpy.float32), "first": int(first)}


@pytest.mark.parametrize("squash", [False, True])
def test_continuous_actions_are_learnt_from_dictionaries_and_go_on_after_a_kill(tmp_path, squash):
    """Always 0 costs 0.8; who remembers where to go comes nearer."""
    if "Target-v0" not in gymnasium.registry:
        gymnasium.register("Target-v0", entry_point=Target, disable_env_checker=True)
    ppo = PPOConfig(steps=8, recurrence=8, batch=128, learning_rate=5e-3, entropy=0.0)
    model = ModelConfig("LSTM", {"hidden_size": 16})
    config = PolicyConfig("Target-v0", model, ppo, squash=squash, frames=10_240, copies=32)
    train_policy(config, tmp_path / "whole")
    policy, _ = load_policy(tmp_path / "whole")
    assert evaluate_policy(policy, "Target-v0", 50, likeliest=True).mean > -0.4
    half = PolicyConfig("Target-v0", model, ppo, squash=squash, frames=5_000, copies=32, save_every=7)
    train_policy(half, tmp_path / "parts")
    train_policy(config, tmp_path / "parts")
    weights = load_policy(tmp_path / "parts")[0].state_dict()
    assert all(torch.equal(weights[name], weight) for name, weight in policy.state_dict().items())


def test_choices_are_drawn_as_often_as_they_are_likely():
    logits = torch.tensor([0.0, 1.0, -2.0, 2.0])
    rows = 20_000
    drawn = actions_of(4).draw(logits.expand(rows, 4), torch.Generator().manual_seed(0))
    chances = logits.softmax(-1)
    errors = (chances * (1 - chances) / rows).sqrt()
    assert ((drawn.bincount(minlength=4) / rows - chances).abs() < 5 * errors).all()
