"""Copy and denoise: layout, coding, baselines."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence.tasks import Batch, Copy, Denoise, LateCues

SIZES = st.builds(
    dict, length=st.integers(1, 30), symbols=st.integers(1, 5), items=st.integers(1, 6), encoding=st.just("scalar")
)


def sample(task, rows=3, seed=0):
    return task.sample(rows, task.stream("train", seed))


def knowing_the_clock(task, batch: Batch):
    """Logits of the best predictor without memory: blank, then the uniform guess among the symbols."""
    logits = torch.full((*batch.targets.shape, task.output_size), -math.inf, dtype=torch.float64)
    logits[~batch.mask] = torch.tensor([0.0] + [-math.inf] * task.symbols, dtype=torch.float64)
    logits[batch.mask] = torch.tensor([-math.inf] + [0.0] * task.symbols, dtype=torch.float64)
    return logits


@given(SIZES)
@settings(max_examples=40, deadline=None)
def test_copy_layout(sizes):
    task = Copy(**sizes)
    batch = sample(task)
    length, items, tokens = task.length, task.items, batch.inputs.squeeze(-1)
    assert tokens.shape == batch.targets.shape == (length + 2 * items, 3)
    assert ((tokens[:items] >= 1) & (tokens[:items] <= task.symbols)).all()
    assert (tokens[items : items + length - 1] == 0).all()
    assert (tokens[items + length - 1] == task.symbols + 1).all()
    assert (tokens[-items:] == 0).all()
    assert (batch.targets[:-items] == 0).all()
    assert torch.equal(batch.targets[-items:], tokens[:items].long())
    assert torch.equal(batch.mask, (torch.arange(length + 2 * items) >= length + items).unsqueeze(1).expand(-1, 3))


@given(SIZES)
@settings(max_examples=40, deadline=None)
def test_denoise_layout(sizes):
    task = Denoise(**sizes)
    batch = sample(task)
    marker_at = task.length + task.items - 1
    tokens = batch.inputs.squeeze(-1)
    assert (tokens[marker_at] == task.symbols + 1).all()
    assert (tokens[marker_at + 1 :] == 0).all()
    # Places are distinct: as many symbols stand in the noise as are to be recalled, and in the same order.
    for row in range(3):
        noisy = tokens[:marker_at, row]
        assert torch.equal(noisy[noisy > 0].long(), batch.targets[-task.items :, row])
    assert (batch.targets[: -task.items] == 0).all()


def test_denoise_places_are_uniform():
    task = Denoise(length=4, items=2)
    shown = sample(task, rows=20_000).inputs[:5].argmax(-1) > 0
    share = shown.double().mean(dim=1)
    spread = math.sqrt(0.4 * 0.6 / 20_000)
    assert ((share - 2 / 5).abs() < 5 * spread).all()


@pytest.mark.parametrize("encoding", ["one-hot", "scalar"])
@pytest.mark.parametrize("task_class", [Copy, Denoise, LateCues])
def test_steps_that_show_a_symbol_are_known(task_class, encoding):
    task = task_class(length=20, items=3, symbols=4, encoding=encoding)
    batch = sample(task)
    shown = task.shows_symbol(batch.inputs)
    tokens = batch.inputs.argmax(-1) if encoding == "one-hot" else batch.inputs.squeeze(-1).long()
    assert torch.equal(tokens.T[shown.T], batch.targets.T[batch.mask.T])


@pytest.mark.parametrize("task_class", [Copy, Denoise])
def test_codings_say_the_same(task_class):
    one_hot, scalar = sample(task_class(encoding="one-hot")), sample(task_class(encoding="scalar"))
    assert torch.equal(one_hot.inputs.argmax(-1, keepdim=True).float(), scalar.inputs)
    assert torch.equal(one_hot.inputs.sum(-1), torch.ones_like(scalar.inputs.squeeze(-1)))


@pytest.mark.parametrize(("length", "loss"), [(100, "0.17329"), (200, "0.09452"), (300, "0.06498"), (1000, "0.02039")])
def test_memory_free_loss_is_the_published_one(length, loss):
    for task in (Copy(length=length), Denoise(length=length)):
        assert f"{task.memory_free.loss:.5f}" == loss
        assert task.chance_level == 1 / 8


@pytest.mark.parametrize("task", [Copy(length=7, symbols=3, items=4), Denoise(length=7, symbols=3, items=4)])
def test_memory_free_baseline_is_reached_by_its_predictor(task):
    batch = sample(task, rows=6)
    loss = task.loss(knowing_the_clock(task, batch), batch)
    torch.testing.assert_close(loss, torch.tensor(task.memory_free.loss, dtype=torch.float64))


def test_guessing_reaches_the_chance_level():
    task = Copy(length=5)
    batch = sample(task, rows=4_000)
    guess = torch.randint(1, 9, batch.targets.shape, generator=torch.Generator().manual_seed(1))
    right = task.accuracy(torch.nn.functional.one_hot(guess, 9).double(), batch)
    assert abs(right.item() - task.chance_level) < 5 * math.sqrt(1 / 8 * 7 / 8 / 40_000)


def test_loss_counts_all_steps_and_accuracy_the_last():
    task = Copy(length=3, items=2)
    batch = sample(task)
    answers = torch.nn.functional.one_hot(batch.targets, 9).double()
    wrong_early = answers.clone()
    wrong_early[0] = answers[0].roll(1, dims=-1)
    assert task.accuracy(wrong_early, batch) == 1
    assert task.loss(wrong_early, batch) > task.loss(answers, batch)


def test_length_may_be_drawn_per_batch():
    task = Copy(length=9, shortest=7)
    lengths = {task.batch(position, 2).steps - 20 for position in range(40)}
    assert lengths == {7, 8, 9}
    assert task.memory_free == Copy(length=8).memory_free


def test_a_length_that_is_asked_for_is_not_drawn():
    task = Copy(length=9, shortest=7)
    assert task.with_length(5) == Copy(length=5)
    assert {task.with_length(30).batch(position, 2).steps for position in range(10)} == {50}


def test_transfer_is_the_same_task_at_another_length():
    task = Copy(length=100, symbols=4, encoding="scalar").with_length(5000)
    assert task == Copy(length=5000, symbols=4, encoding="scalar")
    assert sample(task).steps == 5020


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"length": 0}, "length"),
        ({"symbols": 0}, "symbols"),
        ({"items": -1}, "items"),
        ({"encoding": "onehot"}, "one-hot"),
        ({"shortest": 101}, "shortest"),
    ],
)
def test_bad_options_are_named(options, argument):
    with pytest.raises(ValueError, match=argument):
        Copy(**options)


@given(SIZES, st.integers(0, 15))
@settings(max_examples=40, deadline=None)
def test_late_cues_layout(sizes, distractors):
    task = LateCues(**sizes, distractors=min(distractors, sizes["length"] // 2))
    batch = sample(task)
    marker_at = task.length + task.items - 1
    tokens = batch.inputs.squeeze(-1)
    assert (tokens[: task.distractors] > task.symbols + 1).all()
    assert (tokens[: task.distractors] < 2 * task.symbols + 2).all()
    assert (tokens[task.distractors : task.length // 2] == 0).all()
    assert (tokens[marker_at] == task.symbols + 1).all()
    assert (tokens[marker_at + 1 :] == 0).all()
    for row in range(3):
        late = tokens[task.length // 2 : marker_at, row]
        assert torch.equal(late[late > 0].long(), batch.targets[-task.items :, row])
    assert (batch.targets[: -task.items] == 0).all()


def test_more_distractors_than_half_are_refused():
    with pytest.raises(ValueError, match="half of the shortest length, 5; got 6"):
        LateCues(length=11, distractors=6)


def test_late_cues_have_the_baseline_of_denoise():
    assert LateCues().memory_free == Denoise().memory_free
    batch = sample(LateCues(), rows=6)
    loss = LateCues().loss(knowing_the_clock(LateCues(), batch), batch)
    torch.testing.assert_close(loss, torch.tensor(LateCues().memory_free.loss, dtype=torch.float64))
