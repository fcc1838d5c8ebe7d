"""Nested values as named tensors and plain JSON, and back: what a checkpoint holds, without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

# The only classes that a file may name: reading a checkpoint can make these and nothing else.
_NAMED: dict[str, type] = {}


def register_state(*kinds: type) -> None:
    """Lets checkpoints hold named tuples of these classes, stored by the class's name.

    Args:
        kinds: Named tuples whose fields are what :func:`pack` takes.

    Raises:
        ValueError: If another class of the same name is registered already.

    Example:
        >>> from typing import NamedTuple
        >>> class Counter(NamedTuple):
        ...     steps: int
        >>> register_state(Counter)
        >>> unpack(pack(Counter(3), "state", {}), {})
        Counter(steps=3)
    """
    for kind in kinds:
        if _NAMED.setdefault(kind.__name__, kind) is not kind:
            raise ValueError(f"another class is registered as {kind.__name__!r}; give the state a name of its own")


def pack(value: object, name: str, tensors: dict[str, Tensor]) -> Any:
    """Takes the tensors out of a nested value.

    Args:
        value: Tensors, numbers, strings, None, tuples, lists, dictionaries, and states that are registered.
        name: Prefix of the tensors' names.
        tensors: Where they go.

    Returns:
        What is left, for JSON.

    Raises:
        TypeError: If there is anything else in it.

    Example:
        >>> tensors = {}
        >>> outline = pack((torch.zeros(2), None, 3), "state", tensors)
        >>> list(tensors), unpack(outline, tensors)
        (['state.0'], (tensor([0., 0.]), None, 3))
    """
    if isinstance(value, Tensor):
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    if isinstance(value, dict):
        return {"dict": [[_key(key), pack(item, f"{name}.{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, tuple | list):
        kind = type(value).__name__
        if kind not in ("tuple", "list") and _NAMED.get(kind) is not type(value):
            raise TypeError(
                f"a checkpoint cannot hold a {kind}; registered states, tuples, lists and dictionaries (register_state)"
            )
        return {kind: [pack(item, f"{name}.{place}", tensors) for place, item in enumerate(value)]}
    raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}; found one in {name}")


def _key(key: object) -> str | int:
    if not isinstance(key, str | int):
        raise TypeError(f"a checkpoint cannot hold a dictionary with the key {key!r}")
    return key


def unpack(outline: object, tensors: Mapping[str, Tensor]) -> Any:
    """Puts a nested value together again.

    Example:
        >>> unpack({"list": [{"value": 1}]}, {})
        [1]
    """
    if not isinstance(outline, dict) or len(outline) != 1:
        raise ValueError("the checkpoint's outline is damaged: every value is an object with one key, its kind")
    ((kind, inner),) = outline.items()
    if kind == "tensor":
        return tensors[inner]
    if kind == "value":
        return inner
    if kind == "dict":
        return {key: unpack(item, tensors) for key, item in inner}
    items = [unpack(item, tensors) for item in inner]
    if kind == "list":
        return items
    if kind == "tuple":
        return tuple(items)
    if kind not in _NAMED:
        raise ValueError(f"the checkpoint holds a {kind!r}, which is not registered here (register_state)")
    return _NAMED[kind](*items)


def bits_equal(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    """Tells whether two sets of named tensors agree bit for bit.

    Example:
        >>> bits_equal({"a": torch.zeros(1)}, {"a": torch.zeros(1)})
        True
    """
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and torch.equal(one[name], other[name]) for name in one
    )
