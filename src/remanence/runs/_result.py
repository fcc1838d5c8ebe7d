"""Results that say what they are: every JSON file that the package writes carries a kind and a version.

A result is a frozen dataclass that derives from :class:`Result` and names its kind. That registers it: ``to_dict`` and
``from_dict`` come with the base, :func:`read_result` finds the class by the kind in the file, and a kind that is not
known, or a version that is newer than this package, is an error with a name of its own.

    @dataclass(frozen=True)
    class Reach(Result):
        kind: ClassVar[str] = "reach"
        version: ClassVar[int] = 2
        steps: int
        gradients: tuple[float, ...]

        @classmethod
        def upgrade(cls, values, version):      # what version 1 called otherwise
            return {"steps": values["lag"], **values}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from remanence.runs._files import replace_file, sealed, unsealed
from remanence.runs._plain import Settings, Values, plain, restored, types_of

KIND = "kind"
VERSION = "version"

Made = TypeVar("Made")

_KINDS: dict[str, type[Result]] = {}


class ResultError(ValueError):
    """A file or dictionary is not the result that it should be; the message says what is wrong with it.

    Example:
        >>> result_from({"steps": 3})
        Traceback (most recent call last):
        remanence.runs._result.ResultError: the result has no `kind`; it has 'steps'
    """


class UnknownKindError(ResultError):
    """No class of this package reads results of that kind.

    Example:
        >>> result_from({"kind": "nonsense", "version": 1})
        Traceback (most recent call last):
        remanence.runs._result.UnknownKindError: results of kind 'nonsense' are not known here; known: ...
    """


class NewerVersionError(ResultError):
    """The result was written by a newer version of the package.

    Example:
        >>> check_version({"kind": "status", "version": 9}, "status", 1)
        Traceback (most recent call last):
        remanence.runs._result.NewerVersionError: the status is of version 9, and this package reads up to 1; ...
    """


class Result:
    """Base of what is written as JSON: a frozen dataclass with a kind and a version.

    Fields may be numbers, strings, None, lists, tuples, dictionaries, paths, numpy arrays, tensors, named tuples and
    other dataclasses. They come back as their annotations say. JSON has no word for numbers that are not finite: NaN is
    written as null, the infinities as ``"inf"`` and ``"-inf"``, and a field annotated as float gets them back.

    Attributes:
        kind: what it is, the same name in every version.
        version: of its fields; one more whenever an old reader would misread a new file.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Count(Result):
        ...     kind: ClassVar[str] = "count-of-the-example"
        ...     steps: tuple[int, ...]
        >>> Count((1, 2)).to_dict()
        {'kind': 'count-of-the-example', 'version': 1, 'steps': [1, 2]}
        >>> result_from(Count((1, 2)).to_dict())
        Count(steps=(1, 2))
    """

    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = cls.__dict__.get(KIND)
        if not own:
            return  # a base of several results
        before = _KINDS.get(own)
        if before is not None and (before.__module__, before.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"results of kind {own!r} are {before.__qualname__} already; give the class its own kind")
        _KINDS[own] = cls

    def to_dict(self) -> Values:
        """Kind, version and all fields as plain values for JSON."""
        inside = {field.name: plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]
        return {**tag(self.kind, self.version), **inside}

    @classmethod
    def from_dict(cls, values: Settings) -> Self:
        """Makes the result that :meth:`to_dict` described; keys that it has no field for are left out.

        Args:
            values: With ``kind`` and ``version``.

        Raises:
            NewerVersionError: If a newer version of the package wrote it.
            ResultError: If it is of another kind, or a field is missing or of the wrong type.
        """
        version = check_version(values, cls.kind, cls.version)
        found = dict(values)
        if version != cls.version:
            found = cls.upgrade(found, version)
        return dataclass_from(cls, found, cls.kind)

    @classmethod
    def upgrade(cls, values: Values, version: int) -> Values:
        """Turns what an older version wrote into this one's fields; here nothing has changed."""
        return values


def dataclass_from(kind: type[Made], values: Settings, name: str) -> Made:
    """Makes a dataclass of the plain values of its fields; keys that it has no field for are left out.

    Raises:
        ResultError: If a field is missing or of the wrong type.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class Pair:
        ...     first: int
        ...     others: tuple[float, ...] = ()
        >>> dataclass_from(Pair, {"first": 1, "others": [2, "inf"], "verdict": "good"}, "pair")
        Pair(first=1, others=(2.0, inf))
    """
    hints = types_of(kind)
    given = {}
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in values:
            given[field.name] = _field(name, field.name, values[field.name], hints[field.name])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ResultError(f"the {name} has no `{field.name}`")
    return kind(**given)


def _field(kind: str, name: str, value: object, hint: object) -> Any:
    try:
        return restored(value, hint)
    except (TypeError, ValueError, KeyError) as error:
        raise ResultError(f"`{name}` of the {kind} cannot be {value!r:.80}: {error}") from error


def tag(kind: str, version: int = 1) -> Values:
    """The two entries that every JSON object of the package begins with.

    Example:
        >>> {**tag("status"), "update": 3}
        {'kind': 'status', 'version': 1, 'update': 3}
    """
    return {KIND: kind, VERSION: version}


def check_version(values: Settings, kind: str, version: int) -> int:
    """Checks that plain values are of a kind, and not newer than this package.

    Returns:
        The version that they are of.

    Raises:
        NewerVersionError: If they are newer.
        ResultError: If they are of another kind, or say no version.

    Example:
        >>> check_version({"kind": "status", "version": 1}, "status", 2)
        1
    """
    if values.get(KIND) != kind:
        raise ResultError(f"a {kind} was expected; this is of kind {values.get(KIND)!r}")
    found = values.get(VERSION)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ResultError(f"the {kind} must say its version, a whole number >= 1; got {found!r}")
    if found > version:
        raise NewerVersionError(
            f"the {kind} is of version {found}, and this package reads up to {version}; upgrade remanence"
        )
    return found


def result_from(values: object) -> Result:
    """Makes a result of any kind that is known.

    Raises:
        UnknownKindError: If no class is known for the kind; the package that defines it must be imported.
        NewerVersionError: If a newer version of the package wrote it.
        ResultError: If it is no result, or damaged.

    Example:
        >>> result_from([1, 2])
        Traceback (most recent call last):
        remanence.runs._result.ResultError: a result must be a JSON object; got a list
    """
    if not isinstance(values, Mapping):
        raise ResultError(f"a result must be a JSON object; got a {type(values).__name__}")
    kind = values.get(KIND)
    if kind is None:
        raise ResultError(f"the result has no `kind`; it has {', '.join(map(repr, values)) or 'nothing'}")
    if kind not in _KINDS:
        raise UnknownKindError(f"results of kind {kind!r} are not known here; known: {', '.join(sorted(_KINDS))}")
    return _KINDS[kind].from_dict(values)


def result_kinds() -> dict[str, type[Result]]:
    """The classes of all kinds of result that are known now, by kind.

    Example:
        >>> all(kind == result.kind for kind, result in result_kinds().items())
        True
    """
    return dict(_KINDS)


def write_result(path: str | Path, result: Result) -> Path:
    """Writes a result as JSON, whole or not at all.

    Example:
        >>> import tempfile
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Length(Result):
        ...     kind: ClassVar[str] = "length-of-the-example"
        ...     steps: float
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     read_result(write_result(Path(folder) / "mine.json", Length(float("inf"))))
        Length(steps=inf)
    """
    replace_file(Path(path), (sealed(result.to_dict()) + "\n").encode())
    return Path(path)


def read_result(path: str | Path) -> Result:
    """Reads a result of any kind that is known.

    Raises:
        ResultError: If it is no result, of an unknown kind, newer, or damaged; the message names the file.
        FileNotFoundError: If there is none.

    Example:
        >>> read_result("no such file")
        Traceback (most recent call last):
        FileNotFoundError: ...
    """
    try:
        found = json.loads(Path(path).read_bytes())
        if isinstance(found, dict):
            found = unsealed(found)
        return result_from(found)
    except ResultError as error:
        raise type(error)(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path} is damaged or not JSON: {error}") from error
