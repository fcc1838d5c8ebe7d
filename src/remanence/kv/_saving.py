"""A cache as one file: what it holds, not what it has allocated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from remanence._validate import message
from remanence.kv._layer import Policy, ScreenedLayer
from remanence.kv._screens import SCREENS
from remanence.kv._slots import Slots
from remanence.runs import check_version, replace_file, tag

KIND = "kv-cache"


def save_layers(path: Path, policy: Policy, layers: list[Any]) -> None:
    """Writes the layers of a cache into a safetensors file, whole or not at all."""
    tensors = {f"{place}.{name}": field for place, layer in enumerate(layers) for name, field in _held(layer).items()}
    names = {made: name for name, made in SCREENS.items()}
    numbers = {"budget": policy.budget, "recent": policy.recent, "sinks": policy.sinks, "chunk": policy.chunk}
    facts = {**tag(KIND), **numbers, "screen": names.get(type(policy.screen)), "layers": [*map(_counts, layers)]}
    replace_file(path, save(tensors, metadata={"cache": json.dumps(facts)}))


def read_facts(path: Path) -> dict[str, Any]:
    """Reads what a file says of its cache.

    Raises:
        ValueError: it is damaged, not a cache, or written by a newer version.
    """
    try:
        with safe_open(path, framework="pt") as file:
            found = (file.metadata() or {}).get("cache")
    except SafetensorError as error:
        raise ValueError(message("path", "be a whole file of ScreenedCache.save", str(path), str(error))) from error
    if found is None:
        raise ValueError(message("path", "be a file of ScreenedCache.save", str(path)))
    facts = json.loads(found)
    check_version(facts, KIND, 1)
    return facts


def load_layers(path: Path, facts: dict[str, Any], layers: list[Any], device: torch.device) -> None:
    """Fills fresh layers with what a file holds.

    Raises:
        ValueError: the model has another number of layers.
    """
    if len(facts["layers"]) != len(layers):
        raise ValueError(message("model", f"have the {len(facts['layers'])} layers of the cache", len(layers)))
    with safe_open(path, framework="pt", device=str(device)) as file:
        for place, (layer, counts) in enumerate(zip(layers, facts["layers"], strict=True)):
            names = [name for name in file.keys() if name.startswith(f"{place}.")]  # noqa: SIM118 (no mapping)
            if names:
                _restore(layer, {name.partition(".")[2]: file.get_tensor(name) for name in names})
            vars(layer).update(counts)


def _held(layer: Any) -> dict[str, Tensor]:
    if not layer.is_initialized:
        return {}
    if not isinstance(layer, ScreenedLayer):
        return {"keys": layer.keys.contiguous(), "values": layer.values.contiguous()}
    held = layer.slots.first(layer.count)._asdict()
    return {"start": layer.start, **{name: field.contiguous() for name, field in held.items()}}


def _counts(layer: Any) -> dict[str, Any]:
    if isinstance(layer, ScreenedLayer):
        return {"seen": layer.seen, "count": layer.count, "padded": layer.padded}
    return {"cumulative_length": layer.cumulative_length}


def _restore(layer: Any, found: dict[str, Tensor]) -> None:
    layer.lazy_initialization(found["keys"], found["values"])
    if isinstance(layer, ScreenedLayer):
        layer.start = found.pop("start")
        layer.slots.write(0, Slots(**found))
    else:
        layer.keys, layer.values = found["keys"], found["values"]
