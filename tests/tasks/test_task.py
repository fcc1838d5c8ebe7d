"""The task protocol: streams, scores, registry."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence.tasks import SPLITS, Copy, Score, Task, list_tasks, make_task, register_task
from remanence.tasks._stream import _BATCHES, _scramble, stream

SEEDS = st.integers(0, 2**40)


@given(SEEDS, SEEDS, SEEDS, SEEDS)
@settings(deadline=None)
def test_splits_never_share_a_seed(seed_a, seed_b, position_a, position_b):
    train = stream("train", seed_a, position_a).initial_seed()
    assert train != stream("validation", seed_b, position_b).initial_seed()
    assert train != stream("test", seed_b, position_b).initial_seed()


@given(st.integers(0, _BATCHES - 1), st.integers(0, _BATCHES - 1))
@settings(deadline=None)
def test_scrambling_is_one_to_one(first, second):
    assert (_scramble(first) == _scramble(second)) == (first == second)
    assert 0 <= _scramble(first) < _BATCHES


def test_seeds_fit_what_the_generator_really_uses():
    assert all(stream(split, 7, 11).initial_seed() < 2**32 for split in SPLITS)


def test_a_batch_is_a_pure_function_of_its_number():
    task = Copy(length=5)
    straight = [batch for batch, _ in zip(task.batches(2, seed=3), range(4), strict=False)]
    resumed = next(task.batches(2, seed=3, position=2))
    assert torch.equal(straight[2].inputs, resumed.inputs)
    assert not torch.equal(straight[1].inputs, resumed.inputs)
    assert not torch.equal(task.batch(2, 2, seed=4).inputs, resumed.inputs)
    assert not torch.equal(task.batch(2, 2, seed=3, split="test").inputs, resumed.inputs)


def test_score_adds_up_to_the_mean_over_all():
    task = Copy(length=5)
    small, large = task.batch(0, 1), task.batch(1, 7)
    noise = torch.Generator().manual_seed(0)
    outputs = [torch.randn(25, rows, 9, generator=noise, dtype=torch.float64) for rows in (1, 7)]
    total = task.score(outputs[0], small).plus(task.score(outputs[1], large))
    joined = small._replace(
        targets=torch.cat([small.targets, large.targets], 1), mask=torch.cat([small.mask, large.mask], 1)
    )
    torch.testing.assert_close(total.loss, task.loss(torch.cat(outputs, 1), joined).item())
    torch.testing.assert_close(total.accuracy, task.accuracy(torch.cat(outputs, 1), joined).item())
    assert task.report(total) == {"loss": total.loss, "accuracy": total.accuracy}


def test_a_batch_can_be_cut_by_rows():
    task = Copy(length=5)
    batch = task.batch(0, 6)._replace(reset=torch.arange(6) > 2)
    first, second = batch.rows(0, 2), batch.rows(2, 6)
    for whole, one, other in zip(batch[:3], first[:3], second[:3], strict=True):
        assert torch.equal(torch.cat([one, other], 1), whole)
    assert second.reset is not None
    assert second.reset.tolist() == [False, True, True, True]
    assert task.batch(0, 6).rows(0, 2).reset is None
    assert batch.to("cpu").size == 6


def test_empty_score_has_no_mean():
    assert Score().loss != Score().loss
    assert Score().accuracy != Score().accuracy


def test_wrong_output_shape_is_named():
    task = Copy(length=5)
    with pytest.raises(ValueError, match=r"`output` must have shape \(25, 2, 9\); got \(25, 2, 8\)"):
        task.loss(torch.zeros(25, 2, 8), task.batch(0, 2))


def test_registry_refuses_a_taken_name():
    with pytest.raises(ValueError, match="'copy', which is Copy already"):

        @register_task("copy")
        @dataclass(frozen=True)
        class Impostor(Copy):
            pass


def test_registry_refuses_what_is_no_frozen_task():
    class NotFrozen(Task):
        pass

    with pytest.raises(TypeError, match="frozen"):
        register_task("not-frozen")(NotFrozen)
    assert "not-frozen" not in list_tasks()


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(ValueError, match="Did you mean 'denoise'"):
        make_task("denoize")
    with pytest.raises(ValueError, match="Did you mean 'length'"):
        make_task("copy", lenght=3)


def test_tasks_without_a_length_say_so():
    @dataclass(frozen=True)
    class Fixed(Copy):
        length = 3  # pyright: ignore[reportAssignmentType]

    assert Fixed().with_length(4).length == 4

    @dataclass(frozen=True)
    class NoLength(Task):
        input_size = output_size = 1  # pyright: ignore[reportAssignmentType]

        def sample(self, batch_size, generator):
            raise NotImplementedError

    with pytest.raises(ValueError, match="fixed by its data"):
        NoLength().with_length(4)


def test_answers_are_copied_only_where_some_are_left_out():
    task, seen = Copy(length=3, items=2, symbols=2), []
    batch = task.batch(0, 2)
    output = torch.randn(batch.steps, batch.size, task.output_size)
    object.__setattr__(task, "step_correct", lambda answers, targets: (seen.append(answers), targets == 0)[1])
    for mask in (torch.ones_like(batch.mask), batch.mask):
        task.accuracy(output, batch._replace(mask=mask))
    everything, some = seen
    assert everything.data_ptr() == output.data_ptr()
    assert torch.equal(some, output[batch.mask])
