"""The global generators of a process: seeded for a run, saved with it, and given back as they were."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch

from remanence.runs._plain import Values


def seed_all(seed: int) -> None:
    """Seeds torch's, numpy's and Python's global generators.

    Example:
        >>> seed_all(0)
    """
    torch.manual_seed(seed)
    numpy.random.seed(seed % 2**32)  # noqa: NPY002 - users' own tasks may draw from the global one
    random.seed(seed)


def seed_torch(seed: int) -> None:
    """Seeds torch's generators; what ``torch.manual_seed`` does around that takes as long as a small update.

    Example:
        >>> seed_torch(3)
        >>> torch.initial_seed()
        3
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def random_states() -> Values:
    """Collects the states of all global generators.

    Example:
        >>> sorted(random_states())
        ['cuda', 'numpy', 'python', 'torch']
    """
    name, keys, *rest = tuple(numpy.random.get_state())  # noqa: NPY002
    cuda = []
    if torch.cuda.is_initialized():
        cuda = list(torch.cuda.get_rng_state_all())
    return {
        "torch": torch.get_rng_state(),
        "cuda": cuda,
        "numpy": [name, torch.from_numpy(numpy.asarray(keys).astype("int64")), *rest],
        "python": _listed(random.getstate()),
    }


def set_random_states(states: Values) -> None:
    """Restores the global generators.

    Example:
        >>> before = random_states()
        >>> first = torch.rand(1)
        >>> set_random_states(before)
        >>> torch.equal(first, torch.rand(1))
        True
    """
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.is_available() and len(states["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(states["cuda"])
    name, keys, *rest = states["numpy"]
    numpy.random.set_state((name, keys.numpy().astype("uint32"), *rest))  # noqa: NPY002
    version, inner, gauss = states["python"]
    random.setstate((version, tuple(inner), gauss))


def _listed(state: Any) -> list[Any]:
    version, inner, gauss = state
    return [version, list(inner), gauss]


@contextlib.contextmanager
def isolated(threads: int) -> Iterator[None]:
    """Lets a run set seeds and threads as it likes, and restores the caller's afterwards.

    Example:
        >>> before = torch.get_rng_state()
        >>> with isolated(threads=1):
        ...     seed_all(5)
        >>> torch.equal(before, torch.get_rng_state())
        True
    """
    states = random_states()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        set_random_states(states)
        torch.set_num_threads(before)
