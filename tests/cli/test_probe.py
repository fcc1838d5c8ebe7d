import importlib.util
import json
import runpy
from pathlib import Path

import pytest
from typer.testing import CliRunner

from remanence.cli._app import app
from remanence.probes._survey import PROBES

runner = CliRunner()
FACTORY = """
import torch


def make():
    return torch.nn.LSTM(3, 4)


def reader():
    return torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 2))


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.reader = reader()

    def forward(self, tokens):
        return self.reader(tokens)  # line 19


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


FOREIGN = Path(__file__).parents[1] / "probes" / "foreign.py"
MODELS = {
    "Classifier": ["--shape", "20,3,4"],
    "Transposing": ["--shape", "3,20,4"],
    "TokenModel": ["--shape", "3,20", "--tokens", "11"],
    "encoder": ["--shape", "3,20,4"],
    "gpt2": ["--shape", "3,20", "--tokens", "11"],
    "llama": ["--shape", "3,20", "--tokens", "11"],
    "Convolutions": ["--shape", "3,4,20"],
    "both_ways": ["--shape", "20,3,4"],
    "Stateful": ["--shape", "20,3,4"],
    "with_dictionary": [],
}


@pytest.mark.parametrize("factory", sorted(MODELS))
def test_every_foreign_model_passes_every_probe(factory, require_or_skip):
    if factory in ("gpt2", "llama") and importlib.util.find_spec("transformers") is None:
        require_or_skip("transformers", "transformers is not installed: pip install 'remanence[hf]'")
    result = runner.invoke(app, ["probe", f"{FOREIGN}:{factory}", *MODELS[factory]])
    assert result.exit_code == 0, result.output
    first, *lines = result.output.splitlines()
    assert first.startswith("read as T = 20 steps, B = 3 rows")
    assert [line.partition(":")[0] for line in lines] == list(PROBES)
    assert "failed" not in result.output
    assert "Sees" in lines[0]
    assert "Reacts" in lines[1]


def test_a_factory_that_gives_inputs_needs_no_shape():
    request = ["probe", f"{FOREIGN}:with_dictionary", "--shape", "20,3,4"]
    refused = runner.invoke(app, request)
    assert refused.exit_code == 2
    assert "`shape` must be left out where the factory gives inputs" in " ".join(refused.output.split())


def test_the_layout_can_be_given_and_must_be_where_nothing_tells_it(here):
    request = ["probe", "some_models:reader", "--shape", "12,2", "--tokens", "5"]
    refused = runner.invoke(app, request)
    assert refused.exit_code == 2
    assert "batch first: T = 2 of B = 12" in " ".join(refused.output.replace("│", " ").split())
    assert runner.invoke(app, [*request, "--batch-first"]).output.startswith("read as T = 2 steps, B = 12 rows")


def test_a_language_model_is_read_from_its_folder(tmp_path, require_or_skip):
    if importlib.util.find_spec("transformers") is None:
        require_or_skip("transformers", "transformers is not installed: pip install 'remanence[hf]'")
    foreign = runpy.run_path(str(FOREIGN))
    foreign["gpt2"]().save_pretrained(tmp_path)
    foreign["write_tokenizer"](tmp_path)
    result = runner.invoke(app, ["probe", f"hf:{tmp_path}", "--shape", "4,24"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("read as T = 24 steps, B = 4 rows")
    assert "nats per token" in result.output
    text = tmp_path / "text.txt"
    text.write_text("a b c d e f " * 20, encoding="utf-8")
    result = runner.invoke(app, ["probe", f"hf:{tmp_path}", "--shape", "4,24", "--text", str(text)])
    assert result.stdout.startswith("read as T = 24 steps, B = 4 rows")


def test_one_page_with_all_pictures(here):
    pytest.importorskip("plotly")
    page = here / "page.html"
    result = runner.invoke(app, ["probe", "remanence.nn:RelLSTM", "--shape", "12,2,3", "--output", str(page)])
    assert result.exit_code == 2  # RelLSTM() needs sizes
    result = runner.invoke(app, ["probe", "some_models:make", "--shape", "12,2,3", "--output", str(page)])
    assert result.exit_code == 0
    written = page.read_text(encoding="utf-8")
    assert "Content-Security-Policy" in written  # the report's page, not one of another kind
    assert "probes of some_models:make" in written
    assert "Gradient reach: Sees" in written  # one model: its name is said once, in the title
    assert "Context use: does not apply" not in written


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


def test_code_that_a_run_names_needs_trust(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = ["--length", "3", "--hidden", "4", "--set", "task.options.items=2", "--set", "evaluation.batches=1"]
    assert runner.invoke(app, ["train", "copy", "--updates", "2", "--run", "mine", *small]).exit_code == 0
    (tmp_path / "evil.py").write_text("raise SystemExit('it ran')", encoding="utf-8")
    settings = tmp_path / "mine" / "config.toml"
    named = settings.read_text(encoding="utf-8").replace("imports = []", f'imports = ["{tmp_path / "evil.py"}"]')
    settings.write_text(named, encoding="utf-8")
    refused = runner.invoke(app, ["probe", "mine"])
    assert refused.exit_code == 7
    assert "--trust" in refused.output
    assert "it ran" in runner.invoke(app, ["probe", "mine", "--trust"]).output


def test_a_factory_needs_a_shape_and_a_folder_must_be_a_run(tmp_path):
    assert "--shape 100,2,3" in runner.invoke(app, ["probe", "torch.nn:Identity"]).output.replace("\n", " ")
    assert runner.invoke(app, ["probe", str(tmp_path)]).exit_code == 2


BAD = (("torch.nn", "4,1,1"), ("torch.nn:Nothing", "4,1,1"), ("torch.nn:Identity", "4,x"), ("torch.nn:Linear", "4,1,1"))


@pytest.mark.parametrize(("target", "shape"), BAD)
def test_bad_requests_are_usage_errors(target, shape):
    assert runner.invoke(app, ["probe", target, "--shape", shape]).exit_code == 2


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--shape", "9,2,3"], "RuntimeError: Expected tensor for argument #1 'indices'"),
        (["--shape", "9,2", "--tokens", "50"], "IndexError: index out of range"),
    ],
)
def test_a_model_that_does_not_run_is_one_line_that_says_where(here, options, told):
    result = runner.invoke(app, ["probe", str(here / "some_models.py:Tagger"), *options])
    assert result.exit_code == 2
    assert told in result.output
    assert "(some_models.py, line 19)" in result.output
    assert "Check --shape" in result.output
