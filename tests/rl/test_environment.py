"""Episodes: seeded, apart from each other, and found again after a kill."""

from __future__ import annotations

import builtins

import pytest
import torch

from remanence.rl._environment import Episode, longest_episode, make_environment, observed

MEMORY = "MiniGrid-MemoryS7-v0"
ACTIONS = [2, 0, 2, 1, 2, 2, 0, 2] * 40


def first_seen(seed, copy=0, split="train"):
    return Episode(make_environment("MiniGrid-Fetch-8x8-N3-v0"), seed, copy, split).observation


def test_an_episode_is_decided_by_its_seed():
    assert torch.equal(first_seen(3), first_seen(3))
    others = [first_seen(4), first_seen(3, copy=1), first_seen(3, split="test")]
    assert all(not torch.equal(first_seen(3), other) for other in others)


def test_the_same_place_is_found_again():
    one = Episode(make_environment(MEMORY), seed=1)
    for action in ACTIONS[:270]:  # past the end of the first episode
        one.act(action)
    assert one.place["number"] >= 1
    other = Episode(make_environment(MEMORY), seed=1)
    other.go_to(one.place)
    assert torch.equal(one.observation, other.observation)
    for action in ACTIONS:
        assert one.act(action) == other.act(action)
        assert torch.equal(one.observation, other.observation)


def test_the_next_episode_is_seen_where_one_ends(recall):
    episode = Episode(make_environment(recall), seed=0)
    rewards = [episode.act(0) for _ in range(6)]
    assert [ended for _, ended in rewards] == [False] * 5 + [True]
    assert episode.place == {"number": 1, "actions": []}
    assert episode.observation[:2].sum() == 1  # the next cue


def test_what_a_step_shows_is_not_changed_by_the_next(drift):
    episode = Episode(make_environment(drift), seed=0)  # which shows the same array again and again
    before = episode.observation
    kept = before.clone()
    episode.act(1)
    assert torch.equal(before, kept)
    assert not torch.equal(before, episode.observation)


def test_sizes_are_read_off_the_environment(recall):
    there, mine = make_environment(MEMORY), make_environment(recall)
    assert ([field.shape for field in observed(there)], longest_episode(there)) == ([(7, 7, 3)], 245)
    assert ([field.shape for field in observed(mine)], longest_episode(mine)) == ([(3,)], 6)
    babyai = make_environment("BabyAI-GoToObj-v0")
    assert [field.name for field in observed(babyai, words=True)] == ["image", "mission"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MiniGrid-MemoryS8-v0", "must be the id of a gymnasium environment; got 'MiniGrid-MemoryS8-v0'"),
    ],
)
def test_an_environment_that_no_policy_can_play_in_is_refused(name, words):
    with pytest.raises(ValueError, match=words):
        make_environment(name)


def test_a_missing_package_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name == "minigrid":
            raise ImportError("no", name=name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"needs minigrid: pip install 'remanence\[rl\]'"):
        make_environment(MEMORY)
