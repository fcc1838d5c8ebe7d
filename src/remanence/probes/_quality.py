"""What a reader sees of the information in a text: words spelt right, titles closed, a topic kept."""

from __future__ import annotations

import collections
import dataclasses
import math
import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from remanence._validate import message, positive_int
from remanence.figures import Axis, Curve, Figure

from ._result import ProbeResult

_WORD = re.compile(r"[^\W\d_]+")
_TITLE = re.compile(r"^\s*((?:=\s*)+)(.*?)((?:\s*=)*)\s*$", re.MULTILINE)
_DISTANCES = (1, 2, 4, 8)
_PAIRS = 2000
"""Pairs of windows for each distance: enough for two digits."""


@dataclasses.dataclass(frozen=True)
class TextQuality(ProbeResult):
    """Spelling, titles and topic of a text, compared with a reference.

    Example:
        >>> text_quality("the cta sat", "the cat sat").valid_words.__round__(2)
        0.67
    """

    kind: ClassVar[str] = "text_quality"

    words: int
    """How many words the text has."""
    valid_words: float
    """Share of them that occur in the reference; NaN without words."""
    titles: int
    """How many lines begin with ``=``."""
    balanced_titles: float
    """Share of them that end with as many ``=``; NaN without titles."""
    distances: tuple[int, ...]
    """In windows."""
    topic: tuple[float, ...]
    """How much more alike two windows at these distances are than windows of any two places: 0 for no topic."""
    window: int
    """Words of a window."""

    @property
    def verdict(self) -> str:
        """All three in one line."""
        titles = "no titles"
        if self.titles:
            titles = f"{self.balanced_titles:.0%} of {self.titles} titles closed"
        topic = "too short for a topic"
        if self.topic and math.isfinite(self.topic[0]):
            topic = f"topic {self.topic[0]:.3f} between neighbouring windows of {self.window} words"
            topic += f", {self.topic[-1]:.3f} at {self.distances[-1]} windows"
        return f"{self.valid_words:.1%} of {self.words:,} words are in the reference; {titles}; {topic}"

    def figures(self) -> list[Figure]:
        """Topic against distance."""
        curve = Curve("topic", self.distances, self.topic, "both")
        axes = (Axis("windows apart"), Axis("likeness above chance"))
        return [Figure("Topic", self.verdict, (curve,), *axes)]


def text_quality(
    text: str | Sequence[str], reference: str | Sequence[str], *, window: int = 50, seed: int = 0
) -> TextQuality:
    r"""Measures what Appendix F of Shen 2019 describes in words: short, middle and long range as a reader sees it.

    Args:
        text: one text, or several.
        reference: what the model learnt from: its words are the valid ones, and rare ones there weigh more in a topic.
        window: words whose topic is compared; the likeness of two windows is the cosine of their words' counts, each
            weighted by the logarithm of its rarity.
        seed: of the pairs of windows that stand for any two places.

    Raises:
        ValueError: the reference has no words.

    Reference:
        Shen 2019, "Mutual information scaling and expressive power of sequence models", Appendix F.

    Example:
        >>> text_quality(" = A title = \n = = Unclosed = \n", "a title").balanced_titles
        0.5
    """
    positive_int("window", window)
    positive_int("seed", seed, 0)
    texts = [text] if isinstance(text, str) else list(text)
    known = collections.Counter(_words([reference] if isinstance(reference, str) else reference))
    if not known:
        raise ValueError(message("reference", "have words", "none"))
    words = [list(_words([part])) for part in texts]
    count = sum(map(len, words))
    valid = sum(word in known for part in words for word in part)
    titles = [balanced(line) for part in texts for line in _TITLE.finditer(part)]
    topic = _topic(words, known, window, np.random.default_rng(seed))
    share = _share(valid, count)
    return TextQuality(count, share, len(titles), _share(sum(titles), len(titles)), _DISTANCES, topic, window)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


def balanced(line: re.Match[str]) -> bool:
    """Whether a title has as many signs before as after, and something between."""
    before, title, after = line.groups()
    return bool(title.strip()) and before.count("=") == after.count("=")


def _words(texts: Iterable[str]) -> Iterable[str]:
    return (found.group().lower() for text in texts for found in _WORD.finditer(text))


def _topic(
    words: list[list[str]], known: collections.Counter[str], window: int, generator: np.random.Generator
) -> tuple[float, ...]:
    """Mean likeness at each distance within a text, less that of windows drawn anywhere."""
    places = [range(0, len(part) - window + 1, window) for part in words]
    parts = [
        [_vector(part[at : at + window], known) for at in starts] for part, starts in zip(words, places, strict=True)
    ]
    everywhere = [vector for part in parts for vector in part]
    if len(everywhere) < 2:
        return (math.nan,) * len(_DISTANCES)
    # Windows of one author are alike wherever they stand: only what neighbours have beyond that is a topic.
    pairs = generator.integers(len(everywhere), size=(_PAIRS, 2))
    chance = _mean_likeness([(everywhere[a], everywhere[b]) for a, b in pairs if a != b])
    found = []
    for distance in _DISTANCES:
        apart = [(part[at], part[at + distance]) for part in parts for at in range(len(part) - distance)]
        chosen = generator.permutation(len(apart))[:_PAIRS]
        found.append(_mean_likeness([apart[at] for at in chosen]) - chance)
    return tuple(found)


def _vector(words: list[str], known: collections.Counter[str]) -> dict[str, float]:
    """Counts weighted by rarity, of length 1; words that the reference lacks, misspelt ones, say nothing."""
    total = known.total()
    counts = collections.Counter(word for word in words if word in known)
    weights = {word: count * math.log(total / known[word]) for word, count in counts.items()}
    size = math.sqrt(sum(weight**2 for weight in weights.values())) or 1.0
    return {word: weight / size for word, weight in weights.items()}


def _mean_likeness(pairs: list[tuple[dict[str, float], dict[str, float]]]) -> float:
    if not pairs:
        return math.nan
    return float(np.mean([sum(weight * b.get(word, 0.0) for word, weight in a.items()) for a, b in pairs]))
