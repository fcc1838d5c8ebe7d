"""One layer's share of a bounded cache: a fixed number of slots for each key head, and the step that fills them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from transformers.cache_utils import CacheLayerMixin

from remanence._validate import message
from remanence.kv._screens import Screen, collected, guarded, relevance, strongest, weakest
from remanence.kv._slots import Slots

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], tuple[Tensor, Tensor | None]]
"""The model's own attention: queries, keys, values and mask to output ``(B, q, heads, size)`` and weights or None."""


class Policy(NamedTuple):
    """How a layer decides, in numbers that have been checked."""

    screen: Screen
    budget: int
    recent: int
    sinks: int
    chunk: int


def _precise(like: Tensor) -> torch.dtype:
    """Scores are sums over many steps: float32 at least."""
    return torch.promote_types(like.dtype, torch.float32)


def _sizes(keys: Tensor) -> tuple[int, int, int]:
    return (keys.shape[0], keys.shape[1], keys.shape[3])


class ScreenedLayer(CacheLayerMixin):
    """Keys and values of one layer in ``budget + 1`` slots for each row and key head, written in place.

    Between calls at most `budget` keys are held; the extra slot is for the next token. Longer input that does not fit
    is processed in chunks of `chunk` tokens, together with the held keys, and screened after each chunk.
    """

    is_compileable = False
    is_croppable = False
    is_sliding = False
    supports_early_init = False

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self.policy = policy
        self.slots: Slots  # both come with the first keys, which tell sizes and precision
        self.start: Tensor
        self.seen = 0
        self.count = 0
        self.padded = False

    # What transformers asks of a cache layer

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Allocates all memory that the layer will use."""
        self.dtype = key_states.dtype
        self.device = key_states.device
        shape = (*key_states.shape[:2], self.policy.budget + 1)
        # Tensors made in inference mode could not be written outside of it.
        with torch.inference_mode(False):
            score = torch.zeros(shape, dtype=_precise(key_states), device=self.device)
            self.slots = Slots(
                keys=key_states.new_zeros(*shape, key_states.shape[-1]),
                values=value_states.new_zeros(*shape, value_states.shape[-1]),
                index=torch.zeros(shape, dtype=torch.int64, device=self.device),
                score=score,
                norm=torch.zeros_like(score),
            )
            self.start = torch.zeros(shape[0], 1, 1, dtype=torch.int64, device=self.device)
        self.keys, self.values = self.slots.keys, self.slots.values
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Hands the new keys and values through: `attend`, which comes next, stores them."""
        if key_states.requires_grad:
            expected = "be used without gradients"
            raise ValueError(message("ScreenedCache", expected, "keys with a gradient", "Use torch.no_grad()"))
        if not self.is_initialized or (self.seen == 0 and len(self.start) != len(key_states)):
            self.lazy_initialization(key_states, value_states)
        held = _sizes(self.slots.keys)
        new = _sizes(key_states)
        if held != new:
            expected = f"have keys of (rows, heads, size) {held}, as the cache holds them"
            same_model = held[1:] == new[1:]
            hint = "Call cache.reset() before another batch" if same_model else "Another model filled the cache"
            raise ValueError(message("input", expected, str(new), hint))
        return key_states, value_states

    def get_seq_length(self) -> int:
        """Tokens seen, not held: the position of the next token."""
        return self.seen

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Length and offset of the mask for held keys and new ones."""
        return self.count + query_length, self.seen - self.count

    def get_max_length(self) -> int:
        """No maximum: a stream of any length passes through."""
        return -1

    def reset(self) -> None:
        """Empties the slots; their memory stays."""
        self.seen = 0
        self.count = 0
        self.padded = False
        if self.is_initialized:
            self.start.zero_()

    def crop(self, tokens_to_remove: int) -> None:
        """Removes the newest tokens, given as a negative number; possible until a key has been evicted.

        What the tokens attended to stays counted in the scores of others.

        Raises:
            ValueError: keys have been evicted, so the earlier state cannot be restored.
        """
        if tokens_to_remove == 0:
            return
        if tokens_to_remove > 0:
            raise ValueError(message("tokens_to_remove", "be negative or 0", tokens_to_remove))
        if self.seen > self.count:
            expected = "be 0 once keys have been evicted"
            hint = "Keep copy.deepcopy(cache), or save it, and continue from that"
            raise ValueError(message("tokens_to_remove", expected, tokens_to_remove, hint))
        self.seen = self.count = max(0, self.count + tokens_to_remove)

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Takes rows in another order, as beam search asks."""
        self._take_rows(lambda field: field.index_select(0, beam_idx.to(field.device)))

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Repeats every row."""
        self._take_rows(lambda field: field.repeat_interleave(repeats, dim=0))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keeps some rows."""
        self._take_rows(lambda field: field[indices])

    def _take_rows(self, take: Callable[[Tensor], Tensor]) -> None:
        if self.is_initialized:
            self.slots = Slots(*map(take, self.slots))
            self.start = take(self.start)
            self.keys, self.values = self.slots.keys, self.slots.values

    # The step

    def attend(
        self, attend: Attend, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> tuple[Tensor, Tensor | None]:
        """Attends to what is held and to the new keys, and screens.

        Args:
            attend: the model's own attention.
            query: ``(B, heads, q, size)``.
            key: of the new tokens, ``(B, key heads, q, size)``.
            value: of the new tokens, ``(B, key heads, q, size)``.
            mask: as transformers made it for ``count + q`` keys; None if everything before is visible.
            scaling: by which the model multiplies its dot products.

        Returns:
            Output ``(B, q, heads, size)``, and the weights where the model's attention gives them in one piece.
        """
        new = self._entering(key, value)
        self._find_padding(mask, key.shape[2])
        parts = self._parts(key.shape[2])
        outputs = []
        weights = None
        for begin, end in parts:
            part = Slots(*(field[:, :, begin:end] for field in new))
            asking = query[:, :, begin:end]
            # Transformers' mask holds as long as the held keys are the last ones seen.
            trusted = len(parts) == 1 and (not self.padded or self.seen == self.count)
            hidden = mask if trusted else self._mask(asking, part)
            output, weights = self._attend_part(attend, asking, part, hidden, scaling)
            outputs.append(output)
        if len(parts) == 1:
            return outputs[0], weights
        return torch.cat(outputs, dim=1), None

    def _entering(self, key: Tensor, value: Tensor) -> Slots:
        index = torch.arange(self.seen, self.seen + key.shape[2], device=key.device).expand(key.shape[:3])
        norm = value.to(_precise(value)).norm(dim=-1)
        return Slots(key, value, index, torch.zeros_like(norm), norm)

    def _find_padding(self, mask: Tensor | None, length: int) -> None:
        """Counts the padding before each row. A key that its own query may not see is padding."""
        if mask is None:
            return
        allowed = mask[:, 0, :, -length:].diagonal(dim1=-2, dim2=-1)
        real = allowed if allowed.dtype == torch.bool else allowed == 0
        if bool(real.all()):
            return
        # A row has begun if a token came before this call, or comes before the place in it.
        begun = (self.start.flatten() < self.seen)[:, None] | (real.cumsum(-1) > 0)
        if bool((begun & ~real).any()):
            raise ValueError(message("attention_mask", "be padded on the left", "padding after a token"))
        self.start += (~real).sum(-1)[:, None, None]
        self.padded = True

    def _parts(self, length: int) -> list[tuple[int, int]]:
        """All at once if nothing has to go; else first what fits, then `chunk` after `chunk`."""
        room = self.policy.budget + 1 - self.count
        if length <= room:
            return [(0, length)]
        # One slot stays free for the token after; a full cache has no other, and begins with a whole chunk.
        first = room - 1 or self.policy.chunk
        cuts = [0, *range(first, length, self.policy.chunk), length]
        return list(itertools.pairwise(cuts))

    def _attend_part(
        self, attend: Attend, query: Tensor, new: Slots, mask: Tensor | None, scaling: float
    ) -> tuple[Tensor, Tensor | None]:
        held = self.count + query.shape[2]
        fits = held <= self.policy.budget + 1
        if fits:
            self.slots.write(self.count, new)
            slots = self.slots.first(held)
        else:
            slots = self.slots.first(self.count).join(new)
        output, weights = attend(query, slots.keys, slots.values, mask)
        self.seen += query.shape[2]
        if self.policy.screen.reads_attention:
            self._collect(query, slots, weights, scaling)
        self._screen(slots, fits)
        return output, weights

    def _mask(self, query: Tensor, new: Slots) -> Tensor | None:
        """What each query sees, ``(B, heads, q, held and new)``, where transformers' own mask does not tell.

        Transformers takes the held keys for the last ones seen; it cannot know which of them are padding.
        """
        if query.shape[2] == 1 and not self.padded:
            return None
        if not self.padded:
            return causal_mask(self.count, query)
        index = torch.cat([self.slots.index[:, :, : self.count], new.index], dim=2)
        visible = self._visible(index, self.seen + torch.arange(query.shape[2], device=index.device))
        return visible.repeat_interleave(query.shape[1] // visible.shape[1], dim=1)

    def _visible(self, index: Tensor, asking: Tensor) -> Tensor:
        """Which keys the queries of those indices may see, ``(B, key heads, queries, slots)``."""
        index = index[:, :, None]
        return (index <= asking[:, None]) & (index >= self.start[..., None])

    def _collect(self, query: Tensor, slots: Slots, weights: Tensor | None, scaling: float) -> None:
        """Adds the attention of the new queries to the scores, some queries at a time, so that memory stays bounded."""
        screen = self.policy.screen
        asking = torch.arange(self.seen - query.shape[2], self.seen, device=query.device)
        for begin in range(0, len(asking), self.policy.chunk):
            some = slice(begin, begin + self.policy.chunk)
            visible = None
            if self.padded:
                visible = self._visible(slots.index, asking[some])
            elif len(asking) > 1:
                visible = causal_mask(0, query)[:, :, some]
            if weights is None:
                shared = attention_weights(query[:, :, some], slots.keys, visible, scaling)
            else:
                shared = _by_key_head(weights[:, :, some].to(slots.score.dtype), slots.keys.shape[1], visible)
            age = None if screen.follows else asking[some, None] - slots.index[:, :, None]
            slots.score.copy_(collected(screen, slots.score, shared, age, self.policy.recent))

    def _screen(self, slots: Slots, in_place: bool) -> None:
        """Lets go what is beyond the budget."""
        policy = self.policy
        excess = slots.index.shape[2] - policy.budget
        if excess <= 0:
            self.count = slots.index.shape[2]
            return
        age = self.seen - 1 - slots.index
        judged = relevance(policy.screen, slots.score, slots.index, age, slots.norm)
        judged = guarded(judged, age, slots.index - self.start, policy.recent, policy.sinks)
        if in_place:
            slots.move(policy.budget, weakest(judged, age))
        else:
            self.slots.write(0, slots.pick(strongest(judged, age, policy.budget)))
        self.count = policy.budget


def causal_mask(held: int, query: Tensor) -> Tensor:
    """What new tokens see where there is no padding, ``(1, 1, q, held + q)``: all that is held, and one another.

    Example:
        >>> causal_mask(1, torch.zeros(1, 1, 2, 4))[0, 0].int().tolist()
        [[1, 1, 0], [1, 1, 1]]
    """
    new = query.shape[2]
    return torch.ones(new, held + new, dtype=torch.bool, device=query.device).tril(held)[None, None]


def attention_weights(query: Tensor, keys: Tensor, visible: Tensor | None, scaling: float) -> Tensor:
    """Attention weights for each key head: the mean over the query heads that share it.

    Args:
        query: ``(B, heads, q, size)``.
        keys: ``(B, key heads, slots, size)``.
        visible: which of the last ``n`` keys a query may see, broadcast to ``(B, key heads, q, n)``; all before them
            are seen, and with None all.
        scaling: of the dot products.

    Returns:
        ``(B, key heads, q, slots)`` in float32 or better, 0 for a query that sees nothing.

    Example:
        >>> keys, visible = torch.eye(2).reshape(1, 1, 2, 2), torch.tensor([[[[False]]]])  # the last key is hidden
        >>> attention_weights(torch.zeros(1, 4, 3, 2), keys, visible, 1.0)[0, 0, 0]
        tensor([1., 0.])
    """
    rows, heads, length, size = query.shape
    key_heads, slots = keys.shape[1:3]
    grouped = query.reshape(rows, key_heads, heads // key_heads * length, size)
    products = (grouped @ keys.transpose(-1, -2)).to(_precise(keys)).mul_(scaling)
    products = products.view(rows, key_heads, -1, length, slots)
    if visible is not None:
        lowest = torch.finfo(products.dtype).min
        products[..., -visible.shape[-1] :].masked_fill_(~visible[:, :, None], lowest)
    return _by_key_head(products.softmax(-1).flatten(1, 2), key_heads, visible)


def _by_key_head(weights: Tensor, key_heads: int, visible: Tensor | None) -> Tensor:
    """The mean of ``(B, heads, q, slots)`` over the heads that share a key head, 0 where nothing is visible."""
    shared = weights.unflatten(1, (key_heads, -1)).mean(2)
    if visible is not None:
        shared[..., -visible.shape[-1] :].masked_fill_(~visible, 0.0)
    return shared
