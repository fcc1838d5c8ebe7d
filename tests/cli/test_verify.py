import dataclasses
import json

from typer.testing import CliRunner

from remanence import claims, experiments
from remanence.claims import Budget, Evidence, StoredRun, TrainedRun, _framework
from remanence.cli._app import app

runner = CliRunner()


def test_numbers_and_a_summary():
    result = runner.invoke(app, ["verify", "--only", "notes/4.1", "--quick"])
    assert result.exit_code == 0
    assert "notes/4.1" in result.output
    assert "1 claim: 1 holds, all verdicts as expected" in result.output


def test_json_holds_the_whole_result():
    result = runner.invoke(app, ["verify", "--only", "notes/2.3", "--quick", "--json"])
    (entry,) = json.loads(result.output)
    assert entry["verdict"] == entry["expected"] == "holds with correction"
    assert entry["numbers"]["gap as printed"] > entry["numbers"]["gap corrected"]


def test_a_verdict_that_is_not_the_expected_one_fails(monkeypatch):
    changed = dataclasses.replace(_framework._REGISTRY["notes/4.1"], expected="fails as printed")
    monkeypatch.setitem(_framework._REGISTRY, "notes/4.1", changed)
    result = runner.invoke(app, ["verify", "--only", "notes/4.1", "--quick"])
    assert result.exit_code == 1
    assert "not as expected: notes/4.1" in result.output


def test_where_stored_numbers_come_from_is_shown(monkeypatch, tmp_path):
    source = StoredRun("trial", "run trial", "2 seeds")
    stored = dataclasses.replace(
        _framework._REGISTRY["notes/4.1"],
        expected="holds on stored runs",
        check=lambda quick: Evidence(True, numbers={"gain": 2}, source=source),
    )
    monkeypatch.setitem(_framework._REGISTRY, "notes/4.1", stored)
    result = runner.invoke(app, ["verify", "--only", "notes/4.1", "--page", str(tmp_path / "page.md")])
    assert "1 holds on stored runs" in result.output
    assert "run trial" in result.output
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "gain 2; from stored runs of trial" in page.split("stored runs\n")[1]
    assert "- **trial**: `run trial`. Scaled down: 2 seeds." in page


def test_what_is_not_settled_says_why(monkeypatch, tmp_path):
    runs = (TrainedRun("LSTM", 600, falls_short=True),) * 3
    open_claim = dataclasses.replace(
        _framework._REGISTRY["notes/4.1"],
        expected="not settled at this budget",
        check=lambda quick: Evidence(
            False, source=StoredRun("trial", "run trial"), runs=runs, needs=Budget(1000, "updates")
        ),
    )
    monkeypatch.setitem(_framework._REGISTRY, "notes/4.1", open_claim)
    result = runner.invoke(app, ["verify", "--only", "notes/4.1", "--page", str(tmp_path / "page.md")])
    assert result.exit_code == 0
    assert "why: LSTM: 600 of 1,000 updates" in result.output
    assert "1 not settled at this budget" in result.output
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "- Open because: LSTM: 600 of 1,000 updates." in page.split("## What is not settled\n")[1]


def test_results_are_shown_as_they_come(monkeypatch):
    shown = []
    monkeypatch.setattr("remanence.cli._verify._show", lambda result, console: shown.append(result.claim.id))
    runner.invoke(app, ["verify", "--paper", "ke2017", "--quick"])
    assert shown == [claim.id for claim in claims.list_claims("ke2017")]


def test_a_missing_stored_run_is_an_error_and_no_pass(monkeypatch):
    monkeypatch.setitem(
        _framework._REGISTRY, "notes/4.1", dataclasses.replace(_framework._REGISTRY["notes/4.1"], stored="nothing")
    )
    result = runner.invoke(app, ["verify", "--only", "notes/4.1"])
    assert result.exit_code == 2
    assert "reads the stored runs of nothing" in result.output


def test_an_unknown_claim_is_a_usage_error():
    assert runner.invoke(app, ["verify", "--only", "notes/9"]).exit_code == 2
    assert runner.invoke(app, ["verify", "--document", "005"]).exit_code == 2


def test_the_page_tells_what_was_measured(tmp_path):
    page = tmp_path / "papers.md"
    runner.invoke(app, ["verify", "--paper", "ke2017", "--quick", "--page", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# What was measured of the papers\n")
    for claim in claims.list_claims("ke2017"):
        assert claim.id in text
    for experiment in experiments.list_experiments():
        assert f"`remanence reproduce {experiment.id} --scale paper`" in text
    assert "python -m remanence.experiments" not in text
