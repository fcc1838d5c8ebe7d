import pytest

from remanence.data import is_available
from remanence.experiments import _dense as dense
from remanence.experiments import load_stored
from remanence.experiments.__main__ import EXPERIMENTS
from remanence.tasks import PtbChar
from remanence.train import train


@pytest.mark.parametrize("task", sorted(dense.PARAMETERS))
def test_models_of_a_task_have_equal_numbers_of_parameters(task):
    sizes = [arm.parameters(arm.hidden_size) for arm in dense.GRID if arm.task == task]
    assert max(sizes) <= dense.PARAMETERS[task]
    for arm in (arm for arm in dense.GRID if arm.task == task):
        assert arm.parameters(arm.hidden_size + 1) > dense.PARAMETERS[task]


def test_the_treebank_has_the_symbols_that_widths_are_made_for(require_or_skip):
    if not is_available("ptb/ptb.char.train.txt"):
        require_or_skip("data", "the Penn Treebank is not on this machine (set REMANENCE_DATA)")
    assert PtbChar().input_size == dense.LETTERS


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A run that is done and one that has failed, of a task that needs no data."""
    monkeypatch.setitem(dense.SETTINGS, "copy", ("task.options.length=2", "budget.updates=2", "evaluation.every=1"))
    monkeypatch.setitem(dense.PARAMETERS, "copy", 300)
    monkeypatch.setattr(dense.Arm, "hidden_size", 3)
    monkeypatch.setattr(dense, "SEEDS", 2)
    arm = dense.Arm("copy", "RNN", None, 90.0)
    done, failed = (cell.run for cell in arm.cells(tmp_path))
    train(done.config, done.folder)
    failed.write("metrics.jsonl", '{"kind": "validation", "update": 1, "accuracy": 0.5, "loss": 2.0}\n')
    failed.set_status("failed", update=1)
    monkeypatch.setattr(dense, "evaluate", lambda *_: {"accuracy": 0.25, "loss": 1.0})
    return arm, tmp_path


def test_runs_are_tested_and_failures_are_kept(runs):
    arm, folder = runs
    done, failed = dense.collect(folder, [arm])["results"]["runs"]
    assert (done["accuracy"], done["reason"], done["curve"]["updates"]) == (0.25, "budget used up", [1, 2])
    assert (failed["accuracy"], failed["reason"], failed["updates"]) == (None, "failed", 1)


def test_every_arm_has_a_name_of_its_own():
    names = [arm.name for arm in dense.GRID]
    assert len(set(names)) == len(names)
    assert "dense" in EXPERIMENTS


def test_the_stored_result_belongs_to_the_arms():
    stored = load_stored("dense")["results"]
    assert set(stored["arms"]) == {arm.name for arm in dense.GRID}
    assert {run["arm"] for run in stored["runs"]} <= set(stored["arms"])
