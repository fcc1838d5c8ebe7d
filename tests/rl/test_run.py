"""Runs: they learn what needs a memory, and go on with the same bits after any stop."""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
import signal

import pytest
import torch

from remanence.rl import (
    MemoryPolicy,
    PolicyConfig,
    PPOConfig,
    build_policy,
    evaluate_policy,
    load_policy,
    resume_policy,
    train_policy,
)
from remanence.rl._environment import Episode, make_environment
from remanence.runs import (
    Checkpoint,
    DamagedFileError,
    bits_equal,
    load_checkpoint,
    locked,
    read_lines,
    save_checkpoint,
    sealed,
    unsealed,
)
from remanence.train import CheckpointError, ModelConfig, RunLockedError

SMALL = {"hidden_size": 16}


def tiny(environment, model="RelLSTM", **options):
    more = {"recent": 2, "relevant": 2} if model == "RelLSTM" else {}
    ppo = PPOConfig(steps=16, recurrence=8, batch=32, learning_rate=3e-3)
    settings = {"frames": 6 * 64, "copies": 4, "save_every": 2, "ppo": ppo, **options}
    return PolicyConfig(environment, ModelConfig(model, {**SMALL, **more}), **settings)


def longer(environment, model):
    """Enough to learn it: three thousand frames are, mostly."""
    ppo = PPOConfig(steps=12, recurrence=12, batch=96, learning_rate=5e-3)
    return tiny(environment, model, frames=12_000, copies=32, save_every=1000, ppo=ppo)


def without_clocks(folder):
    clocks = ("seconds", "frames_per_second", "playing")
    lines = read_lines(folder / "metrics.jsonl")
    return [{key: value for key, value in line.items() if key not in clocks} for line in lines]


def weights(folder):
    checkpoint = load_checkpoint(folder / "checkpoint")
    assert checkpoint is not None
    return checkpoint.weights


@pytest.mark.parametrize("model", ["LSTM", "MemLSTM", "RelLSTM"])
def test_what_was_seen_first_is_done_last(recall, tmp_path, model):
    """Without a memory half of all episodes are won."""
    outcome = train_policy(longer(recall, model), tmp_path / "run")
    assert outcome.status == "done"
    assert outcome.mean_return is not None
    assert outcome.mean_return > 0.9
    policy, _ = load_policy(tmp_path / "run")
    assert evaluate_policy(policy, recall, 50, likeliest=True).mean > 0.9


def test_a_policy_that_forgets_does_not_learn_it(recall, tmp_path, monkeypatch):
    """The check of the test above: the same run, but every step is the first of an episode."""
    from remanence.rl import MemoryPolicy

    real = MemoryPolicy.forward
    monkeypatch.setattr(
        MemoryPolicy,
        "forward",
        lambda self, seen, state=None, reset=None: real(self, seen, None, reset=seen[..., 0] > -1),
    )
    outcome = train_policy(longer(recall, "LSTM"), tmp_path / "run")
    assert outcome.mean_return is not None
    assert outcome.mean_return < 0.7


@pytest.mark.parametrize(
    ("environment", "model"),
    [("recall", "RelLSTM"), ("recall", "MinGRU"), ("MiniGrid-DoorKey-5x5-v0", "RelLSTM")],
)
@pytest.mark.parametrize("how", ["signal", "killed"])
def test_a_stopped_run_ends_like_one_that_never_stopped(recall, tmp_path, how, environment, model):
    config = tiny(recall if environment == "recall" else environment, model)
    train_policy(config, tmp_path / "whole")

    def stop(line):
        if line["kind"] == "train" and line["update"] == 3:
            if how == "killed":
                raise InterruptedError  # one update after the last checkpoint
            signal.raise_signal(signal.SIGTERM)

    if how == "killed":
        with pytest.raises(InterruptedError):
            train_policy(config, tmp_path / "stopped", stop)
    else:
        outcome = train_policy(config, tmp_path / "stopped", stop)
        assert (outcome.status, outcome.update, outcome.signal) == ("interrupted", 3, signal.SIGTERM)
    told = []
    outcome = train_policy(config, tmp_path / "stopped", told.append)
    assert (outcome.status, outcome.update) == ("done", 6)
    assert told[0]["kind"] == "resumed"
    assert bits_equal(weights(tmp_path / "whole"), weights(tmp_path / "stopped"))
    assert without_clocks(tmp_path / "whole") == without_clocks(tmp_path / "stopped")


def test_a_run_that_is_done_is_left_alone(recall, tmp_path):
    first = train_policy(tiny(recall), tmp_path / "run")
    told = []
    assert train_policy(tiny(recall), tmp_path / "run", told.append) == first
    assert [line["kind"] for line in told] == ["resumed"]


def test_a_run_can_be_made_longer(recall, tmp_path):
    train_policy(tiny(recall, frames=4 * 64), tmp_path / "run")
    assert train_policy(tiny(recall), tmp_path / "run").update == 6
    train_policy(tiny(recall), tmp_path / "whole")
    assert bits_equal(weights(tmp_path / "whole"), weights(tmp_path / "run"))


def test_settings_that_were_emptied_or_cut_are_refused_and_left_alone(recall, tmp_path):
    train_policy(tiny(recall), tmp_path / "run")
    path = tmp_path / "run" / "policy.toml"
    lines = path.read_text().splitlines(keepends=True)
    sections = [place for place, line in enumerate(lines) if line.startswith(("[model]", "[ppo]"))]
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    for kept in (0, 1, *sections):
        text = "".join(lines[:kept])
        path.write_text(text)
        for attempt in (load_policy, resume_policy):
            with pytest.raises(DamagedFileError, match=r"policy\.toml is damaged: it says nothing of"):
                attempt(tmp_path / "run")
        assert path.read_text() == text
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_a_policy_that_does_not_fit_its_settings_is_left_alone(recall, tmp_path):
    train_policy(tiny(recall, frames=4 * 64), tmp_path / "run")
    path = tmp_path / "run" / "policy.toml"
    text = path.read_text().replace("hidden_size = 16", "hidden_size = 8").replace("frames = 256", "frames = 384")
    path.write_text(text)
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(CheckpointError, match="do not fit"):
        resume_policy(tmp_path / "run")
    assert path.read_text() == text
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("begins", torch.zeros(0)),
        ("begins", torch.zeros(4)),
        ("state", torch.zeros(1, 4, 16)),
        ("s", torch.zeros(0)),
        ("s", torch.zeros(1, 3, 16)),
        ("recent", torch.zeros(1, 4, 0, 16)),
        ("step", torch.zeros(1, 4)),
    ],
    ids=str,
)
def test_a_state_of_another_core_is_refused_though_its_checksum_fits(recall, tmp_path, field, value):
    train_policy(tiny(recall, frames=2 * 64), tmp_path / "run")
    checkpoint = load_checkpoint(tmp_path / "run" / "checkpoint")
    assert checkpoint is not None
    changed = (
        {field: value}
        if field in checkpoint.training
        else {"state": checkpoint.training["state"]._replace(**{field: value})}
    )
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    save_checkpoint(
        tmp_path / "run" / "checkpoint", Checkpoint(2, checkpoint.weights, {**checkpoint.training, **changed})
    )
    with pytest.raises(CheckpointError, match="does not belong to this training"):
        resume_policy(tmp_path / "run", config=tiny(recall, frames=4 * 64))


def test_fewer_frames_than_were_played_are_refused_and_change_nothing(recall, tmp_path):
    train_policy(tiny(recall, frames=2 * 64), tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match="`frames` must be at least the 128 that were played; got 64"):
        resume_policy(tmp_path / "run", config=tiny(recall, frames=64))
    assert before == {path: path.read_bytes() for path in before}


def test_a_run_killed_before_its_first_save_goes_on(recall, tmp_path):
    def stop(line):
        if line["kind"] == "train":
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train_policy(tiny(recall), tmp_path / "run", stop)
    assert train_policy(tiny(recall), tmp_path / "run").update == 6
    train_policy(tiny(recall), tmp_path / "whole")
    assert bits_equal(weights(tmp_path / "whole"), weights(tmp_path / "run"))


def test_another_run_in_the_folder_is_not_touched(recall, tmp_path):
    train_policy(tiny(recall), tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run of another configuration"):
        train_policy(tiny(recall, seed=1), tmp_path / "run")


def test_a_folder_of_something_else_is_not_touched(recall, tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match="exists and is not a run of a policy"):
        train_policy(tiny(recall), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_that_another_process_is_at_is_not_touched(recall, tmp_path):
    train_policy(tiny(recall, frames=64), tmp_path / "run")
    before = (tmp_path / "run" / "policy.toml").read_text()
    with locked(tmp_path / "run"), pytest.raises(RunLockedError):
        train_policy(tiny(recall), tmp_path / "run")
    assert (tmp_path / "run" / "policy.toml").read_text() == before


def test_another_machine_is_told_of(recall, tmp_path):
    train_policy(tiny(recall, frames=64), tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    path.write_text(sealed(unsealed(json.loads(path.read_text())) | {"torch": "0.1"}))
    told = []
    train_policy(tiny(recall), tmp_path / "run", told.append)
    assert "torch was '0.1'" in told[0]["text"]


def test_an_environment_that_its_seed_does_not_decide_is_told_of(drift, recall, tmp_path, monkeypatch):
    begin = Episode._begin
    monkeypatch.setattr(Episode, "_begin", lambda self, number: begin(self, number + next(salt)))
    for name, salts, expected in ((drift, itertools.count(), 1), (recall, itertools.repeat(0), 0)):
        salt = salts
        told = []
        train_policy(tiny(name, frames=64), tmp_path / name)
        train_policy(tiny(name), tmp_path / name, told.append)
        assert sum("does not repeat an episode" in line.get("text", "") for line in told) == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"environment": object()}, "`environment` must be the id of a gymnasium environment.*`imports` names"),
        ({"model": "LSTM"}, "`model` must be a ModelConfig; got 'LSTM'"),
        ({"ppo": {"steps": 16}}, "`ppo` must be a PPOConfig"),
        ({"imports": "mine.py"}, "`imports` must be several names; got 'mine.py'. Put it in a tuple"),
    ],
)
def test_settings_of_another_type_are_named(options, words):
    with pytest.raises(TypeError, match=words):
        PolicyConfig(**options)


def test_an_environment_itself_is_refused_with_the_way_out(recall):
    with pytest.raises(TypeError, match="`environment` must be the id"):
        evaluate_policy(MemoryPolicy((3,), 2), make_environment(recall))  # type: ignore[arg-type]


def test_a_policy_only_plays_where_it_sees_and_does_the_same(recall, tmp_path):
    train_policy(tiny(recall, frames=64), tmp_path / "run")
    with pytest.raises(ValueError, match="`environment` must show and allow what Recall-v0 does"):
        load_policy(tmp_path / "run", "CartPole-v1")


def test_a_bad_configuration_leaves_no_folder(recall, tmp_path):
    config = dataclasses.replace(tiny(recall), model=ModelConfig("RelLSTN"))
    with pytest.raises(ValueError, match="Did you mean 'RelLSTM'"):
        train_policy(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_caller_s_randomness_is_given_back(recall, tmp_path):
    before = torch.get_rng_state()
    train_policy(tiny(recall), tmp_path / "run")
    load_policy(tmp_path / "run")
    assert torch.equal(before, torch.get_rng_state())


def test_a_full_memory_is_as_long_as_an_episode_where_it_plays(tmp_path):
    small, large = "MiniGrid-Fetch-5x5-N2-v0", "MiniGrid-Fetch-8x8-N3-v0"
    config = tiny(small, "MemLSTM", frames=64)
    train_policy(config, tmp_path / "run")
    here, there = load_policy(tmp_path / "run")[0], load_policy(tmp_path / "run", large)[0]
    assert (here.core.spec.memory.limit, there.core.spec.memory.limit) == (125, 320)
    assert bits_equal(here.state_dict(), there.state_dict())


def test_an_episode_without_end_needs_a_limit(recall, monkeypatch):
    monkeypatch.setattr("remanence.rl._building.longest_episode", lambda environment: None)
    with pytest.raises(ValueError, match="have a `limit` where episodes have none"):
        build_policy(tiny(recall, "MemLSTM"))


def test_a_run_without_weights_says_so(recall, tmp_path):
    def stop(line):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        train_policy(tiny(recall), tmp_path / "run", stop)
    with pytest.raises(CheckpointError, match="no weights yet"):
        load_policy(tmp_path / "run")


def alone(policy, environment, copy):
    """One episode by itself, the likeliest action at every step."""
    episode, state, total, length, ended = Episode(make_environment(environment), 0, copy, "test"), None, 0.0, 0, False
    while not ended:
        logits, _, state = policy(episode.observation[None, None], state)
        reward, ended = episode.act(int(logits.argmax()))
        total, length = total + reward, length + 1
    return total, length


@pytest.mark.parametrize("model", ["LSTM", "RelLSTM"])
def test_every_episode_of_an_evaluation_goes_as_it_would_alone(drift, model):
    """They end one after the other: rows that are left keep their own state and environment."""
    policy = build_policy(tiny(drift, model)).eval()
    score = evaluate_policy(policy, drift, 12, likeliest=True)
    assert len(set(score.lengths)) > 2
    assert list(zip(score.returns, score.lengths, strict=True)) == [alone(policy, drift, copy) for copy in range(12)]


def test_an_evaluation_counts_every_episode_whole(recall):
    told = []
    score = evaluate_policy(build_policy(tiny(recall)).eval(), recall, 20, seed=1, tell=told.append)
    assert score.lengths == [6] * 20
    assert told == [0] * 5 + [20]
    assert set(score.returns) <= {0.0, 1.0}
