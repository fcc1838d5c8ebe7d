"""A chain of spins at a temperature, read from left to right."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from remanence import _validate
from remanence.tasks._batch import Baseline
from remanence.tasks._information import pair_information
from remanence.tasks._registry import register_task
from remanence.tasks._symbols import BinarySequences

_ENUMERATION_LIMIT = 16
_ROWS_TO_ESTIMATE = 1000


@register_task("ising")
@dataclass(frozen=True)
class Ising(BinarySequences):
    """Predict the spins of an Ising chain, from left to right.

    Description:
        Spins s = -1 or +1 on an open chain have probability exp(-sum_{i<j} K(j - i) s_i s_j) / Z. With neighbours alone
        coupled, K(1) = `coupling`, the next spin depends on the last one only (Equation 62 of the reference) and the
        mutual information falls exponentially. With `decay` = alpha all are coupled, K(d) = `coupling` d^-alpha; for
        1 < alpha < 2 and a negative coupling there is a critical strength at which it falls as a power::

            spins    + + + - - + +
            input    1 1 1 0 0 1
            target   1 1 0 0 1 1

        Neighbours alone: drawn exactly, by the conditional. All coupled: drawn exactly from the list of all states up
        to 16 spins, beyond that by heat-bath Monte Carlo, every sequence a chain of its own from random spins.

    Input:
        Tokens `(length - 1, B)`: 0 for spin -1, 1 for spin +1.

    Target:
        Tokens `(length - 1, B)`: the next spin.

    Metric:
        Cross entropy in nats and accuracy over all steps.

    Chance level:
        Loss ln 2, accuracy 1/2. From the spin before alone, neighbours coupled: loss ln 2 - I(1) with correlation
        -tanh(`coupling`), which no predictor beats; accuracy (1 + tanh |`coupling`|) / 2.

    Reference:
        Shen 2019, "Mutual information scaling and expressive power of sequence models", Appendix G; Dyson 1969,
        "Existence of a phase-transition in a one-dimensional Ising ferromagnet".

    Args:
        length: Spins of a chain.
        train_sequences: Size of a fixed training set, None for fresh sequences.
        coupling: Strength times inverse temperature, beta J(1). Negative: neighbours tend to be equal.
        decay: alpha of the coupling of all spins; None couples neighbours alone.
        sweeps: Monte Carlo updates of every spin before a sequence is used.

    Example:
        >>> Ising(coupling=-1.0).mutual_information([1, 2])
        tensor([0.3278, 0.1792], dtype=torch.float64)
        >>> task = Ising(length=12, decay=1.5)
        >>> task.draw(3, task.stream("train", seed=0)).shape
        torch.Size([12, 3])
    """

    coupling: float = -1.0
    decay: float | None = None
    sweeps: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.real("coupling", self.coupling)
        _validate.positive_int("sweeps", self.sweeps)
        if self.decay is not None:
            _validate.real("decay", self.decay, least=0.0)

    @property
    def enumerable(self) -> bool:
        """Whether all spins are coupled and few enough to list all their states."""
        return self.decay is not None and self.length <= _ENUMERATION_LIMIT

    def correlation(self, lags: Tensor) -> Tensor:
        """Gives the correlation of two spins, for all spins coupled the mean over all places in the chain.

        Raises:
            ValueError: If all spins are coupled and there are too many to list their states, or a lag is too long.
        """
        if self.decay is None:
            neighbours = torch.tensor(-self.coupling, dtype=torch.float64).tanh()
            return neighbours**lags
        if not self.enumerable:
            raise ValueError(
                f"the correlation of {self.length} coupled spins has no closed form. Take `length` <= "
                f"{_ENUMERATION_LIMIT}, or estimate it from `draw`"
            )
        if bool((lags >= self.length).any()):
            raise ValueError(_validate.message("lags", f"be below `length` = {self.length}", lags.tolist()))
        table = _enumerate(self).correlations
        return torch.stack([table.diagonal(int(lag)).mean() for lag in lags])

    @property
    def memory_free(self) -> Baseline:
        """Predicts a spin from the one before; for many coupled spins estimated from 1,000 drawn chains."""
        if self.decay is None:
            return super().memory_free
        if self.enumerable:
            neighbours = _enumerate(self).correlations.diagonal(1)
        else:
            neighbours = _estimated_neighbours(self)
        loss = math.log(2) - pair_information(neighbours).mean()
        return Baseline(loss.item(), (0.5 + 0.5 * neighbours.abs().mean()).item())

    def draw(self, batch_size: int, generator: torch.Generator) -> Tensor:
        """Draws whole chains: spins as 0 and 1, int64 `(length, B)`."""
        if self.decay is None:
            return self._draw_neighbours(batch_size, generator)
        if self.enumerable:
            listed = _enumerate(self)
            rows = torch.multinomial(
                listed.probabilities.to(generator.device), batch_size, replacement=True, generator=generator
            )
            return (listed.spins.to(generator.device)[rows].T > 0).long()
        return self._draw_monte_carlo(batch_size, generator)

    def _draw_neighbours(self, batch_size: int, generator: torch.Generator) -> Tensor:
        """Draws spin after spin by Equation 62: the next one equals the last with probability 1 / (1 + exp(2K))."""
        size = (self.length, batch_size)
        device = generator.device
        numbers = torch.rand(*size, generator=generator, dtype=torch.float32, device=device)
        changes = numbers >= 1 / (1 + math.exp(2 * self.coupling))
        changes[0] = numbers[0] >= 0.5
        # Counting in one byte may wrap round, which leaves even and odd as they are.
        return (changes.cumsum(0, dtype=torch.uint8) & 1).long()

    def _draw_monte_carlo(self, batch_size: int, generator: torch.Generator) -> Tensor:
        """Gives every spin in turn a new value from its conditional, given all others, `sweeps` times."""
        couplings = _couplings(self).to(generator.device, torch.float32)
        size = (self.length, batch_size)
        device = generator.device
        spins = torch.randint(2, size, generator=generator, device=device).float() * 2 - 1
        for _ in range(self.sweeps):
            numbers = torch.rand(*size, generator=generator, dtype=torch.float32, device=device)
            for place in range(self.length):
                up = torch.sigmoid(-2 * (couplings[place] @ spins))
                spins[place] = torch.where(numbers[place] < up, 1.0, -1.0)
        return (spins > 0).long()


@dataclass(frozen=True, eq=False)
class _Listed:
    """All states of a chain.

    Attributes:
        spins: float64 `(states, length)`.
        probabilities: float64 `(states,)`.
        correlations: float64 `(length, length)`.
    """

    spins: Tensor
    probabilities: Tensor
    correlations: Tensor


@functools.lru_cache(maxsize=4)
def _enumerate(task: Ising) -> _Listed:
    states = torch.arange(1 << task.length).unsqueeze(1)
    spins = ((states >> torch.arange(task.length)) & 1).double() * 2 - 1
    energy = 0.5 * ((spins @ _couplings(task)) * spins).sum(1)
    probabilities = torch.softmax(-energy, dim=0)
    return _Listed(spins, probabilities, spins.T @ (probabilities.unsqueeze(1) * spins))


def _couplings(task: Ising) -> Tensor:
    """Gives K(|i - j|) for all pairs of spins, float64 `(length, length)`, zero on the diagonal."""
    steps = torch.arange(task.length, dtype=torch.float64)
    distance = (steps.unsqueeze(1) - steps).abs()
    strength = task.coupling * distance.clamp(min=1) ** -float(task.decay or 0.0)
    return torch.where(distance == 0, torch.zeros_like(strength), strength)


@functools.lru_cache(maxsize=4)
def _estimated_neighbours(task: Ising) -> Tensor:
    spins = task.draw(_ROWS_TO_ESTIMATE, task.stream("test", seed=0)).double() * 2 - 1
    return (spins[:-1] * spins[1:]).mean().unsqueeze(0)
