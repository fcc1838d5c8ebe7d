"""How batches become updates."""

from dataclasses import replace

import pytest
import torch

from remanence.nn import SequenceModel, StableRNN
from remanence.runs import map_tensors
from remanence.tasks import Copy, Task, Text
from remanence.testing import assert_matches
from remanence.train import Processes, Run, config_from, evaluate, resume, train
from remanence.train._config import EvaluationConfig
from remanence.train._learner import Learner

TASK = Copy(length=4, items=2, symbols=2)


def learner(task: Task = TASK, core="LSTM", options=None, **tables) -> Learner:
    config = config_from({"loop": {"precision": "float64"}, "task": {"batch_size": 6}, **tables})
    torch.manual_seed(1)
    model = SequenceModel.for_task(task, core, **{"hidden_size": 5, **(options or {})}).double()
    return Learner(config, model, Processes())


def weights(learner: Learner) -> dict[str, torch.Tensor]:
    return {name: value.detach() for name, value in learner.model.state_dict().items()}


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("to be or not to be, that is the question; " * 40)
    return Text(path=str(path), length=7)


def test_parts_of_a_batch_give_the_gradient_of_the_whole():
    whole, parts = learner(), learner(loop={"precision": "float64", "accumulate": 4})
    for update in range(3):
        one, other = whole.learn(TASK, update, 3, 0), parts.learn(TASK, update, 3, 0)
        assert_matches(*({"loss": torch.tensor(found.loss, dtype=torch.float64)} for found in (other, one)))
    assert_matches(weights(parts), weights(whole))


def test_parts_of_a_batch_with_a_mask_give_the_gradient_of_the_whole():
    """The loss counts masked steps only."""

    class Masked(Copy):
        loss_on_all_steps = False

    task = Masked(length=4, items=2, symbols=2)
    whole, parts = learner(task), learner(task, loop={"precision": "float64", "accumulate": 3})
    for update in range(3):
        whole.learn(task, update, 3, 0)
        parts.learn(task, update, 3, 0)
    assert_matches(weights(parts), weights(whole))


def test_stateful_parts_carry_their_own_state(text):
    whole, parts = learner(text), learner(text, loop={"precision": "float64", "accumulate": 2})
    for update in range(4):
        whole.learn(text, update, 4, 0)
        parts.learn(text, update, 4, 0)
    assert_matches(weights(parts), weights(whole))


def test_state_is_carried_from_batch_to_batch_without_its_gradient(text):
    carrying = learner(text)
    carrying.learn(text, 0, 9, 0)
    (state,) = carrying.carried
    assert state.step.tolist() == [[7] * 6]
    seen = []
    map_tensors(lambda tensor: seen.append(tensor.requires_grad), state)
    assert not any(seen)
    carrying.learn(text, 1, 9, 0)
    assert carrying.carried[0].step.tolist() == [[14] * 6]


def test_state_is_dropped_where_the_task_says_so(text):
    always = Text(path=text.path, length=7, drop_state=1.0)
    dropping = learner(always)
    for update in range(3):
        dropping.learn(always, update, 9, 0)
        assert dropping.carried[0].step.tolist() == [[7] * 6]


def test_a_task_with_whole_sequences_carries_nothing():
    plain = learner()
    plain.learn(TASK, 0, 1, 0)
    assert plain.carried == [None]


def test_truncated_training_updates_after_every_piece_and_sees_the_state_before(monkeypatch):
    counted = learner(loop={"precision": "float64", "truncate": 3})
    steps, real = [], counted.optimiser.step
    monkeypatch.setattr(counted.optimiser, "step", lambda: (steps.append(1), real()))
    learnt = counted.learn(TASK, 0, 1, 0)
    assert len(steps) == 3  # 8 steps: 3 + 3 + 2
    assert 0 < learnt.loss < 5


def test_truncated_training_with_no_rate_measures_the_loss_of_the_whole(monkeypatch):
    """If nothing moves, pieces with the state carried on must see what the whole sees."""
    still = {"name": "sgd", "learning_rate": 1e-300}
    whole = learner(optimiser=still).learn(TASK, 0, 1, 0)
    for core in ("LSTM", "RelRNN", "SABLSTM"):
        one = learner(core=core, optimiser=still).learn(TASK, 0, 1, 0)
        cut = learner(core=core, optimiser=still, loop={"precision": "float64", "truncate": 3}).learn(TASK, 0, 1, 0)
        assert_matches(*({"loss": torch.tensor(found.loss, dtype=torch.float64)} for found in (cut, one)))
    assert whole.loss > 0


def test_pieces_in_which_nothing_is_asked_make_no_update(monkeypatch):
    class Masked(Copy):
        loss_on_all_steps = False

    task = Masked(length=4, items=2, symbols=2)
    counted = learner(task, loop={"precision": "float64", "truncate": 2})
    steps, real = [], counted.optimiser.step
    monkeypatch.setattr(counted.optimiser, "step", lambda: (steps.append(1), real()))
    counted.learn(task, 0, 1, 0)
    assert len(steps) == 1  # 8 steps, of which the last two count


def test_projections_are_called_after_every_step():
    projecting = learner(core="StableRNN", optimiser={"name": "sgd", "learning_rate": 50.0})
    projecting.learn(TASK, 0, 1, 0)
    core = projecting.model.core
    assert isinstance(core, StableRNN)
    core.certificate()


@pytest.mark.parametrize(
    ("loop", "measure"), [({"clip_norm": 0.01}, 2.0), ({"clip_norm": None, "clip_value": 0.01}, float("inf"))]
)
def test_clipping_by_norm_and_by_value(loop, measure):
    clipped = learner(loop={"precision": "float64", **loop})
    learnt = clipped.learn(TASK, 0, 1, 0)
    gradients = [value.grad.flatten() for value in clipped.model.parameters() if value.grad is not None]
    assert torch.linalg.vector_norm(torch.cat(gradients), measure) <= 0.01
    assert learnt.norm > 0.01  # what is reported is the norm before


def test_evaluation_does_not_depend_on_the_runs_seed_and_keeps_the_mode():
    model = SequenceModel.for_task(TASK, "LSTM", hidden_size=5, dropout=0.5)
    config = EvaluationConfig(batches=2, batch_size=5)
    assert evaluate(model, TASK, config) == evaluate(model, TASK, config)
    assert model.training
    assert evaluate(model, TASK, config) != evaluate(model, TASK, EvaluationConfig(batches=2, batch_size=5, seed=1))


def test_a_pass_over_a_text_counts_every_step_once(text):
    model = SequenceModel.for_task(text, "LSTM", hidden_size=5)
    found = evaluate(model, text, EvaluationConfig(batches=0, batch_size=2))
    assert set(found) == {"loss", "accuracy", "bits_per_character"}


def test_a_task_that_never_ends_has_no_pass():
    with pytest.raises(ValueError, match="never ends"):
        evaluate(SequenceModel.for_task(TASK, "LSTM", hidden_size=5), TASK, EvaluationConfig(batches=0))


def test_the_length_grows_as_accuracy_allows(faults, tmp_path):
    config = faults.tiny_config(curriculum={"start": 1, "growth": 2.0, "accuracy": 0.0, "window": 3})
    train(config, tmp_path / "run")
    grown = [line for line in Run(tmp_path / "run").metrics.read() if line["kind"] == "curriculum"]
    assert [(line["update"], line["length"]) for line in grown] == [(3, 2), (6, 4)]


def test_the_length_stays_while_accuracy_is_low(faults, tmp_path):
    train(faults.tiny_config(curriculum={"start": 2, "accuracy": 1.0}), tmp_path / "run")
    assert not [line for line in Run(tmp_path / "run").metrics.read() if line["kind"] == "curriculum"]


def test_a_run_stops_when_accuracy_is_reached_or_nothing_is_gained(faults, tmp_path):
    reached = train(faults.tiny_config(budget={"accuracy": 0.0}), tmp_path / "a")
    assert (reached.reason, reached.update) == ("accuracy reached", 5)
    assert train(faults.tiny_config(budget={"accuracy": 0.0}), tmp_path / "a").reason == "accuracy reached"
    still = {"name": "sgd", "learning_rate": 1e-30}
    stuck = train(faults.tiny_config(budget={"patience": 2}, optimiser=still), tmp_path / "b")
    assert (stuck.reason, stuck.update) == ("no gain", 15)


def test_a_larger_budget_goes_on_from_the_end(faults, reference, tmp_path):
    short = faults.tiny_config(budget={"updates": 12})
    train(short, tmp_path / "run")
    resume(tmp_path / "run", config=faults.tiny_config())
    assert faults.final_state(tmp_path / "run").keys() == faults.final_state(reference).keys()
    one, other = faults.final_state(tmp_path / "run"), faults.final_state(reference)
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("core", ["LSTM", "GRU", "RelLSTM", "MemRNN", "SABRNN", "Transformer", "ExpRNN"])
def test_carried_state_survives_a_stop_in_every_kind_of_core(core, text, tmp_path):
    table = {
        "task": {"name": "text", "options": {"path": text.path, "length": 5}, "batch_size": 3},
        "model": {"name": core, "options": {"hidden_size": 8}},
        "budget": {"updates": 6},
        "evaluation": {"every": 6, "batches": 1, "batch_size": 2},
        "loop": {"log_every": 6},
    }
    if core == "Transformer":
        table["model"]["options"] = {"encoder": "embedding", "embedding_size": 8, "heads": 2, "depth": 1}
    config = config_from(table)
    train(config, tmp_path / "whole")
    short = replace(config, budget=replace(config.budget, updates=3))
    train(short, tmp_path / "cut")
    resume(tmp_path / "cut", config=config)
    one, other = Run(tmp_path / "whole").load("last")[0], Run(tmp_path / "cut").load("last")[0]
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_mixed_precision_is_refused_where_the_device_has_none(monkeypatch):
    monkeypatch.setattr("remanence.train._building._cpu_flags", lambda: "flags : avx2")
    with pytest.raises(ValueError, match="has no bfloat16 arithmetic"):
        learner(loop={"precision": "bfloat16"})


def test_mixed_precision_learns_where_the_device_has_it(monkeypatch):
    monkeypatch.setattr("remanence.train._building._cpu_flags", lambda: "flags : avx512_bf16")
    config = config_from({"loop": {"precision": "bfloat16"}, "task": {"batch_size": 6}})
    mixed = Learner(config, SequenceModel.for_task(TASK, "LSTM", hidden_size=5), Processes())
    assert mixed.learn(TASK, 0, 1, 0).loss > 0
    assert all(value.dtype == torch.float32 for value in weights(mixed).values())


def test_evaluation_leaves_every_part_in_its_own_mode():
    task = Copy(length=3)
    model = SequenceModel.for_task(task, "LSTM", hidden_size=4)
    model.train()
    model.core.eval()
    before = {name: module.training for name, module in model.named_modules()}
    evaluate(model, task, EvaluationConfig(batches=1, batch_size=2))
    assert {name: module.training for name, module in model.named_modules()} == before


def test_a_model_is_built_once(faults, tmp_path, monkeypatch):
    built = []
    real = SequenceModel.for_task
    monkeypatch.setattr(SequenceModel, "for_task", lambda *given, **options: built.append(1) or real(*given, **options))
    train(faults.tiny_config(budget={"updates": 1}), tmp_path / "run")
    assert len(built) == 1


@pytest.mark.parametrize("changed", [{"seed": 9}, {"label": "mine"}])
def test_settings_that_leave_a_done_run_nothing_to_do_are_refused(faults, tmp_path, changed):
    train(faults.tiny_config(budget={"updates": 2}), tmp_path / "run")
    before = (tmp_path / "run" / "config.toml").read_bytes()
    with pytest.raises(ValueError, match=r"the run is done after 2 updates; got changed ones with a budget of 2 "):
        resume(tmp_path / "run", config=faults.tiny_config(budget={"updates": 2}, **changed))
    assert (tmp_path / "run" / "config.toml").read_bytes() == before
    assert Run(tmp_path / "run").is_done


def numbers(found: dict[str, float]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(value, dtype=torch.float64) for name, value in found.items()}


@pytest.mark.parametrize("core", ["LSTM", "RelLSTM", "SABLSTM", "MemRNN"])
def test_a_streamed_evaluation_gives_the_numbers_of_the_whole(core):
    task = Copy(length=30, items=3)
    model = SequenceModel.for_task(task, core, hidden_size=6).double()
    config = EvaluationConfig(batches=2, batch_size=4)
    whole = evaluate(model, task, config)
    for chunk in (1, 7, 100):
        streamed = evaluate(model, task, config, chunk=chunk)
        assert streamed["accuracy"] == whole["accuracy"]
        assert_matches(numbers(streamed), numbers(whole))


def test_a_streamed_evaluation_carries_a_texts_state(text):
    model = SequenceModel.for_task(text, "LSTM", hidden_size=6).double()
    config = EvaluationConfig(batches=3, batch_size=2)
    whole, streamed = evaluate(model, text, config), evaluate(model, text, config, chunk=3)
    assert_matches(numbers(streamed), numbers(whole))


def test_a_model_that_reads_backwards_cannot_be_streamed():
    task = Copy(length=5, items=2)
    model = SequenceModel.for_task(task, "LSTM", hidden_size=4, bidirectional=True)
    with pytest.raises(ValueError, match="`chunk` must be None for a model that reads backwards too"):
        evaluate(model, task, EvaluationConfig(batches=1, batch_size=2), chunk=2)


@pytest.mark.slow
def test_a_million_steps_are_evaluated_piece_by_piece():
    task = Copy(length=1_000_000)
    model = SequenceModel.for_task(task, "RelLSTM", hidden_size=4, recent=2, relevant=2)
    found = evaluate(model, task, EvaluationConfig(batches=1, batch_size=1), chunk=10_000)
    assert 0.0 < found["asked_loss"] < 10.0
