"""Typed values as what JSON can hold, and back by their annotations."""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

Values = dict[str, Any]
"""What JSON and TOML hold, by name: texts, numbers, truth values, None, and lists and tables of these."""
Settings = Mapping[str, Any]
"""The same where it is only read, as options and configurations are."""
Kind = TypeVar("Kind")


def plain(value: Any) -> Any:
    """The same value out of dictionaries, lists, strings, finite numbers and None.

    Args:
        value: Numbers, strings, None, paths, arrays, tensors, dataclasses, and collections of these.

    Raises:
        TypeError: If there is anything else in it.

    Example:
        >>> plain({"lags": np.array([1, 2]), "share": float("nan"), "least": -math.inf})
        {'lags': [1, 2], 'share': None, 'least': '-inf'}
    """
    if isinstance(value, torch.Tensor):
        return plain(value.detach().cpu().tolist())
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return _plain_float(value)
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset | range):
        return [plain(item) for item in value]
    raise TypeError(f"a result cannot hold a {type(value).__name__}")


def _plain_float(value: float) -> float | str | None:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return None
    return str(value)


def types_of(kind: type) -> Values:
    """The annotations of a class, resolved; one that cannot be resolved counts as ``Any``.

    Example:
        >>> types_of(complex)
        {}
    """
    try:
        return typing.get_type_hints(kind)
    except NameError:  # a name that exists for type checkers only, or inside a function
        names = [name for base in reversed(kind.__mro__) for name in getattr(base, "__annotations__", {})]
        return dict.fromkeys(names, Any)


def restored(value: object, hint: object) -> Any:
    """Brings a value that :func:`plain` made back to its annotation; TypeError if it does not fit.

    Example:
        >>> restored([1, 2], tuple[float, ...]), restored(None, float | None), restored("inf", float)
        ((1.0, 2.0), None, inf)
    """
    origin = typing.get_origin(hint)
    inner = typing.get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return value
    if origin in (typing.Union, types.UnionType):
        return _restored_union(value, inner)
    if origin is typing.Literal:
        return _one_of(value, inner)
    if origin is typing.Annotated:
        return restored(value, inner[0])
    if origin is not None:
        return _restored_collection(value, origin, inner)
    return _restored_single(value, hint)


def _restored_union(value: object, choices: tuple[object, ...]) -> object:
    if value is None and type(None) in choices:
        return None
    errors = []
    for choice in choices:
        if choice is type(None):
            continue
        try:
            return restored(value, choice)
        except (TypeError, ValueError, KeyError) as error:
            errors.append(str(error))
    raise TypeError("; ".join(errors))


def _one_of(value: object, choices: tuple[object, ...]) -> object:
    if value not in choices:
        raise TypeError(f"expected one of {', '.join(map(repr, choices))}")
    return value


def _restored_collection(value: object, origin: type, inner: tuple[object, ...]) -> object:
    if issubclass(origin, Mapping):
        key, item = inner or (Any, Any)
        return {_restored_key(name, key): restored(one, item) for name, one in _expect(value, dict).items()}
    if issubclass(origin, np.ndarray):
        return _array(value)
    items = _expect(value, list)
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        return tuple(restored(one, kind) for one, kind in zip(items, inner, strict=True))
    (kind, *_) = inner or (Any,)
    made = [restored(one, kind) for one in items]
    if origin in (tuple, set, frozenset):
        return origin(made)
    return made


def _restored_key(name: str, hint: object) -> int | str:
    """Keys of JSON objects are strings; whole numbers become numbers again."""
    if hint is int:
        return int(name)
    return name


def _restored_single(value: object, hint: object) -> object:
    if hint is float:
        return _float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if hint in (int, str, bool):
        return _expect(value, hint)
    if hint in (None, type(None)):
        return _expect(value, type(None))
    if not isinstance(hint, type):
        return value
    if issubclass(hint, Path):
        return Path(_expect(value, str))
    if issubclass(hint, np.ndarray):
        return _array(value)
    if issubclass(hint, torch.Tensor):
        return torch.tensor(value)
    if hasattr(hint, "from_dict"):
        return hint.from_dict(_expect(value, dict))  # type: ignore[attr-defined]
    if is_dataclass(hint):
        return _dataclass(_expect(value, dict), hint)
    if issubclass(hint, tuple) and hasattr(hint, "_fields"):
        kinds = types_of(hint)
        return hint(*(restored(one, kinds[name]) for name, one in zip(hint._fields, value, strict=True)))  # type: ignore
    if hint in (list, tuple, set, frozenset):
        return hint(_expect(value, list))
    return value


def _dataclass(values: Values, hint: type) -> object:
    kinds = types_of(hint)
    names = {field.name for field in fields(hint) if field.init}
    return hint(**{name: restored(value, kinds[name]) for name, value in values.items() if name in names})


def _float(value: object) -> float:
    if value is None:
        return math.nan
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got a {type(value).__name__}")
    return float(value)


def _array(value: object) -> np.ndarray:
    """Numbers of any shape; null is NaN, and infinities are words, so such an array is one of floats."""
    items = _expect(value, list)
    array = np.array(items)
    if array.dtype.kind in "biuf":
        return array
    return np.array(items, dtype=object).astype(float)


def _expect(value: object, kind: type[Kind]) -> Kind:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"expected a {kind.__name__}, got a {type(value).__name__}")
    return value
