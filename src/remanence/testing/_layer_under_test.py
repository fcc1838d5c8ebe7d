"""What a check of the layer contract is made of: the layer under test, its data, and the comparisons."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from remanence.ops import State

from ._running import is_screened, replacements, sharpen_

INPUT = 3
HIDDEN = 4
LENGTH = 48
BATCH = 3
PAIR = 2
"""Rows of the check against finite differences, which takes long."""
SHORT = 12
"""Steps of the checks that trace a program: its size grows with the length."""
REPLACEMENTS = 5

LayerFactory = Callable[..., nn.Module]


@dataclass(frozen=True)
class Check:
    """One clause of the contract: call it, and it raises if the layer breaks the clause."""

    name: str
    slow: bool
    run: Callable[[], None]

    def __call__(self) -> None:
        """Run the check."""
        self.run()


@dataclass(frozen=True)
class LayerUnderTest:
    """A layer under test: how to build it, and data on which it does something."""

    factory: LayerFactory
    grows: bool = False

    def build(self, seed: int = 0, **options: Any) -> Any:
        """A layer in float64 with decisive attention."""
        torch.manual_seed(seed)
        options = {"dtype": torch.float64, **options}
        return sharpen_(self.factory(INPUT, HIDDEN, **options), seed)

    def data(self, length: int = LENGTH, batch: int = BATCH, seed: int = 0) -> Tensor:
        """Input ``(T, B, INPUT)``."""
        return torch.randn(length, batch, INPUT, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    @functools.cached_property
    def seed(self) -> int:
        """A seed with which every row's relevant set is replaced at least five times, if it has one."""
        for seed in range(50):
            layer = self.build(seed)
            if not is_screened(layer) or all(self._replaces(layer, rows) for rows in (BATCH, PAIR)):
                return seed
        raise AssertionError(f"no seed below 50 gives {REPLACEMENTS} replacements in every row: this would test little")

    def _replaces(self, layer: nn.Module, rows: int) -> bool:
        return int(replacements(layer, self.data(batch=rows)).min()) >= REPLACEMENTS

    def layer(self, **options: Any) -> Any:
        """The layer that the checks use."""
        return self.build(self.seed, **options)


CLAUSES: list[tuple[str, bool, Callable[[LayerUnderTest], None]]] = []


def clause(*, slow: bool = False) -> Callable[[Callable[[LayerUnderTest], None]], Callable[[LayerUnderTest], None]]:
    """Enters a function of a subject into the contract."""

    def register(function: Callable[[LayerUnderTest], None]) -> Callable[[LayerUnderTest], None]:
        CLAUSES.append((function.__name__, slow, function))
        return function

    return register


def same(actual: object, expected: object, what: str) -> None:
    """Fails unless both are equal."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected}, got {actual}")


def assert_equal(actual: Tensor, expected: Tensor, what: str) -> None:
    """Fails unless both have the same bits."""
    if not torch.equal(actual, expected):
        raise AssertionError(f"{what}: values differ by up to {float((actual - expected).detach().abs().max()):.2e}")


def named(state: State) -> dict[str, Tensor]:
    """Fields of a state by name."""
    return {f"state.{name}": field for name, field in state._asdict().items()}


def random_chunks(length: int) -> list[int]:
    """Sizes between 1 and 9 that add up to ``length``, always the same."""
    generator = torch.Generator().manual_seed(0)
    sizes = []
    while sum(sizes) < length:
        sizes.append(int(torch.randint(1, 10, (), generator=generator)))
    return [*sizes[:-1], length - sum(sizes[:-1])]
