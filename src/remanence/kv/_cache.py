"""A cache of a fixed number of keys, as a model of transformers takes it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer, DynamicSlidingWindowLayer

from remanence._validate import message, positive_int
from remanence.kv._attention import PREFIX, announce, attention_name, switch_on
from remanence.kv._cache_file import load_layers, read_cache, save_layers
from remanence.kv._layer import Policy, ScreenedLayer
from remanence.kv._screens import Screen, as_screen


class ScreenedCache(Cache):
    """Holds at most `budget` keys for each layer, row and key head, at any length of the text.

    Keys are evicted online. The newest `recent` keys and the first `sinks` keys always stay; so do those of the rest
    that the screen finds most relevant. Memory is allocated with the first token and never grows. Keys keep their true
    positions. The output is the model's own attention on the held keys: while everything fits into the budget, it is
    bit-equal to that with transformers' full cache.

    Creating the cache switches the model to an attention function that also serves screened caches. Without such a
    cache the model behaves as before; ``model.set_attn_implementation("sdpa")`` switches back.

    Layers with a sliding window keep transformers' own cache, which is bounded already.

    Args:
        model: a decoder of transformers, with the attention "sdpa" or "eager".
        budget: keys held between calls.
        recent: size of the recent window (default: half the budget). "window" and "tova" have none.
        screen: a `Screen` or its name: "attention", "mean", "value", "window", "h2o" or "tova".
        sinks: first keys that always stay; default: the screen's own number.
        chunk: tokens processed at once when a long prompt does not fit; this bounds the memory.

    Raises:
        ValueError: an argument is out of range, or the model has no layer that could be screened.

    Example:
        >>> from transformers import LlamaConfig, LlamaForCausalLM
        >>> config = LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=16, num_hidden_layers=2,
        ...                      num_attention_heads=4, num_key_value_heads=2, eos_token_id=None)  # never ends
        >>> model = LlamaForCausalLM(config)
        >>> cache = ScreenedCache(model, budget=8, recent=4)
        >>> prompt = torch.ones(1, 20, dtype=torch.int64)
        >>> text = model.generate(prompt, past_key_values=cache, max_new_tokens=10, do_sample=False)
        >>> cache.get_seq_length(), cache.positions(0).shape
        (29, torch.Size([1, 2, 8]))
    """

    def __init__(
        self,
        model: PreTrainedModel,
        budget: int = 512,
        recent: int | None = None,
        screen: str | Screen = "mean",
        *,
        sinks: int | None = None,
        chunk: int = 64,
    ) -> None:
        if not isinstance(model, PreTrainedModel):
            hint = "Of a compiled model, hand over the one that torch.compile was given"
            raise TypeError(message("model", "be a model of transformers", type(model).__name__, hint))
        self.policy = make_policy(budget, recent, as_screen(screen), sinks, chunk)
        super().__init__(layers=_layers(model, self.policy))
        switch_on(model)
        self._model = model

    @torch.compiler.disable(reason="a ScreenedCache is not compiled")
    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Takes one layer's new keys and values; the model calls it.

        Raises:
            RuntimeError: the model has been switched to another attention function.
        """
        if not attention_name(self._model).startswith(PREFIX):
            raise RuntimeError("the model's attention was switched back; make the ScreenedCache after that")
        found = super().update(key_states, value_states, layer_idx, *args, **kwargs)
        layer = self.layers[layer_idx]
        if isinstance(layer, ScreenedLayer):
            announce(layer, found[0])
        return found

    def positions(self, layer_idx: int) -> Tensor:
        """Positions of the keys that a layer holds, -1 for padding.

        Returns:
            int64, ``(B, key heads, held)``, ascending.

        Raises:
            ValueError: the layer is not screened.
        """
        layer = self.layers[layer_idx]
        if not isinstance(layer, ScreenedLayer):
            raise ValueError(message("layer_idx", "name a screened layer", f"{layer_idx}, a {type(layer).__name__}"))
        if not layer.is_initialized:
            return torch.zeros(0, 0, 0, dtype=torch.int64)
        index = layer.slots.index[:, :, : layer.count] - layer.start
        return index.clamp(min=-1).sort(-1).values

    def save(self, path: str | Path) -> None:
        """Writes the cache to a file, atomically; `load` reads it back."""
        save_layers(Path(path), self.policy, self.layers)

    @classmethod
    def load(cls, path: str | Path, model: PreTrainedModel, screen: Screen | None = None) -> Self:
        """Reads a cache back; generation continues with the same bits.

        Args:
            path: the file.
            model: the model that it was saved with.
            screen: needed if it was not one of this package's.

        Raises:
            ValueError: the file is damaged or no cache, or the model another one.
        """
        tensors, facts = read_cache(Path(path))
        known = as_screen(facts["screen"] if screen is None else screen)
        recent = facts["recent"] if known.keeps_recent else None
        cache = cls(model, facts["budget"], recent, known, sinks=facts["sinks"], chunk=facts["chunk"])
        load_layers(Path(path), tensors, facts, cache.layers, model.device)
        return cache

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors that the cache has allocated."""
        return cache_nbytes(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self._model)] = self._model  # keys of its own, but no second model
        made = copy.copy(self)
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def __repr__(self) -> str:
        own = self.policy
        return f"ScreenedCache(budget={own.budget}, recent={own.recent}, screen={own.screen}, sinks={own.sinks})"


def make_policy(budget: int, recent: int | None, screen: Screen, sinks: int | None, chunk: int) -> Policy:
    """Checks the numbers and fills in those that were not given."""
    budget = positive_int("budget", budget)
    sinks = min(screen.sinks, budget - 1) if sinks is None else positive_int("sinks", sinks, 0)
    if recent is not None and not screen.keeps_recent:
        raise ValueError(message("recent", f"be None with {screen}, which has no window of its own", recent))
    if recent is None:
        recent = min(budget // 2, max(0, budget - sinks)) if screen.keeps_recent else 0
    recent = positive_int("recent", recent, 0)
    if recent + sinks > budget:
        raise ValueError(message("budget", f"be >= recent + sinks = {recent} + {sinks}", budget))
    return Policy(screen, budget, recent, sinks, positive_int("chunk", chunk))


def _layers(model: PreTrainedModel, policy: Policy) -> list[Any]:
    config = model.config.get_text_config(decoder=True)
    if model.config.is_encoder_decoder or getattr(config, "num_kv_shared_layers", 0):
        raise ValueError(message("model", "be a decoder whose layers own their keys", type(model).__name__))
    own = DynamicCache(config=config).layers
    strange = {type(layer).__name__ for layer in own} - {DynamicLayer.__name__, DynamicSlidingWindowLayer.__name__}
    if strange or not any(type(layer) is DynamicLayer for layer in own):
        found = ", ".join(sorted(strange)) or "sliding windows alone, which are bounded already"
        raise ValueError(message("model", "have layers of full attention", found))
    return [ScreenedLayer(policy) if type(layer) is DynamicLayer else layer for layer in own]


def cache_nbytes(cache: Cache) -> int:
    """Bytes of the tensors that a cache of any kind has allocated."""
    return sum(_nbytes(layer) for layer in cache.layers)


def _nbytes(layer: Any) -> int:
    if not layer.is_initialized:
        return 0
    fields = layer.slots if isinstance(layer, ScreenedLayer) else (layer.keys, layer.values)
    return sum(field.nbytes for field in fields)
