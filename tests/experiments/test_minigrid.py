"""Table 4: its environments exist, and a tiny one runs through to a record."""

import signal

import pytest

from remanence.experiments import _minigrid as minigrid
from remanence.experiments._minigrid import GRID, MODELS, TABLE, PolicyArm, collect, run_policies
from remanence.experiments._stored import save_stored
from remanence.rl import PolicyOutcome
from remanence.rl._environment import make_environment, observed
from remanence.runs import locked


@pytest.mark.parametrize(
    "arm", [arm for arm in GRID if arm.model == "LSTM" and not arm.seed], ids=lambda arm: arm.family
)
def test_every_environment_of_the_table_exists(arm):
    for name in (arm.small, arm.large):
        assert [field.shape for field in observed(make_environment(name))] == [(7, 7, 3)]


def test_the_grid_is_the_whole_table():
    assert len({(arm.family, arm.model) for arm in GRID}) == len(TABLE) * len(MODELS) == 18
    assert len({arm.name for arm in GRID}) == len(GRID)
    assert PolicyArm("DoorKey", "RelLSTM").printed == {"train": 0.93, "test": 0.44}
    config = PolicyArm("Memory", "RelLSTM").config()
    assert config.model.options == {"recent": 5, "relevant": 5}
    assert (config.ppo.recurrence, config.copies, config.ppo.steps) == (16, 16, 128)


def test_a_run_becomes_a_record(tmp_path, monkeypatch):
    monkeypatch.setattr(minigrid.play, "__defaults__", (2,))
    arms = [PolicyArm("Fetch", "LSTM", frames=2048), PolicyArm("Fetch", "RelLSTM", frames=2048)]
    (tmp_path / arms[1].name).mkdir()
    with locked(tmp_path / arms[1].name):  # another process is at it
        run_policies(tmp_path, arms)
    record = collect(tmp_path, arms)
    (run,) = record["results"]["runs"]
    assert run["arm"] == "Fetch-LSTM-0"
    assert run["frames"] == run["curve"]["frames"][-1] == 2048
    assert 0 <= run["test"]["mean"] <= 1
    assert "not run: Fetch-RelLSTM-0" in record["scaled_down"]
    save_stored("minigrid", record, tmp_path)


def test_a_stop_ends_the_experiment_and_not_only_a_run(tmp_path, monkeypatch):
    stopped = PolicyOutcome("interrupted", tmp_path, 1, 2048, None, signal.SIGINT)
    monkeypatch.setattr(minigrid, "train_policy", lambda config, folder: stopped)
    with pytest.raises(KeyboardInterrupt):
        run_policies(tmp_path, [PolicyArm("Fetch", "LSTM")])


def test_what_has_been_played_is_not_played_again(tmp_path):
    arms = [PolicyArm("Fetch", "LSTM")]
    (tmp_path / arms[0].name).mkdir()
    (tmp_path / arms[0].name / "answers.json").write_text("{}")
    run_policies(tmp_path, arms)
    assert [path.name for path in (tmp_path / arms[0].name).iterdir()] == ["answers.json"]
