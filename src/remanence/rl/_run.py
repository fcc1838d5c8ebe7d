"""A run of reinforcement learning: a folder that can be left at any moment and goes on with the same bits."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import torch

from remanence import runs
from remanence._validate import message
from remanence.rl._config import PolicyConfig
from remanence.rl._core import grows
from remanence.rl._environment import Episode, longest_episode, make_environment, observed
from remanence.rl._observations import Field
from remanence.rl._policy import MemoryPolicy
from remanence.rl._ppo import learn
from remanence.rl._rollout import Player, Rollout
from remanence.runs import (
    Checkpoint,
    CheckpointError,
    RunError,
    StopRequest,
    absolute_imports,
    changed_facts,
    import_all,
    isolated,
    load_checkpoint,
    locked,
    make_manifest,
    read_table,
    remember_code,
    require_trust,
    save_checkpoint,
    seed_all,
    stop_requests,
    to_toml,
    with_table,
)
from remanence.tasks import stream

REMEMBERED = 100
"""Episodes that the mean return is taken over."""

Observer = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class PolicyOutcome:
    """How a call of :func:`train_policy` ended.

    Args:
        status: ``"done"``, or ``"interrupted"`` by a signal; the same call goes on with it.
        folder: of the run.
        update: how often it has learnt.
        frames: steps played so far.
        mean_return: of the last 100 episodes, None before the first has ended.
        signal: number of the signal that interrupted it.

    Example:
        >>> PolicyOutcome("done", Path("mine"), 10, 20480, 0.9).status
        'done'
    """

    status: Literal["done", "interrupted"]
    folder: Path
    update: int
    frames: int
    mean_return: float | None
    signal: int | None = None


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

        Args:
            folder: Where.
            config: What to run.

        Raises:
            ValueError: If the configuration cannot be built, or the folder holds another one.
        """
        run = cls(Path(folder))
        require_trust(code_of(config))
        import_all(config.imports)
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
        return with_table(PolicyConfig(), read_table(self.config_path))


def train_policy(config: PolicyConfig, folder: str | Path, observer: Observer | None = None) -> PolicyOutcome:
    """Lets a policy with a memory learn by playing. A run that is in the folder already goes on where it was.

    With more `frames` than before, a run that was done goes on, and ends like one that was meant to last so long.

    Args:
        config: What to run.
        folder: Gets ``policy.toml``, ``manifest.json``, ``metrics.jsonl``, ``status.json`` and ``checkpoint/``.
        observer: Is told every measurement and message, as dictionaries with a ``"kind"``.

    Raises:
        RunError: If it could not go on; what was reached is in the folder.
        ValueError: If the configuration is bad, or the folder holds another one.

    Example:
        >>> import tempfile
        >>> config = PolicyConfig(copies=2, frames=512)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     train_policy(config, Path(folder) / "mine").frames
        512
    """
    config = dataclasses.replace(config, imports=absolute_imports(config.imports))
    remember_code(code_of(config))  # the caller names this code; whoever only reads the folder later does not
    return _learn(config, folder, observer)


def code_of(config: PolicyConfig) -> list[str]:
    """The code that a configuration runs: its imports, and the module of an environment named ``module:Name``.

    Example:
        >>> code_of(PolicyConfig(environment="mine:Maze-v0", imports=("other",)))
        ['other', 'mine']
    """
    module, colon, _ = config.environment.partition(":")
    return [*config.imports, *([module] if colon else [])]


def _learn(config: PolicyConfig, folder: str | Path, observer: Observer | None) -> PolicyOutcome:
    with isolated(config.threads), stop_requests() as request:
        run = PolicyRun.create(folder, config)
        with locked(run.folder):
            return _Learning(config, run, observer).carry_out(request)


def resume_policy(
    folder: str | Path, observer: Observer | None = None, config: PolicyConfig | None = None
) -> PolicyOutcome:
    """Goes on with a policy's run where its last checkpoint stands.

    Args:
        folder: Of the run.
        observer: As in :func:`train_policy`.
        config: A changed configuration, with more `frames`; None goes on with the old one.

    Raises:
        RunError: As in :func:`train_policy`.
        ValueError: If the folder holds no run of a policy.

    Example:
        >>> resume_policy("no such folder")
        Traceback (most recent call last):
        ValueError: `run` must be a run folder with a policy.toml; got 'no such folder'
    """
    return _learn(config or PolicyRun.open(folder).config, folder, observer)


def load_policy(
    folder: str | Path, environment: str | None = None, options: Mapping[str, Any] | None = None
) -> tuple[MemoryPolicy, PolicyConfig]:
    """The policy that a run has come to, ready to play.

    Args:
        folder: Of the run.
        environment: Where it shall play, if elsewhere: full memories are made as long as its episodes.
        options: Of that environment, if others than in training.

    Returns:
        The policy in evaluation mode, and the configuration of its run.

    Raises:
        ValueError: If there is no run.
        CheckpointError: If it has no weights yet.

    Example:
        >>> load_policy("no such folder")
        Traceback (most recent call last):
        ValueError: `folder` must be the folder of a policy's run, with a policy.toml; got 'no such folder'
    """
    run = PolicyRun(Path(folder))
    if not run.exists:
        raise ValueError(message("folder", "be the folder of a policy's run, with a policy.toml", repr(str(folder))))
    config = run.config
    require_trust(code_of(config))
    import_all(config.imports)
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


def build_policy(
    config: PolicyConfig, environment: str | None = None, there_options: Mapping[str, Any] | None = None
) -> MemoryPolicy:
    """Makes the policy of a configuration; its weights come from torch's global generator.

    Args:
        config: Of the run.
        environment: Where it shall play, if elsewhere.
        there_options: Of that environment, if others than in training.

    Example:
        >>> build_policy(PolicyConfig()).core.hidden_size
        64
    """
    home = make_environment(config.environment, config.environment_options)
    there = home
    if environment is not None or there_options is not None:
        there = make_environment(environment or config.environment, there_options)
    spaces = _spaces(home, config)
    if _spaces(there, config) != spaces:
        expected = f"show and allow what {config.environment} does"
        raise ValueError(message("environment", expected, f"{_spaces(there, config)} in {environment}, not {spaces}"))
    name, options = config.model.name, dict(config.model.options)
    choices: dict[str, Any] = {"words": config.words, "squash": config.squash, "forgets": config.forgets}
    choices["memory"] = config.memory
    policy = MemoryPolicy(*spaces, name, **choices, **options)
    if not grows(policy.core):
        return policy
    limit = longest_episode(there)  # else the state would grow for ever, with what resets have emptied in it
    if limit is None:
        expected = "have a `limit` where episodes have none"
        raise ValueError(message("model.options", expected, options, f"{name} keeps every state"))
    return MemoryPolicy(*spaces, name, **choices, **{**options, "limit": limit})


def _spaces(environment: Any, config: PolicyConfig) -> tuple[tuple[Field, ...], Any]:
    """What a policy sees there, and what it can do."""
    return observed(environment, config.words, config.observe), environment.action_space


class _Learning:
    """One process's work on one run."""

    def __init__(self, config: PolicyConfig, run: PolicyRun, observer: Observer | None) -> None:
        self.config = config
        self.run = run
        self.metrics = run.metrics
        self.observer = observer
        self.update = 0
        self.seconds = 0.0
        self.returns: list[float] = []
        self.lengths: list[int] = []
        seed_all(config.seed)
        self.policy = build_policy(config)
        self.optimiser = torch.optim.Adam(self.policy.parameters(), lr=config.ppo.learning_rate, eps=config.ppo.epsilon)
        self.episodes = [self._episode(copy) for copy in range(config.copies)]
        self.player = Player(self.episodes, self.policy)
        self._write_facts()
        self._restore()

    def _episode(self, copy: int) -> Episode:
        there = make_environment(self.config.environment, self.config.environment_options)
        fields = observed(there, self.config.words, self.config.observe)
        return Episode(there, self.config.seed, copy, fields=fields)

    def _write_facts(self) -> None:
        now = make_manifest(self.config)
        before = self.run.manifest or now
        if changes := changed_facts(before, now):
            self._say("bits may differ from an uninterrupted run: " + "; ".join(changes))
        self.run.write("policy.toml", to_toml(self.config))
        self.run.write_table("manifest.json", now)

    def carry_out(self, request: StopRequest) -> PolicyOutcome:
        """Plays and learns until it is done, or asked to stop."""
        if self.update >= self.config.updates:
            return self._outcome("done")
        self.run.set_status("running", update=self.update)
        try:
            return self._loop(request)
        except RunError as error:
            with contextlib.suppress(RunError):  # on a full disk not even this can be written
                self.run.set_status("failed", update=self.update, reason=str(error))
            raise

    def _loop(self, request: StopRequest) -> PolicyOutcome:
        while self.update < self.config.updates:
            self._advance()
            last = self.update == self.config.updates
            if last or request.signal or self.update % self.config.save_every == 0:
                self._save()
            if request.signal and not last:
                return self._outcome("interrupted", request.signal)
        return self._outcome("done")

    def _advance(self) -> None:
        began, ppo = time.perf_counter(), self.config.ppo
        rollout = self.player.play(ppo.steps, ppo.recurrence, self._stream("play"), ppo.bootstrap)
        played = time.perf_counter()
        losses = learn(self.policy, self.optimiser, rollout, ppo, self._stream("learn"))
        self.update += 1
        self.seconds += time.perf_counter() - began
        self._note(rollout, losses, (played - began) / (time.perf_counter() - began))

    def _stream(self, use: str) -> torch.Generator:
        """Randomness of this update: a pure function, so a kill loses nothing of it."""
        return stream("train", self.config.seed, self.update, salt=use)

    def _note(self, rollout: Rollout, losses: dict[str, float], playing: float) -> None:
        self.returns = (self.returns + rollout.returns)[-REMEMBERED:]
        self.lengths = (self.lengths + rollout.lengths)[-REMEMBERED:]
        line = {"kind": "train", "update": self.update, "frames": self.frames, "mean_return": self.mean_return}
        line["mean_length"] = sum(self.lengths) / len(self.lengths) if self.lengths else None
        line |= {**losses, "frames_per_second": self.frames / self.seconds, "playing": playing, "seconds": self.seconds}
        self.metrics.append(line)
        self._tell(line)

    @property
    def frames(self) -> int:
        return self.update * self.config.copies * self.config.ppo.steps

    @property
    def mean_return(self) -> float | None:
        return sum(self.returns) / len(self.returns) if self.returns else None

    def _save(self) -> None:
        player = self.player
        training = {
            "optimiser": self.optimiser.state_dict(),
            "state": player.state,
            "begins": player.begins,
            "places": [episode.place for episode in self.episodes],
            "so_far": [player.returns, player.lengths],
            "ended": [self.returns, self.lengths],
            "seconds": self.seconds,
        }
        self.metrics.sync()
        save_checkpoint(self.run.checkpoints, Checkpoint(self.update, dict(self.policy.state_dict()), training))

    def _restore(self) -> None:
        found = self.run.checkpoint_to_resume(self._say)
        if found is None:
            self.metrics.cut_after(0)
            self._save()  # measurements without a checkpoint would look like one that was lost
            return
        training, player = found.training, self.player
        self.policy.load_state_dict(found.weights)
        self.optimiser.load_state_dict(training["optimiser"])
        player.state, player.begins = training["state"], training["begins"]
        for episode, place in zip(self.episodes, training["places"], strict=True):
            episode.go_to(place)
        player.returns, player.lengths = training["so_far"]
        self.returns, self.lengths = training["ended"]
        self.update, self.seconds = found.update, training["seconds"]
        self.metrics.cut_after(self.update)
        self._tell({"kind": "resumed", "update": self.update})

    def _outcome(self, status: Literal["done", "interrupted"], signal: int | None = None) -> PolicyOutcome:
        reason = "budget used up" if signal is None else f"signal {signal}"
        facts = {"update": self.update, "budget": self.config.updates, "frames": self.frames, "seconds": self.seconds}
        self.run.set_status(status, reason=reason, **facts, mean_return=self.mean_return)
        return PolicyOutcome(status, self.run.folder, self.update, self.frames, self.mean_return, signal)

    def _say(self, text: str) -> None:
        self._tell({"kind": "message", "text": text})

    def _tell(self, line: dict[str, Any]) -> None:
        if self.observer is not None:
            self.observer({**line, "budget": self.config.updates})
