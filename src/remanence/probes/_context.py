"""How much of its context a language model uses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from remanence._validate import message, positive_int
from remanence._wording import number_of
from remanence.figures import Band, Curve, Figure, length_axis, log_axis

from ._result import ProbeResult
from ._subject import Model, Subject, subject_of
from ._truncation import require_any_length

TARGETS = 16
FINE = 32
"""Tokens of context up to which it is measured exactly how many are enough."""
NORMAL = 1.96
"""Standard errors of a 95 % interval."""
FEWEST = 30
"""Predicted tokens from which on a mean says something."""
LITTLE = 0.01
"""Nats per token that count as no difference."""


class NoTokensError(ValueError):
    """A model's output is not a distribution over tokens."""


@dataclasses.dataclass(frozen=True)
class ContextUse(ProbeResult):
    """Cross-entropy of the next token against the number of tokens before it, always on the same tokens.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5))
        >>> found = context_use(model, torch.randint(5, (40, 2)), batch_first=False)
        >>> found.enough()
        1
    """

    kind: ClassVar[str] = "context_use"

    contexts: tuple[int, ...]
    """Tokens that the model sees before the one it predicts."""
    nats: tuple[float, ...]
    """Mean cross-entropy in nats per token."""
    error: tuple[float, ...]
    """Standard error of the difference from the longest context, token by token."""
    tokens: int
    """How many are predicted."""

    def enough(self, tolerance: float = LITTLE) -> int:
        """The shortest context from which on the loss is within a tolerance of the longest's, in nats per token.

        Args:
            tolerance: at least 0.
        """
        found = self.contexts[-1]
        for context, nats in zip(reversed(self.contexts), reversed(self.nats), strict=True):
            if nats - self.nats[-1] > tolerance:
                break
            found = context
        return found

    @property
    def gain(self) -> float:
        """Nats per token that the longest context saves over the shortest."""
        return self.nats[0] - self.nats[-1]

    @property
    def verdict(self) -> str:
        """How many tokens of context are used, and what they are worth."""
        first = self.contexts[0]
        last = self.contexts[-1]
        least = number_of(first, "token")
        worth = f"{self.nats[0]:.3f} nats per token with {least} of context, {self.nats[-1]:.3f} with {last:,}"
        if self.tokens < FEWEST or abs(self.gain) <= NORMAL * self.error[0]:
            return f"Too few tokens to say whether context is used: {worth}, measured on {self.tokens:,} tokens"
        if self.gain < 0:
            return f"Context makes predictions worse: {worth}"
        enough = self.enough()
        if enough == last:
            return f"Uses all {last:,} tokens of context that were tried: {worth}"
        used = number_of(enough, "token")
        return f"Uses about {used} of context: {worth}; more than {enough:,} save less than {LITTLE} nats"

    def figures(self) -> list[Figure]:
        """Nats per token against context."""
        low = [nats - NORMAL * error for nats, error in zip(self.nats, self.error, strict=True)]
        high = [nats + NORMAL * error for nats, error in zip(self.nats, self.error, strict=True)]
        parts = (
            Band(("2.5 %", "97.5 %"), self.contexts, low, high),
            Curve("nats per token", self.contexts, self.nats, "both"),
        )
        caption = f"{self.verdict}. Band: 95 % of the difference from the longest context"
        x = length_axis("tokens of context", self.contexts)
        return [Figure("Context use", caption, parts, x, log_axis("nats per token", self.nats), wide=True)]


def context_use(
    model: Model,
    batch: object,
    *,
    contexts: Sequence[int] | None = None,
    targets: int = TARGETS,
    batch_first: bool | None = None,
    training: bool = False,
) -> ContextUse:
    """Measures the cross-entropy of the same next tokens with more and more tokens before them.

    Args:
        model: gives logits over the next token, at every step or once for a row.
        batch: tokens of real sequences, ``(T, B)``, ``(B, T)`` or ``(T,)``; random ones have no structure to use.
        contexts: numbers of tokens, rising; ``None`` for powers of two, the longest, and the exact number that is
            enough if that is small.
        targets: number of tokens predicted at the end of every row.
        batch_first: whether time is the second dimension; ``None`` asks the model, or measures it.
        training: whether to keep training mode, with its dropout; by default the model is probed in evaluation mode.

    Raises:
        ValueError: If inputs are not tokens, the output has fewer classes than there are tokens, the sequences are too
            short, or the model runs on one length only.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Embedding(5, 4), torch.nn.Linear(4, 5))
        >>> context_use(model, torch.randint(5, (20,)), contexts=[1, 2]).contexts
        (1, 2)
    """
    subject = subject_of(model, batch, batch_first=batch_first, training=training)
    if not subject.is_tokens:
        raise ValueError(message("batch", "hold tokens, as integers", f"numbers of {subject.inputs.dtype}"))
    require_any_length(subject)
    steps = subject.layout.steps
    if steps < 3:
        raise ValueError(message("batch", "have three tokens in a row at least", steps))
    predicted = min(positive_int("targets", targets), max(1, steps // 2))
    sizes = _contexts(contexts, steps - predicted)
    places = range(steps - predicted, steps)
    with subject.untouched(), torch.no_grad():
        _require_next_tokens(subject)
        losses = {size: _losses(subject, size, places) for size in sizes}
        while contexts is None and (size := _between(_summary(losses))):
            losses[size] = _losses(subject, size, places)
    return _summary(losses)


def _require_next_tokens(subject: Subject) -> None:
    """Refuses a model whose last outputs are not one per row, such as one that answers with a sequence of its own."""
    last = subject.last(subject.output(subject.inputs))
    if last.dim() and last.numel() != subject.layout.rows * last.shape[-1]:
        raise NoTokensError("the outputs are not logits of the tokens that follow the inputs")


def _summary(losses: dict[int, Tensor]) -> ContextUse:
    """The result for cross-entropies ``(places * B,)`` by context."""
    sizes = sorted(losses)
    table = torch.stack([losses[size] for size in sizes])
    apart = table - table[-1]
    error = apart.std(dim=1, correction=0) / max(table.shape[1] - 1, 1) ** 0.5
    nats = table.mean(dim=1)
    return ContextUse(tuple(sizes), tuple(nats.tolist()), tuple(error.tolist()), table.shape[1])


def _between(found: ContextUse) -> int:
    """A context half-way to the least that is known to be enough; 0 if that is exact, or long."""
    enough = found.enough()
    shorter = max((size for size in found.contexts if size < enough), default=0)
    if enough - shorter <= 1 or enough > FINE:
        return 0
    return (shorter + enough) // 2


def _contexts(given: Sequence[int] | None, longest: int) -> list[int]:
    if given is None:
        return sorted({*(2**power for power in range(longest.bit_length()) if 2**power < longest), longest})
    sizes = [positive_int("contexts", size) for size in given]
    if len(sizes) < 2 or sizes != sorted(set(sizes)) or sizes[-1] > longest:
        raise ValueError(message("contexts", f"be two or more, rising, up to {longest}", repr(list(given))))
    return sizes


def _losses(subject: Subject, context: int, places: range) -> Tensor:
    """Cross-entropies of the tokens at some places, each after so many tokens: ``(places * B,)``."""
    layout = subject.layout
    windows = [subject.window(place - context, place) for place in places]
    tokens = torch.stack([subject.inputs.select(layout.time, place) for place in places]).flatten()
    if layout.row_dim is None:
        logits = torch.cat([_logits(subject, window) for window in windows])
    else:
        logits = _logits(subject, torch.cat(windows, dim=layout.row_dim))
    if logits.shape[1] <= int(tokens.max()):
        sizes = f"{number_of(logits.shape[1], 'output')}, tokens up to {int(tokens.max())}"
        raise NoTokensError(f"the model predicts no tokens ({sizes})")
    return nn.functional.cross_entropy(logits, tokens, reduction="none")


def _logits(subject: Subject, window: Tensor) -> Tensor:
    """Of the token after a window: ``(B, classes)``."""
    last = subject.last(subject.output(window))
    return last.reshape(-1, last.shape[-1]).double()
