"""What a run of reinforcement learning is: typed, frozen, complete."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from remanence._validate import MOST_PARTS, MOST_THREADS, boolean, message, one_of, positive_int, probability, real
from remanence._wording import bracketed
from remanence.rl._core import MEMORY_USES, MemoryUse
from remanence.rl._environment import environment_id
from remanence.runs import Values, absolute_imports, digest_of, remember_code
from remanence.train import ModelConfig


@dataclass(frozen=True)
class PPOConfig:
    """Proximal policy optimisation over whole sequences.

    Args:
        steps: steps that each copy of the environment plays between two updates.
        recurrence: steps that gradients go back; divides `steps`. Each such chunk starts from the state that the policy
            had there when it played.
        epochs: passes over what was played.
        batch: steps in one minibatch, a multiple of `recurrence`.
        discount: gamma, the discount of future rewards.
        smoothing: lambda of generalised advantage estimation.
        learning_rate: Adam's learning rate.
        epsilon: Adam's epsilon.
        entropy: weight of the policy's entropy.
        value: weight of the critic's squared error.
        clip: how far the ratio of probabilities, and a value, may move from where they were.
        clip_norm: largest norm of the gradient.
        bootstrap: whether the critic's value stands in for what a time limit cut off; otherwise an episode that reaches
            its limit counts as ended.

    Example:
        >>> PPOConfig(steps=64)
        Traceback (most recent call last):
        ValueError: `ppo.recurrence` must divide ppo.steps (64); got 128. Set ppo.recurrence=64 too
    """

    steps: int = 128
    recurrence: int = 128
    epochs: int = 4
    batch: int = 256
    discount: float = 0.99
    smoothing: float = 0.95
    learning_rate: float = 1e-3
    epsilon: float = 1e-8
    entropy: float = 0.01
    value: float = 0.5
    clip: float = 0.2
    clip_norm: float = 0.5
    bootstrap: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "recurrence", "epochs", "batch"):
            positive_int(f"ppo.{name}", getattr(self, name))
        for name in ("discount", "smoothing"):
            probability(f"ppo.{name}", getattr(self, name))
        for name in ("learning_rate", "epsilon", "clip", "clip_norm"):
            real(f"ppo.{name}", getattr(self, name), above=0.0)
        boolean("ppo.bootstrap", self.bootstrap)
        for name in ("entropy", "value"):
            real(f"ppo.{name}", getattr(self, name), least=0.0)
        if self.steps % self.recurrence:
            hint = f"Set ppo.recurrence={self.steps} too"
            raise ValueError(message("ppo.recurrence", f"divide ppo.steps ({self.steps})", self.recurrence, hint))
        if self.batch % self.recurrence:
            expected = f"be a multiple of ppo.recurrence ({self.recurrence})"
            raise ValueError(message("ppo.batch", expected, self.batch))


@dataclass(frozen=True)
class PolicyConfig:
    """All settings of a run; two runs with the same settings end with the same weights.

    Args:
        environment: id of a Gymnasium environment.
        model: the policy's core, one of the recurrent layers in :mod:`remanence.nn`.
        ppo: how it learns.
        words: whether the policy reads MiniGrid's missions and other texts; if not, it must guess where they decide.
        observe: names of the parts of an observation that it sees; by default all, or the image in MiniGrid.
        squash: whether ``tanh`` brings continuous actions into their box; otherwise they are clipped.
        frames: steps to play in all copies together.
        copies: copies of the environment that are played in parallel.
        seed: seed for weights, episodes and actions.
        threads: threads that torch may use.
        save_every: updates between two checkpoints.
        imports: modules, or paths of Python files, to import first; they register environments.
        environment_options: options of the environment, such as ``{"length": 100}`` of a T-maze.
        forgets: whether the core is reset at every step: the same network without memory, as a baseline.
        memory: what becomes of the core's attended memory while an episode goes on: ``"kept"``, ``"emptied"`` before
            every step, or ``"emptied_acting"``, only before every step of acting, as in the code of Kerg et al. 2020.
            It is the `memory_use` of :class:`MemoryPolicy`.
        label: what tables and pages call the policy; empty is its model's name. It decides nothing: two configurations
            that differ in it alone are equal.

    Example:
        >>> PolicyConfig(frames=100_000).updates
        49
    """

    environment: str = "MiniGrid-MemoryS7-v0"
    model: ModelConfig = field(default_factory=lambda: ModelConfig("RelLSTM"))
    ppo: PPOConfig = field(default_factory=PPOConfig)
    words: bool = False
    observe: tuple[str, ...] = ()
    squash: bool = False
    frames: int = 5_000_000
    copies: int = 16
    seed: int = 0
    threads: int = 1
    save_every: int = 20
    imports: tuple[str, ...] = ()
    environment_options: Values = field(default_factory=dict)
    forgets: bool = False
    memory: MemoryUse = "kept"
    label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        environment_id(self.environment)
        for name, kind in (("model", ModelConfig), ("ppo", PPOConfig)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(message(name, f"be a {kind.__name__}", repr(getattr(self, name))))
        for name in ("observe", "imports"):
            if isinstance(getattr(self, name), str):
                raise TypeError(message(name, "be several names", repr(getattr(self, name)), "Put it in a tuple"))
        for name in ("frames", "save_every"):
            positive_int(name, getattr(self, name))
        positive_int("threads", self.threads, maximum=MOST_THREADS)
        positive_int("copies", self.copies, maximum=MOST_PARTS)
        positive_int("seed", self.seed, minimum=0)
        boolean("words", self.words)
        boolean("squash", self.squash)
        boolean("forgets", self.forgets)
        one_of("memory", self.memory, MEMORY_USES)

    @property
    def code(self) -> list[str]:
        """The code that it runs: its imports, and the modules of environments named ``module:Name``.

        Environments that wrap others, as Gymnasium's for the older Gym, are told their names in the option ``env_id``.
        """
        names = (self.environment, str(self.environment_options.get("env_id", "")))
        return [*self.imports, *(name.partition(":")[0] for name in names if ":" in name)]

    def trusted(self) -> PolicyConfig:
        """The same with absolute `imports`; its code is remembered as the user's own choice."""
        config = dataclasses.replace(self, imports=absolute_imports(self.imports))
        remember_code(config.code)
        return config

    @property
    def where(self) -> str:
        """The environment in words, with its options."""
        options = ", ".join(f"{name} {value}" for name, value in self.environment_options.items())
        return bracketed(self.environment, options)

    @property
    def updates(self) -> int:
        """How often it plays and learns; with the last update, `frames` steps are reached."""
        return -(-self.frames // (self.copies * self.ppo.steps))

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits that name this configuration, whatever its length."""
        settings = dataclasses.asdict(dataclasses.replace(self, frames=1, save_every=1))
        del settings["label"]
        if self.memory == "kept":
            del settings["memory"]  # so that runs from before there was a choice keep their names
        return digest_of(settings)
