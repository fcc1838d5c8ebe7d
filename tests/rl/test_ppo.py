"""Advantages and losses beside their definitions, written out."""

from __future__ import annotations

import pytest
import torch

from remanence.nn import get_model, list_models
from remanence.rl import MemoryPolicy, Player, PPOConfig, Rollout, advantages, ppo_losses
from remanence.rl._core import CORES
from remanence.rl._environment import Episode, make_environment
from remanence.rl._observations import each_field
from remanence.rl._ppo import cut, learn
from remanence.testing import assert_matches
from remanence.train import NonFiniteError

STEPS, COPIES = 12, 3


SMALL = {
    "RelLSTM": {"recent": 2, "relevant": 2},
    "MemLSTM": {"limit": 4},
    "MemGRU": {"limit": 4},
    "MemRNN": {"limit": 4},
}
EVERY = [model.name for model in list_models() if issubclass(get_model(model.name), CORES)]


@pytest.fixture(params=["RelLSTM"])
def policy(request):
    return MemoryPolicy((3,), 2, request.param, hidden_size=8, **SMALL.get(request.param, {})).double()


@pytest.fixture
def rollout(policy, recall) -> Rollout:
    episodes = [Episode(make_environment(recall), 0, copy) for copy in range(COPIES)]
    for copy, episode in enumerate(episodes):  # ends of episodes at different times
        for _ in range(copy):
            episode.act(0)
    player = Player(episodes, policy)
    player.seen = lambda: each_field(torch.Tensor.double, player.copies.seen())
    found = player.play(STEPS, 4, torch.Generator().manual_seed(0))
    return found._replace(rewards=torch.randn(STEPS, COPIES, dtype=torch.float64))


def expected_advantage(rollout, step, row, discount, smoothing):
    """The sum of all later errors, each smaller by discount * smoothing, up to the end of the episode."""
    total, weight = 0.0, 1.0
    for later in range(step, STEPS):
        after = rollout.last_values[row] if later == STEPS - 1 else rollout.values[later + 1, row]
        end = bool(rollout.ends[later, row])
        error = rollout.rewards[later, row] + (0 if end else discount * after) - rollout.values[later, row]
        total, weight = total + weight * error, weight * discount * smoothing
        if end:
            break
    return total


@pytest.mark.parametrize(("discount", "smoothing"), [(0.9, 0.7), (1.0, 1.0), (0.5, 0.0)])
def test_advantages_are_the_sum_of_later_errors(rollout, discount, smoothing):
    assert rollout.ends.any()
    found = advantages(rollout, discount, smoothing)
    wanted = [
        [expected_advantage(rollout, step, row, discount, smoothing) for row in range(COPIES)] for step in range(STEPS)
    ]
    assert_matches({"advantages": found}, {"advantages": torch.tensor(wanted, dtype=torch.float64)})


def test_advantages_without_smoothing_are_returns_less_values(rollout):
    found = advantages(rollout._replace(ends=torch.zeros_like(rollout.ends)), 1.0, 1.0)
    returns = rollout.rewards.flip(0).cumsum(0).flip(0) + rollout.last_values
    assert_matches({"advantages": found}, {"advantages": returns - rollout.values})


@pytest.mark.parametrize("policy", EVERY, indirect=True)
def test_pieces_say_again_what_was_said_while_playing(policy, rollout):
    """From the kept states, with resets inside: else learning and playing would be two different policies."""
    pieces = cut(rollout, rollout.rewards)
    assert pieces.begins.shape == (4, 9)
    logits, values, _ = policy(pieces.observations, pieces.state, reset=pieces.begins)
    chosen = logits.log_softmax(-1).gather(-1, pieces.actions[..., None])[..., 0]
    assert_matches(
        {"values": values, "log_chances": chosen}, {"values": pieces.values, "log_chances": pieces.log_chances}
    )


def test_chunks_fill_a_rollout(policy, recall):
    player = Player([Episode(make_environment(recall), 0)], policy.float())
    with pytest.raises(ValueError, match=r"`recurrence` must divide steps \(8\); got 3"):
        player.play(8, 3, torch.Generator())


def test_without_the_kept_states_they_would_not(policy, rollout):
    pieces = cut(rollout, rollout.rewards)
    _, values, _ = policy(pieces.observations, None, reset=pieces.begins)
    assert not torch.allclose(values, pieces.values)


def test_the_first_gradient_is_that_of_the_policy(policy, rollout):
    """At ratio 1 the clipped objective has the gradient of the mean of advantage times logarithm of the chance."""
    config = PPOConfig(entropy=0.3, value=0.7)
    pieces = cut(rollout, advantages(rollout, 0.9, 0.9))
    losses = ppo_losses(policy, pieces, config)
    found = torch.autograd.grad(losses.total, list(policy.parameters()))
    logits, values, _ = policy(pieces.observations, pieces.state, reset=pieces.begins)
    chances = torch.distributions.Categorical(logits=logits)
    gain = (chances.log_prob(pieces.actions) * pieces.advantages).mean()
    error = (values - pieces.values - pieces.advantages).square().mean()
    plain = 0.7 * error - gain - 0.3 * chances.entropy().mean()
    wanted = torch.autograd.grad(plain, list(policy.parameters()))
    names = [name for name, _ in policy.named_parameters()]
    assert_matches(dict(zip(names, found, strict=True)), dict(zip(names, wanted, strict=True)))


@pytest.mark.parametrize(("advantage", "moves"), [(1.0, False), (-1.0, True)])
def test_a_chance_that_has_grown_enough_is_left_alone(policy, rollout, advantage, moves):
    pieces = cut(rollout, torch.full((STEPS, COPIES), advantage, dtype=torch.float64))
    grown = pieces._replace(log_chances=pieces.log_chances - 1.0)  # every ratio is e
    losses = ppo_losses(policy, grown, PPOConfig())
    found = torch.autograd.grad(losses.policy, list(policy.actor.parameters()))
    assert any(part.abs().sum() > 0 for part in found) == moves


def test_a_value_that_has_moved_enough_is_left_alone(policy, rollout):
    """It has come closer to its target by more than the limit: the clipped error is the larger one, and constant."""
    pieces = cut(rollout, rollout.rewards)
    low = pieces._replace(values=pieces.values - 1.0, advantages=torch.full_like(pieces.advantages, 3.0))
    losses = ppo_losses(policy, low, PPOConfig(clip=0.2))
    assert_matches({"error": losses.value}, {"error": torch.tensor(2.8**2, dtype=torch.float64)})
    found = torch.autograd.grad(losses.value, list(policy.critic.parameters()), materialize_grads=True)
    assert not any(part.any() for part in found)


def test_the_losses_and_their_gradients_are_those_of_the_definition(policy, rollout):
    pieces = cut(rollout, rollout.rewards)
    moved = pieces._replace(
        log_chances=pieces.log_chances + 0.3 * torch.randn_like(pieces.log_chances),
        values=pieces.values + 0.3 * torch.randn_like(pieces.values),
    )
    config = PPOConfig(clip=0.2)
    given, values, _ = policy(moved.observations, moved.state, reset=moved.begins)
    spread = torch.distributions.Categorical(logits=given)
    ratio = (spread.log_prob(moved.actions) - moved.log_chances).exp()
    gain = torch.minimum(ratio * moved.advantages, ratio.clamp(0.8, 1.2) * moved.advantages).mean()
    target, near = moved.values + moved.advantages, moved.values + (values - moved.values).clamp(-0.2, 0.2)
    error = torch.maximum((values - target).square(), (near - target).square()).mean()
    expected = config.value * error - gain - config.entropy * spread.entropy().mean()
    found = ppo_losses(policy, moved, config).total
    parameters = dict(policy.named_parameters())
    slopes = [torch.autograd.grad(loss, list(parameters.values())) for loss in (found, expected)]
    found_slopes, expected_slopes = (dict(zip(parameters, slope, strict=True)) for slope in slopes)
    assert_matches({"total": found, **found_slopes}, {"total": expected, **expected_slopes})


def test_every_row_is_learnt_from_once_an_epoch(policy, rollout, monkeypatch):
    seen = []
    real = type(cut(rollout, rollout.rewards)).select
    monkeypatch.setattr("remanence.rl._ppo.Pieces.select", lambda self, rows: seen.append(rows) or real(self, rows))
    optimiser = torch.optim.Adam(policy.parameters())
    config = PPOConfig(steps=STEPS, recurrence=4, batch=8, epochs=3)
    learn(policy, optimiser, rollout, config, torch.Generator().manual_seed(0))
    assert all(len(rows) <= 2 for rows in seen)
    assert torch.bincount(torch.cat(seen)).tolist() == [3] * 9


def test_a_gradient_that_is_not_finite_moves_nothing(policy, rollout):
    before = {name: part.clone() for name, part in policy.state_dict().items()}
    bad = rollout._replace(rewards=torch.full_like(rollout.rewards, float("nan")))
    with pytest.raises(NonFiniteError, match=r"gradient is not finite.*gave rewards that are not finite"):
        learn(
            policy,
            torch.optim.Adam(policy.parameters()),
            bad,
            PPOConfig(steps=STEPS, recurrence=4, batch=8),
            torch.Generator(),
        )
    assert all(torch.equal(part, before[name]) for name, part in policy.state_dict().items())


def test_an_observation_that_is_not_finite_is_named(policy, rollout):
    bad = rollout._replace(observations=rollout.observations.log())  # some of them are negative
    config = PPOConfig(steps=STEPS, recurrence=4, batch=8)
    with pytest.raises(NonFiniteError, match="gave observations that are not finite"):
        learn(policy, torch.optim.Adam(policy.parameters()), bad, config, torch.Generator())


@pytest.mark.parametrize("head", ["actor", "critic"])
def test_one_head_that_is_not_finite_is_found(policy, rollout, head):
    with torch.no_grad():
        next(getattr(policy, head).parameters()).fill_(float("nan"))
    config = PPOConfig(steps=STEPS, recurrence=4, batch=8)
    with pytest.raises(NonFiniteError, match="gradient is not finite"):
        learn(policy, torch.optim.Adam(policy.parameters()), rollout, config, torch.Generator())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"recurrence": 3}, "`ppo.recurrence` must divide ppo.steps"),
        ({"batch": 200}, "`ppo.batch` must be a multiple of ppo.recurrence"),
        ({"discount": 1.5}, "`ppo.discount`"),
        ({"learning_rate": 0.0}, "`ppo.learning_rate`"),
    ],
)
def test_bad_settings_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        PPOConfig(**options)
