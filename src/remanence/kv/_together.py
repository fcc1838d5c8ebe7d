"""Several screened caches in one pass of a model: what does not depend on the cache is computed for all at once.

A model spends most of its time in matrix products that are the more efficient the more tokens they have. Each cache
serves some rows of the batch and knows nothing of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from remanence.kv._attention import announce
from remanence.kv._layer import Attend, ScreenedLayer, causal_mask

if TYPE_CHECKING:
    from remanence.kv._cache import ScreenedCache


class LayersTogether(CacheLayerMixin):
    """One layer of several caches; the rows of a batch belong to one after the other, as many to each.

    Rows have no padding: every held key is seen.
    """

    is_compileable = False
    is_croppable = False
    is_sliding = False
    supports_early_init = False

    def __init__(self, layers: Sequence[ScreenedLayer]) -> None:
        super().__init__()
        self.layers = layers

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: each layer allocates its own."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Lets each layer look at its rows."""
        for layer, key, value in zip(self.layers, self._split(key_states), self._split(value_states), strict=True):
            layer.update(key, value)
        return key_states, value_states

    def get_seq_length(self) -> int:
        """Tokens seen, by all alike."""
        return self.layers[0].get_seq_length()

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The new keys alone: how many are held differs, so `attend` makes the masks."""
        return query_length, self.get_seq_length()

    def get_max_length(self) -> int:
        """No maximum."""
        return -1

    def attend(
        self, attend: Attend, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> tuple[Tensor, None]:
        """Lets each layer attend and screen for its rows; see `ScreenedLayer.attend`. The mask is not looked at."""
        outputs = []
        for layer, *mine in zip(self.layers, *map(self._split, (query, key, value)), strict=True):
            output, _ = layer.attend(attend, *mine, causal_mask(layer.count, query), scaling)
            outputs.append(output)
        return torch.cat(outputs), None

    def _split(self, rows: Tensor) -> Sequence[Tensor]:
        return rows.chunk(len(self.layers))


class CachesTogether(Cache):
    """Screened caches of one model as one cache.

    Args:
        caches: empty ones; each gets as many rows of the batch as the others.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> from remanence.kv import ScreenedCache
        >>> model = LlamaForCausalLM(LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8,
        ...     num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2))
        >>> caches = [ScreenedCache(model, budget) for budget in (8, 16)]
        >>> with torch.no_grad():
        ...     _ = model(torch.ones(2, 40, dtype=torch.int64), past_key_values=CachesTogether(caches))
        >>> [cache.positions(0).shape for cache in caches]
        [torch.Size([1, 2, 8]), torch.Size([1, 2, 16])]
    """

    def __init__(self, caches: Sequence[ScreenedCache]) -> None:
        # A layer with a sliding window is not screened: that of the first cache serves all rows.
        shared: list[Any] = [
            LayersTogether(layers) if isinstance(layers[0], ScreenedLayer) else layers[0]
            for layers in zip(*(cache.layers for cache in caches), strict=True)
        ]
        super().__init__(layers=shared)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Takes one layer's new keys and values; the model calls it."""
        found = super().update(key_states, value_states, layer_idx, *args, **kwargs)
        layer = self.layers[layer_idx]
        if isinstance(layer, LayersTogether):
            announce(layer, found[0])
        return found
