"""The commands about training, run as a user runs them."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from remanence.cli import _compare
from remanence.cli._app import app
from remanence.runs import Stopped, _imports
from remanence.runs import _files as files
from remanence.tasks import _registry
from remanence.train import Run, comparison_recipe, recipe

runner = CliRunner()
SMALL = ["--length", "3", "--hidden", "4", "--set", "task.options.items=2", "--set", "task.options.symbols=2"]
SMALL += ["--set", "evaluation.batches=1", "--set", "evaluation.batch_size=4", "--set", "loop.log_every=2"]


OWN_TASK = """
from dataclasses import dataclass
from remanence.tasks import Copy, register_task

@register_task("my-copy")
@dataclass(frozen=True)
class MyCopy(Copy):
    length: int = 2
"""


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str):
    return runner.invoke(app, list(arguments))


def test_train_then_the_same_command_again_finds_the_run_done(here):
    first = run("train", "copy", "--model", "GRU", "--updates", "4", *SMALL)
    assert first.exit_code == 0, first.output
    assert "update 4/4  validation loss" in first.output
    assert "done after 4 updates (budget used up)" in first.output
    (folder,) = (here / "runs").iterdir()
    assert {path.name for path in folder.iterdir()} >= {"config.toml", "manifest.json", "metrics.jsonl", "checkpoint"}
    assert Run(folder).config.label == "GRU (hidden_size 4)"
    again = run("train", "copy", "--model", "GRU", "--updates", "4", *SMALL, "--json")
    assert json.loads(again.stdout)["status"] == "done"
    assert len(list((here / "runs").iterdir())) == 1


def test_a_run_can_be_resumed_with_a_larger_budget_evaluated_and_listed(here):
    assert run("train", "copy", "--model", "LSTM", "--updates", "2", "--run", "mine", *SMALL).exit_code == 0
    longer = run("resume", "mine", "--set", "budget.updates=4", "--json")
    assert json.loads(longer.stdout)["update"] == 4
    assert Run(Path("mine")).config.budget.updates == 4
    measured = run("evaluate", "mine", "--length", "3,6", "--batches", "1", "--batch-size", "5", "--json")
    assert [row["length"] for row in json.loads(measured.stdout)] == [3, 6]
    assert "accuracy" in run("evaluate", "mine", "--batches", "1", "--batch-size", "5").output
    (row,) = json.loads(run("runs", ".", "--json").stdout)
    assert (row["model"], row["status"], row["update"]) == ("LSTM", "done", 4)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["train", "cpy"], 2, "Did you mean 'copy'?"),
        (["train", "copy", "--model", "RelRNM"], 2, "Did you mean 'RelRNN'?"),
        (["train", "copy", "--set", "optimizer.name=adam"], 2, "Did you mean 'optimiser'?"),
        (["train", "copy", "--set", "model.options.recnt=3"], 2, "recnt"),
        (["resume", "nowhere"], 2, "must be a run folder"),
        (["resume", "nowhere"], 2, "which does not exist"),
        (["evaluate", "nowhere"], 2, "must be a run folder"),
        (["evaluate", "nowhere"], 2, "which does not exist"),
        (["generate", "nowhere"], 2, "which does not exist"),
        (["evaluate", "nowhere", "--weights", "worst"], 2, "must be one of 'best', 'last'"),
        (["compare", "copy", "--models", "LSTM", "--lengths", "five"], 2, "whole numbers separated by commas"),
        (["train", "copy", "a.txt"], 2, "`FILE` must be left out for the task 'copy', which makes its own data"),
        (["compare", "copy", "a.txt"], 2, "These tasks read one: text, sequence, series"),
        (["train", "text"], 2, "Name your file, as in `remanence train text book.txt`"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(here, arguments, code, words):
    done = run(*arguments)
    assert done.exit_code == code, done.output
    assert words in done.output
    assert not (here / "runs").exists()


def test_a_run_in_use_has_its_own_exit_code(here):
    run("train", "copy", "--model", "LSTM", "--updates", "2", "--run", "mine", *SMALL)
    with files.locked(Path("mine")):
        assert run("resume", "mine").exit_code == 4


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_a_resumable_run_and_say_how(here, number, code):
    command = [sys.executable, "-c", "from remanence.cli import main; main()", "train", "copy", "--model", "LSTM"]
    process = subprocess.Popen(
        [*command, "--updates", "1000000", "--run", "mine", *SMALL], stdout=subprocess.PIPE, text=True
    )
    while not any(line["kind"] == "train" for line in Run(here / "mine").metrics.read()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == code
    assert "Resume with: remanence resume mine" in output
    assert Run(here / "mine").status["status"] == "interrupted"


def test_a_text_model_writes(here):
    Path("mine.txt").write_text("to be or not to be\n" * 60)
    text = ["--set", "task.options.path=mine.txt", "--set", "task.options.length=5", "--set", "task.batch_size=4"]
    limits = ["--set", "budget.epochs=none", "--updates", "3", "--hidden", "6", "--set", "evaluation.batches=1"]
    trained = run(
        "train", "text", "--model", "LSTM", "--run", "mine", *text, *limits, "--set", "evaluation.batch_size=2"
    )
    assert trained.exit_code == 0, trained.output
    drawn = json.loads(run("generate", "mine", "--length", "9", "--prompt", "to be", "--json").stdout)
    assert len(drawn["tokens"]) == len(drawn["text"]) == 9
    assert drawn == json.loads(run("generate", "mine", "--length", "9", "--prompt", "to be", "--json").stdout)
    assert len(run("generate", "mine", "--length", "9").output) == 10
    assert run("generate", "mine", "--prompt", "ZZ").exit_code == 2


@pytest.mark.parametrize("first", ["", "from __future__ import annotations\n"])
def test_a_users_own_task_is_imported_from_its_file(here, monkeypatch, first):
    monkeypatch.setattr(_registry, "_TASKS", dict(_registry._TASKS))  # other tests shall not meet it
    Path("mine.py").write_text(first + OWN_TASK)
    arguments = ["train", "my-copy", "--model", "LSTM", "--updates", "2", "--set", 'imports=["mine.py"]', *SMALL]
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    missing = run(*arguments[: -len(SMALL) - 1], 'imports=["nowhere.py"]')
    assert missing.exit_code == 2
    assert "existing Python files" in missing.output


@pytest.mark.parametrize("named", ["mine.py", "sub/../mine.py", "mine_module"])
def test_a_run_with_a_task_of_ones_own_works_from_any_folder(here, monkeypatch, named):
    """Also where the task is in a module that only the folder of the first command has."""
    code = OWN_TASK.replace("my-copy", "moved-copy")
    Path("sub").mkdir()
    Path("mine.py").write_text(code)
    Path("mine_module.py").write_text(code)
    as_a_new_process(monkeypatch)
    monkeypatch.syspath_prepend("")  # as `python -m` does
    arguments = ["train", "moved-copy", "--model", "LSTM", "--updates", "2", "--run", "runs/moved"]
    done = run(*arguments, "--set", f"imports={json.dumps([named])}", *SMALL)
    assert done.exit_code == 0, done.output

    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    measuring = ["--batches", "1", "--batch-size", "2"]
    for command in (
        ["evaluate", "../runs/moved", "--length", "2,3", *measuring],
        ["resume", "../runs/moved", "--set", "budget.updates=3"],
        ["probe", "../runs/moved"],
        ["evaluate", str(here / "runs/moved"), *measuring],
    ):
        as_a_new_process(monkeypatch)
        done = run(*command)
        assert done.exit_code == 0, done.output


def as_a_new_process(monkeypatch) -> None:
    """Nothing of the user's is imported or registered yet."""
    monkeypatch.setattr(
        _registry, "_TASKS", {name: task for name, task in _registry._TASKS.items() if "-copy" not in name}
    )
    monkeypatch.setattr(_imports, "_HAS_RUN", {})
    sys.modules.pop("mine_module", None)


def test_compare_trains_a_grid_and_measures_transfer(here):
    arguments = ["compare", "copy", "--models", "LSTM,GRU", "--lengths", "3", "--updates", "2", "--jobs", "2"]
    arguments += ["--set", "model.options.hidden_size=4", "--set", "task.options.items=2", *SMALL[-6:]]
    done = run(*arguments, "--transfer", "3,5", "--json")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert [(row["model"], row["status"]) for row in report["runs"]] == [("LSTM", "done"), ("GRU", "done")]
    assert [row["measured_at"] for row in report["transfer"]] == [3, 5, 3, 5]
    again = run(*arguments)
    assert again.exit_code == 0
    assert "For comparison: a guess gets 12.5 %" in again.output
    assert "LSTM does not solve Copy (items = 2) at T = 3 within 2 updates" in again.output
    assert again.output.rstrip().endswith("remanence report runs/compare-copy")


def test_a_comparison_fits_a_persons_patience_and_starts_with_short_sequences():
    copy = comparison_recipe("copy", "LSTM")
    assert (copy.budget.updates, copy.curriculum.start) == (8000, 10)
    assert comparison_recipe("text", "LSTM") == recipe("text", "LSTM")


@pytest.mark.parametrize(
    ("stopped", "code"), [(KeyboardInterrupt(), 130), (Stopped(signal.SIGINT), 130), (Stopped(signal.SIGTERM), 143)]
)
def test_the_message_after_an_interruption_comes_when_the_live_table_has_gone(here, monkeypatch, stopped, code):
    events = []

    @contextlib.contextmanager
    def display():
        try:
            yield None
        finally:
            events.append("table gone")

    def interrupted(*_):
        raise stopped

    monkeypatch.setattr(_compare, "carry_out", interrupted)
    monkeypatch.setattr(typer, "echo", lambda words, **_: events.append(words))
    with pytest.raises(typer.Exit) as stop:
        _compare.carry_out_or_leave([], here, 1, display())
    assert stop.value.exit_code == code
    assert events[0] == "table gone"
    assert "The same command resumes them" in events[1]


def test_a_series_is_forecast_from_its_csv_file(here):
    Path("mine.csv").write_text("load,wind\n" + "\n".join(f"{t % 6},{t % 4}" for t in range(300)))
    small = ["--set", "task.options.length=20", "--set", "task.batch_size=2", "--hidden", "4", "--updates", "2"]
    target = ["--set", "task.options.target=load"]
    done = run("train", "series", "mine.csv", "--model", "RelLSTM", *small, *target, "--json")
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["validation"]) == {"loss", "accuracy", "rmse"}
    other = run("train", "series", "mine.csv", *small, "--set", 'task.options.columns=["lod"]')
    assert other.exit_code == 2
    assert "Did you mean 'load'" in other.output


def test_tasks_are_listed_with_what_needs_no_memory(here):
    rows = json.loads(run("tasks", "--json").stdout)
    copy = next(row for row in rows if row["name"] == "copy")
    assert copy["memory_free_accuracy"] == 1 / 8
    assert (copy["kind"], copy["version"]) == ("task", 1)


def test_code_that_a_folder_names_needs_trust_on_every_command(here, monkeypatch):
    monkeypatch.setattr(_registry, "_TASKS", dict(_registry._TASKS))
    assert run("train", "copy", "--model", "LSTM", "--updates", "2", "--run", "mine", *SMALL).exit_code == 0
    Path("evil.py").write_text("raise SystemExit('it ran')")
    settings = Path("mine/config.toml")
    settings.write_text(settings.read_text().replace("imports = []", f'imports = ["{here / "evil.py"}"]'))
    for command in (["evaluate", "mine"], ["generate", "mine"], ["resume", "mine", "--set", "budget.updates=3"]):
        done = run(*command)
        assert done.exit_code == 7, done.output
        assert "--trust" in done.output
    assert "copy" in run("runs", ".").output
    assert "it ran" in run("evaluate", "mine", "--trust").output


def test_a_settings_file_is_data_too(here):
    Path("evil.py").write_text("raise SystemExit('it ran')")
    Path("theirs.toml").write_text('imports = ["evil.py"]\n')
    done = run("train", "copy", "--model", "LSTM", "--config", "theirs.toml", *SMALL)
    assert done.exit_code == 7
    assert "it ran" in run("train", "copy", "--config", "theirs.toml", "--trust", *SMALL).output


def test_damaged_runs_are_listed_as_damaged_and_the_others_too(here):
    assert run("train", "copy", "--model", "LSTM", "--updates", "2", "--run", "runs/a[/b]", *SMALL).exit_code == 0
    for name, text in {"bad": "not toml = = =", "foreign": 'name = "another tool"', "[bold]": "\x00"}.items():
        Path("runs", name).mkdir(parents=True)
        Path("runs", name, "config.toml").write_text(text)
    rows = {row["run"]: row for row in json.loads(run("runs", "--json").stdout)}
    assert rows["runs/a[/b]"]["status"] == "done"
    assert [rows[f"runs/{name}"]["status"] for name in ("bad", "foreign", "[bold]")] == ["damaged"] * 3
    table = run("runs").output
    assert "[bold]" in table
    assert "[/b]" in table
    assert "damaged" in table


def test_damage_is_one_line_with_the_exit_code_of_bad_input(here):
    assert run("train", "copy", "--model", "LSTM", "--updates", "2", "--run", "mine", *SMALL).exit_code == 0
    whole = {path: path.read_bytes() for path in Path("mine").rglob("*") if path.is_file() and path.name != "lock"}
    for path in whole:
        for damage in (b"", b"[]", b"[" * 20_000, b"\xff\xfe\x00", b'{"a": 1}'):
            path.write_bytes(damage)
            for command in (["evaluate", "mine", "--batches", "1", "--batch-size", "2"], ["runs", "."]):
                done = run(*command, "--json")
                assert done.exception is None or isinstance(done.exception, SystemExit), (path, damage, command)
                if done.exit_code == 0:
                    json.loads(done.stdout)
                else:
                    assert done.exit_code in (2, 6), (path, damage, done.output)
                    assert len(done.stderr.strip().splitlines()) <= 3
        path.write_bytes(whole[path])


def test_evaluation_says_which_weights_were_used(here):
    assert run("train", "copy", "--model", "LSTM", "--updates", "2", "--run", "mine", *SMALL).exit_code == 0
    few = ["--batches", "1", "--batch-size", "2"]
    (row,) = json.loads(run("evaluate", "mine", *few, "--json").stdout)
    assert (row["kind"], row["version"], row["weights"], row["update"]) == ("evaluation", 1, "best", 2)
    assert "weights" in run("evaluate", "mine", *few).output
    Path("mine/checkpoint/best.safetensors").unlink()
    assert run("evaluate", "mine", *few).exit_code == 6
    assert json.loads(run("evaluate", "mine", *few, "--weights", "last", "--json").stdout)[0]["weights"] == "last"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "copy", "--config", "nowhere.toml"], "nowhere.toml"),
        (["train", "copy", "--set", "imports=mine.py"], 'Write imports=["mine.py"]'),
        (["train", "copy", "--set", 'imports=["mine"]'], "`imports` must name modules"),
        (["train", "copy", "--set", "loop.device=cuda:7"], "cuda"),
        (["train", "copy", "--set", "loop.device=nonsense"], "nonsense"),
        (["train", "copy", "--set", f"optimiser.learning_rate={'9' * 400}"], "`optimiser.learning_rate` must be a"),
        (["train", "copy", "--set", "loop.device=meta"], "it computes nothing"),
        (["train", "copy", "--set", "loop.device=xla"], "this torch has nothing for it"),
        (["train", "copy", "--set", "loop.threads=1000000000"], "`loop.threads` must be an int >= 1 and <= 1024"),
    ],
)
def test_what_used_to_be_a_traceback_is_one_line(here, arguments, words):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert words in done.output
    assert isinstance(done.exception, SystemExit)


def test_your_own_text_is_named_on_the_command_line_and_updates_replace_epochs(here, monkeypatch):
    Path("mine.txt").write_text("to be or not to be\n" * 60)
    few = ["--hidden", "6", "--length", "5", "--set", "task.batch_size=4", "--set", "evaluation.batches=1"]
    few += ["--set", "evaluation.batch_size=2", "--updates", "2", "--run", "mine"]
    done = run("train", "text", "mine.txt", "--model", "RelLSTM", *few)
    assert done.exit_code == 0, done.output
    config = Run(Path("mine")).config
    assert config.task.options["path"] == str(here / "mine.txt")
    assert (config.budget.updates, config.budget.epochs) == (2, None)
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    assert run("generate", str(here / "mine"), "--length", "5").exit_code == 0
    wrong = run("train", "copy", str(here / "mine.txt"))
    assert wrong.exit_code == 2
    assert "mine.txt" in wrong.output
