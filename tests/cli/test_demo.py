import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from remanence.cli import _demo as demo
from remanence.cli._app import app
from remanence.cli._demo_display import DemoResult, conclusion, race_line, race_table, sparkline
from remanence.train import Run, list_runs

LABELS = ["RelLSTM", "LSTM", "RelRNN", "LSTM, no curriculum"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> tuple[Path, list[DemoResult], str]:
    folder, text = tmp_path_factory.mktemp("demo"), io.StringIO()
    results = demo.run_demo(quick=True, seed=3, folder=folder, console=Console(file=text, width=120))
    return folder, results, text.getvalue()


def test_it_says_what_happens_and_what_came_out(quick):
    _, results, text = quick
    assert [result.label for result in results] == LABELS
    for words in ("curriculum", "seed 3", "update 4/4", "untrained", "not a benchmark", "remanence evaluate"):
        assert words in text
    assert "\x1b" not in text


def test_it_leaves_run_folders_as_compare_does(quick):
    folder, results, _ = quick
    runs = list_runs(folder)
    assert {run.folder for run in runs} == {result.run for result in results}
    for run in runs:
        assert run.is_done
        assert run.config.seed == 3
        assert (run.folder / "manifest.json").is_file()


def test_again_it_trains_nothing_and_says_the_same(quick):
    folder, results, _ = quick
    before = {run.folder: run.status for run in list_runs(folder)}
    text = io.StringIO()
    again = demo.run_demo(quick=True, seed=3, folder=folder, console=Console(file=text, width=120))
    assert again == results
    assert "These runs are done" in text.getvalue()
    assert {run.folder: run.status for run in list_runs(folder)} == before


def test_judging_counts_the_real_state_and_the_parameters(quick):
    _, results, _ = quick
    for result in results:
        model, _ = Run.open(result.run).load()
        assert result.state_bytes == model.core.initial_state(1).nbytes  # type: ignore[operator]
        assert result.parameters == sum(parameter.numel() for parameter in model.parameters())


def test_contenders_differ_in_what_their_names_say():
    configs = demo.Plan().configs(seed=1)
    assert list(configs) == LABELS
    lstm, rel = configs["LSTM"], configs["RelLSTM"]
    assert replace(lstm, model=rel.model) == rel
    assert {label: config.curriculum.start for label, config in configs.items()} == dict(
        zip(LABELS, [10, 10, 10, None], strict=True)
    )
    assert len({config.budget for config in configs.values()}) == 1


def test_a_failed_run_is_no_result(tmp_path, monkeypatch):
    failed = [{"status": "failed", "run": "x", "best_accuracy": None}]
    monkeypatch.setattr(demo, "carry_out_or_leave", lambda *_: failed)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["demo", "--quick"])
    assert result.exit_code == 1
    assert "some runs failed" in result.output
    assert len(list_runs(tmp_path / "runs" / "demo-quick")) == 4


def made(label: str, accuracy: float, far: float = 0.1) -> DemoResult:
    return DemoResult(label, Path("x"), label.startswith("Rel"), accuracy, far, 3000, 90.0, 10, 10)


@pytest.mark.parametrize(
    ("accuracies", "words"),
    [
        ((1.0, 0.2), "only models with a memory learnt the task"),
        ((0.99, 0.6), "one without reached 60 % and may follow"),
        ((0.99, 0.99), "do not differ"),
        ((0.98, 0.2), "did not succeed"),
        ((0.98, 1.0), "did not succeed"),
    ],
)
def test_the_conclusion_is_no_stronger_than_the_numbers(accuracies, words):
    results = [made("RelRNN", accuracies[0], far=0.75), made("LSTM", accuracies[1])]
    text = conclusion(results, 100, 5000, 0.125)
    verdicts = ("only models with", "may follow", "do not differ", "did not succeed")
    assert words in text
    assert sum(verdict in text for verdict in verdicts) == 1
    assert text.count("solved it") == sum(accuracy >= 0.99 for accuracy in accuracies)
    assert ("it recalls 75 %" in text) == (accuracies[0] >= 0.99)


def row(**changes) -> dict:
    start = {"model": "LSTM", "training_length": 10, "update": 250, "budget": 500, "accuracy": 0.5}
    return {**start, "status": "running", "curve": [[250, 0.5]], **changes}


def test_the_table_shows_each_run_as_it_stands():
    rows = [row(), row(status="new", curve=[]), row(status="done", accuracy=0.995), row(status="killed")]
    rows.append(row(status="done"))
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(race_table(rows))
    lines = console.export_text().splitlines()
    for words in ("learns", "waits", " solved", "killed", "not solved"):
        assert any(line.rstrip().endswith(words) for line in lines), words


def test_a_line_says_how_a_run_ended():
    assert race_line(row()).endswith("recalls 50 %")
    assert race_line(row(status="done", curve=[])) == "LSTM: update 250/500, trains at T = 10 (done)"


def test_a_long_curve_is_thinned():
    assert sparkline([]) == ""
    assert len(sparkline([0.5] * 100)) == 15
    assert sparkline([-0.0, 1.0]) == "▁█"
