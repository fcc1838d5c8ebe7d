"""Missions: a field of their own beside the picture, as numbers of words, and read."""

from __future__ import annotations

import pytest
import torch

from remanence.rl import MemoryPolicy, PolicyConfig, PPOConfig, evaluate_policy, load_policy, train_policy
from remanence.rl._environment import Episode, make_environment, observed
from remanence.rl._observations import LONGEST_TEXT, VOCABULARY, word_numbers
from remanence.testing import assert_matches
from remanence.train import ModelConfig

DOOR = "MiniGrid-GoToDoor-5x5-v0"

# All words of the missions of MiniGrid and BabyAI 3.2.
TEXT = (
    "a after and at avoid ball behind blue box door end fetch find from front get go goal green grey hallway in key "
    "lava left matching must near next object of on open opening pick purple put reach red right room rooms square the "
    "then to traverse unlock up use yellow you your"
)
SOME = (
    "PutNear-6x6-N2 KeyCorridorS3R1 LavaCrossingS9N1 BlockedUnlockPickup RedBlueDoors-6x6 MultiRoom-N2-S4 Fetch-5x5-N2"
)


def test_no_two_words_have_the_same_number():
    numbers = word_numbers(TEXT)
    assert len(set(numbers)) == len(numbers) == 53
    assert min(numbers) >= 1
    assert max(numbers) <= VOCABULARY


@pytest.mark.parametrize("name", SOME.split())
def test_environments_say_nothing_else(name):
    mission = make_environment(f"MiniGrid-{name}-v0").reset(seed=0)[0]["mission"]
    assert set(word_numbers(mission)) <= set(word_numbers(TEXT))


def episode(words):
    environment = make_environment(DOOR)
    return Episode(environment, 0, fields=observed(environment, words))


def test_the_mission_is_shown_beside_the_picture():
    plain, told = (episode(words) for words in (False, True))
    numbers = word_numbers(told.environment.unwrapped.mission)
    for _ in range(2):
        assert torch.equal(told.observation["image"], plain.observation)
        mission = told.observation["mission"]
        assert mission[: len(numbers)].tolist() == numbers
        assert not mission[len(numbers) :].any()
        plain.act(2), told.act(2)


def sentences():
    """Pictures with three different texts, of different lengths; the last two rows have the same."""
    told = torch.zeros(1, 4, LONGEST_TEXT, dtype=torch.int64)
    for row, text in enumerate(("go to the red door", "go to the blue door", "stop", "stop")):
        numbers = torch.tensor(word_numbers(text))
        told[0, row, : len(numbers)] = numbers
    return {"image": torch.randint(0, 9, (1, 4, 7, 7, 3)).double(), "mission": told}


def test_a_text_means_the_same_whatever_else_is_read_beside_it():
    policy, seen = MemoryPolicy((7, 7, 3), 3, "LSTM", words=True).double(), sentences()
    together = policy(seen)
    for row in range(4):
        alone = policy({name: part[:, row : row + 1] for name, part in seen.items()})
        assert_matches({"logits": together.logits[:, row : row + 1]}, {"logits": alone.logits})


def test_texts_differ_by_words_and_by_their_order():
    words = MemoryPolicy((7, 7, 3), 3, "LSTM", words=True).encoder.parts["mission"]
    texts = [word_numbers(text) for text in ("red then blue", "blue then red", "red then red", "red then blue")]
    read = words(torch.tensor(texts))
    assert torch.equal(read[0], read[3])
    assert all(not torch.allclose(read[0], read[other]) for other in (1, 2))


def test_a_silent_mission_is_read_too():
    silent = {"image": torch.zeros(2, 1, 7, 7, 3), "mission": torch.zeros(2, 1, LONGEST_TEXT, dtype=torch.int64)}
    assert MemoryPolicy((7, 7, 3), 3, words=True)(silent).values.isfinite().all()


@pytest.mark.parametrize(("words", "least", "most"), [(True, 0.95, 1.0), (False, 0.2, 0.8)])
def test_what_is_only_said_is_learnt_by_who_reads(told, tmp_path, words, least, most):
    ppo = PPOConfig(steps=4, recurrence=4, batch=64, learning_rate=3e-3)
    config = PolicyConfig(told, ModelConfig("LSTM", {"hidden_size": 16}), ppo, words=words, frames=6_000, copies=32)
    train_policy(config, tmp_path / "run")
    policy, found = load_policy(tmp_path / "run")
    assert found.words == words
    assert least <= evaluate_policy(policy, told, 100).mean <= most


def test_words_are_refused_where_there_are_none(recall):
    with pytest.raises(ValueError, match="`words` must be False where there is no 'mission'"):
        observed(make_environment(recall), words=True)
    with pytest.raises(ValueError, match="`words` must be False where no picture is seen"):
        MemoryPolicy((5,), 3, words=True)


def test_a_mission_that_does_not_fit_is_an_error():
    environment = make_environment(DOOR)
    fields = observed(environment, words=True)
    Episode(environment, 0, fields=fields)
    environment.unwrapped.mission = "go " * 50
    with pytest.raises(ValueError, match="`mission` must have at most 49 words"):
        Episode(_Same(environment), 0, fields=fields)


class _Same:
    """An environment whose next episode is the present one."""

    def __init__(self, environment):
        self.inner = environment

    def reset(self, seed):
        return self.inner.unwrapped.gen_obs(), {}
