"""The run folder: all that is known about a run, and enough to go on with it. Whatever makes it, it is a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from remanence._validate import message, named_folder
from remanence.runs._checkpoint import Checkpoint, forget_drafts, list_checkpoints, load_checkpoint
from remanence.runs._errors import CheckpointError, DamagedFileError
from remanence.runs._files import WRITING, is_locked, locked, read_json, replace_file, require_no_link, sealed
from remanence.runs._history import History
from remanence.runs._metrics import MetricsFile
from remanence.runs._plain import Settings, Values
from remanence.runs._result import ResultError, check_version, tag
from remanence.runs._toml import read_table

CONFIG_FILES = {"training": "config.toml", "policy": "policy.toml"}
"""The file with the settings, by the kind of run."""
TRACES = ("status.json", "manifest.json", "metrics.jsonl", "tensorboard")
"""What a run writes after its first checkpoint, which it saves before it learns anything."""
CLAIM_PATIENCE = 10.0
"""Seconds to wait for another process that is just making the same folder."""


@dataclass(frozen=True)
class Run:
    """A run by its folder, whatever made it. :class:`remanence.train.Run` also builds its model.

    Args:
        folder: Holds the settings (``config.toml`` or ``policy.toml``), ``manifest.json``, ``metrics.jsonl``,
            ``status.json`` and ``checkpoint/``.

    Attributes:
        kinds: the kinds of run that this class opens.

    Example:
        >>> Run(Path("no such folder")).status["status"]
        'new'
    """

    folder: Path

    kinds: ClassVar[tuple[str, ...]] = tuple(CONFIG_FILES)

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Finds a run; ValueError if there is none."""
        run = cls(Path(folder))
        if not run.exists:
            files = " or ".join(CONFIG_FILES[kind] for kind in cls.kinds)
            raise ValueError(message("run", f"be a run folder with a {files}", named_folder(folder)))
        return run

    @classmethod
    def below(cls, folder: str | Path) -> list[Self]:
        """Finds all runs below a folder, by name, with the folders that may not be listed: a run may be in them."""
        found, closed = find_folders([CONFIG_FILES[kind] for kind in cls.kinds], folder)
        return [cls(path) for path in sorted({*found, *closed})]

    @property
    def kind(self) -> str | None:
        """``"training"`` for a model that learns a task, ``"policy"`` for one that plays; None if there is no run."""
        return next((kind for kind in self.kinds if (self.folder / CONFIG_FILES[kind]).is_file()), None)

    @property
    def exists(self) -> bool:
        """Whether there is a run in the folder."""
        return self.kind is not None

    @property
    def config_path(self) -> Path:
        """The file with its settings."""
        return self.folder / CONFIG_FILES[self.kind or self.kinds[0]]

    @property
    def settings(self) -> Values:
        """The settings as nested tables, just as they are written: nothing is built or imported for them."""
        return read_table(self.config_path)

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.folder / "checkpoint"

    @property
    def metrics(self) -> MetricsFile:
        """All measurements, line by line."""
        return MetricsFile(self.folder / "metrics.jsonl")

    @property
    def history(self) -> History:
        """All measurements, typed."""
        return History.from_lines(self.metrics.read())

    @property
    def manifest(self) -> Values:
        """Facts about where and how it was made; empty before it started."""
        return self._json("manifest.json", "manifest", "torch")

    @property
    def status(self) -> Values:
        """What has become of it: ``new``, ``running``, ``done``, ``interrupted``, ``failed``, or ``killed``."""
        found = self._json("status.json", "status", "status", "update") or self._without_status()
        if not isinstance(found.get("status"), str) or not isinstance(found.get("update"), int):
            raise DamagedFileError(f"{self.folder / 'status.json'} is damaged: it names no status and update")
        if found["status"] == "running":
            self._look_at_work(found)
        return found

    def _look_at_work(self, found: Values) -> None:
        """A run at work writes its status once, when it starts; how far it has come its checkpoints tell."""
        checkpoints = list_checkpoints(self.checkpoints)
        if checkpoints:
            found["update"] = max(found["update"], int(checkpoints[-1].name))
        if not is_locked(self.folder):
            found["status"] = "killed"

    def _without_status(self) -> Values:
        """A run that has learnt and has no status was written by an older version, or lost the file."""
        checkpoints = list_checkpoints(self.checkpoints)
        reached = int(checkpoints[-1].name) if checkpoints else self.history.update
        if not checkpoints and not reached:
            return {"status": "new", "update": 0}
        return {"status": "running", "update": reached, "reason": "status.json is missing"}

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.status["status"] == "done"

    def write(self, name: str, text: str) -> None:
        """Puts a whole file into the folder."""
        replace_file(self.folder / name, text.encode())

    def write_table(self, name: str, table: Settings) -> None:
        """Puts a whole JSON file into the folder, with its checksum."""
        self.write(name, sealed(table))

    def set_status(self, status: str, **facts: Any) -> None:
        """Says what has become of the run."""
        self.write_table("status.json", {**tag("status"), "status": status, **facts})

    def checkpoint_to_resume(self, warn: Callable[[str], None]) -> Checkpoint | None:
        """The newest checkpoint that is whole, for whoever holds the lock; what a killed process left is cleared away.

        Args:
            warn: Is told of damaged checkpoints.

        Returns:
            None if the run has not begun.

        Raises:
            CheckpointError: If there is none, though the run had begun: it is never begun anew in silence.
        """
        require_no_link(self.checkpoints)
        forget_drafts(self.folder)
        forget_drafts(self.checkpoints)
        found = load_checkpoint(self.checkpoints, warn, repair=True)
        if found is not None:
            return found
        traces = [name for name in TRACES if os.path.lexists(self.folder / name)]
        if traces:
            reached = max(self.status["update"], self.history.update)
            known = f"the run had reached update {reached}" if reached else f"the run had begun, as {traces[0]} shows"
            raise CheckpointError(
                f"{self.checkpoints} holds no checkpoint, though {known}; "
                "put it back, or start the run again in another folder"
            )
        return None

    def claim(self, settings: str) -> None:
        """Makes the folder hold these settings, unless it holds some: the lock comes first, so one process decides.

        Raises:
            ValueError: If there is something else in the folder.
            RunLockedError: If another process holds the folder and makes no run of it.
        """
        self.refuse_foreign()
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder, patience=CLAIM_PATIENCE):
            if not self.exists:
                self.refuse_foreign()
                self.write(CONFIG_FILES[self.kinds[0]], settings)

    def refuse_foreign(self) -> None:
        """Sees that the folder is free, or holds a run of this kind."""
        if self.exists or not self.folder.exists():
            return
        if not self.folder.is_dir():
            raise ValueError(f"{self.folder} is not a folder; name another one")
        if any(path.name != "lock" and not path.name.startswith(WRITING) for path in self.folder.iterdir()):
            kind = "run"
            if self.kinds == ("policy",):
                kind = "run of a policy"
            raise ValueError(f"{self.folder} exists and is not a {kind}; name another folder")

    def _json(self, name: str, kind: str, *always: str) -> Values:
        """A file that may not be there yet; one that is there names `always`, whatever version wrote it."""
        path = self.folder / name
        if not os.path.lexists(path):
            return {}
        found = read_json(path)
        for entry in always:
            if entry not in found:
                raise DamagedFileError(f"{path} is damaged: it does not say `{entry}`; put it back, or remove it")
        if "kind" in found:  # files of older versions do not say it
            try:
                check_version(found, kind, 1)
            except ResultError as error:
                raise type(error)(f"{path}: {error}") from error
        return found


def find_folders(names: Sequence[str], folder: str | Path) -> tuple[list[Path], list[Path]]:
    """Finds folders by a file in them, and those that could not be listed.

    Example:
        >>> find_folders(["config.toml"], "no such folder")
        ([], [])
    """
    found: list[Path] = []
    closed: list[Path] = []
    if not Path(folder).is_dir():
        return found, closed
    for place, folders, files in os.walk(folder, onerror=lambda error: closed.append(Path(error.filename))):
        if not set(names).isdisjoint([*folders, *files]):
            found.append(Path(place))
    return found, closed


def list_runs(folder: str | Path) -> list[Run]:
    """Finds all runs below a folder, sorted by name, of models that learn a task and of policies alike.

    Example:
        >>> list_runs("no such folder")
        []
    """
    return Run.below(folder)
