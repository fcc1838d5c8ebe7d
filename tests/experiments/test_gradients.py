import numpy as np
import pytest
import torch

from remanence import probes
from remanence.experiments import _gradients as gradients
from remanence.experiments import load_stored
from remanence.experiments.__main__ import EXPERIMENTS
from remanence.nn import SABLSTM, RelLSTM, SequenceModel
from remanence.tasks import Copy, Denoise
from remanence.testing import assert_agrees
from remanence.train import train

SETTINGS = ("budget.updates=2", "task.options.items=2", "model.options.hidden_size=4", "evaluation.every=1")
ARMS = (
    gradients.Arm("denoise", "RelLSTM", "3 left", {"recent": 3, "relevant": 2}),
    gradients.Arm("copy", "MemRNN", "1"),
    gradients.Arm("denoise", "SABLSTM", "2"),
)


@pytest.fixture
def record(tmp_path, monkeypatch):
    """What tiny arms leave."""
    sizes = {"LENGTH": 6, "LONGER": 9, "TRADED": (7, 8), "ROWS": 2, "BLOCKS": 3, "SEEDS": 1}
    for name, value in {"SETTINGS": SETTINGS, **sizes}.items():
        monkeypatch.setattr(gradients, name, value)
    for arm in ARMS:
        for cell in arm.cells(tmp_path):
            train(cell.run.config, cell.run.folder)
    return gradients.collect(tmp_path, ARMS)


def test_runs_are_looked_into(record):
    screened, full, sparse = record["results"]["runs"]
    assert screened["arm"] == "denoise-RelLSTM-recent3-relevant2"
    assert {length: len(found["log_norm"]) for length, found in screened["reach"].items()} == {"6": 10, "9": 13}
    assert screened["updates"] == 2
    assert "tradeoff" not in screened
    assert list(sparse["tradeoff"]) == ["7", "8"]
    assert sparse["tradeoff"]["7"]["peak_bytes"] < sparse["tradeoff"]["8"]["peak_bytes"]
    assert 0 <= full["attention"]["on_symbols"] <= 1
    assert record["results"]["arms"]["copy-MemRNN"]["figure"] == "1"


def test_reach_is_that_of_the_answers():
    task = Denoise(length=20, items=3)
    model = SequenceModel.for_task(task, "LSTM", hidden_size=4)
    batch = task.sample(gradients.ROWS, task.stream("test", seed=0))
    found = gradients.reach(model, task)
    whole = probes.gradient_reach(model, batch, gradients.answer_loss).log_norm
    assert found["distance"] == list(range(task.total_steps))
    assert found["log_norm"] == [round(float(value), 4) for value in whole]


def test_runs_are_looked_into_once(record, tmp_path, monkeypatch):
    monkeypatch.setattr(gradients, "_measured", None)
    assert gradients.collect(tmp_path, ARMS) == record


def test_a_plain_layer_runs_without_the_kernel_and_keeps_the_trained_one():
    layer, sparse = RelLSTM(3, 4), SABLSTM(3, 4, top_k=2, every=3)
    made = gradients.plain(layer)
    assert (made.backend, layer.backend) == ("reference", "auto")
    assert torch.equal(made.weight_hh_l0, layer.weight_hh_l0)
    memory = gradients.plain(sparse).spec.memory
    assert (memory.score, memory.top_k, memory.every) == ("mlp", 2, 3)


def test_even_attention_looks_at_symbols_as_often_as_they_are_shown():
    task = Copy(length=20, items=3)
    model = SequenceModel.for_task(task, "MemRNN", hidden_size=4)
    with torch.no_grad():
        model.core.get_parameter("weight_score_l0").zero_()
    found = gradients.attention(model, task)
    assert abs(found["on_symbols"] - found["even"]) < found["even"]
    assert_agrees(np.sum(found["map"], axis=1), 1, torch.bfloat16)  # rounded to five digits


def test_every_arm_has_a_name_of_its_own():
    names = [arm.name for arm in gradients.GRID]
    assert len(set(names)) == len(names)
    assert "gradients" in EXPERIMENTS


def test_the_stored_result_has_every_arm():
    stored = load_stored("gradients")["results"]
    assert set(stored["arms"]) == {arm.name for arm in gradients.GRID}
    assert {run["arm"] for run in stored["runs"]} == set(stored["arms"])
