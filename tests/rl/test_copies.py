"""Vector environments in all of Gymnasium's modes, limits of steps, and modes of the policy while it acts."""

from __future__ import annotations

import gymnasium
import numpy
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from remanence.rl import MemoryPolicy, Player, PPOConfig, Rollout, VectorCopies, advantages, learn
from remanence.rl._environment import Episode
from remanence.testing import assert_matches

LIMIT = 4


class Counting(gymnasium.Env):
    """Shows how many steps it has made; pays 1 a step; ends by itself after `own` steps, or at the limit."""

    observation_space = gymnasium.spaces.Box(0.0, 100.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, own=100):
        self.own = own

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.made = 0
        return numpy.array([0.0], numpy.float32), {}

    def step(self, action):
        self.made += 1
        return numpy.array([self.made], numpy.float32), 1.0, self.made == self.own, self.made == LIMIT, {}


def vector(mode, own=(3, 100)):
    return SyncVectorEnv([lambda own=own: Counting(own) for own in own], autoreset_mode=mode)


@pytest.fixture
def policy():
    torch.manual_seed(0)
    return MemoryPolicy((1,), 2, "RelLSTM", hidden_size=4, recent=2, relevant=2)


def played(policy, mode, steps=12, bootstrap=False):
    copies = VectorCopies(vector(mode), seed=0)
    return Player(copies, policy).play(steps, steps, torch.Generator().manual_seed(0), bootstrap)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_each_mode_gives_the_same_episodes(policy, mode):
    rollout = played(policy, mode)
    assert set(rollout.lengths) == {3, LIMIT}
    assert all(got == length for got, length in zip(rollout.returns, rollout.lengths, strict=True))
    seen, begins = rollout.observations[..., 0], rollout.begins
    assert torch.equal(seen == 0, begins)


def test_a_step_that_only_begins_an_episode_is_not_learnt_from(policy):
    rollout = played(policy, AutoresetMode.NEXT_STEP)
    assert rollout.counts is not None
    assert not rollout.counts.all()
    void = ~rollout.counts
    assert bool((rollout.rewards[void] == 0).all())
    spoilt = rollout._replace(log_chances=torch.where(void, 50.0, rollout.log_chances))
    results = [
        learn(policy, torch.optim.SGD(policy.parameters(), lr=0.0), one, PPOConfig(epochs=1), torch.Generator())
        for one in (rollout, spoilt)
    ]
    assert results[0] == results[1]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_limit_of_steps_is_bootstrapped_when_asked_and_a_true_end_is_not(policy, mode):
    rollout = played(policy, mode, bootstrap=True)
    limits = rollout.limit_values
    ended_by_itself, cut_off = limits[:, 0], limits[:, 1]
    assert not ended_by_itself.any()
    real = rollout.ends[:, 1] if rollout.counts is None else rollout.ends[:, 1] & rollout.counts[:, 1]
    assert torch.equal(cut_off != 0, real)


def test_the_value_after_a_limit_is_what_the_critic_says_with_its_memory(policy):
    rollout = played(policy, AutoresetMode.SAME_STEP, steps=LIMIT, bootstrap=True)
    whole = torch.arange(LIMIT + 1.0).reshape(-1, 1, 1)
    plain = {"value": policy(whole).values[-1]}
    exact = {"value": policy.double()(whole.double()).values[-1]}
    assert_matches({"value": rollout.limit_values[-1, 1:]}, exact, plain)


def test_advantages_take_the_value_after_a_limit():
    one = torch.ones(1, 1)
    rollout = Rollout(one, one, one, one, 0.5 * one, 2 * one, one == 1, 3 * one[0], [], [], [])
    assert advantages(rollout, 0.9, 1.0).item() == pytest.approx(1.5)
    assert advantages(rollout._replace(limit_values=4 * one), 0.9, 1.0).item() == pytest.approx(1.5 + 0.9 * 4)


def test_nothing_is_dropped_while_it_acts_and_modes_are_put_back(drift):
    policy = MemoryPolicy((3,), 2, "LSTM", hidden_size=8, num_layers=2, dropout=0.5)
    policy.critic.eval()
    copies = [Episode(gymnasium.make(drift), seed=0)]
    first = Player(copies, policy).play(8, 8, torch.Generator().manual_seed(0))
    copies = [Episode(gymnasium.make(drift), seed=0)]
    again = Player(copies, policy).play(8, 8, torch.Generator().manual_seed(0))
    assert torch.equal(first.values, again.values)
    assert policy.core.training
    assert not policy.critic.training


def test_a_core_whose_state_grows_is_refused():
    with pytest.raises(ValueError, match="`core` must have a state of fixed size"):
        MemoryPolicy((3,), 2, "SABLSTM", score="mlp")
