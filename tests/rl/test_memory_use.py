"""The attended memory kept, emptied at every step, or emptied only while the policy acts."""

from __future__ import annotations

from typing import cast

import pytest
import torch
from torch import Tensor

from remanence.nn import Screened
from remanence.rl import MemoryPolicy, Player, PolicyConfig, PPOConfig, build_policy, load_policy, train_policy
from remanence.rl._environment import Episode, make_environment
from remanence.rl._ppo import cut
from remanence.testing import assert_matches
from remanence.train import ModelConfig

STEPS, COPIES, CHUNK = 12, 3, 4
CORES = {
    "LSTM": {},
    "RelLSTM": {"recent": 2, "relevant": 2},
    "RelGRU": {"recent": 2, "relevant": 2},
    "MemLSTM": {"limit": 9},
    "SABLSTM": {"every": 1, "top_k": 2},
    "MinGRU": {},
}


def make(core, memory):
    torch.manual_seed(0)
    return MemoryPolicy((3,), 2, core, memory_use=memory, hidden_size=8, **CORES[core]).double()


def played(policy, environment):
    """Rewards, states and all that was said while playing; episodes end at different times."""
    episodes = [Episode(make_environment(environment), 0, copy) for copy in range(COPIES)]
    player = Player(episodes, policy)
    player.seen = lambda: cast(Tensor, player.copies.seen()).double()
    return player.play(STEPS, CHUNK, torch.Generator().manual_seed(0))


def said_again(policy, pieces):
    logits, values, _ = policy(pieces.observations, pieces.state, reset=pieces.begins)
    return {"values": values, "log_chances": policy.actions.log_chance(logits, pieces.actions)}


def said_then(pieces):
    return {"values": pieces.values, "log_chances": pieces.log_chances}


@pytest.mark.parametrize("memory", ["kept", "emptied"])
@pytest.mark.parametrize("core", CORES)
def test_acting_and_learning_are_one_policy(drift, core, memory):
    policy = make(core, memory)
    rollout = played(policy, drift)
    assert rollout.ends.any()
    pieces = cut(rollout, rollout.rewards)
    assert_matches(said_again(policy, pieces), said_then(pieces))


@pytest.mark.parametrize("core", [core for core in CORES if core not in ("LSTM", "MinGRU")])
def test_emptied_only_while_acting_they_are_not(drift, core):
    """They agree at the start of every chunk, and differ where the learner still remembers."""
    policy = make(core, "emptied_acting")
    rollout = played(policy, drift)
    pieces = cut(rollout, rollout.rewards)
    again, then = said_again(policy, pieces), said_then(pieces)
    assert_matches({key: part[0] for key, part in again.items()}, {key: part[0] for key, part in then.items()})
    goes_on = ~pieces.begins[1:].any(0)
    assert goes_on.any()
    apart = (again["values"] - then["values"])[1:, goes_on].abs().amax(0)
    assert (apart > 1e-6).all()


def test_an_emptied_memory_is_one_of_a_single_state(drift):
    """All that is attended to is the present state: that is a buffer of one, and no relevant set."""
    policy = make("RelLSTM", "emptied")
    single = MemoryPolicy((3,), 2, "RelLSTM", hidden_size=8, recent=1, relevant=0).double()
    single.load_state_dict(policy.state_dict())
    seen, begins = torch.randn(STEPS, COPIES, 3).double(), torch.rand(STEPS, COPIES) < 0.2
    found, expected = policy(seen, reset=begins), single(seen, reset=begins)
    assert_matches({"values": found.values}, {"values": expected.values})


def test_the_halved_sum_of_an_emptied_memory_is_an_lstm():
    """As the authors' code acts: its memory is empty, and the macro-state is the hidden state."""
    torch.manual_seed(0)
    policy = MemoryPolicy(
        (3,), 2, "RelLSTM", memory_use="emptied_acting", combine="half", recent=2, relevant=2
    ).double()
    plain = MemoryPolicy((3,), 2, "LSTM").double()
    plain.load_state_dict(policy.state_dict(), strict=False)
    state, other = policy.core.initial_state(1), plain.core.initial_state(1)
    for _ in range(5):
        seen = torch.randn(1, 1, 3).double()
        logits, _, state = policy(seen, state)
        expected, _, other = plain(seen, other)
        assert_matches({"logits": logits}, {"logits": expected})


@pytest.mark.parametrize("memory", ["emptied", "emptied_acting"])
def test_a_run_keeps_the_choice(recall, tmp_path, memory):
    ppo = PPOConfig(steps=8, recurrence=8, batch=16)
    config = PolicyConfig(recall, ModelConfig("RelLSTM", {"hidden_size": 8}), ppo, frames=32, copies=2, memory=memory)
    train_policy(config, tmp_path / "run")
    policy, found = load_policy(tmp_path / "run")
    assert policy.memory_use == found.memory == memory
    assert config.digest != PolicyConfig(recall, config.model, ppo, frames=32, copies=2).digest


def test_the_choice_has_not_renamed_older_runs():
    assert PolicyConfig().digest == "ef170784"


def test_another_word_is_refused():
    with pytest.raises(ValueError, match="`memory` must be one of 'kept', 'emptied', 'emptied_acting'"):
        PolicyConfig(memory="lost")  # type: ignore[arg-type]


def test_a_memory_of_the_layer_reaches_the_core():
    policy = MemoryPolicy((3,), 2, "LSTM", memory=Screened(2, 3))
    assert policy.core.spec.memory == Screened(2, 3)


def test_a_memory_in_the_configuration_reaches_the_core():
    policy = build_policy(PolicyConfig(model=ModelConfig("GRU", {"memory": Screened(2, 3)}), memory="emptied"))
    assert (policy.core.spec.memory, policy.memory_use) == (Screened(2, 3), "emptied")
