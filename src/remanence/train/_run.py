"""A run that trains a model on a task: the folder, with what can be built from its settings."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Self

import torch
from torch import Tensor

from remanence import nn, runs
from remanence._validate import one_of
from remanence.runs import CheckpointError, load_best, load_checkpoint, read_stored_table, remember_code, to_toml
from remanence.tasks import Task
from remanence.train._building import build, found_from_anywhere, resolved
from remanence.train._config import RunConfig, config_from

SECTIONS = ("task", "model", "optimiser", "schedule", "budget", "loop", "evaluation", "curriculum")
"""What the settings in a folder always name."""

# What layers carry from one batch to the next, a checkpoint may hold.
runs.register_state(nn.State, nn.CarriedState, nn.CacheState, nn.RunningState, nn.ConvolutionState, nn.TruncatedState)


class Weights(NamedTuple):
    """Weights of a run, and which they are.

    Attributes:
        tensors: the model's ``state_dict``.
        name: ``"best"`` or ``"last"``.
        update: batches learnt from when they were kept; None if that is not known.

    Example:
        >>> Weights({}, "best", 500).name
        'best'
    """

    tensors: dict[str, Tensor]
    name: str
    update: int | None


class Run(runs.Run):
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

    kinds = ("training",)

    @classmethod
    def create(cls, folder: str | Path, config: RunConfig) -> Self:
        """Makes a run folder, or finds the one that holds this very configuration; anything else in it is refused."""
        remember_code(config.imports)
        if not cls(Path(folder)).exists:
            cls(Path(folder)).refuse_foreign()
            with torch.random.fork_rng(devices=[]):
                build(resolved(config))
        return cls.place(folder, config)

    @classmethod
    def place(cls, folder: str | Path, config: RunConfig) -> Self:
        """As :meth:`create`, for a configuration that has been built already and so is known to be good."""
        run = cls(Path(folder))
        config = found_from_anywhere(resolved(config))
        if not run.exists:
            run.claim(to_toml(config))
        run._check_same(config)
        return run

    @property
    def config(self) -> RunConfig:
        """The resolved configuration."""
        return config_from(read_stored_table(self.config_path, SECTIONS))

    def load(self, weights: str | Weights = "best") -> tuple[nn.SequenceModel, Task]:
        """The trained model in evaluation mode, and its task.

        Args:
            weights: ``"best"`` by validation, or ``"last"``; or what :meth:`weights` gave.

        Raises:
            CheckpointError: If there are no such weights.
            UntrustedCodeError: If the settings name code that the user has not named (:func:`remanence.runs.trusting`).
        """
        task, model = build(self.config)
        if isinstance(weights, str):
            weights = self.weights(weights)
        try:
            model.load_state_dict(weights.tensors)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise CheckpointError(
                f"the weights in {self.checkpoints} do not fit {self.config_path}: {reason}"
            ) from error
        return model.eval(), task

    def weights(self, which: str = "best") -> Weights:
        """The weights that :meth:`load` takes, and what they are.

        Args:
            which: ``"best"`` by validation, or ``"last"``. A run that was never evaluated has the last ones only.

        Raises:
            CheckpointError: If there are none, or the best ones are gone or damaged.
        """
        one_of("weights", which, ("best", "last"))
        if which == "best":
            best = load_best(self.checkpoints)
            if best is not None:
                return Weights(best[0], "best", best[1].get("update"))
            if self.history.best is not None:
                raise CheckpointError(
                    f"{self.checkpoints / 'best.safetensors'} is missing, though update {self.history.best.update} was "
                    "the best one; take the last weights instead"
                )
        checkpoint = load_checkpoint(self.checkpoints)
        if checkpoint is None:
            raise CheckpointError(f"{self.folder} has no weights yet; run `remanence resume {self.folder}`")
        return Weights(checkpoint.weights, "last", checkpoint.update)

    def _check_same(self, config: RunConfig) -> None:
        if found_from_anywhere(self.config) != found_from_anywhere(config):
            old = to_toml(self.config).splitlines()
            new = to_toml(config).splitlines()
            differing = "; ".join(f"{line!r} there" for line in old if line not in new) or "options"
            raise ValueError(f"{self.folder} holds a run of another configuration ({differing}); name another folder")


def list_runs(folder: str | Path) -> list[Run]:
    """Finds all runs below a folder that train a model on a task, sorted by name.

    :func:`remanence.runs.list_runs` lists runs of policies too.

    Example:
        >>> list_runs("no such folder")
        []
    """
    return Run.below(folder)


def best_run(runs: list[Run]) -> Run | None:
    """The run that did best by validation: the best of several seeds; None if none has been evaluated.

    Example:
        >>> best_run([]) is None
        True
    """
    scored = [(run.status["best"], run) for run in runs if run.status.get("best") is not None]
    if not scored:
        return None
    sign = scored[0][1].config.evaluation.sign
    return max(scored, key=lambda pair: sign * pair[0])[1]
