"""The commands about reinforcement learning, run as a user runs them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from remanence.cli._app import app
from remanence.cli._progress import _brief

runner = CliRunner()
FETCH = "MiniGrid-Fetch-5x5-N2-v0"
SMALL = ["--hidden", "8", "--set", "copies=2", "--set", "ppo.steps=16", "--set", "ppo.recurrence=16"]
SMALL += ["--set", "ppo.batch=16"]


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str):
    return runner.invoke(app, ["rl", *arguments])


def test_train_then_more_frames_then_play_elsewhere(here):
    first = run("train", FETCH, "--frames", "320", *SMALL)
    assert first.exit_code == 0, first.output
    assert "update 10/10  train frames 320" in first.output
    assert "update 9/10" not in first.output
    assert "done after 320 frames" in first.output
    (folder,) = (here / "runs").iterdir()
    assert {path.name for path in folder.iterdir()} >= {"policy.toml", "manifest.json", "metrics.jsonl", "checkpoint"}
    assert 'label = "RelLSTM (hidden_size 8)"' in (folder / "policy.toml").read_text()
    more = run("train", FETCH, "--frames", "352", *SMALL, "--json")
    assert json.loads(more.output)["update"] == 11
    assert [path.name for path in (here / "runs").iterdir()] == [folder.name]
    played = run("play", str(folder), "--environment", "MiniGrid-Fetch-8x8-N3-v0", "--episodes", "2", "--json")
    (row,) = json.loads(played.stdout)
    assert row["environment"] == "MiniGrid-Fetch-8x8-N3-v0"
    assert 0 <= row["mean_return"] <= 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "MiniGrid-Fetsh-v0"], "`environment` must be the id of a gymnasium environment"),
        (["train", FETCH, "--model", "Transformer"], "`core` must be a recurrent layer"),
        (["train", FETCH, "--set", "ppo.batch=5"], "`ppo.batch` must be a multiple"),
        (["train", FETCH, "--set", "frame=5"], "Did you mean 'frames'"),
        (["train", FETCH, "--set", "learning_rate=0.1"], "Write ppo.learning_rate"),
        (["train", "mine/Maze-v0"], "`imports` names the module or file that registers it"),
        (["play", "nowhere"], "`folder` must be the folder of a policy's run"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(here, arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output
    assert not (here / "runs").exists()


def test_elsewhere_than_on_a_terminal_no_empty_line_stands_for_the_bar(here):
    assert run("play", "nowhere").output.startswith("error: ")


def test_a_missing_package_is_one_line_too(here, monkeypatch):
    def missing(name, options=None):
        raise ImportError("`environment` needs minigrid: pip install 'remanence[rl]'")

    monkeypatch.setattr("remanence.rl._building.make_environment", missing)
    result = run("train", FETCH)
    assert (result.exit_code, "pip install 'remanence[rl]'" in result.output) == (2, True)


def test_beside_the_bar_stands_what_is_learnt():
    line = {"frames": 10, "mean_return": None, "frames_per_second": 99.6}
    assert _brief(line) == "return -  100 frames/s"
    assert _brief({**line, "mean_return": 0.5}) == "return 0.500  100 frames/s"


def test_a_policys_run_is_a_run(here):
    few = ["--set", "copies=2", "--set", "ppo.steps=32", "--set", "ppo.recurrence=32", "--set", "ppo.batch=64"]
    done = runner.invoke(app, ["rl", "train", FETCH, "--frames", "128", "--run", "mine", "--hidden", "4", *few])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(runner.invoke(app, ["runs", ".", "--json"]).stdout)
    assert (row["task"], row["model"], row["status"], row["update"]) == (FETCH, "RelLSTM", "done", 2)
    longer = runner.invoke(app, ["resume", "mine", "--set", "frames=192", "--json"])
    assert json.loads(longer.stdout)["update"] == 3
    played = runner.invoke(app, ["evaluate", "mine", "--batch-size", "2", "--json"])
    assert json.loads(played.stdout)[0]["episodes"] == 2
    assert runner.invoke(app, ["evaluate", "mine", "--length", "5"]).exit_code == 2
    probed = runner.invoke(app, ["probe", "mine"])
    assert probed.exit_code == 0, probed.output
    assert "gradient_reach: Sees" in probed.output
    assert "B = 4 rows" in probed.output


def test_an_environment_that_a_folder_names_by_its_module_needs_trust(here):
    few = ["--set", "copies=2", "--set", "ppo.steps=32", "--set", "ppo.recurrence=32", "--set", "ppo.batch=64"]
    assert (
        runner.invoke(app, ["rl", "train", FETCH, "--frames", "64", "--run", "mine", "--hidden", "4", *few]).exit_code
        == 0
    )
    (here / "evil.py").write_text("raise SystemExit('it ran')")
    settings = here / "mine" / "policy.toml"
    settings.write_text(settings.read_text().replace(f'"{FETCH}"', '"evil:Maze-v0"'))
    for command in (["rl", "play", "mine"], ["resume", "mine"], ["evaluate", "mine"]):
        done = runner.invoke(app, command)
        assert done.exit_code == 7, done.output
        assert "'evil'" in done.output
    assert "evil" in runner.invoke(app, ["runs", "."]).output


OWN = """
import gymnasium

class Slow(gymnasium.Wrapper):
    pass

gymnasium.register("mine/Slow-v0", entry_point=lambda **options: Slow(gymnasium.make("CartPole-v1", **options)))
"""


def test_an_environment_of_ones_own_is_registered_once(here, recwarn):
    (here / "mine.py").write_text(OWN)
    trained = run("train", "mine/Slow-v0", "--frames", "64", "--run", "pole", "--set", 'imports=["mine.py"]', *SMALL)
    assert trained.exit_code == 0, trained.output
    played = run("play", "pole", "--episodes", "2", "--film")
    assert played.exit_code == 0, played.output
    assert not [one for one in recwarn if "already in registry" in str(one.message)]
    for video, words in (("pole.mp4", "`path` must end in .gif"), ("no/pole.gif", "lie in a folder that exists")):
        refused = run("play", "pole", "--episodes", "2", "--video", video)
        assert (refused.exit_code, words in refused.output) == (2, True)


COMPARE = ["compare", "remanence/TMaze-v0", "--models", "MinGRU,none", "--seeds", "2", "--frames", "64", "--episodes"]
COMPARE += ["2", "--jobs", "1", "--set", "environment_options.length=3", *SMALL]


def test_an_environment_of_ones_own_is_compared(here):
    (here / "own.py").write_text(OWN.replace("Slow-v0", "Compared-v0"))
    few = ["--models", "MinGRU", "--seeds", "1", "--frames", "32", "--episodes", "1", "--jobs", "1", *SMALL]
    found = run("compare", "mine/Compared-v0", "--set", 'imports=["own.py"]', *few)
    assert found.exit_code == 0, found.output
    assert "MinGRU" in found.output


def test_a_comparison_that_cannot_be_kept_is_one_line_and_its_runs_are_whole(here):
    few = ["compare", "remanence/TMaze-v0", "--models", "MinGRU", "--seeds", "1", "--frames", "32", "--episodes", "1"]
    command = [*few, "--folder", "mine", "--jobs", "1", *SMALL]
    (here / "mine" / "policies.json" / "planted").mkdir(parents=True)
    refused = run(*command)
    assert refused.exit_code == 5, refused.output
    assert "policies.json could not be written: Is a directory" in " ".join(refused.output.split())
    assert isinstance(refused.exception, SystemExit)
    (here / "mine" / "policies.json" / "planted").rmdir()
    (here / "mine" / "policies.json").rmdir()
    assert run(*command).exit_code == 0
    assert (here / "mine" / "policies.json").is_file()


def test_policies_are_compared_resumed_and_reported(here):
    first = run(*COMPARE)
    assert first.exit_code == 0, first.output
    assert "Without memory the same network gets" in first.output
    assert "remanence report runs/compare-remanence-TMaze-v0" in first.output
    again = json.loads(run(*COMPARE, "--json").stdout)
    assert (again["kind"], again["environment"]) == ("policy-comparison", "remanence/TMaze-v0 (length 3)")
    assert [row["status"] for row in again["runs"]] == ["done"] * 4
    assert [(row["model"], row["seeds"]) for row in again["models"]] == [("MinGRU", 2), ("none", 2)]
    shown = runner.invoke(app, ["report", "runs/compare-remanence-TMaze-v0", "-o", "page.html"])
    assert shown.exit_code == 0, shown.output
    page = Path("page.html").read_text(encoding="utf-8")
    assert again["sentences"][0].split(":")[0] in page
    assert "MinGRU, greatest seed" in page
    assert "no memory, greatest seed" in page
    drawn, returns, runs = (
        page.index(words) for words in ("against frames", "2 new episodes</bdi></h3>", "Runs</bdi></h3>")
    )
    assert drawn < returns < runs
    assert "contains no known results" not in page
    one = next(Path("runs/compare-remanence-TMaze-v0").glob("*/run"))
    alone = run("play", str(one), "--episodes", "1", "--json")
    assert json.loads(alone.stdout)[0]["standard_error"] is None  # NaN is no JSON
    filmed = run("play", str(one), "--episodes", "1", "--film")
    assert filmed.exit_code == 0, filmed.output
    assert (one / "film.gif").read_bytes().startswith(b"GIF8")
    runner.invoke(app, ["report", str(one), "-o", "page.html"])
    assert "data:image/gif;base64," in Path("page.html").read_text(encoding="utf-8")
    lost = Path("runs/compare-remanence-TMaze-v0/policies.json")
    assert f"{lost.name}" not in page
    lost.unlink()
    runner.invoke(app, ["report", "runs/compare-remanence-TMaze-v0", "-o", "page.html"])
    assert "the comparison has not ended; its runs are shown without it" in Path("page.html").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("models", "words"),
    [("LSTM,LSTM", "`models` must be different"), ("Transformer", "`core` must be a recurrent layer")],
)
def test_a_comparison_that_cannot_be_built_starts_nothing(here, models, words):
    result = run("compare", "remanence/TMaze-v0", "--models", models)
    assert (result.exit_code, words in result.output) == (2, True)
    assert not (here / "runs").exists()


def test_a_run_without_an_ended_episode_says_so(here):
    found = run("train", "Pendulum-v1", "--frames", "32", *SMALL)  # its episodes have 200 steps
    assert found.exit_code == 0, found.output
    assert "frames: no episode has ended yet. Run: runs/" in found.output
