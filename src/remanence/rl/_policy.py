"""Encoder, recurrent core, actor and critic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from remanence._validate import boolean, message, positive_int
from remanence.nn import GRU, RecurrentLayer, State, get_model
from remanence.nn._core import make_core
from remanence.rl._environment import VOCABULARY

HIDDEN = 64
WORD, TEXT = 32, 128


class Judgement(NamedTuple):
    """What a policy says about every step.

    Args:
        logits: of the actions, ``(T, B, actions)``.
        values: expected discounted return, ``(T, B)``.
        state: of the core after the last step.

    Example:
        >>> import torch
        >>> MemoryPolicy((3,), 2)(torch.zeros(5, 1, 3)).values.shape
        torch.Size([5, 1])
    """

    logits: Tensor
    values: Tensor
    state: State


class MemoryPolicy(nn.Module):
    """An actor and a critic that share a recurrent core: what they do depends on all that the core remembers.

    Pictures, ``(height, width, channels)`` of at least 7 x 7, go through three convolutions, vectors through one linear
    map. All linear maps outside of the core start with rows of unit length.

    Args:
        observation_shape: of one observation.
        actions: how many there are.
        core: one of the recurrent layers in :mod:`remanence.nn`, by name or made for the encoder's width.
        words: whether the last channel of a picture is no part of it but has numbers of words, one a cell, 0 after the
            last; a GRU reads them.
        core_options: of a core made by name; ``hidden_size`` is 64 unless told.

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
        observation_shape: Sequence[int],
        actions: int,
        core: nn.Module | str = "RelLSTM",
        *,
        words: bool = False,
        **core_options: Any,
    ) -> None:
        super().__init__()
        self.observation_shape, self.actions = tuple(observation_shape), positive_int("actions", actions)
        self.words = boolean("words", words)
        self.encoder, width = _told(self.observation_shape) if words else _encoder(self.observation_shape)
        self.core = _core(core, width, core_options)
        self.actor, self.critic = _head(self.core.output_size, actions), _head(self.core.output_size, 1)
        for module in (self.encoder, self.actor, self.critic):
            module.apply(_unit_rows)

    def forward(self, observations: Tensor, state: State | None = None, *, reset: Tensor | None = None) -> Judgement:
        """Judges whole sequences, of any number of episodes each, in one pass.

        Args:
            observations: ``(T, B, *observation_shape)``.
            state: of the core before the first step; None starts empty.
            reset: bool ``(T, B)``, True where an episode begins.
        """
        steps = observations.shape[:2]
        if observations.shape[2:] != self.observation_shape:
            expected = f"have the shape (T, B, {', '.join(map(str, self.observation_shape))})"
            raise ValueError(message("observations", expected, tuple(observations.shape)))
        features = self.encoder(observations.flatten(0, 1)).unflatten(0, steps)
        output, after = self.core(features, state, reset=reset)
        return Judgement(self.actor(output), self.critic(output).squeeze(-1), after)


class _Pictures(nn.Sequential):
    """Convolutions over ``(N, height, width, channels)``."""

    def forward(self, pictures: Tensor) -> Tensor:
        return super().forward(pictures.movedim(-1, 1))


class _Words(nn.Module):
    """Texts ``(N, L)`` of numbers, 0 after the last word, become vectors; each that occurs is read once."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY + 1, WORD, padding_idx=0)
        self.reader = GRU(WORD, TEXT)

    def forward(self, words: Tensor) -> Tensor:
        texts, which = words.unique(dim=0, return_inverse=True)
        last = (texts > 0).sum(1).clamp(min=1) - 1
        read, _ = self.reader(self.embedding(texts[:, : int(last.max()) + 1]).movedim(1, 0))
        return read[last, torch.arange(len(texts))][which]


class _Told(nn.Module):
    """A picture, and in its last channel words."""

    def __init__(self, pictures: nn.Module) -> None:
        super().__init__()
        self.pictures, self.words = pictures, _Words()

    def forward(self, seen: Tensor) -> Tensor:
        words = seen[..., -1].flatten(1).long()
        return torch.cat([self.pictures(seen[..., :-1]), self.words(words)], dim=-1)


def _told(shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    if len(shape) != 3:
        raise ValueError(message("words", "be False where no picture is seen", f"observations of shape {shape}"))
    pictures, width = _encoder((*shape[:2], shape[2] - 1))
    return _Told(pictures), width + TEXT


def _encoder(shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    if len(shape) == 1:
        return nn.Sequential(nn.Linear(shape[0], HIDDEN), nn.Tanh()), HIDDEN
    if len(shape) != 3 or min(shape[:2]) < 7:
        expected = "be (features,), or (height, width, channels) of at least 7 x 7"
        raise ValueError(message("observation_shape", expected, shape))
    height, width = ((size - 1) // 2 - 2 for size in shape[:2])
    layers = (
        *(nn.Conv2d(shape[2], 16, 2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 2), nn.ReLU()),
        *(nn.Conv2d(32, 64, 2), nn.ReLU(), nn.Flatten()),
    )
    return _Pictures(*layers), 64 * height * width


def _core(core: nn.Module | str, width: int, options: dict[str, Any]) -> RecurrentLayer:
    if isinstance(core, str):
        kind, options = get_model(core), {"hidden_size": HIDDEN, **options}
        if not issubclass(kind, RecurrentLayer):
            raise _refused(core)
    made = make_core(core, width, options, 0.0)
    if not isinstance(made, RecurrentLayer) or made.bidirectional or made.batch_first:
        raise _refused(type(made).__name__)
    return made


def _refused(name: str) -> ValueError:
    expected = "be a recurrent layer of remanence.nn that runs forward over (T, B, features)"
    return ValueError(message("core", expected, name, "Name one: LSTM, MemLSTM, RelLSTM, ..."))


def _head(width: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs))


def _unit_rows(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.normal_(module.weight)
        module.weight.data = functional.normalize(module.weight.data, dim=1)
        nn.init.zeros_(module.bias)
