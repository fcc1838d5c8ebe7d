"""Typed values back from the plain ones of a JSON file."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
INFINITE = ("inf", "-inf")
"""How JSON says what it has no number for."""


def decode_dataclass(kind: type[T], values: Mapping[str, Any]) -> T:
    """A dataclass from the dictionary of its fields; keys that are no field are left out.

    Args:
        kind: the dataclass.
        values: plain lists, numbers and strings; a missing field takes its default.

    Raises:
        ValueError: If a field is missing or is not of its type.

    Example:
        >>> @dataclasses.dataclass
        ... class Pair:
        ...     first: int
        ...     others: tuple[float, ...] = ()
        >>> decode_dataclass(Pair, {"first": 1, "others": [2, 3.5], "verdict": "good"})
        Pair(first=1, others=(2.0, 3.5))
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"a JSON object was expected for {kind.__name__}")
    hints = typing.get_type_hints(kind)
    found = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name in values:
            found[field.name] = _decode_field(f"{kind.__name__}.{field.name}", hints[field.name], values[field.name])
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{kind.__name__} lacks `{field.name}`")
    return kind(**found)


def _decode_field(name: str, kind: Any, value: Any) -> Any:
    try:
        return _decode(kind, value)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"{name} is not what it should be: {error}") from error


def _decode(kind: Any, value: Any) -> Any:
    origin = typing.get_origin(kind)
    inside = typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else _decode(next(part for part in inside if part is not type(None)), value)
    if origin is tuple:
        kinds = inside[:1] * len(value) if inside[-1] is Ellipsis else inside
        return tuple(_decode(part, item) for part, item in zip(kinds, value, strict=True))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _decode(inside[1], item) for key, item in value.items()}
    if kind is np.ndarray:
        return _array(value)
    if kind is float:
        return math.nan if value is None else _number(value)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return decode_dataclass(kind, value)
    if isinstance(kind, type) and not isinstance(value, kind):
        raise TypeError(f"{kind.__name__} was expected, got {value!r}")
    return value


def _number(value: Any) -> float:
    if value in INFINITE:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"a number was expected, got {value!r}")
    return float(value)


def _array(value: Any) -> np.ndarray:
    """An array; None, which stands for a number that is not finite, is NaN."""
    if not isinstance(value, list | tuple):
        raise TypeError(f"a list was expected, got {value!r}")
    array = np.array(value)
    return array if array.dtype.kind in "biuf" else np.array(value, dtype=object).astype(float)
