from dataclasses import replace

import pytest

from remanence.cli._train import configuration
from remanence.experiments import _others as others
from remanence.experiments import load_stored
from remanence.experiments.__main__ import EXPERIMENTS
from remanence.experiments._recall import Arm
from remanence.train import list_runs, run_name, train

TINY = Arm("denoise", "GORU", 4, ("model.options.hidden_size=4", "task.options.length=3", "evaluation.every=2"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run of a tiny arm."""
    folder = tmp_path_factory.mktemp("runs")
    config = configuration("denoise", "GORU", TINY.all_settings)
    train(config, folder / TINY.name / run_name(config))
    return folder


def test_a_run_is_summed_up_from_its_folder(runs, monkeypatch):
    monkeypatch.setattr(others, "TRANSFER", (2, 5))
    record = others.collect(runs, [TINY])
    (found,) = record["results"]["runs"]
    assert (found["arm"], found["seed"], found["updates"], found["updates_to_99"]) == ("denoise-GORU-fixed", 0, 4, None)
    assert sorted(found["elsewhere"]) == ["2", "5"]
    assert found["best_accuracy"] == max(found["curve"]["accuracy"])


def test_other_lengths_are_asked_once(runs, monkeypatch):
    (run,) = list_runs(runs / TINY.name)
    first = others.elsewhere(run)
    monkeypatch.setattr(others, "_accuracy", None)
    assert others.elsewhere(run) == first


def test_the_documents_numbers_stand_beside():
    described = others._description(replace(TINY, task="copy", model="ExpRNN"))
    assert described["document"] == {"100": 1.0, "200": 0.86, "400": 0.73, "2000": 0.58}


def test_every_arm_has_a_name_of_its_own_and_both_tasks_have_all_models():
    names = [arm.name for arm in others.GRID]
    assert len(set(names)) == len(names)
    models = {task: {arm.model for arm in others.GRID if arm.task == task} for task in ("copy", "denoise")}
    assert models["copy"] == models["denoise"]
    assert "others" in EXPERIMENTS


def test_the_stored_result_belongs_to_the_arms():
    stored = load_stored("others")["results"]
    assert set(stored["arms"]) == {arm.name for arm in others.GRID}
    assert {run["arm"] for run in stored["runs"]} <= set(stored["arms"])
