"""From what a policy sees to a vector for its core: pictures, texts and vectors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from remanence.nn import GRU
from remanence.rl._core import HIDDEN
from remanence.rl._observations import LARGE, VOCABULARY, Field

WORD = 32
"""Width of a word."""
TEXT = 128
"""Width of a text."""
FEATURES = 512
"""Width of a large picture."""


def encoder_of(fields: Sequence[Field]) -> tuple[nn.Module, int]:
    """The encoder of what a policy sees, and the width of what it gives.

    Example:
        >>> encoder_of([Field("", "vector", (3,))])[1]
        64
    """
    if len(fields) == 1:
        return _single(fields[0])
    several = _Several(fields)
    return several, several.width


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


class _Vectors(nn.Sequential):
    """One linear map of all vectors ``(N, features)`` together."""

    def __init__(self, features: int) -> None:
        super().__init__(nn.Linear(features, HIDDEN), nn.Tanh())


class _Several(nn.Module):
    """Encoders of several fields side by side: pictures and texts each have one, all vectors share one."""

    def __init__(self, fields: Sequence[Field]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict()
        self.reads: dict[str, list[str]] = {}
        self.width = 0
        for kind in ("picture", "text"):
            for field in fields:
                if field.kind == kind:
                    self._add(self._free(field.name), [field.name], *_single(field))
        vectors = [field for field in fields if field.kind == "vector"]
        if vectors:
            features = sum(field.shape[0] for field in vectors)
            self._add("vectors", [field.name for field in vectors], _Vectors(features), HIDDEN)

    def _free(self, name: str) -> str:
        """A name that a part may have: without dots, and neither ours nor one of torch's."""
        name = name.replace(".", "/")
        while name == "vectors" or hasattr(self.parts, name):
            name += "_"
        return name

    def _add(self, name: str, reads: list[str], module: nn.Module, width: int) -> None:
        self.parts[name] = module
        self.reads[name] = reads
        self.width += width

    def forward(self, seen: dict[str, Tensor]) -> Tensor:
        encoded = []
        for name, part in self.parts.items():
            read = [seen[field] for field in self.reads[name]]
            encoded.append(part(torch.cat(read, dim=-1)))
        return torch.cat(encoded, dim=-1)


def _single(field: Field) -> tuple[nn.Module, int]:
    if field.kind == "text":
        return _Words(), TEXT
    if field.kind == "vector":
        return _Vectors(field.shape[0]), HIDDEN
    if min(field.shape[:2]) >= LARGE:
        return _large_pictures(*field.shape), FEATURES
    # Sides after a convolution of 2, pooling by 2, and two more convolutions of 2.
    height, width = ((size - 1) // 2 - 2 for size in field.shape[:2])
    layers = (
        *(nn.Conv2d(field.shape[2], 16, 2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 2), nn.ReLU()),
        *(nn.Conv2d(32, 64, 2), nn.ReLU(), nn.Flatten()),
    )
    return _Pictures(*layers), 64 * height * width


def _large_pictures(height: int, width: int, channels: int) -> nn.Module:
    """The convolutions of Mnih et al. 2015, as usual for pictures of a screen."""
    # Sides after convolutions of 8 by 4, 4 by 2 and 3 by 1.
    sides = [((size - 4) // 4 - 2) // 2 - 2 for size in (height, width)]
    return _Pictures(
        *(nn.Conv2d(channels, 32, 8, stride=4), nn.ReLU()),
        *(nn.Conv2d(32, 64, 4, stride=2), nn.ReLU()),
        *(nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(64 * sides[0] * sides[1], FEATURES), nn.ReLU()),
    )
