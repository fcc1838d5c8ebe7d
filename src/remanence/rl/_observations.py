"""What a policy sees: the parts of an observation, and how each becomes numbers."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import numpy
import torch
from torch import Tensor

from remanence._validate import message, one_of

if TYPE_CHECKING:  # gymnasium is an extra
    from gymnasium import Space
    from gymnasium.spaces import Box

VOCABULARY = 258
"""Numbers that words are hashed to: few, yet no two words of MiniGrid's missions collide."""
LONGEST_TEXT = 49
"""Most words of a text that a policy can read."""
LARGE = 36
"""Height and width from which a box is always a picture, and its bytes are colours; smaller ones may hold codes."""

Shown: TypeAlias = "numpy.ndarray | numpy.generic | int | str | tuple[Shown, ...] | Mapping[str, Shown]"
"""An observation as an environment gives it."""
Observation: TypeAlias = Tensor | Mapping[str, Tensor]
"""One tensor, or one tensor for each field where there are several."""


@dataclass(frozen=True)
class Field:
    """One part of an observation.

    Args:
        name: of the part; parts of parts are joined by dots, and a whole observation has an empty name.
        kind: ``"vector"`` (numbers, one-hot choices), ``"picture"`` (height, width, channels) or ``"text"`` (numbers of
            words, 0 after the last).
        shape: of the tensor that a policy is given, ``(features,)``, ``(height, width, channels)`` or ``(words,)``.
        sizes: of the choices that a vector holds one-hot; empty where it holds numbers.
        starts: smallest value of each choice.
        channels_first: whether the environment shows a picture as (channels, height, width).
        scale: what its numbers are divided by.

    Example:
        >>> Field("velocity", "vector", (3,)).shape
        (3,)
    """

    name: str
    kind: Literal["vector", "picture", "text"]
    shape: tuple[int, ...]
    sizes: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    channels_first: bool = False
    scale: float = 1.0

    def __post_init__(self) -> None:
        one_of("kind", self.kind, ("vector", "picture", "text"))

    def read(self, observation: Shown) -> Tensor:
        """This part of an observation as a tensor of `shape`, a copy."""
        return self.read_all([observation])[0]

    def read_all(self, observations: Sequence[Shown]) -> Tensor:
        """This part of several observations side by side, ``(B, *shape)``, a copy."""
        parts = [_part(observation, self.name) for observation in observations]
        if self.kind == "text":
            return torch.stack([_words(str(part)) for part in parts])
        if self.sizes:
            return _one_hot(numpy.array(parts).reshape(len(parts), -1), self.sizes, self.starts)
        return self._numbers(parts)

    def _numbers(self, parts: Sequence[Shown]) -> Tensor:
        given = self.shape
        if self.channels_first:
            given = (self.shape[2], *self.shape[:2])
        try:
            numbers = numpy.array(parts, dtype=numpy.float32).reshape(len(parts), *given)
        except ValueError as error:
            sizes = sorted({numpy.shape(cast(numpy.ndarray, part)) for part in parts})
            name = f"observation {self.name}".strip()
            raise ValueError(message(name, f"fit {given}, as its space says", sizes)) from error
        if self.scale != 1.0:
            numbers /= self.scale
        if self.channels_first:
            numbers = numpy.ascontiguousarray(numpy.moveaxis(numbers, 1, -1))
        return torch.from_numpy(numbers)


def fields_of(space: Space, words: bool = False, only: Sequence[str] = ()) -> tuple[Field, ...]:
    """The parts of a Gymnasium observation space, as a policy reads them.

    Boxes are vectors, or pictures where they are (height, width, channels) of at least 7 x 7. From 36 x 36 on,
    (channels, height, width) and (height, width) are pictures too, and bytes are divided by 255. Discrete,
    MultiDiscrete and MultiBinary are vectors, choices one-hot. Dictionaries and tuples have a field for each part.

    Args:
        space: of the observations.
        words: whether texts are read; they are left out otherwise.
        only: names of the fields to take; empty takes all.

    Raises:
        ValueError: If a part is of another kind, or nothing is left to see.

    Example:
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> [field.shape for field in fields_of(Dict(a=Box(0, 1, (2, 2)), b=Discrete(5)))]
        [(4,), (5,)]
    """
    found = {field.name: field for field in _parts(space, "")}
    for name in only:
        one_of("observe", name, list(found))
    if words and not any(field.kind == "text" for field in found.values()):
        raise ValueError(message("words", "be False where there is no 'mission' or other text", space))
    chosen = tuple(field for name, field in found.items() if not only or name in only)
    seen = tuple(field for field in chosen if words or field.kind != "text")
    if not seen:
        raise ValueError(message("environment", "show more than text, or be read with `words`", space))
    return seen


def _part(whole: Shown, name: str) -> Shown:
    """The part that :func:`_parts` gave this name; keys may have dots of their own."""
    if not name:
        return whole
    if isinstance(whole, tuple):
        place, _, inside = name.partition(".")
        return _part(whole[int(place)], inside)
    parts = cast(Mapping[str, Shown], whole)
    if name in parts:
        return parts[name]
    for key in parts:
        if name.startswith(f"{key}."):
            return _part(parts[key], name.removeprefix(f"{key}."))
    raise ValueError(message("observation", f"have the part {name!r}, as its space says", sorted(parts)))


def read(fields: Sequence[Field], observation: Shown) -> Observation:
    """An observation as a policy takes it: a tensor where there is one field, else a dictionary of them."""
    if len(fields) == 1:
        return fields[0].read(observation)
    return {field.name: field.read(observation) for field in fields}


def read_all(fields: Sequence[Field], observations: Sequence[Shown]) -> Observation:
    """Several observations side by side as a policy takes them, ``(B, ...)``."""
    if len(fields) == 1:
        return fields[0].read_all(observations)
    return {field.name: field.read_all(observations) for field in fields}


def stack(observations: Sequence[Observation]) -> Observation:
    """Several observations side by side, in a new first dimension."""
    first = observations[0]
    if isinstance(first, Tensor):
        return torch.stack(cast(list[Tensor], observations))
    several = cast(Sequence[Mapping[str, Tensor]], observations)
    return {name: torch.stack([one[name] for one in several]) for name in first}


def each_field(change: Callable[[Tensor], Tensor], observation: Observation) -> Observation:
    """An observation with every field changed alike.

    Example:
        >>> each_field(lambda part: part[0], {"a": torch.zeros(1, 2)})["a"].shape
        torch.Size([2])
    """
    if isinstance(observation, Tensor):  # a general walk over trees would take longer than a small step
        return change(observation)
    return {name: change(part) for name, part in observation.items()}


def word_numbers(text: str) -> list[int]:
    """The words of a text as numbers from 1 to `VOCABULARY`, the same on every machine.

    Example:
        >>> word_numbers("go to the red door") == word_numbers("Go to the red door!")
        True
    """
    return [1 + zlib.crc32(word.encode()) % VOCABULARY for word in re.findall("[a-z]+", text.lower())]


def _parts(space: Space, name: str) -> Iterator[Field]:
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _parts(part, _inside(name, key))
    elif isinstance(space, spaces.Tuple):
        for place, part in enumerate(space.spaces):
            yield from _parts(part, _inside(name, str(place)))
    elif isinstance(space, spaces.Box):
        yield _box(space, name)
    elif isinstance(space, spaces.Discrete):
        yield Field(name, "vector", (int(space.n),), (int(space.n),), (int(space.start),))
    elif isinstance(space, spaces.MultiDiscrete):
        sizes = tuple(int(size) for size in space.nvec.flatten())
        starts = tuple(int(start) for start in space.start.flatten())
        yield Field(name, "vector", (sum(sizes),), sizes, starts)
    elif isinstance(space, spaces.MultiBinary):
        yield Field(name, "vector", (int(numpy.prod(space.shape)),))
    elif isinstance(space, spaces.Text) or space.dtype == numpy.dtype(str):  # the latter is MiniGrid's own kind
        yield Field(name, "text", (LONGEST_TEXT,))
    else:
        expected = "be made of Box, Discrete, MultiDiscrete, MultiBinary, Text, Dict and Tuple"
        found = f"{space} as {name!r}" if name else str(space)
        raise ValueError(message("observation space", expected, found))


def _inside(name: str, key: str) -> str:
    """The name of a part of what has a name, or of the whole observation."""
    if not name:
        return key
    return f"{name}.{key}"


def _box(space: Box, name: str) -> Field:
    shape = tuple(int(size) for size in space.shape)
    if len(shape) == 3 and min(shape[:2]) >= 7:
        return Field(name, "picture", shape, scale=_scale(space, shape[:2]))
    if len(shape) == 3 and min(shape[1:]) >= LARGE:
        channels, *sides = shape
        return Field(name, "picture", (*sides, channels), channels_first=True, scale=_scale(space, sides))
    if len(shape) == 2 and min(shape) >= LARGE:
        return Field(name, "picture", (*shape, 1), scale=_scale(space, shape))
    return Field(name, "vector", (math.prod(shape),))


def _scale(space: Box, sides: Sequence[int]) -> float:
    """What the numbers of a picture are divided by. Bytes of a small one are often codes, as in MiniGrid."""
    if space.dtype == numpy.uint8 and min(sides) >= LARGE:
        return 255.0
    return 1.0


def _one_hot(chosen: numpy.ndarray, sizes: tuple[int, ...], starts: tuple[int, ...]) -> Tensor:
    """Choices ``(B, choices)`` become ``(B, sum of sizes)``, a 1 for each."""
    numbers = (chosen - starts).astype(numpy.int64)
    if (numbers < 0).any() or (numbers >= sizes).any():
        raise ValueError(message("observation", f"choose from {sizes} as its space says", chosen.tolist()))
    places = numbers + numpy.cumsum((0, *sizes[:-1]))
    encoded = numpy.zeros((len(chosen), sum(sizes)), numpy.float32)
    numpy.put_along_axis(encoded, places, 1.0, axis=1)
    return torch.from_numpy(encoded)


def _words(text: str) -> Tensor:
    numbers = word_numbers(text)
    if len(numbers) > LONGEST_TEXT:
        raise ValueError(message("mission", f"have at most {LONGEST_TEXT} words", repr(text)))
    told = torch.zeros(LONGEST_TEXT, dtype=torch.int64)
    told[: len(numbers)] = torch.tensor(numbers, dtype=torch.int64)
    return told
