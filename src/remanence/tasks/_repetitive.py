"""Pairs of opposite bits: a short memory whose mutual information never falls."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from remanence import _validate
from remanence.tasks._registry import register_task
from remanence.tasks._symbols import BinarySequences


@register_task("repetitive")
@dataclass(frozen=True)
class Repetitive(BinarySequences):
    """Predict a string of the pairs 01 and 10, one of them more frequent.

    Description:
        The pair 01 comes with probability p, the pair 10 with 1 - p, independently of all others; half of the sequences
        begin in the middle of a pair, so that every place sees 0 and 1 equally often. The mutual information does not
        fall with the distance, although nothing is remembered beyond the pair::

            pairs    01 01 10 01
            input    0 1 0 1 1 0 0
            target   1 0 1 1 0 0 1

    Input:
        Tokens `(length - 1, B)`, 0 and 1.

    Target:
        Tokens `(length - 1, B)`: the next bit.

    Metric:
        Cross entropy in nats and accuracy over all steps.

    Chance level:
        Loss ln 2, accuracy 1/2. From the bit before alone: loss ln 2 - I(1), accuracy 1 - p (1 - p), which is 0.91 at
        p = 0.9.

    Reference:
        Shen 2019, "Mutual information scaling and expressive power of sequence models", Appendix C, Equation 52.

    Args:
        length: Bits of a sequence.
        train_sequences: Size of a fixed training set, None for fresh sequences.
        probability: p, of the pair 01.

    Example:
        >>> Repetitive(probability=0.9).mutual_information([1, 2, 3, 1000])
        tensor([0.3906, 0.2218, 0.2218, 0.2218], dtype=torch.float64)
    """

    probability: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.probability("probability", self.probability)

    def correlation(self, lags: Tensor) -> Tensor:
        """Gives the correlation of two bits, as -1 and +1: (1 - 2p)^2 beyond neighbours, its sign alternating."""
        bias = (1 - 2 * self.probability) ** 2
        alternating = bias * (1.0 - 2.0 * (lags % 2).double())
        # Half of all neighbours form a pair and differ for certain.
        return torch.where(lags == 1, torch.full_like(alternating, -0.5 - 0.5 * bias), alternating)

    def draw(self, batch_size: int, generator: torch.Generator) -> Tensor:
        """Draws whole sequences: bits, int64 `(length, B)`."""
        device = generator.device
        numbers = torch.rand(self.length // 2 + 1, batch_size, generator=generator, device=device, dtype=torch.float32)
        first = (numbers >= self.probability).long()
        bits = torch.stack([first, 1 - first], dim=1).flatten(0, 1)
        # Half of the strings begin inside a pair, so that all places are alike.
        phase = torch.randint(2, (batch_size,), generator=generator, device=device)
        return bits.gather(0, phase + torch.arange(self.length, device=device).unsqueeze(1))
