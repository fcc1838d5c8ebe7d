"""``remanence kv`` on a tiny random model, from its folder to the page."""

import importlib.util
import json
import re

import pytest
import torch
from typer.testing import CliRunner

from remanence.cli._app import app


@pytest.fixture(scope="module")
def folder(require_or_skip, tmp_path_factory):
    if importlib.util.find_spec("transformers") is None:
        require_or_skip("transformers", "transformers is not installed: pip install 'remanence[hf]'")
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    torch.manual_seed(0)
    made = tmp_path_factory.mktemp("model")
    letters = {"<unk>": 0} | {letter: number for number, letter in enumerate("abcdefgh ", 1)}
    tokenizer = Tokenizer(models.WordLevel(letters, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>").save_pretrained(made)
    sizes = {"vocab_size": 10, "n_positions": 64, "n_embd": 8, "n_layer": 1, "n_head": 2}
    transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).save_pretrained(made)
    (made / "text.txt").write_text("abc deh " * 30)
    return made


def run(folder, *options):
    return CliRunner().invoke(app, ["kv", str(folder), str(folder / "text.txt"), *options])


def test_a_table_and_a_page(folder, tmp_path):
    page = tmp_path / "page.html"
    found = run(folder, "--budget", "8,16", "--screen", "mean,tova", "-o", str(page))
    assert found.exit_code == 0, found.output
    assert "text.txt: 64 tokens, the last 47 counted" in found.output  # the model has 64 positions
    assert [line.split()[:2] for line in found.output.splitlines() if line.split()[:1] in (["mean"], ["tova"])] == [
        ["mean", "8"],
        ["tova", "8"],
        ["mean", "16"],
        ["tova", "16"],
    ]
    headline = (
        r"(mean|tova) with (8|16) keys comes closest to the full cache: [+-]0\.\d{3} nats per token in 0\.0 instead"
    )
    assert re.search(headline, page.read_text())


def test_the_page_is_written_unless_json_is_asked_for(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(folder, "--budget", "8", "--screen", "mean", "--json").exit_code == 0
    assert not list(tmp_path.iterdir())
    assert run(folder, "--budget", "8", "--screen", "mean").exit_code == 0
    assert [page.name for page in tmp_path.iterdir()] == ["kv.html"]


def test_json_is_a_result(folder):
    from remanence.runs import result_from

    found = run(folder, "--budget", "8", "--screen", "mean", "--json")
    assert found.exit_code == 0, found.output
    result = result_from(json.loads(found.stdout))
    assert result.kind == "kv-comparison"
    assert result.screened[0].budget == 8


def test_precision_is_chosen(folder):
    sizes = {}
    for dtype in ("float32", "bfloat16"):
        found = run(folder, "--budget", "8", "--screen", "window", "--dtype", dtype, "--json")
        assert found.exit_code == 0, found.output
        sizes[dtype] = json.loads(found.stdout)["full"]["cache_bytes"]
    assert sizes["float32"] == 2 * sizes["bfloat16"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--budget", "8;9"], "`--budget` must be whole numbers separated by commas; got '8;9'"),
        (["--screen", "h20"], "Did you mean 'h2o'?"),
        (["--dtype", "float16"], "`--dtype` must be one of 'float32', 'bfloat16'; got 'float16'"),
        (["--budget", "64"], "be longer than the largest budget"),
    ],
)
def test_bad_input_is_one_line(folder, options, words):
    found = run(folder, *options)
    assert found.exit_code == 2
    assert words in found.output
