import json

import pytest
from typer.testing import CliRunner

from remanence.cli._app import app

runner = CliRunner()
FACTORY = """
import torch


def make():
    return torch.nn.LSTM(3, 4)


def reader():
    return torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 2))


broken = 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "some_models.py").write_text(FACTORY, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_verdicts_of_a_model_from_anywhere(here):
    result = runner.invoke(app, ["probe", "some_models:make", "--shape", "24,2,3"])
    assert result.exit_code == 0
    for name in ("gradient_reach", "attention_map", "stability", "truncation_gap", "cost"):
        assert f"{name}: " in result.output


def test_a_few_steps_do_not_make_an_lstm_quadratic(here):
    result = runner.invoke(app, ["probe", "some_models:make", "--shape", "60,2,3"])
    assert "memory linear" in result.output


def test_json_has_the_curves(here):
    result = runner.invoke(app, ["probe", "some_models:make", "--shape", "12,2,3", "--json"])
    assert len(json.loads(result.output)["gradient_reach"]["log_norm"]) == 12


def test_tokens_are_read_through_embeddings(here):
    result = runner.invoke(
        app, ["probe", "some_models:reader", "--shape", "12,2", "--tokens", "5", "--time-first", "--json"]
    )
    assert json.loads(result.output)["gradient_reach"]["source"] == "inputs"


def test_one_page_with_all_pictures(here):
    pytest.importorskip("plotly")
    page = here / "page.html"
    result = runner.invoke(app, ["probe", "remanence.nn:RelLSTM", "--shape", "12,2,3", "--output", str(page)])
    assert result.exit_code == 2  # RelLSTM() needs sizes
    result = runner.invoke(app, ["probe", "some_models:make", "--shape", "12,2,3", "--output", str(page)])
    assert result.exit_code == 0
    assert page.read_text(encoding="utf-8").count("<h2>") == 5


def test_a_trained_run_is_probed_on_its_own_task(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["--length", "3", "--hidden", "4", "--set", "task.options.items=2", "--set", "evaluation.batches=1"]
    assert (
        runner.invoke(app, ["train", "copy", "--model", "RelLSTM", "--updates", "2", "--run", "mine", *small]).exit_code
        == 0
    )
    (folder,) = tmp_path.rglob("mine")
    result = runner.invoke(app, ["probe", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["memory_demand"]["model"] is not None
    assert found["gradient_reach"]["source"] == "states"
    assert len(found["attention_map"]["maps"]) == 1


def test_a_factory_needs_a_shape_and_a_folder_must_be_a_run(tmp_path):
    assert "--shape 100,2,3" in runner.invoke(app, ["probe", "torch.nn:Identity"]).output.replace("\n", " ")
    assert runner.invoke(app, ["probe", str(tmp_path)]).exit_code == 2


BAD = (("torch.nn", "4,1,1"), ("torch.nn:Nothing", "4,1,1"), ("torch.nn:Identity", "4,x"), ("torch.nn:Linear", "4,1,1"))


@pytest.mark.parametrize(("target", "shape"), BAD)
def test_bad_requests_are_usage_errors(target, shape):
    assert runner.invoke(app, ["probe", target, "--shape", shape]).exit_code == 2
