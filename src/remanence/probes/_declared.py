"""What a model's parts say they cost: the formulas of the theory, added up over layers of known kinds."""

from __future__ import annotations

from typing import Any

from torch import nn

from remanence.ops import Full, ScanSpec, Screened
from remanence.theory import attention_cost, recurrent_cost

from ._observe import CELLS, modules, torch_spec

FREE = (nn.Embedding, nn.LayerNorm, nn.RMSNorm, nn.BatchNorm1d, nn.Dropout)
"""No matrix products in these."""
KINDS: dict[str, Any] = {
    "softmax": "softmax",
    "separable": "separable",
    "positive-random-features": "random-features",
}


def declared_operations(model: object, length: int, rows: int) -> int | None:
    """Floating-point operations of the matrix products of a forward pass, two for each multiplication.

    Args:
        model: with linear, recurrent and attention layers; ``None`` comes back if any other has parameters of its own.
        length: T.
        rows: B.

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
    layer: Any = part
    if isinstance(part, nn.Linear):
        return length * part.in_features * part.out_features
    if _is_attention(part):
        return _attention(layer, length)
    if type(part) in CELLS or isinstance(getattr(part, "spec", None), ScanSpec):
        return _recurrent(layer, torch_spec(layer) if type(part) in CELLS else layer.spec, length)
    bare = isinstance(part, FREE) or not any(True for _ in part.parameters(recurse=False))
    return 0 if bare else None


def _attention(layer: Any, length: int) -> int:
    """Four projections, and the heads side by side, each of its share of the width."""
    if isinstance(layer, nn.MultiheadAttention):
        return _heads("softmax", length, layer.embed_dim, layer.num_heads)
    kind = KINDS[layer.kind]
    features = layer.features if kind == "random-features" else None
    return _heads(kind, length, layer.width, layer.heads, features)


def _heads(kind: Any, length: int, width: int, heads: int, features: int | None = None) -> int:
    one = attention_cost(kind, length, width // heads, features=features)
    return 4 * length * width**2 + heads * one.time


def _recurrent(layer: Any, spec: ScanSpec, length: int) -> int | None:
    if getattr(layer, "proj_size", 0) or spec.combine == "concat" or spec.output in ("summary", "weights"):
        return None
    directions = 2 if layer.bidirectional else 1
    hidden = layer.hidden_size
    total = 0
    keyed = isinstance(spec.memory, Full | Screened)
    for number in range(layer.num_layers):
        inputs = layer.input_size if number == 0 else directions * hidden
        cost = recurrent_cost(len(spec.cell.gates), length, inputs, hidden, slots=_slots(spec), keyed=keyed)
        total += directions * cost.time
    return total


def _slots(spec: ScanSpec) -> int | None:
    """Most states that a step reads; ``None`` if all."""
    memory: Any = spec.memory
    if not spec.has_memory:
        return 0
    if isinstance(memory, Full):
        return memory.recent
    return memory.recent + memory.relevant if isinstance(memory, Screened) else memory.slots
