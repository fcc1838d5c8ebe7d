import json
from dataclasses import replace

import pytest

from remanence.cli._train import configuration
from remanence.experiments import _recall as recall
from remanence.experiments.__main__ import EXPERIMENTS
from remanence.nn import SequenceModel
from remanence.tasks import Denoise
from remanence.train import EvaluationConfig, evaluate, list_runs, run_name, train

TINY = recall.Arm(
    "denoise",
    "RelRNN",
    4,
    ("curriculum.start=2", "curriculum.accuracy=0", "curriculum.window=1", "model.options.hidden_size=4"),
    100,
    {200: 99},
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run of a tiny arm, evaluated after every update, and solved at the third: its metrics are made up."""
    folder = tmp_path_factory.mktemp("runs")
    arm = replace(TINY, settings=(*TINY.settings, "loop.log_every=1", "task.options.length=3"))
    config = configuration("denoise", "RelRNN", arm.all_settings)
    run = train(config, folder / arm.name / run_name(config)).run
    judged = [{"kind": "validation", "update": n, "loss": 1.0 / n, "accuracy": 0.33 * n} for n in (1, 2, 3)]
    trained = [{"kind": "train", "update": n, "seconds": 60.0 * n} for n in (1, 2, 3)]
    grown = [{"kind": "curriculum", "update": 1, "length": 3}]
    run.write("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in trained + judged + grown))
    return folder, arm


def test_a_run_is_summed_up_from_its_folder(runs, monkeypatch):
    folder, arm = runs
    monkeypatch.setattr(recall, "TRANSFER", (2, 5))
    record = recall.collect(folder, [arm])
    (found,) = record["results"]["runs"]
    assert (found["arm"], found["seed"], found["updates"]) == ("denoise-RelRNN-curriculum", 0, 4)
    assert (found["updates_to_99"], found["minutes_to_99"]) == (3, 3.0)
    assert found["best_accuracy"] == found["final_accuracy"] == 0.99
    assert found["curve"]["updates"] == [1, 2, 3]
    assert found["lengths"] == [[1, 3]]
    assert sorted(found["elsewhere"]) == ["2", "5"]
    assert found["held_by_place"] == [1.0] * 10  # 12 steps, and room for 30
    assert found["settings"]["curriculum"]["start"] == 2
    described = record["results"]["arms"][arm.name]
    assert described["document"] == {"accuracy": 100, "transfer": {"200": 99}}


def test_other_lengths_are_asked_once(runs, monkeypatch):
    folder, arm = runs
    (run,) = list_runs(folder / arm.name)
    first = recall.elsewhere(run, (2,))
    monkeypatch.setattr(recall, "_answers", None)
    assert recall.elsewhere(run, (2,)) == first


def test_answers_are_those_of_an_evaluation():
    task = Denoise(length=40)
    model = SequenceModel.for_task(task, "LSTM", hidden_size=4)
    found = recall._answers(model, task)
    expected = evaluate(model, task, EvaluationConfig(batches=1, batch_size=recall.SEQUENCES), "test")
    assert found["accuracy"] == round(expected["accuracy"], 5)
    assert found["held"] == 0


@pytest.mark.parametrize(("recent", "relevant"), [(1, 1), (3, 5), (20, 20), (60, 1)])
def test_held_counts_the_symbols_whose_state_is_in_the_memory(recent, relevant):
    task = Denoise(length=30)
    batch = task.batch(0, 3)
    question = task.total_steps - task.items
    model = SequenceModel.for_task(task, "RelRNN", hidden_size=4, recent=recent, relevant=relevant)
    _, state = model(batch.inputs[:question])
    assert set(state.step.flatten().tolist()) == {question}
    held = []
    for row in range(3):
        kept = set(state.relevant_step[0, row].tolist()) | set(range(question - recent, question))
        held.append([step in kept for step in range(question - 1) if batch.inputs[step, row, 0] == 0])
    assert recall._held(batch.inputs[: question - 1], state).tolist() == held


def test_an_arms_command_makes_the_runs_that_are_collected():
    """The printed settings, given to the command line, make the configuration of the arm's first cell."""
    for arm in recall.GRID:
        assert len({other.name for other in recall.GRID}) == len(recall.GRID)
        words = arm.command("here").split()
        settings = [words[place + 1] for place, word in enumerate(words) if word == "--set"]
        assert settings == arm.all_settings
        assert configuration(words[2], arm.model, settings).budget.updates == arm.updates


def test_a_curve_is_thinned_and_keeps_its_end():
    lines = [{"update": n, "accuracy": 0.5, "loss": 1.0} for n in range(1, 251)]
    updates = recall.learning_curve(lines)["updates"]
    assert len(updates) <= recall.POINTS
    assert updates[-1] == 250
    assert recall.learning_curve([]) == {"updates": [], "accuracy": [], "loss": []}


def test_the_experiment_trains_then_stores(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(recall, "run_arms", lambda folder, arms: done.append((folder, arms)))
    monkeypatch.setattr(recall, "save_stored", lambda name, record: done.append((name, record["results"]["runs"])))
    EXPERIMENTS["recall"](tmp_path)
    assert done == [(tmp_path, recall.GRID), ("recall", [])]
