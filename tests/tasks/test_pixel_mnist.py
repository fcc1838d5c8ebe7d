"""Handwritten digits pixel by pixel."""

import pytest
import torch

from remanence import data
from remanence.tasks import PixelMnist


@pytest.fixture
def digits(require_or_skip):
    if not data.is_available("mnist/train-images-idx3-ubyte"):
        require_or_skip("data", "MNIST is not on this machine (set REMANENCE_DATA)")
    return data.load_mnist()


def test_scanline_gives_the_picture_back(digits):
    batch = PixelMnist().batch(0, 3, split="test")
    assert batch.inputs.shape == (784, 3, 1)
    pixels = (batch.inputs[:, :, 0].T * 255).round().to(torch.uint8)
    assert torch.equal(pixels, digits.test_images[:3])
    assert torch.equal(batch.targets[-1], digits.test_labels[:3])
    assert (batch.targets[:-1] == 0).all()
    assert batch.mask.sum() == 3
    assert batch.mask[-1].all()


@pytest.mark.parametrize("group", [1, 7, 28, 784])
def test_grouping_and_permuting_only_move_pixels(digits, group):
    task = PixelMnist(permuted=True, group=group)
    batch = task.batch(0, 2, split="validation")
    assert batch.inputs.shape == (784 // group, 2, group)
    flat = batch.inputs.transpose(0, 1).reshape(2, 784)
    restored = torch.empty_like(flat)
    restored[:, task.permutation] = flat
    assert torch.equal((restored * 255).round().to(torch.uint8), digits.train_images[50_000:50_002])


def test_the_permutation_is_fixed():
    task = PixelMnist(permuted=True)
    assert task.permutation[:4].tolist() == [73, 529, 19, 222]
    assert torch.equal(task.permutation.sort().values, torch.arange(784))
    assert not torch.equal(task.permutation, PixelMnist(permuted=True, permutation_seed=1).permutation)
    assert torch.equal(PixelMnist().permutation, torch.arange(784))


def test_an_epoch_sees_every_training_picture_once(digits):
    task = PixelMnist(group=784)
    assert task.batches_per_epoch(1000) == 50
    assert task.batches_per_epoch(1000, "validation") == task.batches_per_epoch(1000, "test") == 10
    seen = torch.cat([task.batch(number, 1000).targets[-1] for number in range(50)])
    assert torch.equal(seen.bincount(), digits.train_labels[:50_000].bincount())
    assert not torch.equal(task.batch(0, 1000).targets, task.batch(50, 1000).targets)


def test_the_last_batch_of_an_evaluation_may_be_smaller(digits):
    task = PixelMnist(group=784)
    sizes = [task.batch(number, 3000, split="test").size for number in range(task.batches_per_epoch(3000, "test"))]
    assert sizes == [3000, 3000, 3000, 1000]


def test_baselines_are_the_stated_ones(digits):
    task = PixelMnist()
    assert f"{task.chance.loss:.4f} {task.chance.accuracy:.4f}" == "2.3020 0.1064"
    # The last pixel of a picture is blank in every one of them: it tells nothing.
    assert task.memory_free == task.chance
    assert PixelMnist(permuted=True, group=28).memory_free.accuracy > 0.4


@pytest.mark.parametrize("options", [{"group": 3}, {"group": 0}, {"permutation_seed": -1}])
def test_bad_options_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        PixelMnist(**options)


def test_the_length_cannot_be_changed():
    with pytest.raises(ValueError, match="'pixel-mnist' is fixed by its data"):
        PixelMnist().with_length(100)
