"""The attention function that a model calls while it works with a screened cache.

Transformers hands the cache to `Cache.update` and the queries to the attention function, one right after the other, and
neither sees the other. A context variable carries the layer from the one to the other: contexts belong to threads, so
that several models may run at once. Where no screened layer waits, the model's own attention runs as if nothing were.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask, sdpa_mask

from remanence._validate import message
from remanence.kv._layer import Attend

PREFIX = "screened_"


class Attending(Protocol):
    """A layer of a cache that attends by itself."""

    def attend(
        self, attend: Attend, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scaling: float
    ) -> tuple[Tensor, Tensor | None]:
        """See `ScreenedLayer.attend`."""
        ...


class _Waiting(NamedTuple):
    layer: Attending
    key: Tensor


_waiting: ContextVar[_Waiting | None] = ContextVar("remanence_kv_waiting", default=None)


def announce(layer: Attending, key: Tensor) -> None:
    """Says that the next attention call belongs to this layer.

    Raises:
        RuntimeError: the last call never came, so the model does not use the screened attention.
    """
    if _waiting.get() is not None:
        _waiting.set(None)
        raise RuntimeError("a ScreenedCache was given to a model that it was not made for: ScreenedCache(model, ...)")
    _waiting.set(_Waiting(layer, key))


def switch_on(model: PreTrainedModel) -> None:
    """Routes a model's attention through screened caches; without one it is unchanged.

    Raises:
        ValueError: the model's attention is neither "sdpa" nor "eager", or cannot be exchanged.
    """
    name = attention_name(model)
    if name.startswith(PREFIX):
        return
    if name not in ("sdpa", "eager"):
        hint = 'Call model.set_attn_implementation("sdpa") first'
        raise ValueError(message("model", "attend by 'sdpa' or 'eager'", repr(name), hint))
    model.set_attn_implementation(PREFIX + name)
    if attention_name(model) != PREFIX + name:
        expected = "have an attention function that transformers can exchange"
        raise ValueError(message("model", expected, type(model).__name__))


def attention_name(model: PreTrainedModel) -> str:
    """The name of the attention function that a model uses."""
    return str(model.config.get_text_config(decoder=True)._attn_implementation)


def _own_eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor | None]]:
    """The eager attention of the model's own file: with its soft caps and whatever else it has."""
    return sys.modules[type(module).__module__].eager_attention_forward


def _by_sdpa(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    return _screened(partial(sdpa_attention_forward, module), module, *args, **kwargs)


def _by_eager(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
    own = _own_eager(module)

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, **rest: Any) -> Any:
        return own(module, query, key, value, _additive(mask, query.dtype), **rest)

    return _screened(attend, module, *args, **kwargs)


def _additive(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, torch.finfo(dtype).min)


@torch.compiler.disable(reason="a ScreenedCache is not compiled")
def _screened(
    attend: Callable[..., tuple[Tensor, Tensor | None]],
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,  # by place from kvpress, which wraps every attention function of transformers
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    kwargs["dropout"] = dropout
    waiting = _waiting.get()
    if waiting is None:
        return attend(query, key, value, attention_mask, **kwargs)
    _waiting.set(None)
    if waiting.key is not key:
        raise RuntimeError(f"{type(module).__name__} changes its keys after storing them; it cannot be screened")
    scaling = kwargs.get("scaling") or query.shape[-1] ** -0.5
    return waiting.layer.attend(partial(attend, **kwargs), query, key, value, attention_mask, scaling)


AttentionInterface.register(PREFIX + "sdpa", _by_sdpa)
AttentionInterface.register(PREFIX + "eager", _by_eager)
AttentionMaskInterface.register(PREFIX + "sdpa", sdpa_mask)
AttentionMaskInterface.register(PREFIX + "eager", eager_mask)
