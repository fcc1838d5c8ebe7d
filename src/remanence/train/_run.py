"""The run folder: all that is known about a run, and enough to go on with it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remanence.nn import SequenceModel
from remanence.tasks import Task
from remanence.train._building import build_model, build_task, resolved
from remanence.train._checkpoint import load_best, load_checkpoint
from remanence.train._config import RunConfig
from remanence.train._errors import CheckpointError
from remanence.train._files import is_locked, replace_file
from remanence.train._metrics import MetricsFile
from remanence.train._toml import read_config, to_toml


@dataclass(frozen=True)
class Run:
    """A run by its folder.

    Args:
        folder: Holds ``config.toml``, ``manifest.json``, ``metrics.jsonl``, ``status.json`` and ``checkpoint/``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = Run.create(Path(folder) / "mine", RunConfig(seed=4))
        ...     run.config.seed, run.status["status"]
        (4, 'new')
    """

    folder: Path

    @classmethod
    def create(cls, folder: str | Path, config: RunConfig) -> Run:
        """Makes a run folder, or finds the one that holds this very configuration.

        Args:
            folder: Where.
            config: What to run.

        Raises:
            ValueError: If the folder holds another configuration, or things that are no run.
        """
        run, config = cls(Path(folder)), resolved(config)
        if run.exists:
            run._check_same(config)
            return run
        if run.folder.exists() and any(
            path.name not in ("lock", ".writing-config.toml") for path in run.folder.iterdir()
        ):
            raise ValueError(f"{folder} exists and is no run; name another folder")
        build_model_is_possible(config)
        run.folder.mkdir(parents=True, exist_ok=True)
        run.write("config.toml", to_toml(config))
        return run

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Finds a run.

        Args:
            folder: Where.

        Raises:
            ValueError: If there is none.
        """
        run = cls(Path(folder))
        if not run.exists:
            raise ValueError(f"`run` must be a run folder with a config.toml; got {str(folder)!r}")
        return run

    @property
    def exists(self) -> bool:
        """Whether there is a run in the folder."""
        return (self.folder / "config.toml").is_file()

    @property
    def config(self) -> RunConfig:
        """The resolved configuration."""
        return read_config(self.folder / "config.toml")

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.folder / "checkpoint"

    @property
    def metrics(self) -> MetricsFile:
        """All measurements."""
        return MetricsFile(self.folder / "metrics.jsonl")

    @property
    def manifest(self) -> dict[str, Any]:
        """Facts about where and how it was made; empty before it started."""
        return self._json("manifest.json")

    @property
    def status(self) -> dict[str, Any]:
        """What has become of it: ``new``, ``running``, ``done``, ``interrupted``, ``failed``, or ``killed``."""
        found = self._json("status.json") or {"status": "new", "update": 0}
        if found["status"] == "running" and not is_locked(self.folder):
            found["status"] = "killed"
        return found

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return self.status["status"] == "done"

    def write(self, name: str, text: str) -> None:
        """Puts a whole file into the folder."""
        replace_file(self.folder / name, text.encode())

    def set_status(self, status: str, **facts: Any) -> None:
        """Says what has become of the run."""
        self.write("status.json", json.dumps({"status": status, **facts}, indent=1))

    def load(self, weights: str = "best") -> tuple[SequenceModel, Task]:
        """The trained model in evaluation mode, and its task.

        Args:
            weights: ``"best"`` by validation, or ``"last"``.

        Raises:
            CheckpointError: If there are no such weights.
        """
        config = self.config
        task = build_task(config)
        model = build_model(config, task)
        model.load_state_dict(self._weights(weights))
        return model.eval(), task

    def _weights(self, which: str) -> dict[str, Any]:
        if which == "best" and (best := load_best(self.checkpoints)) is not None:
            return best[0]
        checkpoint = load_checkpoint(self.checkpoints)
        if checkpoint is None:
            raise CheckpointError(f"{self.folder} has no weights yet; run `remanence resume {self.folder}`")
        return checkpoint.weights

    def _json(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        return json.loads(path.read_bytes()) if path.is_file() else {}

    def _check_same(self, config: RunConfig) -> None:
        if self.config != config:
            old, new = to_toml(self.config).splitlines(), to_toml(config).splitlines()
            differing = "; ".join(f"{line!r} there" for line in old if line not in new) or "options"
            raise ValueError(f"{self.folder} holds a run of another configuration ({differing}); name another folder")


def build_model_is_possible(config: RunConfig) -> None:
    """Builds a task and a model without storage, so that a bad option is an error before anything is written.

    Example:
        >>> from remanence.train._config import ModelConfig
        >>> build_model_is_possible(RunConfig(model=ModelConfig("LSTN")))
        Traceback (most recent call last):
        ValueError: `model` must be one of ...; got 'LSTN'. Did you mean 'LSTM'?
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        build_model(config, build_task(config))


def list_runs(folder: str | Path) -> list[Run]:
    """Finds all runs below a folder.

    Args:
        folder: Where to look, at any depth.

    Returns:
        The runs by name.

    Example:
        >>> list_runs("no such folder")
        []
    """
    return [Run(path.parent) for path in sorted(Path(folder).rglob("config.toml"))]


def best_run(runs: list[Run]) -> Run | None:
    """The run that did best by validation: the best of several seeds.

    Args:
        runs: Of one task and one metric.

    Returns:
        The best of those that have been evaluated, None if none has.

    Example:
        >>> best_run([]) is None
        True
    """
    scored = [(run.status["best"], run) for run in runs if run.status.get("best") is not None]
    if not scored:
        return None
    sign = 1 if scored[0][1].config.evaluation.metric == "accuracy" else -1
    return max(scored, key=lambda pair: sign * pair[0])[1]
