"""Plays and learns in turn until a run is done; whatever stops it, the folder holds all it needs to resume."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from remanence._validate import message
from remanence.rl._building import build_policy
from remanence.rl._config import PolicyConfig
from remanence.rl._core import checked_state
from remanence.rl._environment import Episode, make_environment, observed
from remanence.rl._folder import PolicyRun
from remanence.rl._ppo import learn
from remanence.rl._rollout import Player, Rollout
from remanence.runs import (
    Checkpoint,
    CheckpointError,
    Observer,
    RunError,
    StopRequest,
    Values,
    changed_facts,
    make_manifest,
    save_checkpoint,
    seed_all,
    taking_up,
    to_toml,
)
from remanence.tasks import stream
from remanence.train import load_optimiser

REMEMBERED = 100
"""Episodes that the mean return is taken over."""


@dataclass(frozen=True)
class PolicyOutcome:
    """How a call of :func:`train_policy` ended.

    Args:
        status: ``"done"``, or ``"interrupted"`` by a signal; the same call resumes it.
        folder: the run's folder.
        update: updates made so far.
        frames: steps played so far.
        mean_return: mean return of the last 100 episodes, None before the first has ended.
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


class Learning:
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
        ppo = config.ppo
        self.optimiser = torch.optim.Adam(self.policy.parameters(), lr=ppo.learning_rate, eps=ppo.epsilon, fused=True)
        self.episodes = [self._episode(copy) for copy in range(config.copies)]
        self.player = Player(self.episodes, self.policy)
        facts = make_manifest(config)
        self._say_what_changed(facts)
        self._restore()
        # Not before a checkpoint is found to fit: nothing of a damaged run is overwritten.
        self.run.write("policy.toml", to_toml(config))
        self.run.write_table("manifest.json", facts)

    def _episode(self, copy: int) -> Episode:
        there = make_environment(self.config.environment, self.config.environment_options)
        fields = observed(there, self.config.words, self.config.observe)
        return Episode(there, self.config.seed, copy, fields=fields)

    def _say_what_changed(self, now: Values) -> None:
        before = self.run.manifest or now
        if changes := changed_facts(before, now):
            self._say("bits may differ from an uninterrupted run: " + "; ".join(changes))

    def _say_what_was_not_repeated(self, seen: Sequence[int] | None) -> None:
        """Tells of copies that do not show what they showed; `seen` is not in older checkpoints."""
        if seen is not None and list(seen) != [episode.checksum for episode in self.episodes]:
            where = self.config.environment
            self._say(f"bits may differ: {where} does not repeat an episode by its seed and actions")

    def carry_out(self, request: StopRequest) -> PolicyOutcome:
        """Plays and learns until it is done or asked to stop."""
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
        began = time.perf_counter()
        ppo = self.config.ppo
        rollout = self.player.play(ppo.steps, ppo.recurrence, self._stream("play"), ppo.bootstrap)
        played = time.perf_counter()
        losses = learn(self.policy, self.optimiser, rollout, ppo, self._stream("learn"))
        self.update += 1
        self.seconds += time.perf_counter() - began
        self._note(rollout, losses, (played - began) / (time.perf_counter() - began))

    def _stream(self, use: str) -> torch.Generator:
        """Random numbers of this update: a pure function of it, so a kill loses none."""
        return stream("train", self.config.seed, self.update, salt=use)

    def _note(self, rollout: Rollout, losses: dict[str, float], playing: float) -> None:
        self.returns = (self.returns + rollout.returns)[-REMEMBERED:]
        self.lengths = (self.lengths + rollout.lengths)[-REMEMBERED:]
        line = {"kind": "train", "update": self.update, "frames": self.frames, "mean_return": self.mean_return}
        line["mean_length"] = _mean(self.lengths)
        line |= {**losses, "frames_per_second": self.frames / self.seconds, "playing": playing, "seconds": self.seconds}
        self.metrics.append(line)
        self._tell(line)

    @property
    def frames(self) -> int:
        return self.update * self.config.copies * self.config.ppo.steps

    @property
    def mean_return(self) -> float | None:
        return _mean(self.returns)

    def _save(self) -> None:
        player = self.player
        training = {
            "optimiser": self.optimiser.state_dict(),
            "state": player.state,
            "begins": player.begins,
            "places": [episode.place for episode in self.episodes],
            "seen": [episode.checksum for episode in self.episodes],
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
            self._save()  # measurements without a checkpoint would look as if one had been lost
            return
        self._refuse_fewer(found.update)
        try:
            self.policy.load_state_dict(found.weights)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            place = self.run.checkpoints
            raise CheckpointError(f"the weights in {place} do not fit {self.run.config_path}: {reason}") from error
        with taking_up(self.run.checkpoints):
            self._take_up(found.training)
        self.update = found.update
        self.metrics.cut_after(self.update)
        self._tell({"kind": "resumed", "update": self.update})

    def _refuse_fewer(self, update: int) -> None:
        """The settings would say less than what the weights have learnt from."""
        if update > self.config.updates:
            played = update * self.config.copies * self.config.ppo.steps
            hint = "Raise frames, or leave it as it was"
            raise ValueError(message("frames", f"be at least the {played} that were played", self.config.frames, hint))

    def _take_up(self, training: Values) -> None:
        player = self.player
        load_optimiser(self.optimiser, training["optimiser"])
        player.state = checked_state(self.policy.core, training["state"], len(self.episodes))
        player.begins = _checked_begins(training["begins"], len(self.episodes))
        for episode, place in zip(self.episodes, training["places"], strict=True):
            episode.go_to(place)
        self._say_what_was_not_repeated(training.get("seen"))
        player.returns, player.lengths = _counted(*training["so_far"])
        if len(player.returns) != len(player.lengths) or len(player.returns) != len(self.episodes):
            raise ValueError(f"{len(player.returns)} episodes go on in {len(self.episodes)} copies")
        self.returns, self.lengths = _counted(*training["ended"])
        self.seconds = training["seconds"]

    def _outcome(self, status: Literal["done", "interrupted"], signal: int | None = None) -> PolicyOutcome:
        reason = "budget used up"
        if signal is not None:
            reason = f"signal {signal}"
        facts = {"update": self.update, "budget": self.config.updates, "frames": self.frames, "seconds": self.seconds}
        self.run.set_status(status, reason=reason, **facts, mean_return=self.mean_return)
        return PolicyOutcome(status, self.run.folder, self.update, self.frames, self.mean_return, signal)

    def _say(self, text: str) -> None:
        self._tell({"kind": "message", "text": text})

    def _tell(self, line: Values) -> None:
        if self.observer is not None:
            self.observer({**line, "budget": self.config.updates})


def _mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return sum(values) / len(values)


def _checked_begins(begins: object, rows: int) -> Tensor:
    """Which copies begin an episode, if the checkpoint has that for each of them."""
    if not isinstance(begins, Tensor) or begins.dtype != torch.bool or begins.shape != (rows,):
        raise ValueError(f"`begins` must be a bool for each of {rows} copies; got {begins!r}")
    return begins


def _counted(returns: Sequence[float], lengths: Sequence[int]) -> tuple[list[float], list[int]]:
    """Returns and lengths of episodes as numbers, whatever the checkpoint has for them."""
    return [float(value) for value in returns], [int(value) for value in lengths]
