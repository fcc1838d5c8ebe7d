"""Tasks that show a few symbols and ask for them much later: copy, denoise and late cues."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import torch
from torch import Tensor

from remanence import _validate
from remanence.tasks._batch import Baseline, Batch
from remanence.tasks._registry import register_task
from remanence.tasks._stream import Split
from remanence.tasks._task import Task

Encoding = Literal["one-hot", "scalar"]


class _Drawn(NamedTuple):
    """All that is random in a batch: the symbols `(items, B)`, the steps at which they stand, and the steps in all.

    `first` are tokens `(number, B)` that stand at the start and are not asked for.
    """

    shown: Tensor
    places: Tensor
    steps: int
    first: Tensor


@dataclass(frozen=True)
class _Recall(Task):
    """What these tasks share: blank is token 0, symbols follow, the marker comes last."""

    length: int = 100
    symbols: int = 8
    items: int = 10
    encoding: Encoding = "one-hot"
    shortest: int | None = None

    loss_on_all_steps = True

    def __post_init__(self) -> None:
        _validate.positive_int("length", self.length)
        _validate.dimension("symbols", self.symbols)
        _validate.dimension("items", self.items)
        _validate.one_of("encoding", self.encoding, ["one-hot", "scalar"])
        if self.shortest is not None and _validate.positive_int("shortest", self.shortest) > self.length:
            raise ValueError(_validate.message("shortest", f"be at most `length` = {self.length}", self.shortest))

    @property
    def input_size(self) -> int:
        """Blank, symbols and marker one-hot, or 1 for scalar input."""
        if self.encoding == "scalar":
            return 1
        return self.symbols + 2

    @property
    def output_size(self) -> int:
        """Blank and symbols."""
        return self.symbols + 1

    @property
    def total_steps(self) -> int:
        """Steps of a whole sequence at the greatest length, T + 2 `items`."""
        return self.length + 2 * self.items

    @property
    def chance(self) -> Baseline:
        """Blank where blank is due, then a uniform guess among the symbols: `items` ln `symbols` / (T + 2 `items`).

        When the length is drawn per batch, T is its mean.
        """
        mean_length = (self.length + (self.shortest or self.length)) / 2
        loss = self.items * math.log(self.symbols) / (mean_length + 2 * self.items)
        return Baseline(loss, accuracy=1 / self.symbols)

    def sample(self, batch_size: int, generator: torch.Generator) -> Batch:
        """Draws one batch; T is the same for all rows, drawn again for every batch if `shortest` is given."""
        drawn = self._draw(batch_size, generator)
        return self._piece(drawn, 0, drawn.steps)

    def stream_batch(
        self, position: int, batch_size: int, *, chunk: int, split: Split = "train", seed: int = 0
    ) -> Iterator[Batch]:
        """Gives batch number `position` in pieces of time, with the numbers of the whole.

        Only the symbols and their places are drawn at once, so memory does not grow with T.
        """
        _validate.positive_int("chunk", chunk)
        drawn = self._draw(batch_size, self.stream(split, seed, position))
        for start in range(0, drawn.steps, chunk):
            yield self._piece(drawn, start, min(start + chunk, drawn.steps))

    def _draw(self, batch_size: int, generator: torch.Generator) -> _Drawn:
        _validate.dimension("batch_size", batch_size)
        device = generator.device
        length = self._draw_length(generator)
        shown = torch.randint(1, self.symbols + 1, (self.items, batch_size), generator=generator, device=device)
        places = self._places(length, batch_size, generator)
        return _Drawn(shown, places, length + 2 * self.items, self._draw_first(batch_size, generator))

    def _draw_first(self, batch_size: int, generator: torch.Generator) -> Tensor:
        """Gives the tokens `(number, B)` of the first steps; here none."""
        return torch.empty(0, batch_size, dtype=torch.int64, device=generator.device)

    def _piece(self, drawn: _Drawn, start: int, stop: int) -> Batch:
        """The steps `start` to `stop` of the sequences."""
        tokens = drawn.shown.new_zeros(stop - start, drawn.shown.shape[1])
        early = drawn.first[start:stop]
        tokens[: len(early)] = early
        inside = (drawn.places >= start) & (drawn.places < stop)
        rows = torch.arange(tokens.shape[1], device=tokens.device).expand_as(inside)
        tokens[drawn.places[inside] - start, rows[inside]] = drawn.shown[inside]
        first_asked = drawn.steps - self.items
        # The marker stands just before the first answer.
        if start <= first_asked - 1 < stop:
            tokens[first_asked - 1 - start] = self.symbols + 1
        targets = torch.zeros_like(tokens)
        mask = torch.zeros_like(tokens, dtype=torch.bool)
        begin = max(first_asked, start)
        if begin < stop:
            targets[begin - start :] = drawn.shown[begin - first_asked : stop - first_asked]
            mask[begin - start :] = True
        return Batch(self._encode(tokens), targets, mask)

    @abstractmethod
    def _places(self, length: int, batch_size: int, generator: torch.Generator) -> Tensor:
        """Gives the steps `(items, B)` at which the symbols are shown, in order."""

    def with_length(self, length: int) -> Self:
        """Makes the same task at exactly this length: a task that draws its lengths stops drawing them."""
        return replace(self, length=length, shortest=None)

    def _draw_length(self, generator: torch.Generator) -> int:
        if self.shortest is None:
            return self.length
        drawn = torch.randint(self.shortest, self.length + 1, (), generator=generator, device=generator.device)
        return int(drawn)

    def _encode(self, tokens: Tensor) -> Tensor:
        if self.encoding == "scalar":
            return tokens.to(torch.get_default_dtype()).unsqueeze(-1)
        return torch.eye(self.input_size, device=tokens.device)[tokens]

    def shows_symbol(self, inputs: Tensor) -> Tensor:
        """Which steps show a symbol that is asked for later.

        Args:
            inputs: `(T, B, input_size)`, of a batch of this task.

        Returns:
            bool `(T, B)`; False for blanks, the marker and, in late cues, what distracts.
        """
        tokens = inputs.argmax(-1)
        if self.encoding == "scalar":
            tokens = inputs.squeeze(-1)
        return (tokens >= 1) & (tokens <= self.symbols)


@register_task("copy")
@dataclass(frozen=True)
class Copy(_Recall):
    """Recall ten symbols after a delay.

    Description:
        Symbols are shown one after the other, then come T - 1 blanks, a marker, and as many blanks as there were
        symbols. The symbols are due in these last steps, in their order. Transfer copy is training at one T and
        evaluating at others, made by `with_length`. T = 5, two symbols of four, `-` blank and `M` marker::

            input    3 1 - - - - M - -
            target   - - - - - - - 3 1
            mask     . . . . . . . # #

    Input:
        `(T + 2 items, B, symbols + 2)` one-hot (blank, symbols, marker), or `(T + 2 items, B, 1)` with the scalars
        0 (blank), 1 to `symbols`, `symbols` + 1 (marker).

    Target:
        `(T + 2 items, B)`: class 0 (blank) until the marker, then the symbols 1 to `symbols`.

    Metric:
        Cross entropy in nats over all steps; accuracy over the last `items` steps.

    Chance level:
        Accuracy 1 / `symbols`; loss `items` ln `symbols` / (T + 2 `items`), which is 0.1733 at T = 100. It is also what
        a predictor without memory reaches.

    Reference:
        Hochreiter & Schmidhuber 1997, "Long short-term memory", in the form of Arjovsky, Shah & Bengio 2016, "Unitary
        evolution recurrent neural networks".

    Args:
        length: The delay T: the marker comes T steps after the last symbol.
        symbols: Size of the alphabet.
        items: How many symbols are to be recalled.
        encoding: "one-hot" or "scalar".
        shortest: If given, every batch draws its T uniformly from `shortest` to `length`.

    Example:
        >>> task = Copy(length=100)
        >>> batch = task.sample(4, task.stream("train", seed=0))
        >>> batch.inputs.shape, batch.targets.shape
        (torch.Size([120, 4, 10]), torch.Size([120, 4]))
        >>> round(task.memory_free.loss, 4)
        0.1733
    """

    def _places(self, length: int, batch_size: int, generator: torch.Generator) -> Tensor:
        return torch.arange(self.items, device=generator.device).unsqueeze(1).expand(-1, batch_size)


@register_task("denoise")
@dataclass(frozen=True)
class Denoise(_Recall):
    """Recall ten symbols that are scattered among blanks.

    Description:
        Symbols stand at distinct random steps among the first T + `items` - 1, all others blank; then come a marker and
        as many blanks as there were symbols. The symbols are due in these last steps, in their order. T = 5, two
        symbols of four, `-` blank and `M` marker::

            input    - - 3 - - 1 M - -
            target   - - - - - - - 3 1
            mask     . . . . . . . # #

    Input:
        `(T + 2 items, B, symbols + 2)` one-hot (blank, symbols, marker), or `(T + 2 items, B, 1)` with the scalars
        0 (blank), 1 to `symbols`, `symbols` + 1 (marker).

    Target:
        `(T + 2 items, B)`: class 0 (blank) until the marker, then the symbols 1 to `symbols`.

    Metric:
        Cross entropy in nats over all steps; accuracy over the last `items` steps.

    Chance level:
        Accuracy 1 / `symbols`; loss `items` ln `symbols` / (T + 2 `items`), which is 0.1733 at T = 100. It is also what
        a predictor without memory reaches.

    Reference:
        Jing et al. 2019, "Gated orthogonal recurrent units: on learning to forget".

    Args:
        length: T: there are T + `items` - 1 steps in which a symbol may stand.
        symbols: Size of the alphabet.
        items: How many symbols are to be recalled.
        encoding: "one-hot" or "scalar".
        shortest: If given, every batch draws its T uniformly from `shortest` to `length`.

    Example:
        >>> task = Denoise(length=100)
        >>> batch = task.sample(4, task.stream("train", seed=0))
        >>> batch.inputs.shape, int(batch.inputs[:110, :, 0].sum())  # blanks before the marker
        (torch.Size([120, 4, 10]), 396)
    """

    def _places(self, length: int, batch_size: int, generator: torch.Generator) -> Tensor:
        return _distinct_places(length, self.items, batch_size, generator)


@register_task("late-cues")
@dataclass(frozen=True)
class LateCues(_Recall):
    """Recall symbols that come late, after others that are not asked for.

    Description:
        The first states are the wrong ones to keep. Distractors, symbols of an alphabet of their own, stand at the
        very start. The symbols to recall stand at distinct random steps of the second half, all others blank; then come
        a marker and as many blanks as there were symbols. The symbols are due in these last steps, in their order.
        T = 6, two symbols of four, two distractors `b` and `d`, `-` blank and `M` marker::

            input    b d - - 3 - 1 M - -
            target   - - - - - - - - 3 1
            mask     . . . . . . . . # #

    Input:
        `(T + 2 items, B, 2 symbols + 2)` one-hot (blank, symbols, marker, distractors), or `(T + 2 items, B, 1)` with
        the scalars 0 (blank), 1 to `symbols`, `symbols` + 1 (marker), `symbols` + 2 on (distractors).

    Target:
        `(T + 2 items, B)`: class 0 (blank) until the marker, then the symbols 1 to `symbols`.

    Metric:
        Cross entropy in nats over all steps; accuracy over the last `items` steps.

    Chance level:
        Accuracy 1 / `symbols`; loss `items` ln `symbols` / (T + 2 `items`), which is 0.1733 at T = 100. It is also what
        a predictor without memory reaches.

    Reference:
        Made here, from denoise, to tell screens apart that favour the first states.

    Args:
        length: T: a symbol may stand in the last `items` - 1 + T / 2 steps before the marker, T / 2 rounded up.
        symbols: Size of the alphabet, and of that of the distractors.
        items: How many symbols are to be recalled.
        encoding: "one-hot" or "scalar".
        shortest: If given, every batch draws its T uniformly from `shortest` to `length`.
        distractors: How many symbols stand at the start that are not asked for, at most half of the shortest T.

    Example:
        >>> task = LateCues(length=100)
        >>> batch = task.sample(4, task.stream("train", seed=0))
        >>> batch.inputs.shape, int(batch.inputs[:10, :, 10:].sum())  # distractors
        (torch.Size([120, 4, 18]), 40)
    """

    distractors: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.dimension("distractors", self.distractors, minimum=0)
        most = (self.shortest or self.length) // 2
        if self.distractors > most:
            expected = f"be at most half of the shortest length, {most}"
            raise ValueError(_validate.message("distractors", expected, self.distractors))

    @property
    def input_size(self) -> int:
        """Blank, symbols, marker and distractors one-hot, or 1 for scalar input."""
        if self.encoding == "scalar":
            return 1
        return 2 * self.symbols + 2

    def _places(self, length: int, batch_size: int, generator: torch.Generator) -> Tensor:
        early = length // 2
        return early + _distinct_places(length - early, self.items, batch_size, generator)

    def _draw_first(self, batch_size: int, generator: torch.Generator) -> Tensor:
        size = (self.distractors, batch_size)
        drawn = torch.randint(self.symbols, size, generator=generator, device=generator.device)
        return self.symbols + 2 + drawn


def _distinct_places(length: int, items: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Gives `items` distinct steps `(items, B)` among the first `length` + `items` - 1, in order."""
    # Floyd's sampling: every set of distinct places is equally likely, at a cost that does not grow with T.
    places = torch.empty(items, batch_size, dtype=torch.int64, device=generator.device)
    for number, last in enumerate(range(length - 1, length + items - 1)):
        drawn = torch.randint(last + 1, (batch_size,), generator=generator, device=generator.device)
        taken = (places[:number] == drawn).any(dim=0)
        places[number] = torch.where(taken, last, drawn)
    return places.sort(dim=0).values
