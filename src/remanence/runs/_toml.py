"""Configurations of any kind as TOML, and single settings as the command line writes them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from remanence._validate import message, one_of
from remanence.runs._errors import DamagedFileError
from remanence.runs._files import read_file
from remanence.runs._plain import Settings, Values

Config = TypeVar("Config")
NONE = "none"
"""What stands for None in TOML, which has no word for it."""


def read_table(path: str | Path) -> Values:
    """Reads a TOML file; what cannot be read or is not valid is a :class:`DamagedFileError`.

    Example:
        >>> read_table("no such file")
        Traceback (most recent call last):
        remanence.runs._errors.DamagedFileError: no such file is missing
    """
    contents = read_file(Path(path))
    try:
        found = tomllib.loads(contents.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DamagedFileError(f"{path} is not valid TOML: {error}") from error
    try:
        repr(found)
    except ValueError as error:  # no message and no page could show it
        raise DamagedFileError(f"{path} is damaged: it holds a whole number of thousands of digits") from error
    return found


def read_stored_table(path: str | Path, keys: Iterable[str]) -> Values:
    """Reads the settings of a run, which must all be there: defaults would replace those of a truncated file.

    Args:
        path: The file.
        keys: That it must have.

    Raises:
        DamagedFileError: If it cannot be read, is not valid, or lacks one of the keys.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "config.toml"
        ...     _ = path.write_text("seed = 3")
        ...     read_stored_table(path, ["task"])
        Traceback (most recent call last):
        remanence.runs._errors.DamagedFileError: ... is damaged: it says nothing of task; put the whole file back
    """
    table = read_table(path)
    missing = [key for key in keys if key not in table]
    if missing:
        raise DamagedFileError(f"{path} is damaged: it says nothing of {', '.join(missing)}; put the whole file back")
    return table


def with_table(config: Config, table: Settings, prefix: str = "") -> Config:
    """Changes a configuration of any kind.

    Args:
        config: A frozen dataclass, whose sections are such too.
        table: Its keys; ``"none"`` stands for None.
        prefix: Section that it is, for messages.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Settings:
        ...     seed: int = 0
        >>> with_table(Settings(), {"seed": 3})
        Settings(seed=3)
    """
    hints = typing.get_type_hints(type(config))
    changes = {}
    for key, value in table.items():
        name = key
        place = "key"
        if prefix:
            name = f"{prefix}.{key}"
            place = f"key of [{prefix}]"
        _check_key(place, key, config, list(hints))
        now = getattr(config, key)
        if dataclasses.is_dataclass(now):
            changes[key] = with_table(now, _table(name, value), name)
        elif isinstance(now, dict):
            changes[key] = {**now, **{option: _plain(item) for option, item in _table(name, value).items()}}
        else:
            changes[key] = _convert(name, value, hints[key])
    return dataclasses.replace(config, **changes)  # type: ignore[type-var]


def _check_key(place: str, key: str, config: object, allowed: list[str]) -> None:
    """Refuses an unknown key; one that a section knows is told where it belongs."""
    for section in allowed:
        part = getattr(config, section)
        if key not in allowed and dataclasses.is_dataclass(part) and hasattr(part, key):
            raise ValueError(message(place, "name its section too", repr(key), f"Write {section}.{key}"))
    one_of(place, key, allowed)


def _table(name: str, value: object) -> Settings:
    if not isinstance(value, Mapping):
        raise ValueError(message(name, "be a table", repr(value), f"Set one of its keys, as in {name}.key=value"))
    return value


def _plain(value: object) -> Any:
    if value == NONE:
        return None
    return value


def _convert(name: str, value: object, hint: object) -> Any:
    """Brings a TOML value to the type of its field; whole numbers may stand for floats."""
    if typing.get_origin(hint) is tuple:
        return _convert_list(name, value, hint)
    allowed = typing.get_args(hint) or (hint,)
    if value == NONE and type(None) in allowed:
        return None
    if isinstance(value, list) and (listed := [kind for kind in allowed if typing.get_origin(kind) is tuple]):
        return _convert_list(name, value, listed[0])
    # Not `isinstance`: True is a whole number to Python.
    if type(value) is int and float in allowed and int not in allowed:
        return _as_float(name, value)
    kinds = tuple(kind for kind in allowed if isinstance(kind, type))
    if kinds and type(value) not in kinds:
        wanted = " or ".join(kind.__name__.replace("NoneType", "none") for kind in kinds)
        raise ValueError(message(name, f"be of type {wanted}", repr(value)))
    return value


def _as_float(name: str, value: int) -> float:
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError(message(name, "be a finite number", value)) from error


def _convert_list(name: str, value: object, hint: object) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        way = f"Write {name}=[{_value(value)}]"
        raise ValueError(message(name, "be a list", repr(value), way))
    kind = typing.get_args(hint)[0]
    return tuple(_convert(name, item, kind) for item in value)


def settings_table(settings: Iterable[str]) -> Values:
    """Single settings, ``"section.key=value"``, as nested tables.

    Example:
        >>> settings_table(["task.name=denoise", "seed=3"])
        {'task': {'name': 'denoise'}, 'seed': 3}
    """
    values: Values = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(message("--set", "have the form key=value", repr(setting)))
        values[key.strip()] = parse_value(text.strip())
    return nested_table(values)


def parse_value(text: str) -> Any:
    """Reads one value as TOML writes it; what is no TOML is a string.

    Example:
        >>> parse_value("1e-3"), parse_value("true"), parse_value("[1, 2]"), parse_value("adam")
        (0.001, True, [1, 2], 'adam')
    """
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def to_toml(config: Any) -> str:
    """Writes a configuration of any kind out, every key of it, so that it reads back as the same one.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Settings:
        ...     seed: int = 0
        >>> print(to_toml(Settings()), end="")
        seed = 0
    """
    table = dataclasses.asdict(config)
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{key} = {_value(value)}" for key, value in plain.items()]
    for section, entries in table.items():
        if isinstance(entries, dict):
            lines += ["", f"[{section}]"] + [f"{_key(key)} = {_value(value)}" for key, value in entries.items()]
    return "\n".join(lines) + "\n"


def _key(key: str) -> str:
    if key.replace("_", "").replace("-", "").isalnum() and key.isascii():
        return key
    return _string(key)


def _string(text: str) -> str:
    """A string of JSON is one of TOML, but for the delete character, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    if value is None:
        return json.dumps(NONE)
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    raise TypeError(message("value", "be something that TOML can hold", f"{value!r} ({type(value).__name__})"))


def digest_of(config: Any) -> str:
    """Eight hexadecimal digits that name a configuration, a dataclass of plain values or its table.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Settings:
        ...     seed: int = 0
        >>> digest_of(Settings(1)) == digest_of(Settings(1)), digest_of(Settings(1)) == digest_of(Settings(2))
        (True, False)
    """
    table = config
    if not isinstance(config, Mapping):
        table = dataclasses.asdict(config)
    text = json.dumps(table, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def flat_table(table: Settings, prefix: str = "") -> Values:
    """Settings by their dotted names.

    Example:
        >>> flat_table({"seed": 1, "loop": {"clip_norm": 1.0}})
        {'seed': 1, 'loop.clip_norm': 1.0}
    """
    found: Values = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            found |= flat_table(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def nested_table(settings: Settings) -> Values:
    """Dotted names as tables in tables: the inverse of :func:`flat_table`.

    Example:
        >>> nested_table({"task.options.length": 5, "seed": 1})
        {'task': {'options': {'length': 5}}, 'seed': 1}
    """
    table: Values = {}
    for key, value in settings.items():
        *sections, last = key.split(".")
        inner = table
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[last] = value
    return table
