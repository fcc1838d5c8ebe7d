"""A policy's run folder as typed values."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from remanence._wording import bracketed
from remanence.report._numbers import as_number
from remanence.report._page import Problem
from remanence.report._run_record import RunFiles, attempt, read_files
from remanence.rl import FILM
from remanence.runs import read_file

FORGETS = "no memory"
"""Name of a policy whose core starts afresh at every step."""
LARGEST_FILM = 20_000_000
"""Bytes of a film that a page still shows."""


@dataclass(frozen=True)
class PolicyRecord(RunFiles):
    """What the files of a policy's run say; its history has one line for each update.

    The film of one episode is a GIF; it is empty if there is none.

    Example:
        >>> run = PolicyRecord(Path("mine"), {"environment": "CartPole-v1", "model": {"name": "GRU"}})
        >>> run.environment, run.model, run.frames
        ('CartPole-v1', 'GRU', 0)
    """

    film: bytes = b""

    @property
    def environment(self) -> str:
        """Where it plays, with the options of the environment."""
        name = str(self.config.get("environment", "unknown environment"))
        options = ", ".join(f"{key} {value}" for key, value in self.table("environment_options").items())
        return bracketed(name, options)

    @property
    def model(self) -> str:
        """Name of the policy's core; one that starts afresh at every step has no memory."""
        if self.config.get("forgets") is True:
            return FORGETS
        return super().model

    @property
    def name(self) -> str:
        """Of its folder; in a grid each run lies in the folder of its cell."""
        if self.folder.name == "run":
            return self.folder.parent.name
        return self.folder.name

    @property
    def frames(self) -> int:
        """Steps played so far."""
        return int(self._last("frames") or 0)

    @property
    def curve(self) -> list[tuple[float, float]]:
        """Frames and mean return, where an episode has ended."""
        pairs = ((as_number(line.get("frames")), as_number(line.get("mean_return"))) for line in self.history.training)
        return [(frames, value) for frames, value in pairs if frames is not None and value is not None]

    @property
    def mean_return(self) -> float | None:
        """Of the last episodes."""
        return next((value for _, value in reversed(self.curve)), None)

    @property
    def frames_per_second(self) -> float | None:
        """Of playing and learning together."""
        return self._last("frames_per_second")


def read_policy(folder: Path, problems: list[Problem]) -> PolicyRecord:
    """Reads the folder of a policy's run, with a ``policy.toml``; what could not be read is added to the problems."""
    film = _read_film(folder / FILM, problems)
    return replace(read_files(PolicyRecord, folder, problems), film=film)


def _read_film(path: Path, problems: list[Problem]) -> bytes:
    if not os.path.lexists(path):
        return b""
    is_small = not path.is_file() or path.stat().st_size <= LARGEST_FILM  # what is larger is not even read
    film = attempt(lambda: read_file(path), b"", path, problems) if is_small else b""
    if not is_small or (film and not film.startswith(b"GIF8")):
        problems.append(Problem(str(path), f"is not a GIF of at most {LARGEST_FILM / 1e6:.0f} MB"))
        return b""
    return film
