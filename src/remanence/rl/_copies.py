"""Copies of an environment side by side: in this process, or shared out to others, with the same numbers either way."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from remanence.rl._environment import Episode, make_environment
from remanence.train import RunError
from remanence.train._building import import_all


class Step(NamedTuple):
    """What came of one action in every copy; what is seen next, of the next episode where one has ended.

    Example:
        >>> Step._fields
        ('seen', 'rewards', 'ends')
    """

    seen: Tensor
    rewards: list[float]
    ends: list[bool]


class Copies(Protocol):
    """What a player needs of them."""

    def __len__(self) -> int: ...

    def seen(self) -> Tensor:
        """The present observations, ``(B, ...)``."""
        ...

    def act(self, actions: list[int]) -> Step:
        """One action in every copy."""
        ...

    def places(self) -> list[dict[str, Any]]:
        """Where they stand, for a checkpoint."""
        ...

    def go_to(self, places: list[dict[str, Any]]) -> None:
        """Plays to where others stood."""
        ...

    def close(self) -> None:
        """Lets go of what they hold."""
        ...


class Here:
    """Copies in this process.

    Args:
        episodes: one a copy.

    Example:
        >>> copies = Here([Episode(make_environment("MiniGrid-MemoryS7-v0"), 0, copy) for copy in range(2)])
        >>> copies.act([2, 2]).seen.shape
        torch.Size([2, 7, 7, 3])
    """

    def __init__(self, episodes: Sequence[Episode]) -> None:
        self.episodes = list(episodes)

    def __len__(self) -> int:
        return len(self.episodes)

    def seen(self) -> Tensor:
        """The present observations, ``(B, ...)``."""
        return torch.stack([episode.observation for episode in self.episodes])

    def act(self, actions: list[int]) -> Step:
        """One action in every copy."""
        pairs = [episode.act(action) for episode, action in zip(self.episodes, actions, strict=True)]
        return Step(self.seen(), [reward for reward, _ in pairs], [ended for _, ended in pairs])

    def places(self) -> list[dict[str, Any]]:
        """Where they stand, for a checkpoint."""
        return [episode.place for episode in self.episodes]

    def go_to(self, places: list[dict[str, Any]]) -> None:
        """Plays to where others stood."""
        for episode, place in zip(self.episodes, places, strict=True):
            episode.go_to(place)

    def close(self) -> None:
        """Closes the environments."""
        for episode in self.episodes:
            episode.environment.close()


@dataclass(frozen=True)
class Recipe:
    """Enough to make the copies anywhere.

    Args:
        environment: id.
        seed: of all episodes.
        words: whether missions are shown.
        imports: what registers the environment.

    Example:
        >>> len(Recipe("MiniGrid-MemoryS7-v0", 0).make([0, 1]))
        2
    """

    environment: str
    seed: int
    words: bool = False
    imports: tuple[str, ...] = ()

    def make(self, numbers: Sequence[int]) -> Here:
        """Some of the copies, by number, in this process."""
        import_all(self.imports)
        make = lambda: make_environment(self.environment)  # noqa: E731
        return Here([Episode(make(), self.seed, number, words=self.words) for number in numbers])


class Elsewhere:
    """Copies in other processes, which play at the same time.

    Args:
        recipe: what they are.
        count: how many.
        workers: processes, each with about as many copies.

    Example:
        >>> copies = Elsewhere(Recipe("MiniGrid-MemoryS7-v0", 0), count=2, workers=2)  # doctest: +SKIP
    """

    def __init__(self, recipe: Recipe, count: int, workers: int) -> None:
        context, workers = multiprocessing.get_context("spawn"), min(workers, count)
        self._count, self._lines, self._processes = count, [], []
        self.shares = [list(range(count))[worker::workers] for worker in range(workers)]
        for share in self.shares:
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, recipe, share), daemon=True)
            process.start()
            theirs.close()
            self._lines.append(ours)
            self._processes.append(process)

    def __len__(self) -> int:
        return self._count

    def seen(self) -> Tensor:
        """The present observations, ``(B, ...)``."""
        return torch.stack(self._joined(self._asked("seen", [()] * len(self.shares))))

    def act(self, actions: list[int]) -> Step:
        """One action in every copy."""
        steps = self._asked("act", [([actions[number] for number in share],) for share in self.shares])
        seen, rewards, ends = (self._joined(list(part)) for part in zip(*steps, strict=True))
        return Step(torch.stack(seen), rewards, ends)

    def places(self) -> list[dict[str, Any]]:
        """Where they stand, for a checkpoint."""
        return self._joined(self._asked("places", [()] * len(self.shares)))

    def go_to(self, places: list[dict[str, Any]]) -> None:
        """Plays to where others stood."""
        self._asked("go_to", [([places[number] for number in share],) for share in self.shares])

    def close(self) -> None:
        """Ends the processes."""
        for line in self._lines:
            line.close()  # which they take as the end
        for process in self._processes:
            process.join(timeout=10)
            process.kill()

    def _asked(self, what: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Asks all workers at once, then waits for all answers."""
        answers = []
        try:
            for line, given in zip(self._lines, arguments, strict=True):
                line.send((what, given))
            for line in self._lines:
                answers.append(line.recv())
        except (EOFError, OSError) as error:
            raise RunError("a process that plays has ended; the last checkpoint is whole, go on from there") from error
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return answers

    def _joined(self, parts: Sequence[Sequence[Any]]) -> list[Any]:
        """What the workers gave, in the order of the copies."""
        found: list[Any] = [None] * self._count
        for share, part in zip(self.shares, parts, strict=True):
            for number, one in zip(share, part, strict=True):
                found[number] = one
        return found


def _serve(line: Connection, recipe: Recipe, share: list[int]) -> None:
    """The life of a worker: it answers until its line is closed. Ctrl-C is for the process that learns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    copies: Here | None = None
    while True:
        try:
            what, given = line.recv()
        except EOFError:
            return
        try:
            copies = copies or recipe.make(share)
            answer = getattr(copies, what)(*given)
        except Exception as error:
            answer = error
        line.send(answer)
