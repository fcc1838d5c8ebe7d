import numpy as np
import pytest
import torch

from remanence.cli._train import configuration
from remanence.experiments import _attention as attention
from remanence.experiments import load_stored
from remanence.experiments.__main__ import EXPERIMENTS
from remanence.nn import SequenceModel
from remanence.tasks import Copy
from remanence.testing import assert_agrees
from remanence.train import train

TINY = ("task.options.length=6", "task.options.items=2", "model.options.hidden_size=4", "budget.updates=2")
ARM = attention.Arm("000, figure 10", "copy", "RelRNN", (*TINY, "model.options.recent=3", "model.options.relevant=0"))


def test_a_run_is_mapped(tmp_path):
    for cell in ARM.cells(tmp_path):
        train(cell.run.config, cell.run.folder)
    (found,) = attention.collect(tmp_path, [ARM])["results"]["runs"]
    assert (found["arm"], found["updates"], found["steps"], found["farthest"]) == ("copy-RelRNN", 2, 10, 2)
    assert np.shape(found["map"]) == (10, 10)
    assert 1 <= found["untrained"] <= 3
    assert_agrees(np.sum(found["map"], axis=1), 1, torch.bfloat16)  # rounded to three digits


@pytest.fixture
def even():
    """A full memory that reads all states alike, and a batch."""
    task = Copy(length=20, items=3)
    model = SequenceModel.for_task(task, "MemRNN", hidden_size=4)
    with torch.no_grad():
        model.core.get_parameter("weight_score_l0").zero_()
    return model, task.batch(0, 4)


def test_an_even_read_takes_all_there_is(even):
    found = attention.attended(*even)
    assert_agrees([found["effective"], found["on_symbols"]], [found["available"], found["even"]], torch.bfloat16)
    assert found["farthest"] == found["steps"] - 1


def test_a_sharp_read_takes_one():
    weights = np.zeros((6, 6))
    weights[range(6), [0, 0, 0, 1, 1, 1]] = 1.0
    batch = Copy(length=2, items=2, symbols=2).batch(0, 1)
    found = attention._read(weights, batch, 0, np.ones(6, dtype=bool))
    assert (found["effective"], found["on_symbols"], found["farthest"]) == (1.0, 1.0, 4.0)


def test_commands_train_what_the_experiment_trains(tmp_path):
    settings = [part for part in ARM.command.split() if "=" in part]
    assert configuration("copy", "RelRNN", settings) == ARM.cells(tmp_path)[0].run.config


def test_the_stored_result_has_every_arm():
    stored = load_stored("attention")["results"]
    assert set(stored["arms"]) == {arm.name for arm in attention.GRID}
    assert sorted(run["arm"] for run in stored["runs"]) == sorted(stored["arms"])
    assert "attention" in EXPERIMENTS
