"""Weights are measured once, kept beside the run, and measured again when they have changed."""

import json

import pytest

from remanence.report._measuring import measure_missing
from remanence.report._run_record import read_run
from remanence.train import recipe, train, with_settings

TINY = ["task.options.length=3", "model.options.hidden_size=4", "evaluation.every=2", "evaluation.batches=1"]
MEMORY = [*TINY, "model.options.recent=2", "model.options.relevant=2"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        settings = [*MEMORY, "budget.updates=2", f"seed={seed}"]
        train(with_settings(recipe("copy", "RelRNN"), settings), folder / f"rel-{seed}")
    train(with_settings(recipe("copy", "LSTM"), [*TINY, "budget.updates=2"]), folder / "lstm")
    return folder


@pytest.fixture(scope="module")
def written(runs):
    return measure_missing([runs])


def test_the_best_run_of_every_model_is_measured(runs, written):
    losses = {seed: read_run(runs / f"rel-{seed}", []).loss for seed in (0, 1)}
    best = min(losses, key=losses.__getitem__)
    assert sorted(path.parent.name for path in written) == ["lstm", f"rel-{best}"]


def test_what_is_measured_agrees_with_the_model(runs, written):
    from remanence.train import Run

    rel = next(path for path in written if path.parent.name != "lstm")
    table = json.loads(rel.read_text())
    model, task = Run(rel.parent).load()
    assert table["parameters"] == sum(parameter.numel() for parameter in model.parameters())
    assert table["steps"] == task.batch(0, 1).steps == len(table["gradient_reach"]["distance"])
    assert table["chance"] == task.chance.accuracy
    assert table["attention_map"]["recent"] == 2
    assert table["errors"] == {}


def test_nothing_is_measured_twice(runs, written):
    assert measure_missing([runs]) == []


def test_weights_that_changed_are_measured_again(runs, written):
    path = runs / "lstm" / "probes.json"
    table = json.loads(path.read_text())
    path.write_text(json.dumps({**table, "update": -1}))
    assert not read_run(runs / "lstm", []).is_measured
    assert measure_missing([runs]) == [path]
    assert read_run(runs / "lstm", []).is_measured


def test_a_run_without_weights_is_said_and_passed_over(make_run):
    told = []
    run = make_run("bare", probes=False)
    assert measure_missing([run], told.append) == []
    assert "could not be measured" in told[-1]


def test_code_that_a_run_names_is_never_executed(make_run, tmp_path):
    run = make_run("own", probes=False)
    trap = tmp_path / "trap.py"
    trap.write_text(f"open({str(tmp_path / 'sprung')!r}, 'w').close()", encoding="utf-8")
    config = run / "config.toml"
    config.write_text(f"imports = [{json.dumps(str(trap))}]\n" + config.read_text(), encoding="utf-8")
    told = []
    assert measure_missing([run], told.append) == []
    assert "names code of its own" in told[-1]
    assert not (tmp_path / "sprung").exists()


def test_measurements_are_not_written_through_a_link(runs, tmp_path):
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    path = runs / "lstm" / "probes.json"
    path.unlink(missing_ok=True)
    path.symlink_to(precious)
    assert measure_missing([runs / "lstm"]) == [path]
    assert precious.read_text() == "mine"
    assert not path.is_symlink()
