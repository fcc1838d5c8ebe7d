"""The screens: who stays in the relevant set of a :class:`Screened` memory. No gradient goes through any of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from torch import Tensor

from ._slots import choose_slot


@runtime_checkable
class Screen(Protocol):
    """Relevance is collected while a state is in the buffer, and compared when it leaves."""

    def collect(self, relevance: Tensor, received: Tensor) -> Tensor:
        """The relevance of the states in the buffer after a read.

        Args:
            relevance: ``(B, recent)`` before it, oldest first; 0 for the newest.
            received: ``(B, recent)``, the weights that the read gave them.
        """
        ...

    def place(self, relevance: Tensor, held: Tensor, steps: Tensor, due: Tensor) -> Tensor:
        """The slot of the relevant set that the state takes which leaves the buffer.

        Args:
            relevance: ``(B,)`` of that state.
            held: ``(B, relevant)``, the relevance of those in the set.
            steps: ``(B, relevant)`` int64, their steps; -1 where a slot is free.
            due: ``(B,)`` bool, whether there is such a state.

        Returns:
            ``(B,)`` int64, -1 where it is forgotten.
        """
        ...


@dataclass(frozen=True)
class Attention:
    """Relevance is the attention that a state received while in the buffer (beta of Kerg et al., 2020).

    Example:
        >>> from torch import tensor
        >>> Attention().collect(tensor([[0.5, 0.0]]), tensor([[0.25, 0.75]])).tolist()
        [[0.75, 0.75]]
    """

    def collect(self, relevance: Tensor, received: Tensor) -> Tensor:
        """The sum of what was received so far."""
        return relevance + received

    def place(self, relevance: Tensor, held: Tensor, steps: Tensor, due: Tensor) -> Tensor:
        """The first free slot, else that of the least relevance if it is strictly beaten."""
        return choose_slot(relevance, held, steps, due)


SCREENS: dict[str, Screen] = {"attention": Attention()}
"""The screens that have a name."""

ScreenLike: TypeAlias = str | Screen
