"""A batch in pieces of time holds the numbers of the whole, and never more than a piece of it."""

import pytest
import torch

from remanence.tasks import Adding, Copy, Denoise, Task
from remanence.testing import assert_matches


@pytest.mark.parametrize("chunk", [1, 3, 7, 50])
@pytest.mark.parametrize(
    "task",
    [
        Copy(length=9, items=4),
        Denoise(length=9, items=4),
        Denoise(length=20, items=3, shortest=2),
        Copy(length=5, items=2, encoding="scalar"),
        Adding(length=11),
    ],
)
def test_pieces_are_the_whole(task: Task, chunk: int):
    for position in range(3):
        whole = task.batch(position, 5, split="test", seed=3)
        pieces = list(task.stream_batch(position, 5, chunk=chunk, split="test", seed=3))
        assert all(piece.steps == chunk for piece in pieces[:-1])
        for name in ("inputs", "targets", "mask"):
            assert torch.equal(torch.cat([getattr(piece, name) for piece in pieces]), getattr(whole, name))


def test_a_piece_of_a_very_long_sequence_is_as_small_as_any():
    task = Denoise(length=10**12)
    first = next(iter(task.stream_batch(0, 2, chunk=10)))
    assert first.inputs.shape == (10, 2, 10)


def test_the_loss_of_the_asked_steps_is_that_of_the_last_ones():
    task = Copy(length=6, items=2, symbols=3)
    batch = task.batch(0, 4)
    output = torch.randn(*batch.mask.shape, task.output_size, dtype=torch.float64)
    score = task.score(output, batch)
    expected = torch.nn.functional.cross_entropy(output[-2:].flatten(0, 1), batch.targets[-2:].flatten())
    found = torch.tensor([score.asked_loss, score.loss], dtype=torch.float64)
    assert_matches({"loss": found}, {"loss": torch.stack([expected, task.loss(output, batch)])})
