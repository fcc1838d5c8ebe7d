"""What a policy does: from the actor's output to an action, its probability, and what the environment receives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional

from remanence._validate import message

if TYPE_CHECKING:  # gymnasium is an extra
    from gymnasium import Space

GivenAction: TypeAlias = "int | float | list[GivenAction]"
"""An action as a checkpoint can hold it: a number, or nested lists of the space's shape."""


class Actions(nn.Module):
    """The actions of a policy: a distribution over them for every output of the actor.

    Use :func:`actions_of`. `given` is ``(..., outputs)``, the actor's output; `actions` have its leading dimensions.
    """

    outputs: int
    """Numbers that the actor gives."""
    dtype: type = numpy.int64
    """Of actions that are arrays."""

    def draw(self, given: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """One action for each row of `given` ``(B, outputs)``."""
        return self.pick(given, self.noise(given.shape, generator).to(given))

    def noise(self, shape: Sequence[int], generator: torch.Generator | None = None) -> Tensor:
        """Random numbers ``(..., outputs)`` that decide between the actions; of many steps they come sooner at once."""
        raise NotImplementedError

    def pick(self, given: Tensor, noise: Tensor) -> Tensor:
        """The action that such numbers decide on, for each row of `given`."""
        raise NotImplementedError

    def likeliest(self, given: Tensor) -> Tensor:
        """The mode for each row of `given`."""
        raise NotImplementedError

    def log_chance(self, given: Tensor, actions: Tensor) -> Tensor:
        """Logarithm of the probability, or density, of `actions`: ``(...)``."""
        raise NotImplementedError

    def entropy(self, given: Tensor) -> Tensor:
        """Entropy in nats: ``(...)``."""
        raise NotImplementedError

    def choose(self, given: Tensor, likeliest: bool, generator: torch.Generator | None = None) -> Tensor:
        """The mode for each row of `given`, or an action that is drawn."""
        if likeliest:
            return self.likeliest(given)
        return self.draw(given, generator)

    def judge(self, given: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both: :meth:`log_chance` of `actions`, and :meth:`entropy`."""
        return self.log_chance(given, actions), self.entropy(given)

    def for_environment(self, action: Tensor) -> GivenAction:
        """One action as the environment's `step` takes it, and as a checkpoint can hold it."""
        raise NotImplementedError

    def for_environments(self, actions: Tensor) -> Sequence[GivenAction]:
        """The same for all copies at once, ``(B, ...)``."""
        return [self.for_environment(action) for action in actions]


class Choice(Actions):
    """One of finitely many actions; the actor gives their logits.

    Args:
        count: how many.
        start: number of the first.

    Example:
        >>> Choice(3).likeliest(torch.tensor([[0.0, 2.0, 1.0]]))
        tensor([1])
    """

    def __init__(self, count: int, start: int = 0) -> None:
        super().__init__()
        self.outputs = count
        self.start = start

    def noise(self, shape: Sequence[int], generator: torch.Generator | None = None) -> Tensor:
        """Gumbel's: less the logarithm of a time until each action happens, at rates that its logit raises."""
        return -torch.empty(shape).exponential_(generator=generator).log()

    def pick(self, given: Tensor, noise: Tensor) -> Tensor:
        """The action that happens first; `multinomial` takes longer."""
        return (given + noise).argmax(-1)

    def likeliest(self, given: Tensor) -> Tensor:
        """The mode for each row."""
        return given.argmax(-1)

    def log_chance(self, given: Tensor, actions: Tensor) -> Tensor:
        """Logarithm of the probability."""
        return _taken(functional.log_softmax(given, dim=-1), actions)

    def entropy(self, given: Tensor) -> Tensor:
        """Entropy in nats."""
        return _entropy(functional.log_softmax(given, dim=-1))

    def judge(self, given: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Logarithm of the probability, and the entropy."""
        log_chances = functional.log_softmax(given, dim=-1)
        return _taken(log_chances, actions), _entropy(log_chances)

    def for_environment(self, action: Tensor) -> int:
        """The number of the action."""
        return int(action) + self.start

    def for_environments(self, actions: Tensor) -> list[int]:
        """The numbers of the actions."""
        return [action + self.start for action in actions.tolist()]


def _taken(log_chances: Tensor, actions: Tensor) -> Tensor:
    return log_chances.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def _entropy(log_chances: Tensor) -> Tensor:
    return -(log_chances.exp() * log_chances).sum(-1)


class Choices(Actions):
    """Several independent choices at once (MultiDiscrete, MultiBinary); the actor gives the logits of all.

    Args:
        choices: each of them.
        shape: of the action that the environment takes.

    Example:
        >>> Choices([Choice(2), Choice(3)], (2,)).outputs
        5
    """

    def __init__(self, choices: list[Choice], shape: tuple[int, ...]) -> None:
        super().__init__()
        self.choices = choices
        self.sizes = [choice.outputs for choice in choices]
        self.outputs = sum(self.sizes)
        self.shape = shape

    def noise(self, shape: Sequence[int], generator: torch.Generator | None = None) -> Tensor:
        """That of all choices side by side."""
        return self.choices[0].noise(shape, generator)

    def pick(self, given: Tensor, noise: Tensor) -> Tensor:
        """One action for each row, ``(B, choices)``."""
        return self.likeliest(given + noise)

    def likeliest(self, given: Tensor) -> Tensor:
        """The mode for each row."""
        return torch.stack([part.argmax(-1) for part in given.split(self.sizes, dim=-1)], dim=-1)

    def log_chance(self, given: Tensor, actions: Tensor) -> Tensor:
        """Logarithm of the probability: choices are independent, so theirs add up."""
        parts = zip(self.choices, given.split(self.sizes, dim=-1), actions.unbind(-1), strict=True)
        return torch.stack([choice.log_chance(part, action) for choice, part, action in parts]).sum(0)

    def entropy(self, given: Tensor) -> Tensor:
        """Entropy in nats, all choices together."""
        parts = zip(self.choices, given.split(self.sizes, dim=-1), strict=True)
        return torch.stack([choice.entropy(part) for choice, part in parts]).sum(0)

    def for_environment(self, action: Tensor) -> GivenAction:
        """Numbers of the choices, as nested lists of the space's shape."""
        numbers = [choice.for_environment(part) for choice, part in zip(self.choices, action, strict=True)]
        return numpy.array(numbers).reshape(self.shape).tolist()


class Gaussian(Actions):
    """Continuous actions: the actor gives the means, and standard deviations are learned, the same in every state.

    Args:
        low: of the box, ``(features,)``; may be infinite.
        high: of the box.
        shape: of the action that the environment takes.
        squash: whether ``tanh`` brings what was drawn into the box; otherwise it is clipped there.

    Example:
        >>> box = Gaussian(torch.tensor([-2.0]), torch.tensor([2.0]), (1,), squash=True)
        >>> box.for_environment(torch.tensor([0.0])), box.outputs
        ([0.0], 1)
    """

    dtype = numpy.float32
    low: Tensor
    high: Tensor

    def __init__(self, low: Tensor, high: Tensor, shape: tuple[int, ...], squash: bool = False) -> None:
        super().__init__()
        self.outputs = len(low)
        self.shape = shape
        self.squash = squash
        self.register_buffer("low", low, persistent=False)
        self.register_buffer("high", high, persistent=False)
        self.log_deviation = nn.Parameter(torch.zeros(self.outputs))
        if squash and not bool((low.isfinite() & high.isfinite()).all()):
            raise ValueError(
                message("squash", "be False where actions have no bounds", f"{low.tolist()} to {high.tolist()}")
            )

    def noise(self, shape: Sequence[int], generator: torch.Generator | None = None) -> Tensor:
        """Standard normal numbers."""
        return torch.empty(shape).normal_(generator=generator)

    def pick(self, given: Tensor, noise: Tensor) -> Tensor:
        """One action for each row, before it is squashed or clipped."""
        return given + self.log_deviation.exp() * noise

    def likeliest(self, given: Tensor) -> Tensor:
        """The mean for each row."""
        return given

    def log_chance(self, given: Tensor, actions: Tensor) -> Tensor:
        """Logarithm of the density, of the squashed action where it is squashed."""
        apart = (actions - given) / self.log_deviation.exp()
        density = -0.5 * apart.square() - self.log_deviation - 0.5 * math.log(2 * math.pi)
        if self.squash:
            # log(1 - tanh(u)^2) without cancellation, and the width of the box.
            slope = 2 * (math.log(2) - actions - functional.softplus(-2 * actions))
            density = density - slope - ((self.high - self.low) / 2).log()
        return density.sum(-1)

    def entropy(self, given: Tensor) -> Tensor:
        """Entropy in nats, before squashing: after it there is no closed form."""
        entropy = (self.log_deviation + 0.5 * math.log(2 * math.pi * math.e)).sum()
        return entropy.expand(given.shape[:-1])

    def for_environment(self, action: Tensor) -> GivenAction:
        """The action inside the box, as nested lists of the space's shape."""
        if self.squash:
            action = self.low + (action.tanh() + 1) / 2 * (self.high - self.low)
        return action.clamp(self.low, self.high).reshape(self.shape).tolist()


def actions_of(space: Space | int, squash: bool = False) -> Actions:
    """The actions of a Gymnasium action space, or of a number of actions.

    Args:
        space: Discrete, MultiDiscrete, MultiBinary or Box; or how many actions there are.
        squash: of continuous actions, see :class:`Gaussian`.

    Raises:
        ValueError: If the space is of another kind.

    Example:
        >>> from gymnasium.spaces import Box
        >>> actions_of(Box(-1.0, 1.0, (2,))).outputs, actions_of(7).outputs
        (2, 7)
    """
    if isinstance(space, int):
        return Choice(space)
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return Choice(int(space.n), int(space.start))
    if isinstance(space, spaces.MultiDiscrete):
        pairs = zip(space.nvec.flatten(), space.start.flatten(), strict=True)
        return Choices([Choice(int(size), int(start)) for size, start in pairs], space.shape)
    if isinstance(space, spaces.MultiBinary):
        return Choices([Choice(2) for _ in range(int(numpy.prod(space.shape)))], space.shape)
    if isinstance(space, spaces.Box):
        low, high = (torch.from_numpy(bound.astype(numpy.float32).flatten()) for bound in (space.low, space.high))
        return Gaussian(low, high, space.shape, squash)
    expected = "be Discrete, MultiDiscrete, MultiBinary or Box"
    raise ValueError(message("action space", expected, space))
