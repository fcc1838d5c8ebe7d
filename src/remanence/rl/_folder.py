"""The folder of a policy's run."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import torch

from remanence import runs
from remanence.rl._building import build_policy
from remanence.rl._config import PolicyConfig
from remanence.runs import read_stored_table, to_toml, with_table


class PolicyRun(runs.Run):
    """A run of a policy by its folder.

    Args:
        folder: Holds ``policy.toml``, ``manifest.json``, ``metrics.jsonl``, ``status.json`` and ``checkpoint/``.

    Example:
        >>> PolicyRun(Path("no such folder")).exists
        False
    """

    kinds = ("policy",)

    @classmethod
    def create(cls, folder: str | Path, config: PolicyConfig) -> Self:
        """Makes a run folder, or finds the one that holds this configuration, however long it was to last.

        Raises:
            ValueError: If the configuration cannot be built, or the folder holds another one.
        """
        run = cls(Path(folder))
        if not run.exists:
            run.refuse_foreign()
            with torch.random.fork_rng(devices=[]):
                build_policy(config)
            run.claim(to_toml(config))
        if run.config.digest != config.digest:
            raise ValueError(f"{folder} holds a run of another configuration; name another folder")
        return run

    @property
    def config(self) -> PolicyConfig:
        """The configuration."""
        return with_table(PolicyConfig(), read_stored_table(self.config_path, ("environment", "model", "ppo")))
