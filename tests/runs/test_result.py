"""Every result says what it is, comes back as it was, and refuses what it cannot read by name."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import pytest

from remanence.runs import (
    NewerVersionError,
    Result,
    ResultError,
    UnknownKindError,
    read_result,
    result_from,
    result_kinds,
    write_result,
)


class Pair(NamedTuple):
    lag: int
    value: float


@dataclass(frozen=True)
class Law:
    name: Literal["power", "exponential"]
    rate: float


@dataclass(frozen=True)
class Sample(Result):
    kind: ClassVar[str] = "sample-of-the-tests"
    version: ClassVar[int] = 2
    law: Law
    curve: tuple[float, ...]
    pairs: list[Pair]
    by_name: dict[str, tuple[int, int]]
    by_lag: dict[int, float]
    where: Path
    limit: float | None = None
    note: str = ""
    array: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def upgrade(cls, values, version):
        assert version == 1
        return {**values, "note": "from version 1"}


def sample(**changes) -> Sample:
    given = {
        "law": Law("power", 0.5),
        "curve": (1.0, math.inf, -math.inf),
        "pairs": [Pair(1, 0.25)],
        "by_name": {"a": (1, 2)},
        "by_lag": {3: 0.5},
        "where": Path("a/b"),
    }
    return Sample(**{**given, **changes})


def test_a_result_comes_back_as_it_was(tmp_path):
    result = sample(limit=2.0)
    found = read_result(write_result(tmp_path / "a.json", result))
    assert isinstance(found, Sample)
    for name in ("law", "curve", "pairs", "by_name", "by_lag", "where", "limit", "note"):
        assert getattr(found, name) == getattr(result, name)
    assert isinstance(found.pairs[0], Pair)


def test_arrays_come_back_and_nan_too():
    found = result_from(json.loads(json.dumps(sample(curve=(math.nan,), array=np.arange(3.0)).to_dict())))
    assert isinstance(found, Sample)
    assert math.isnan(found.curve[0])
    assert found.array.tolist() == [0.0, 1.0, 2.0]


def test_arrays_with_numbers_that_are_not_finite_come_back():
    array = np.array([[1.0, -math.inf], [math.nan, math.inf]])
    found = result_from(json.loads(json.dumps(sample(array=array).to_dict())))
    assert isinstance(found, Sample)
    np.testing.assert_array_equal(found.array, array)
    assert Sample.from_dict({**sample().to_dict(), "array": [1, 2]}).array.dtype.kind == "i"


def test_the_file_is_json_that_every_reader_takes(tmp_path):
    text = write_result(tmp_path / "a.json", sample(curve=(math.nan, math.inf))).read_text()
    values = json.loads(text, parse_constant=lambda word: pytest.fail(word))
    assert (values["kind"], values["version"], values["curve"]) == ("sample-of-the-tests", 2, [None, "inf"])


def test_an_older_version_is_upgraded_and_a_newer_one_refused():
    values = sample().to_dict()
    old = result_from({**values, "version": 1})
    assert isinstance(old, Sample)
    assert old.note == "from version 1"
    with pytest.raises(NewerVersionError, match="version 3, and this package reads up to 2"):
        result_from({**values, "version": 3})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": None}, "must say its version"),
        ({"version": True}, "must say its version"),
        ({"law": None}, "`law` of the sample-of-the-tests"),
        ({"law": {"name": "cubic", "rate": 1}}, "expected one of 'power', 'exponential'"),
        ({"curve": "abc"}, "expected a list, got a str"),
        ({"curve": [True]}, "expected a number, got a bool"),
        ({"by_name": {"a": [1]}}, "`by_name`"),
        ({"where": 3}, "expected a str, got a int"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_field(change, words):
    with pytest.raises(ResultError, match=words):
        result_from({**sample().to_dict(), **change})


def test_a_missing_field_is_named_and_an_extra_one_left_out():
    values = sample().to_dict()
    assert isinstance(result_from({**values, "more": 1}), Sample)
    del values["law"]
    with pytest.raises(ResultError, match="has no `law`"):
        result_from(values)


def test_unknown_kinds_and_files_that_hold_none_have_names_of_their_own(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"kind": "unheard-of", "version": 1}')
    with pytest.raises(UnknownKindError, match=r"a\.json: results of kind 'unheard-of'"):
        read_result(path)
    for text in ("[]", "{}", "not json", "[" * 100_000):
        path.write_text(text)
        with pytest.raises(ResultError, match=r"a\.json"):
            read_result(path)


def test_a_kind_belongs_to_one_class():
    assert result_kinds()["sample-of-the-tests"] is Sample
    with pytest.raises(TypeError, match="give the class its own kind"):

        @dataclass(frozen=True)
        class Other(Result):
            kind: ClassVar[str] = "sample-of-the-tests"
