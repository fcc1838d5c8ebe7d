"""Models whose memory is known exactly: what a measurement of memory must find on them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from remanence._validate import message, positive_int, real


class DelayLine(nn.Module):
    """The output is the input of some steps ago, and zero before: it sees one step and no other.

    Args:
        delay: in steps.

    Shape:
        - input and output: ``(T, B, ...)``.

    Example:
        >>> DelayLine(1)(torch.tensor([[1.0], [2.0]])).tolist()
        [[0.0], [1.0]]
    """

    def __init__(self, delay: int) -> None:
        super().__init__()
        self.delay = positive_int("delay", delay, 0)

    def forward(self, x: Tensor) -> Tensor:
        """Shifts the input."""
        return torch.cat([torch.zeros_like(x[: self.delay]), x])[: len(x)]


class LeakyIntegrator(nn.Module):
    """``h_t = decay h_{t-1} + x_t``: a step ``d`` back counts ``decay ** d``, in gradient and in effect.

    Args:
        decay: above 0.

    Shape:
        - input and output: ``(T, B, ...)``.

    Example:
        >>> LeakyIntegrator(0.5)(torch.ones(3, 1)).flatten().tolist()
        [1.0, 1.5, 1.75]
    """

    def __init__(self, decay: float) -> None:
        super().__init__()
        self.decay = real("decay", decay, above=0)

    def forward(self, x: Tensor) -> Tensor:
        """Sums with forgetting."""
        h = torch.zeros_like(x[0])
        outputs = []
        for x_t in x:
            h = self.decay * h + x_t
            outputs.append(h)
        return torch.stack(outputs)


class MarkovModel(nn.Module):
    """The exact language model of a chain in which a token depends on the one `order` tokens before it, and no other.

    After fewer than `order` tokens it gives the stationary distribution. So its cross-entropy on sequences of the chain
    is `entropy` with less context than `order`, and `conditional_entropy` with as much or more.

    Args:
        transition: ``(K, K)``, rows are distributions; symmetric, so that the stationary distribution is uniform.
        order: in tokens.

    Shape:
        - input: int64 ``(T, B)``.
        - output: log probabilities of the next token, ``(T, B, K)``.

    Example:
        >>> model = MarkovModel(torch.tensor([[0.9, 0.1], [0.1, 0.9]]), order=2)
        >>> model(torch.tensor([[0], [1]])).exp()[:, 0, 0].tolist()
        [0.5, 0.8999999761581421]
    """

    def __init__(self, transition: Tensor, order: int = 1) -> None:
        super().__init__()
        if transition.dim() != 2 or not torch.equal(transition, transition.mT):
            raise ValueError(message("transition", "be a symmetric matrix", f"shape {tuple(transition.shape)}"))
        self.transition = transition
        self.order = positive_int("order", order)

    @property
    def entropy(self) -> float:
        """Nats per token without enough context."""
        return math.log(len(self.transition))

    @property
    def conditional_entropy(self) -> float:
        """Nats per token with enough."""
        return float(-(self.transition * self.transition.log()).sum(dim=1).mean())

    def forward(self, tokens: Tensor) -> Tensor:
        """Log probabilities of the next token after each."""
        length, rows = tokens.shape
        classes = len(self.transition)
        known = max(0, length - self.order + 1)
        unknown = torch.full((length - known, rows, classes), 1 / classes, dtype=self.transition.dtype)
        return torch.cat([unknown, self.transition[tokens[:known]]]).log()

    def sample(self, steps: int, rows: int, generator: torch.Generator | None = None) -> Tensor:
        """Draws sequences of the chain.

        Args:
            steps: T.
            rows: B.
            generator: of the draws.

        Returns:
            int64 ``(T, B)``.
        """
        classes = len(self.transition)
        drawn = list(torch.randint(classes, (self.order, rows), generator=generator))
        while len(drawn) < steps:
            chances = self.transition[drawn[-self.order]]
            drawn.append(torch.multinomial(chances, 1, generator=generator)[:, 0])
        return torch.stack(drawn[:steps])
