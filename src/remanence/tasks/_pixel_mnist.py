"""Handwritten digits, one pixel after the other."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from remanence import _validate
from remanence.data import load_mnist
from remanence.tasks._batch import Baseline, Batch
from remanence.tasks._registry import register_task
from remanence.tasks._stream import Split, stream
from remanence.tasks._task import Task

_PIXELS = 784
_TRAINING = 50_000
_CLASSES = 10


@register_task("pixel-mnist")
@dataclass(frozen=True)
class PixelMnist(Task):
    """Name a handwritten digit whose pixels come one after the other.

    Description:
        The 28 x 28 pixels come row by row (scanline), or in one fixed random order (`permuted`), `group` of them at
        every step. The digit is due at the last step. A picture of 3 x 3 pixels in scanline order::

            picture      input    0 9 0 0 9 0 0 9 0
             . # .       target                   1
             . # .       mask     . . . . . . . . #
             . # .

        The first 50,000 training pictures are for training, the last 10,000 for validation, the 10,000 test pictures
        for the test. Training goes over them in an order that is reshuffled for every epoch.

    Input:
        `(784 / group, B, group)`, grey values from 0 to 1.

    Target:
        `(784 / group, B)`: the digit 0 to 9 at the last step, 0 before.

    Metric:
        Cross entropy in nats and accuracy, at the last step.

    Chance level:
        Accuracy 0.1064 and loss 2.3020: the most frequent digit of the training set, and the frequencies of its
        digits, held against the validation set. Without memory: a table of the digits by which pixels of the last
        step are dark, fitted and measured in the same way.

    Reference:
        Le, Jaitly & Hinton 2015, "A simple way to initialize recurrent networks of rectified linear units"; LeCun,
        Bottou, Bengio & Haffner 1998 for the data.

    Args:
        permuted: Whether the pixels come in the fixed random order.
        group: Pixels at every step; must divide 784.
        permutation_seed: Names the random order. The default, 100, gives the order of the published runs.

    Example:
        >>> PixelMnist(group=7).steps, PixelMnist(permuted=True).permutation[:4].tolist()
        (112, [73, 529, 19, 222])
    """

    permuted: bool = False
    group: int = 1
    permutation_seed: int = 100

    output_size = _CLASSES  # pyright: ignore[reportAssignmentType]

    def __post_init__(self) -> None:
        _validate.boolean("permuted", self.permuted)
        _validate.positive_int("permutation_seed", self.permutation_seed, minimum=0)
        if _PIXELS % _validate.positive_int("group", self.group):
            raise ValueError(_validate.message("group", f"divide {_PIXELS}", self.group))

    @property
    def input_size(self) -> int:
        """Pixels at every step."""
        return self.group

    @property
    def steps(self) -> int:
        """Number of steps, 784 / `group`."""
        return _PIXELS // self.group

    @property
    def permutation(self) -> Tensor:
        """Pixels in the order in which they come, int64 `(784,)`."""
        return _order(self.permutation_seed if self.permuted else None)

    @property
    def chance(self) -> Baseline:
        """The training set's frequencies of the digits, held against the validation set."""
        train = self._digits("train")
        validation = self._digits("validation")
        nothing_seen = (torch.zeros_like(train[0][:, :1]), torch.zeros_like(validation[0][:, :1]))
        return _table_baseline(*nothing_seen, train[1], validation[1])

    @property
    def memory_free(self) -> Baseline:
        """A table of the digits by the dark pixels of the last step, fitted on training, measured on validation."""
        last = self.permutation[-self.group :]
        train = self._digits("train")
        validation = self._digits("validation")
        return _table_baseline(train[0][:, last] > 127, validation[0][:, last] > 127, train[1], validation[1])

    def sample(self, batch_size: int, generator: torch.Generator, split: Split = "train") -> Batch:
        """Draws pictures at random, with replacement."""
        _validate.dimension("batch_size", batch_size)
        images, _ = self._digits(split)
        return self._batch(torch.randint(len(images), (batch_size,), generator=generator), split)

    def batch(self, position: int, batch_size: int, *, split: Split = "train", seed: int = 0) -> Batch:
        """Gives batch number `position` of the passes over a split.

        Training is reshuffled for every epoch, an incomplete last batch left out. Validation and test have one
        order, and their last batch may be smaller.
        """
        epoch, number = divmod(position, self.batches_per_epoch(batch_size, split))
        start = number * batch_size
        stop = (number + 1) * batch_size
        if split == "train":
            return self._batch(_shuffled(_TRAINING, seed, epoch)[start:stop], split)
        return self._batch(torch.arange(start, min(stop, len(self._digits(split)[0]))), split)

    def batches_per_epoch(self, batch_size: int, split: Split = "train") -> int:
        """Number of batches in one pass over a split."""
        _validate.dimension("batch_size", batch_size)
        if split != "train":
            return math.ceil(len(self._digits(split)[0]) / batch_size)
        if batch_size > _TRAINING:
            raise ValueError(_validate.message("batch_size", f"be at most {_TRAINING}", batch_size))
        return _TRAINING // batch_size

    def _digits(self, split: Split) -> tuple[Tensor, Tensor]:
        digits = load_mnist()
        if split == "test":
            return digits.test_images, digits.test_labels
        if split == "train":
            return digits.train_images[:_TRAINING], digits.train_labels[:_TRAINING]
        return digits.train_images[_TRAINING:], digits.train_labels[_TRAINING:]

    def _batch(self, rows: Tensor, split: Split) -> Batch:
        images, labels = self._digits(split)
        ordered = images[rows][:, self.permutation].to(torch.get_default_dtype()) / 255
        inputs = ordered.view(len(rows), self.steps, self.group).transpose(0, 1).contiguous()
        targets = torch.zeros(self.steps, len(rows), dtype=torch.int64)
        targets[-1] = labels[rows]
        mask = torch.zeros_like(targets, dtype=torch.bool)
        mask[-1] = True
        return Batch(inputs, targets, mask)


@functools.lru_cache(maxsize=8)
def _order(seed: int | None) -> Tensor:
    if seed is None:
        return torch.arange(_PIXELS)
    # The published order comes from this generator, whose stream numpy keeps unchanged for ever.
    return torch.from_numpy(np.random.RandomState(seed).permutation(_PIXELS))


@functools.lru_cache(maxsize=2)
def _shuffled(size: int, seed: int, epoch: int) -> Tensor:
    return torch.randperm(size, generator=stream("train", seed, epoch, salt="shuffle"))


def _table_baseline(seen: Tensor, held_out: Tensor, labels: Tensor, held_out_labels: Tensor) -> Baseline:
    """Counts the classes by pattern on one set, one added to every count, and judges that table on another set."""
    patterns, number = torch.cat([seen, held_out]).unique(dim=0, return_inverse=True)
    counts = torch.ones(len(patterns), _CLASSES, dtype=torch.float64)
    counts.index_put_((number[: len(seen)], labels), torch.tensor(1.0, dtype=torch.float64), accumulate=True)
    chances = (counts / counts.sum(1, keepdim=True))[number[len(seen) :]]
    own = chances.gather(1, held_out_labels.unsqueeze(1))
    return Baseline(-own.log().mean().item(), (chances.argmax(1) == held_out_labels).double().mean().item())
