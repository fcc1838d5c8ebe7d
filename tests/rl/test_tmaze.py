"""The T-maze: known answers, and who can solve it."""

from __future__ import annotations

import pytest
import torch

from remanence.rl import (
    MemoryPolicy,
    PolicyConfig,
    PPOConfig,
    evaluate_policy,
    film_policy,
    load_policy,
    train_policy,
)
from remanence.rl._environment import Episode, longest_episode, make_environment
from remanence.rl._film import HEIGHT, MARGIN, RECENT, RELEVANT, WIDTH
from remanence.train import ModelConfig

MAZE = "remanence/TMaze-v0"


@pytest.mark.parametrize("length", [1, 7])
@pytest.mark.parametrize("right", [True, False])
def test_who_turns_as_the_sign_said_gets_one(length, right):
    maze = make_environment(MAZE, {"length": length})
    sign = maze.reset(seed=3)[0]
    for step in range(length):
        seen, reward, ended, cut_off, _ = maze.step(0)
        assert (reward, ended, cut_off) == (0.0, False, False)
        assert seen.tolist() == [0, 0, float(step == length - 1)]
    turn = 1 + int(sign[1] if right else sign[0])
    _, reward, ended, *_ = maze.step(turn)
    assert (reward, ended) == (float(right), True)


def test_a_turn_before_the_junction_costs_and_the_limit_comes():
    episode = Episode(make_environment(MAZE, {"length": 2}), seed=0)
    assert episode.act(1) == (-0.01, False)
    assert longest_episode(episode.environment) == 8
    for _ in range(6):
        assert not episode.act(0)[1]
    assert episode.act(0)[1]
    assert episode.cut_off is not None


@pytest.mark.parametrize(("forgets", "least", "most"), [(False, 0.9, 1.0), (True, 0.2, 0.75)])
def test_a_memory_solves_it_and_the_same_network_without_one_guesses(tmp_path, forgets, least, most):
    ppo = PPOConfig(steps=24, recurrence=24, batch=384, learning_rate=5e-3)
    config = PolicyConfig(
        environment=MAZE,
        model=ModelConfig("LSTM", {"hidden_size": 16}),
        ppo=ppo,
        frames=40_000,
        copies=32,
        environment_options={"length": 4},
        forgets=forgets,
    )
    train_policy(config, tmp_path / "run")
    policy, found = load_policy(tmp_path / "run")
    assert found.environment_options == {"length": 4}
    score = evaluate_policy(policy, MAZE, 100, options={"length": 4}, likeliest=True)
    assert least <= score.mean <= most


def test_without_a_memory_an_answer_depends_on_the_present_alone():
    policy = MemoryPolicy((3,), 3, "RelLSTM", forgets=True, hidden_size=5, recent=2, relevant=2)
    seen = torch.randn(6, 2, 3)
    changed = seen.clone()
    changed[:5] += 1
    assert torch.equal(policy(seen).values[5], policy(changed).values[5])


@pytest.mark.parametrize("where", [MAZE, "MiniGrid-MemoryS7-v0"])
def test_a_film_shows_every_step(tmp_path, where):
    from PIL import Image

    shape, actions = ((3,), 3) if where == MAZE else ((7, 7, 3), 7)
    policy = MemoryPolicy(shape, actions, "RelLSTM", hidden_size=8, recent=3, relevant=2)
    frames = film_policy(policy, where, tmp_path / "play.gif", steps=7)
    with Image.open(tmp_path / "play.gif") as film:
        assert getattr(film, "n_frames", 1) == frames
        assert 2 <= frames <= 8
        assert film.size == (600, 240)


def test_a_film_tells_relevant_states_from_recent_ones_next_to_them(tmp_path):
    """Before the buffer has moved on, the relevant states are the steps just before it."""
    Image = pytest.importorskip("PIL.Image")
    policy = MemoryPolicy((3,), 3, "RelLSTM", hidden_size=8, recent=2, relevant=3)
    film_policy(policy, MAZE, tmp_path / "play.gif", options={"length": 50}, steps=4)
    with Image.open(tmp_path / "play.gif") as film:
        film.seek(4)
        frame = film.convert("RGB")
    base = HEIGHT - MARGIN - 2
    bar = (WIDTH - 2 * MARGIN) // 5
    found = [frame.getpixel((HEIGHT + MARGIN + bar // 2 + bar * step, base)) for step in range(5)]
    assert found == [RELEVANT] * 3 + [RECENT] * 2


def test_a_film_of_what_has_no_picture_shows_the_memory_alone(tmp_path, recall):
    Image = pytest.importorskip("PIL.Image")
    policy = MemoryPolicy((3,), 2, hidden_size=8)
    film_policy(policy, recall, tmp_path / "play.gif", steps=3)
    with Image.open(tmp_path / "play.gif") as film:
        assert film.size == (360, 240)


def test_a_picture_shows_the_sign_and_where_the_agent_is():
    maze = make_environment(MAZE, {"length": 4, "render_mode": "rgb_array"})
    pictures = []
    for seed in range(8):
        maze.reset(seed=seed)
        pictures.append(maze.render())
    assert len({picture.tobytes() for picture in pictures}) == 2, "a sign for each side"
    maze.step(0)
    assert (maze.render() != pictures[-1]).any()


def test_nothing_is_drawn_unless_asked():
    maze = make_environment(MAZE)
    maze.reset(seed=0)
    assert maze.render() is None
