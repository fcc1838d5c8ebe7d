"""What a model's parts say they cost: the formulas of the theory, added up over layers of known kinds."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from torch import nn

from remanence.ops import Full, ScanSpec, Screened
from remanence.theory import attention_cost, recurrent_cost

from ._observe import modules, recurrent_spec

FREE = (nn.Embedding, nn.LayerNorm, nn.RMSNorm, nn.BatchNorm1d, nn.Dropout)
"""No matrix products in these."""
Kind: TypeAlias = Literal["softmax", "separable", "random-features"]
KINDS: dict[str, Kind] = {
    "softmax": "softmax",
    "separable": "separable",
    "positive-random-features": "random-features",
}


def declared_operations(model: object, length: int, rows: int) -> int | None:
    """Floating-point operations of the matrix products of a forward pass, two for each multiplication.

    ``None`` if any part but linear, recurrent and attention layers has parameters of its own.

    Example:
        >>> declared_operations(nn.Linear(3, 5), length=4, rows=2)
        240
    """
    parts = modules(model)
    owned = {id(inner) for part in parts if _is_attention(part) for inner in part.modules() if inner is not part}
    known = [_multiplications(part, length) for part in parts if id(part) not in owned]
    if not parts or None in known:
        return None
    return 2 * rows * sum(count for count in known if count is not None)


def _is_attention(part: nn.Module) -> bool:
    ours = getattr(part, "kind", None) in KINDS and hasattr(part, "head_size")
    return ours or isinstance(part, nn.MultiheadAttention)


def _multiplications(part: nn.Module, length: int) -> int | None:
    """Of one row through one module, its submodules not counted; ``None`` if nobody knows."""
    if isinstance(part, nn.Linear):
        return length * part.in_features * part.out_features
    if _is_attention(part):
        return _attention(part, length)
    spec = recurrent_spec(part)
    if spec is not None:
        return _recurrent(part, spec, length)
    if isinstance(part, FREE) or not list(part.parameters(recurse=False)):
        return 0
    return None


def _attention(layer: Any, length: int) -> int:
    """Four projections, and the heads side by side, each of its share of the width."""
    if isinstance(layer, nn.MultiheadAttention):
        return _heads("softmax", length, layer.embed_dim, layer.num_heads)
    kind = KINDS[layer.kind]
    features = None
    if kind == "random-features":
        features = layer.features
    return _heads(kind, length, layer.width, layer.heads, features)


def _heads(kind: Kind, length: int, width: int, heads: int, features: int | None = None) -> int:
    one = attention_cost(kind, length, width // heads, features=features)
    return 4 * length * width**2 + heads * one.time


def _recurrent(layer: Any, spec: ScanSpec, length: int) -> int | None:
    if getattr(layer, "proj_size", 0) or spec.combine == "concat" or spec.output in ("summary", "weights"):
        return None
    directions = 1 + layer.bidirectional
    hidden = layer.hidden_size
    total = 0
    keyed = isinstance(spec.memory, Full | Screened)
    for inputs in [layer.input_size] + [directions * hidden] * (layer.num_layers - 1):
        cost = recurrent_cost(len(spec.cell.gates), length, inputs, hidden, slots=_slots(spec), keyed=keyed)
        total += directions * cost.time
    return total


def _slots(spec: ScanSpec) -> int | None:
    """Most states that a step reads; ``None`` if all."""
    memory = spec.rule
    if isinstance(memory, Full):
        return memory.recent
    if isinstance(memory, Screened):
        return memory.recent + memory.relevant
    return getattr(memory, "slots", 0)
