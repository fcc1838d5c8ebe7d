"""The loss of a model with bounded caches, compared with the full cache, on any text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache

from remanence._validate import message, positive_int
from remanence.figures import Axis, Curve, Figure, length_axis
from remanence.kv._cache import ScreenedCache, cache_nbytes
from remanence.kv._screens import SCREENS
from remanence.kv._together import CachesTogether
from remanence.runs import Result

PIECE = 32
"""Tokens that go through the model in one call; the screens decide after each."""

FULL_PIECE = 256
"""The same with the full cache, to which pieces make no difference but in time."""


@dataclass(frozen=True)
class CacheScore:
    """The result of one cache.

    Args:
        policy: name of the screen, or "full".
        budget: keys held; the length of the text for the full cache.
        loss: mean cross-entropy in nats per token.
        cache_bytes: allocated at the end.

    Example:
        >>> CacheScore("mean", 128, 3.2, 5_000_000).policy
        'mean'
    """

    policy: str
    budget: int
    loss: float
    cache_bytes: int


@dataclass(frozen=True)
class CacheComparison(Result):
    """Loss against budget for several screens, and with the full cache, on one text.

    Args:
        model: its name.
        text: its name.
        tokens: length of the text.
        first: tokens before this one are read but not counted.
        full: with transformers' own cache.
        screened: with screened ones.

    Example:
        >>> full = CacheScore("full", 2048, 3.0, 100)
        >>> found = CacheComparison("tiny", "book", 2048, 512, full, (CacheScore("mean", 128, 3.2, 10),))
        >>> round(found.extra_loss("mean", 128), 3)
        0.2
    """

    kind: ClassVar[str] = "kv-comparison"
    model: str
    text: str
    tokens: int
    first: int
    full: CacheScore
    screened: tuple[CacheScore, ...]

    def extra_loss(self, policy: str, budget: int) -> float:
        """Loss above that of the full cache, in nats per token."""
        (found,) = [score for score in self.screened if (score.policy, score.budget) == (policy, budget)]
        return found.loss - self.full.loss

    def figures(self) -> list[Figure]:
        """Loss against budget, a curve for each screen."""
        budgets = sorted({score.budget for score in self.screened})
        curves = []
        for policy in dict.fromkeys(score.policy for score in self.screened):
            mine = {score.budget: score.loss for score in self.screened if score.policy == policy}
            curves.append(Curve(policy, budgets, [mine.get(budget) for budget in budgets], draws="both"))
        curves.append(Curve("full", [budgets[0], budgets[-1]], [self.full.loss] * 2, faint=True))
        caption = f"Cross-entropy of {self.model} on {self.text} against the keys held for each layer and head."
        title = f"Loss against budget: {self.text}"
        return [Figure(title, caption, tuple(curves), length_axis("keys held", budgets), Axis("nats per token"))]


@torch.no_grad()
def text_loss(model: PreTrainedModel, tokens: Tensor, cache: Cache, first: int = 0, piece: int = PIECE) -> Tensor:
    """Mean cross-entropy of a batch of texts, read in chunks.

    Args:
        model: a causal language model in evaluation mode.
        tokens: int64, ``(B, T)``.
        cache: an empty one.
        first: index of the first token that counts; it is predicted, so at least 1.
        piece: tokens in one call.

    Returns:
        Nats a token for each row, ``(B,)``.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> model = LlamaForCausalLM(LlamaConfig(vocab_size=4, hidden_size=8, intermediate_size=8,
        ...     num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2))
        >>> _ = model.lm_head.weight.data.zero_()  # every token is as likely
        >>> text_loss(model, torch.ones(2, 40, dtype=torch.int64), ScreenedCache(model, 8))  # log 4
        tensor([1.3863, 1.3863])
    """
    first = max(1, first)
    total = torch.zeros(len(tokens))
    for at in range(0, tokens.shape[1] - 1, piece):
        inputs = tokens[:, at : min(at + piece, tokens.shape[1] - 1)]
        logits = model(inputs, past_key_values=cache, use_cache=True).logits
        skipped = max(0, first - 1 - at)
        if skipped < inputs.shape[1]:
            targets = tokens[:, at + 1 + skipped : at + 1 + inputs.shape[1]]
            guesses = logits[:, skipped:].flatten(0, 1).float()
            wrong = cross_entropy(guesses, targets.flatten(), reduction="none")
            total += wrong.view_as(targets).sum(1).cpu()
    return total / (tokens.shape[1] - first)


def compare_caches(
    model: PreTrainedModel,
    tokens: Tensor,
    budgets: Sequence[int],
    screens: Sequence[str] = tuple(SCREENS),
    *,
    names: tuple[str, str] = ("model", "text"),
    piece: int = PIECE,
    tell: Callable[[CacheScore], None] = lambda _: None,
) -> CacheComparison:
    """Measures the loss on a text with the full cache, and with every screen at every budget.

    All screens of a budget go through the model together, as rows of a batch, so memory holds as many caches. Only
    tokens from the largest budget on count: there every cache has had to let keys go.

    Args:
        model: a causal language model in evaluation mode.
        tokens: of the text, int64, ``(1, T)``.
        budgets: keys held.
        screens: their names.
        names: of model and text.
        piece: tokens in one call.
        tell: called with every score as it is measured.

    Raises:
        ValueError: the text is not longer than the largest budget.

    Example:
        >>> from transformers import GPT2Config, GPT2LMHeadModel
        >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_positions=64, n_embd=8, n_layer=1, n_head=2)).eval()
        >>> found = compare_caches(model, torch.arange(60)[None] % 9, [8, 16], ["mean", "window"])
        >>> [(score.policy, score.budget) for score in found.screened]
        [('mean', 8), ('window', 8), ('mean', 16), ('window', 16)]
    """
    budgets = [positive_int("budgets", budget) for budget in budgets]
    if not budgets or tokens.shape[1] <= max(budgets) + 1:
        raise ValueError(message("tokens", f"be longer than the largest budget, {budgets}", tokens.shape[1]))
    first = max(budgets) + 1

    def scored(policy: str, budget: int, cache: Cache, loss: Tensor) -> CacheScore:
        score = CacheScore(policy, budget, float(loss.mean()), cache_nbytes(cache))
        tell(score)
        return score

    whole = DynamicCache(config=model.config.get_text_config(decoder=True))
    full = scored("full", tokens.shape[1], whole, text_loss(model, tokens, whole, first, FULL_PIECE))
    screened = []
    for budget in budgets:
        caches = {screen: ScreenedCache(model, budget, screen=screen) for screen in screens}
        losses = losses_together(model, tokens, list(caches.values()), first, piece)
        for (screen, cache), loss in zip(caches.items(), losses, strict=True):
            screened.append(scored(screen, budget, cache, loss))
    return CacheComparison(*names, tokens.shape[1], first, full, tuple(screened))


def losses_together(
    model: PreTrainedModel, tokens: Tensor, caches: Sequence[ScreenedCache], first: int, piece: int = PIECE
) -> Tensor:
    """The loss of texts with every cache, in one pass: see `text_loss`.

    Returns:
        Nats a token, ``(caches, B)``.
    """
    rows = tokens.repeat(len(caches), 1)
    return text_loss(model, rows, CachesTogether(caches), first, piece).view(len(caches), len(tokens))
