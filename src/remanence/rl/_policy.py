"""Encoder, recurrent core, actor and critic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional

from remanence._validate import boolean, message, one_of, positive_int
from remanence.nn import evaluating
from remanence.rl._actions import Actions, GivenAction, actions_of
from remanence.rl._core import HIDDEN, MEMORY_USES, CoreState, MemoryUse, core_of, run_core, step_core
from remanence.rl._encoder import encoder_of
from remanence.rl._observations import LONGEST_TEXT, Field, Observation, Shown, each_field, fields_of, read

if TYPE_CHECKING:  # gymnasium is an extra
    from gymnasium import Space

Seen: TypeAlias = "Space | Sequence[int] | Sequence[Field]"
"""What a policy sees: a space, the shape of one observation, or fields."""


class Judgement(NamedTuple):
    """What a policy gives at every step.

    Args:
        logits: the actor's output, ``(T, B, outputs)``: logits of the actions, or means of continuous ones.
        values: expected discounted return, ``(T, B)``.
        state: the core's state after the last step.

    Example:
        >>> import torch
        >>> MemoryPolicy((3,), 2)(torch.zeros(5, 1, 3)).values.shape
        torch.Size([5, 1])
    """

    logits: Tensor
    values: Tensor
    state: CoreState


class MemoryPolicy(nn.Module):
    """An actor and a critic that share a recurrent core: what they do depends on everything the core remembers.

    Pictures, ``(height, width, channels)`` of at least 7 x 7, go through three convolutions, with strides from 36 x 36
    on. All vectors together go through one linear map, and a GRU reads texts. Linear maps outside of the core start
    with rows of unit length.

    Args:
        observation: shape of one observation, a Gymnasium space, or fields from :func:`fields_of`.
        actions: how many there are, or a Gymnasium space.
        core: one of the recurrent layers in :mod:`remanence.nn`, by name or made for the encoder's width.
        words: whether texts are read. With a shape, the policy reads a ``"mission"`` as well as an ``"image"``.
        squash: whether ``tanh`` brings continuous actions into their box; otherwise they are clipped.
        forgets: whether the core is reset at every step: the same network without memory.
        memory_use: what becomes of the core's attended memory while an episode goes on. ``"kept"``: it stays.
            ``"emptied"``: it is emptied before every step, and only the recurrent state stays. ``"emptied_acting"``: it
            is emptied before every call, so at every step while the policy acts, but at the start of a chunk while it
            learns; the code of Kerg et al. 2020 does that.
        core_options: of a core made by name (default ``hidden_size``: 64), such as ``recent=5`` of a RelLSTM or
            ``memory=Screened(5, 5)`` of an LSTM.

    Example:
        >>> import torch
        >>> policy = MemoryPolicy((7, 7, 3), 7, "RelLSTM", recent=5, relevant=5)
        >>> reset = torch.zeros(20, 4, dtype=torch.bool)
        >>> logits, values, state = policy(torch.zeros(20, 4, 7, 7, 3), reset=reset)
        >>> logits.shape, values.shape
        (torch.Size([20, 4, 7]), torch.Size([20, 4]))
    """

    def __init__(
        self,
        observation: Seen,
        actions: Space | int,
        core: nn.Module | str = "RelLSTM",
        *,
        words: bool = False,
        squash: bool = False,
        forgets: bool = False,
        memory_use: MemoryUse = "kept",
        **core_options: Any,
    ) -> None:
        super().__init__()
        self.words = boolean("words", words)
        self.forgets = boolean("forgets", forgets)
        self.memory_use: MemoryUse = one_of("memory_use", memory_use, MEMORY_USES)
        self.fields = _fields(observation, words)
        if isinstance(actions, int):
            positive_int("actions", actions)
        distribution = actions_of(actions, boolean("squash", squash))
        self.encoder, width = encoder_of(self.fields)
        self.core = core_of(core, width, core_options)
        self.actor = _head(self.core.output_size, distribution.outputs)
        self.critic = _head(self.core.output_size, 1)
        for module in (self.encoder, self.actor, self.critic):
            module.apply(_unit_rows)
        self.actions: Actions = distribution

    def forward(
        self, observations: Observation, state: CoreState | None = None, *, reset: Tensor | None = None
    ) -> Judgement:
        """Judges whole sequences, of any number of episodes each, in one pass.

        Args:
            observations: ``(T, B, *shape)``, or such a tensor for each field where there are several.
            state: the core's state before the first step; None starts empty.
            reset: bool ``(T, B)``, True where an episode begins.
        """
        output, after = self.remember(observations, state, reset=reset)
        return Judgement(self.actor(output), self.expect(output), after)

    def remember(
        self, observations: Observation, state: CoreState | None = None, *, reset: Tensor | None = None
    ) -> tuple[Tensor, CoreState]:
        """What the core says of whole sequences, before the actor and the critic judge it.

        Returns:
            The core's output, ``(T, B, output_size)``, and its state after the last step.
        """
        self._check(observations, 2)
        any_field = observations
        if not isinstance(any_field, Tensor):
            any_field = any_field[self.fields[0].name]
        steps = any_field.shape[:2]
        features = self.encoder(each_field(lambda part: part.flatten(0, 1), observations)).unflatten(0, steps)
        if self.forgets:
            reset = torch.ones(steps, dtype=torch.bool, device=features.device)
        return run_core(self.core, features, state, reset, self.memory_use)

    def step(self, seen: Observation, state: CoreState, begins: Tensor | None = None) -> tuple[Tensor, CoreState]:
        """One step in all rows: the same numbers as :meth:`remember`, and sooner inside ``torch.no_grad()``.

        Args:
            seen: ``(B, *shape)``, or such a tensor for each field.
            state: the core's state before.
            begins: bool ``(B,)``, True where an episode begins.

        Returns:
            The core's output, ``(B, output_size)``, and its state after the step.
        """
        self._check(seen, 1)
        features = self.encoder(seen)
        if self.forgets:
            begins = torch.ones(len(features), dtype=torch.bool, device=features.device)
        return step_core(self.core, features, state, begins, self.memory_use)

    def act(
        self, observation: Shown, state: CoreState | None = None, *, likeliest: bool = True
    ) -> tuple[GivenAction | numpy.ndarray, CoreState]:
        """What to do in one environment.

        Args:
            observation: as the environment shows it.
            state: None where an episode begins, then what the call before has returned.
            likeliest: take the likeliest action; otherwise one is drawn by torch's global generator.

        Returns:
            The action as the environment's `step` takes it, and the state for the next call.

        Example:
            >>> import gymnasium
            >>> environment = gymnasium.make("CartPole-v1")
            >>> policy = MemoryPolicy(environment.observation_space, environment.action_space)
            >>> action, state = policy.act(environment.reset(seed=0)[0])
            >>> action in environment.action_space
            True
        """
        if state is None:
            state = self.core.initial_state(1)
        seen = each_field(lambda part: part.unsqueeze(0), read(self.fields, observation))
        with torch.no_grad(), evaluating(self):
            output, state = self.step(seen, state)
            [chosen] = self.actions.choose(self.actor(output), likeliest)
        action = self.actions.for_environment(chosen)
        if isinstance(action, list):
            return numpy.array(action, dtype=self.actions.dtype), state
        return action, state

    def expect(self, output: Tensor) -> Tensor:
        """The return that the critic expects, ``(...)``."""
        return self.critic(output).squeeze(-1)

    def _check(self, observations: Observation, leading: int) -> None:
        given: Mapping[str, Tensor]
        if len(self.fields) == 1:
            if isinstance(observations, Tensor) and observations.shape[leading:] == self.fields[0].shape:
                return
            given = {self.fields[0].name: cast(Tensor, observations)}
        elif isinstance(observations, Tensor):
            given = {"": observations}
        else:
            given = observations
        if set(given) != {field.name for field in self.fields}:
            expected = f"have the fields {', '.join(field.name for field in self.fields)}"
            raise ValueError(message("observations", expected, ", ".join(given) or "one tensor"))
        for field in self.fields:
            part = given[field.name]
            if part.shape[leading:] != field.shape:
                sizes = (*("T", "B")[-leading:], *map(str, field.shape))
                expected = f"have the shape ({', '.join(sizes)})"
                name = "observations"
                if len(self.fields) > 1:
                    name = f"observations[{field.name!r}]"
                raise ValueError(message(name, expected, tuple(part.shape)))


def _fields(observation: Seen, words: bool) -> tuple[Field, ...]:
    if hasattr(observation, "sample") and hasattr(observation, "contains"):  # a Gymnasium space
        return fields_of(cast("Space", observation), words)
    given = tuple(cast(Sequence[int] | Sequence[Field], observation))
    fields = tuple(part for part in given if isinstance(part, Field))
    if given and len(fields) == len(given):
        return fields
    shape = tuple(int(size) for size in cast(Sequence[int], given))
    if words and len(shape) != 3:
        raise ValueError(message("words", "be False where no picture is seen", f"observations of shape {shape}"))
    if len(shape) != 1 and (len(shape) != 3 or min(shape[:2]) < 7):
        expected = "be (features,), or (height, width, channels) of at least 7 x 7"
        raise ValueError(message("observation_shape", expected, shape))
    if words:
        return Field("image", "picture", shape), Field("mission", "text", (LONGEST_TEXT,))
    if len(shape) == 3:
        return (Field("", "picture", shape),)
    return (Field("", "vector", shape),)


def _head(width: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs))


def _unit_rows(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight)
        module.weight.data = functional.normalize(module.weight.data, dim=1)
        nn.init.zeros_(module.bias)
