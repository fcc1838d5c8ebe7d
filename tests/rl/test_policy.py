"""A policy says the same about a whole sequence as step by step, and nothing passes from episode to episode."""

from __future__ import annotations

import numpy
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from remanence import nn
from remanence.nn import evaluating
from remanence.rl import MemoryPolicy
from remanence.rl._observations import each_field, read
from remanence.testing import assert_matches

CORES = {"LSTM": {}, "MemLSTM": {"limit": 9}, "RelLSTM": {"recent": 2, "relevant": 2}, "SABLSTM": {}}
CORES |= {"MinGRU": {}, "MinLSTM": {}, "LRU": {}, "DeltaRule": {}}
STEPS, ROWS = 12, 3


@pytest.fixture(params=CORES)
def policy(request):
    return MemoryPolicy((7, 7, 3), 7, request.param, **CORES[request.param]).double()


def sequences():
    begins = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    begins[0] = begins[5, 1] = begins[7, 2] = True
    return torch.randint(0, 9, (STEPS, ROWS, 7, 7, 3)).double(), begins


def judged(policy, seen, begins, state=None):
    logits, values, state = policy(seen, state, reset=begins)
    return {"logits": logits, "values": values}, state


def test_whole_and_step_by_step_agree(policy):
    seen, begins = sequences()
    whole, _ = judged(policy, seen, begins)
    parts, state = [], policy.core.initial_state(ROWS)
    for step in range(STEPS):
        found, state = judged(policy, seen[step : step + 1], begins[step : step + 1], state)
        parts.append(found)
    assert_matches({name: torch.cat([part[name] for part in parts]) for name in whole}, whole)


@pytest.mark.parametrize("use", ["kept", "emptied", "emptied_acting"])
def test_the_quick_step_says_what_the_whole_does(policy, use):
    policy.memory_use = use
    seen, begins = sequences()
    slow, quick = policy.core.initial_state(ROWS), policy.core.initial_state(ROWS)
    with torch.no_grad():
        for now, starts in zip(seen, begins, strict=True):
            expected, slow = policy.remember(now[None], slow, reset=starts[None])
            found, quick = policy.step(now, quick, starts)
            assert_matches({"output": found}, {"output": expected[0]})


def test_the_quick_step_serves_a_memory_that_grows_and_a_policy_that_forgets():
    grows = MemoryPolicy((3,), 2, "MemLSTM").double()
    forgets = MemoryPolicy((3,), 2, "LSTM", forgets=True).double()
    seen = torch.randn(STEPS, ROWS, 3).double()
    for policy in (grows, forgets):
        state, outputs = policy.core.initial_state(ROWS), []
        with torch.no_grad():
            whole, _ = policy.remember(seen)
            for now in seen:
                output, state = policy.step(now, state)
                outputs.append(output)
        assert_matches({"output": torch.stack(outputs)}, {"output": whole})


def test_the_quick_step_refuses_another_shape():
    policy = MemoryPolicy((3,), 2)
    with pytest.raises(ValueError, match=r"have the shape \(B, 3\); got \(5, 4\)"):
        policy.step(torch.zeros(5, 4), policy.core.initial_state(5))


def test_an_episode_knows_nothing_of_the_one_before(policy):
    seen, begins = sequences()
    whole, _ = judged(policy, seen, begins)
    for row, start in ((1, 5), (2, 7)):
        alone, _ = judged(policy, seen[start:, row : row + 1], None)
        assert_matches({name: part[start:, row : row + 1] for name, part in whole.items()}, alone)


def test_a_gradient_does_not_cross_the_start_of_an_episode(policy):
    seen, begins = sequences()
    seen.requires_grad_()
    whole, _ = judged(policy, seen, begins)
    (whole["values"][6, 1] + whole["logits"][6, 1].sum()).backward()
    assert seen.grad is not None
    reached = seen.grad.flatten(2).abs().sum(-1) > 0
    assert reached[5:7, 1].all()
    assert not reached[:5].any()
    assert not reached[7:].any()


def test_unit_rows_and_equal_starts():
    """The heads of all policies start alike; a core keeps the start that it has by itself."""
    torch.manual_seed(3)
    policy = MemoryPolicy((5,), 4, "LSTM", hidden_size=6)
    for head in (policy.actor, policy.critic, policy.encoder):
        for module in head.children():
            if isinstance(module, torch.nn.Linear):
                norms = module.weight.norm(dim=1)
                torch.testing.assert_close(norms, torch.ones_like(norms))
                assert not module.bias.any()
    assert isinstance(policy.core, nn.LSTM)
    assert policy.core.get_parameter("weight_hh_l0").norm(dim=1).max() < 1


def test_vectors_are_seen_too():
    logits, values, _ = MemoryPolicy((5,), 4)(torch.randn(3, 2, 5))
    assert (logits.shape, values.shape) == ((3, 2, 4), (3, 2))


@pytest.mark.parametrize("shape", [(6, 7, 3), (7, 7), ()])
def test_observations_of_another_kind_are_refused(shape):
    with pytest.raises(ValueError, match="`observation_shape` must be"):
        MemoryPolicy(shape, 3)


def test_another_shape_than_promised_is_refused():
    with pytest.raises(ValueError, match=r"`observations` must have the shape \(T, B, 5\); got \(2, 1, 4\)"):
        MemoryPolicy((5,), 3)(torch.zeros(2, 1, 4))


@pytest.mark.parametrize(
    "core", [torch.nn.LSTM(64, 8), nn.LSTM(64, 8, batch_first=True), nn.RNN(64, 8, bidirectional=True)]
)
def test_a_core_that_cannot_be_reset_or_stepped_is_refused(core):
    with pytest.raises(ValueError, match="`core` must be a recurrent layer"):
        MemoryPolicy((5,), 3, core)


@pytest.mark.parametrize("space", [Discrete(3, start=1), Box(-2, 2, (2, 1)), MultiDiscrete([2, 3]), MultiBinary(2)])
def test_acting_in_ones_own_loop_goes_on_from_the_state_and_is_a_legal_action(space):
    policy = MemoryPolicy(Dict(a=Box(-1, 1, (2,)), b=Discrete(2)), space, "RelLSTM", recent=2, relevant=2, dropout=0.5)
    state, kept = None, policy.core.initial_state(1)
    for step in range(4):
        seen = {"a": numpy.full(2, step / 4), "b": step % 2}
        action, state = policy.act(seen, state)
        with torch.no_grad(), evaluating(policy):
            output, kept = policy.step(each_field(lambda part: part[None], read(policy.fields, seen)), kept)
            [expected] = policy.actions.likeliest(policy.actor(output))
        assert numpy.array_equal(action, policy.actions.for_environment(expected))
        assert action in space
    assert policy.act(seen, likeliest=False)[0] in space
