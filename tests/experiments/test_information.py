import json
import math

import numpy as np
import pytest

from remanence.experiments import __main__ as main
from remanence.experiments import _binary, _binary_far, _estimator, _trained, load_stored
from remanence.experiments._curves import described, finite, measured, refitted
from remanence.experiments._samples import Amount
from remanence.experiments._trained import Entry, run_entries
from remanence.tasks import BinaryPowerLaw

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
    from remanence.nn import SequenceModel

    task = BinaryPowerLaw()
    sizes = []
    for label in _binary.EQUAL:
        model = SequenceModel.for_task(task, entries[label].model, **entries[label].options)
        sizes.append(sum(parameter.numel() for parameter in model.parameters()))
    assert max(sizes) < 1.05 * min(sizes)


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
