"""Symbols from a hidden chain of states."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from remanence import _validate
from remanence.tasks._batch import Baseline
from remanence.tasks._information import checked_lags
from remanence.tasks._registry import register_task
from remanence.tasks._symbols import SymbolSequences

Rows = Sequence[Sequence[float]]


@register_task("hidden-markov")
@dataclass(frozen=True)
class HiddenMarkov(SymbolSequences):
    """Predict the symbols that a hidden Markov chain emits.

    Description:
        A chain moves from state to state by the rows of `transition`, and in every state gives off a symbol by the
        row of `emission`; the first state comes from the stationary law. The mutual information follows exactly from
        the powers of the transition matrix. It falls exponentially if the chain is irreducible and aperiodic, at the
        rate 2 ln |second eigenvalue|; a periodic chain keeps some for ever::

            states   A A A B B B B A
            input    0 0 1 1 1 0 1
            target   0 1 1 1 0 1 0

    Input:
        Tokens `(length - 1, B)` below the number of symbols.

    Target:
        Tokens `(length - 1, B)`: the next symbol.

    Metric:
        Cross entropy in nats and accuracy over all steps.

    Chance level:
        Entropy and greatest probability of the stationary law of the symbols; from the symbol before alone, those of
        the conditional law.

    Reference:
        Rabiner 1989, "A tutorial on hidden Markov models"; Lin & Tegmark 2017, "Critical behavior in physics and
        probabilistic formal languages", for the fall of mutual information.

    Args:
        length: Symbols of a sequence.
        train_sequences: Size of a fixed training set, None for fresh sequences.
        transition: Rows of probabilities, states x states.
        emission: Rows of probabilities, states x symbols.

    Example:
        >>> task = HiddenMarkov(transition=((0.9, 0.1), (0.1, 0.9)), emission=((1.0, 0.0), (0.0, 1.0)))
        >>> task.mutual_information([1, 2])
        tensor([0.3681, 0.2218], dtype=torch.float64)
    """

    transition: Rows = ((0.99, 0.01), (0.01, 0.99))
    emission: Rows = ((0.8, 0.2), (0.2, 0.8))

    def __post_init__(self) -> None:
        super().__post_init__()
        # Lists, as a configuration file gives them, become tuples, so that the recipe stays hashable.
        object.__setattr__(self, "transition", _checked_rows("transition", self.transition))
        object.__setattr__(self, "emission", _checked_rows("emission", self.emission))
        states = len(self.transition)
        _validate.shape("transition", self._matrix("transition"), (states, states))
        _validate.shape("emission", self._matrix("emission"), (states, "symbols"))
        self.stationary  # noqa: B018 - refuses a chain without one

    @property
    def input_size(self) -> int:
        """Number of different symbols."""
        return len(self.emission[0])

    @property
    def stationary(self) -> Tensor:
        """Long-run probabilities of the states, float64 `(states,)`."""
        return _stationary(tuple(map(tuple, self.transition)))

    def joint(self, lag: int) -> Tensor:
        """Gives the probabilities of two symbols at a distance >= 0, float64 `(symbols, symbols)`."""
        transition = self._matrix("transition")
        emission = self._matrix("emission")
        moved = torch.linalg.matrix_power(transition, lag)
        return emission.T @ (self.stationary.unsqueeze(1) * moved) @ emission

    def mutual_information(self, lags: Sequence[int] | Tensor) -> Tensor:
        """Gives the exact mutual information of two symbols at a distance."""
        alone = self._symbol_law()
        independent = alone.unsqueeze(1) * alone
        return torch.stack([_divergence(self.joint(int(lag)), independent) for lag in checked_lags(lags)])

    @property
    def chance(self) -> Baseline:
        """Entropy and greatest probability of the stationary law of the symbols."""
        alone = self._symbol_law()
        return Baseline(torch.special.entr(alone).sum().item(), alone.max().item())

    @property
    def memory_free(self) -> Baseline:
        """Predicts a symbol from the one before, by their joint law."""
        information = self.mutual_information([1]).item()
        return Baseline(self.chance.loss - information, self.joint(1).max(dim=1).values.sum().item())

    def draw(self, batch_size: int, generator: torch.Generator) -> Tensor:
        """Draws whole sequences."""
        device = generator.device
        size = (2, self.length, batch_size)
        numbers = torch.rand(*size, generator=generator, dtype=torch.float32, device=device)
        starts, moves, symbols = (
            _bounds(law).to(device) for law in (self.stationary, self._matrix("transition"), self._matrix("emission"))
        )
        states = torch.empty(self.length, batch_size, dtype=torch.int64, device=device)
        states[0] = _choose(starts, numbers[0, 0])
        for step in range(1, self.length):
            states[step] = _choose(moves[states[step - 1]], numbers[0, step])
        return _choose(symbols[states], numbers[1])

    def _matrix(self, name: str) -> Tensor:
        return torch.tensor(getattr(self, name), dtype=torch.float64)

    def _symbol_law(self) -> Tensor:
        return self.stationary @ self._matrix("emission")


@functools.lru_cache(maxsize=16)
def _stationary(transition: tuple[tuple[float, ...], ...]) -> Tensor:
    """Solves p = p P with p adding up to 1; without a single solution the start is never forgotten."""
    moves = torch.tensor(transition, dtype=torch.float64)
    equations = moves.T - torch.eye(len(moves), dtype=torch.float64)
    equations[-1] = 1.0  # one of them follows from the others
    if torch.linalg.matrix_rank(equations) < len(moves):
        expected = "be a chain that can forget where it began (irreducible)"
        raise ValueError(_validate.message("transition", expected, transition))
    total = torch.zeros(len(moves), dtype=torch.float64)
    total[-1] = 1.0
    return torch.linalg.solve(equations, total).clamp(min=0)


def _bounds(probabilities: Tensor) -> Tensor:
    """Gives the inner ends of the intervals of 0 to 1 that belong to the choices, `(..., choices - 1)`."""
    return probabilities.cumsum(-1)[..., :-1].float()


def _choose(bounds: Tensor, numbers: Tensor) -> Tensor:
    """Chooses by uniform random numbers: `(..., choices - 1)` and `(...)` give int64 `(...)`."""
    return (numbers.unsqueeze(-1) >= bounds).sum(-1)


def _divergence(joint: Tensor, independent: Tensor) -> Tensor:
    return torch.special.xlogy(joint, joint).sum() - torch.special.xlogy(joint, independent).sum()


def _checked_rows(name: str, rows: Any) -> tuple[tuple[float, ...], ...]:
    """Checks rows of probabilities that each add up to 1."""
    expected = "be rows of probabilities, all of one length, each adding up to 1"
    try:
        checked = tuple(tuple(float(value) for value in row) for row in rows)
    except (TypeError, ValueError):
        raise TypeError(_validate.message(name, expected, repr(rows))) from None
    regular = checked and checked[0] and len({len(row) for row in checked}) == 1
    if not regular or not all(_is_law(row) for row in checked):
        raise ValueError(_validate.message(name, expected, repr(rows)))
    return checked


def _is_law(row: Sequence[float]) -> bool:
    return all(0 <= value <= 1 for value in row) and math.isclose(sum(row), 1.0, rel_tol=1e-9)
