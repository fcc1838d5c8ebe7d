"""Multi-query associative recall: pairs of key and value first, then the keys alone, each asking for its value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from remanence import _validate
from remanence.tasks._batch import Batch
from remanence.tasks._registry import register_task
from remanence.tasks._task import Task


@register_task("mqar")
@dataclass(frozen=True)
class MultiQueryRecall(Task):
    """Recall the values of many keys, in random order.

    Description:
        Pairs of a key and its value stand at the start; no key comes twice. Later every key stands alone once, at a
        random step and in random order, and its value is due at that step. All other steps are blank. Three pairs,
        keys `a` to `d`, values 1 to 4, `-` blank::

            input    c 4 a 1 b 1 - a - - b c
            target   . . . . . . . 1 . . 1 4
            mask     . . . . . . . # . . # #

    Input:
        Tokens `(T, B)`: 0 (blank), 1 to `keys`, then `values` more for the values.

    Target:
        `(T, B)`: the value from 0 to `values` - 1 where a key is asked for, 0 elsewhere.

    Metric:
        Cross entropy in nats and accuracy, both over the steps at which a key is asked for.

    Chance level:
        Accuracy 1 / `values`, loss ln `values`: values are drawn independently and uniformly. It is also what a
        predictor without memory reaches.

    Reference:
        Arora et al. 2023, "Zoology: measuring and improving recall in efficient language models". There the value
        follows its key as the next token, and values do not repeat; here it is due at the key itself.

    Args:
        length: T, all steps; at least 3 `pairs`.
        pairs: How many keys are shown and asked for.
        keys: Different keys, at least `pairs`.
        values: Different values.
        gaps: Where keys are asked for: "uniform" over the steps after the pairs, or "power-law", mostly soon after.
        exponent: Of the power law: the n-th step after the pairs has the weight n^(exponent - 1).

    Example:
        >>> task = MultiQueryRecall(length=32, pairs=4)
        >>> batch = task.sample(2, task.stream("train", seed=0))
        >>> batch.inputs.shape, batch.mask.sum(dim=0).tolist()
        (torch.Size([32, 2]), [4, 4])
    """

    length: int = 64
    pairs: int = 8
    keys: int = 32
    values: int = 32
    gaps: Literal["uniform", "power-law"] = "uniform"
    exponent: float = 0.01

    input_kind = "tokens"

    def __post_init__(self) -> None:
        _validate.dimension("pairs", self.pairs)
        _validate.dimension("values", self.values)
        _validate.dimension("keys", self.keys, minimum=self.pairs)
        _validate.positive_int("length", self.length, minimum=3 * self.pairs)
        _validate.one_of("gaps", self.gaps, ["uniform", "power-law"])
        _validate.real("exponent", self.exponent)

    @property
    def input_size(self) -> int:
        """Blank, keys and values."""
        return 1 + self.keys + self.values

    @property
    def output_size(self) -> int:
        """Values."""
        return self.values

    def sample(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Draws one batch."""
        _validate.dimension("batch_size", batch_size)
        keys = 1 + self._distinct(torch.ones(self.keys), batch_size, generator)
        values = torch.randint(self.values, keys.shape, generator=generator, device=generator.device)
        asked_at = 2 * self.pairs + self._distinct(self._gap_weights(), batch_size, generator)
        inputs = torch.zeros(self.length, batch_size, dtype=torch.int64, device=generator.device)
        inputs[0 : 2 * self.pairs : 2] = keys
        inputs[1 : 2 * self.pairs : 2] = 1 + self.keys + values
        inputs.scatter_(0, asked_at, keys)
        targets = torch.zeros_like(inputs).scatter_(0, asked_at, values)
        mask = torch.zeros_like(inputs, dtype=torch.bool).scatter_(0, asked_at, True)
        return Batch(inputs, targets, mask)

    def _gap_weights(self) -> Tensor:
        number = torch.arange(1, self.length - 2 * self.pairs + 1)
        if self.gaps == "uniform":
            return torch.ones(len(number))
        return number.to(torch.get_default_dtype()) ** (self.exponent - 1)

    def _distinct(self, weights: Tensor, batch_size: int, generator: torch.Generator) -> Tensor:
        """Numbers `(pairs, B)`, none twice in a row of the batch, drawn one after the other by weight."""
        # A race of exponential clocks: who rings first is drawn by weight, and so is the next among the others.
        clocks = torch.empty(len(weights), batch_size, device=generator.device).exponential_(generator=generator)
        return (clocks / weights.to(clocks)[:, None]).argsort(dim=0)[: self.pairs]
