"""A policy's run folder as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remanence.report._numbers import as_number
from remanence.report._page import Problem
from remanence.report._run_record import Line, read_lines, read_settings, read_status, read_table

POLICY = "policy.toml"
"""Name of the file that makes a folder the run of a policy."""


@dataclass(frozen=True)
class PolicyRecord:
    """What the files of a policy's run say.

    Args:
        folder: of the run.
        config: nested tables as in ``policy.toml``.
        settings: the text of ``policy.toml``.
        manifest: versions, machine, command.
        lines: of ``metrics.jsonl``, one for each update.
        status: as of any run.

    Example:
        >>> run = PolicyRecord(Path("mine"), {"environment": "CartPole-v1", "model": {"name": "GRU"}})
        >>> run.environment, run.model, run.frames
        ('CartPole-v1', 'GRU', 0)
    """

    folder: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    settings: str = ""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    status: str = "unknown"

    @property
    def environment(self) -> str:
        """Where it plays, with the options of the environment."""
        name = str(self.config.get("environment", "unknown environment"))
        options = self.config.get("environment_options")
        if not isinstance(options, Mapping) or not options:
            return name
        return f"{name} ({', '.join(f'{key} {value}' for key, value in options.items())})"

    @property
    def model(self) -> str:
        """Name of the policy's core; one that starts afresh at every step has no memory."""
        if self.config.get("forgets") is True:
            return "no memory"
        model = self.config.get("model")
        return str(model.get("name", "unknown model")) if isinstance(model, Mapping) else "unknown model"

    @property
    def name(self) -> str:
        """Of its folder; in a grid each run lies in the folder of its cell."""
        return self.folder.parent.name if self.folder.name == "run" else self.folder.name

    @property
    def seed(self) -> int | None:
        """Of the run."""
        seed = self.config.get("seed")
        return seed if isinstance(seed, int) else None

    @property
    def frames(self) -> int:
        """Steps played so far."""
        return int(as_number(self.lines[-1].get("frames")) or 0) if self.lines else 0

    @property
    def budget(self) -> int | None:
        """Steps that it may play."""
        frames = as_number(self.config.get("frames"))
        return None if frames is None else int(frames)

    @property
    def curve(self) -> list[tuple[float, float]]:
        """Frames and mean return, where an episode has ended."""
        pairs = ((as_number(line.get("frames")), as_number(line.get("mean_return"))) for line in self.lines)
        return [(frames, value) for frames, value in pairs if frames is not None and value is not None]

    @property
    def mean_return(self) -> float | None:
        """Of the last episodes."""
        return self.curve[-1][1] if self.curve else None

    @property
    def frames_per_second(self) -> float | None:
        """Of playing and learning together."""
        return as_number(self.lines[-1].get("frames_per_second")) if self.lines else None


def read_policy(folder: Path, problems: list[Problem]) -> PolicyRecord:
    """Reads the folder of a policy's run.

    Args:
        folder: with a ``policy.toml``.
        problems: gets what could not be read.

    Example:
        >>> read_policy(Path("no such folder"), []).frames
        0
    """
    settings, config = read_settings(folder / POLICY, problems)
    lines = read_lines(folder / "metrics.jsonl", problems)
    return PolicyRecord(
        folder=folder,
        config=config,
        settings=settings,
        manifest=read_table(folder / "manifest.json", problems),
        lines=tuple(line for line in lines if line["kind"] == "train"),
        status=str(read_status(folder, problems).get("status", "unknown")),
    )
