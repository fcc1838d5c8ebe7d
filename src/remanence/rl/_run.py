"""A run of reinforcement learning: a folder that can be left at any moment and resumed with the same bits."""

from __future__ import annotations

from pathlib import Path

import torch

from remanence._validate import message, named_folder
from remanence.rl._building import build_policy
from remanence.rl._config import PolicyConfig
from remanence.rl._folder import PolicyRun
from remanence.rl._learning import Learning, PolicyOutcome
from remanence.rl._policy import MemoryPolicy
from remanence.runs import (
    CheckpointError,
    Observer,
    Settings,
    isolated,
    load_checkpoint,
    locked,
    require_trust,
    stop_requests,
)


def train_policy(config: PolicyConfig, folder: str | Path, observer: Observer | None = None) -> PolicyOutcome:
    """Trains a policy with a memory. A run that is already in the folder is resumed.

    With more `frames` than before, a finished run continues, and ends like one that was planned that long.

    Args:
        config: What to run.
        folder: Gets ``policy.toml``, ``manifest.json``, ``metrics.jsonl``, ``status.json`` and ``checkpoint/``.
        observer: Receives every measurement and message, as dictionaries with a ``"kind"``.

    Raises:
        RunError: If it could not continue; what was reached is in the folder.
        ValueError: If the configuration is bad, or the folder holds another one.

    Example:
        >>> import tempfile
        >>> config = PolicyConfig(copies=2, frames=512)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train_policy(config, Path(folder) / "mine").frames
        512
    """
    return _learn(config.trusted(), folder, observer)


def _learn(config: PolicyConfig, folder: str | Path, observer: Observer | None) -> PolicyOutcome:
    with isolated(config.threads), stop_requests() as request:
        run = PolicyRun.create(folder, config)
        with locked(run.folder):
            return Learning(config, run, observer).carry_out(request)


def resume_policy(
    folder: str | Path, observer: Observer | None = None, config: PolicyConfig | None = None
) -> PolicyOutcome:
    """Resumes a policy's run from its last checkpoint.

    Args:
        folder: The run's folder.
        observer: As in :func:`train_policy`.
        config: A changed configuration, with more `frames`; None keeps the old one.

    Raises:
        RunError: As in :func:`train_policy`.
        ValueError: If the folder holds no run of a policy.

    Example:
        >>> resume_policy("no such folder")
        Traceback (most recent call last):
        ValueError: `run` must be a run folder with a policy.toml; got 'no such folder', which does not exist
    """
    return _learn(config or PolicyRun.open(folder).config, folder, observer)


def load_policy(
    folder: str | Path, environment: str | None = None, options: Settings | None = None
) -> tuple[MemoryPolicy, PolicyConfig]:
    """The policy that a run has trained, ready to play.

    Args:
        folder: The run's folder.
        environment: Where it will play, if elsewhere; full memories are made as long as its episodes.
        options: Options of that environment, if they differ from training.

    Returns:
        The policy in evaluation mode, and the configuration of its run.

    Raises:
        ValueError: If there is no run.
        CheckpointError: If it has no weights yet.

    Example:
        >>> load_policy("no such folder")
        Traceback (most recent call last):
        ValueError: `folder` must be the folder of a policy's run, with a policy.toml; got 'no such folder', which ...
    """
    run = PolicyRun(Path(folder))
    if not run.exists:
        raise ValueError(message("folder", "be the folder of a policy's run, with a policy.toml", named_folder(folder)))
    config = run.config
    require_trust(config.code)
    checkpoint = load_checkpoint(run.checkpoints)
    if checkpoint is None or checkpoint.update == 0:  # saved before anything was learnt
        raise CheckpointError(f"{folder} has no weights yet; let it learn first")
    with torch.random.fork_rng(devices=[]):
        policy = build_policy(config, environment, options)
    try:
        policy.load_state_dict(checkpoint.weights)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise CheckpointError(f"the weights in {run.checkpoints} do not fit {run.config_path}: {reason}") from error
    return policy.eval(), config
