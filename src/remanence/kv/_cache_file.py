"""A cache as one file: what it holds, not what it has allocated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from remanence._validate import message, positive_int
from remanence.kv._layer import Policy, ScreenedLayer
from remanence.kv._screens import SCREENS
from remanence.kv._slots import Slots
from remanence.runs import DamagedFileError, Values, check_version, read_tensors, tag, write_tensors

KIND = "kv-cache"
Held = dict[str, Tensor]


def save_layers(path: Path, policy: Policy, layers: list[Any]) -> None:
    """Writes the layers of a cache into a safetensors file, whole or not at all."""
    tensors = {f"{place}.{name}": field for place, layer in enumerate(layers) for name, field in _held(layer).items()}
    names = {made: name for name, made in SCREENS.items()}
    numbers = {"budget": policy.budget, "recent": policy.recent, "sinks": policy.sinks, "chunk": policy.chunk}
    facts = {**tag(KIND), **numbers, "screen": names.get(type(policy.screen)), "layers": [*map(_counts, layers)]}
    write_tensors(path, tensors, facts)


def read_cache(path: Path) -> tuple[Held, Values]:
    """Reads what a file holds and says of its cache.

    Raises:
        ValueError: it is damaged, not a cache, or written by a newer version.
    """
    try:
        tensors, facts = read_tensors(path.resolve())
        check_version(facts, KIND, 1)
    except DamagedFileError as error:
        raise _refused(path, str(error)) from error
    numbers = [facts.get(name) for name in ("budget", "recent", "sinks", "chunk")]
    named = isinstance(facts.setdefault("screen", None), str | None)
    if not all(type(number) is int for number in numbers) or not isinstance(facts.get("layers"), list) or not named:
        raise _refused(path, "another table of facts")
    return tensors, facts


def load_layers(path: Path, tensors: Held, facts: Values, layers: list[Any], device: torch.device) -> None:
    """Fills fresh layers with what a file holds.

    Raises:
        ValueError: the model has another number of layers, or the tensors are no layers of a cache.
    """
    if len(facts["layers"]) != len(layers):
        raise ValueError(message("model", f"have the {len(facts['layers'])} layers of the cache", len(layers)))
    for place, (layer, counts) in enumerate(zip(layers, facts["layers"], strict=True)):
        prefix = f"{place}."
        held = {name.removeprefix(prefix): field for name, field in tensors.items() if name.startswith(prefix)}
        try:
            _restore(layer, {name: field.to(device) for name, field in held.items()}, counts)
        except (KeyError, TypeError, AttributeError, ValueError, RuntimeError, IndexError) as error:
            raise _refused(path, f"a layer {place} that is none ({error})") from error


def _refused(path: Path, got: str) -> ValueError:
    return ValueError(message("path", "be a whole file of ScreenedCache.save", f"{path}, {got}"))


def _held(layer: Any) -> Held:
    if not layer.is_initialized:
        return {}
    if not isinstance(layer, ScreenedLayer):
        return {"keys": layer.keys, "values": layer.values}
    return {"start": layer.start, **layer.slots.first(layer.count)._asdict()}


def _counts(layer: Any) -> Values:
    if isinstance(layer, ScreenedLayer):
        return {"seen": layer.seen, "count": layer.count, "padded": layer.padded}
    return {"cumulative_length": layer.cumulative_length}


def _restore(layer: Any, held: Held, counts: Values) -> None:
    """Takes nothing that does not fit: a tensor of another size would be stretched, a name would replace a method."""
    if held:
        layer.lazy_initialization(held["keys"], held["values"])
    if isinstance(layer, ScreenedLayer):
        _restore_screened(layer, held, counts)
        return
    layer.cumulative_length = positive_int("cumulative_length", counts["cumulative_length"], 0)
    if held:
        layer.keys, layer.values = held["keys"], held["values"]


def _restore_screened(layer: ScreenedLayer, held: Held, counts: Values) -> None:
    layer.count = positive_int("count", counts["count"], 0)
    layer.seen = positive_int("seen", counts["seen"], layer.count)
    if layer.count > layer.policy.budget:
        raise ValueError("it holds more keys than its budget")
    layer.padded = bool(counts["padded"])
    if not held:
        if layer.seen:
            raise ValueError("it has seen tokens and holds none")
        return
    expected = {"start": layer.start, **layer.slots.first(layer.count)._asdict()}
    kinds = {name: (tuple(field.shape), field.dtype) for name, field in held.items()}
    if kinds != {name: (tuple(field.shape), field.dtype) for name, field in expected.items()}:
        raise ValueError(f"sizes or kinds of its tensors are {kinds}")
    layer.start = held.pop("start")
    layer.slots.write(0, Slots(**held))
