import pytest

from remanence import _require


@pytest.fixture
def require(monkeypatch):
    return lambda text: monkeypatch.setenv(_require.VARIABLE, text)


def test_nothing_is_required_by_default(monkeypatch):
    monkeypatch.delenv(_require.VARIABLE, raising=False)
    assert _require.required() == frozenset()


@pytest.mark.parametrize("text", ["", " ", ","])
def test_an_empty_list_requires_nothing(require, text):
    require(text)
    assert _require.required() == frozenset()


def test_names_are_separated_by_commas(require):
    require("kernel, data")
    assert _require.required() == {"kernel", "data"}
    assert _require.is_required("data")
    assert not _require.is_required("browser")


def test_a_misspelt_requirement_is_an_error(require):
    require("kernal")
    with pytest.raises(ValueError, match="Did you mean 'kernel'"):
        _require.is_required("data")


def test_an_unknown_capability_is_an_error():
    with pytest.raises(ValueError, match="`capability` must be one of"):
        _require.is_required("internet")


def test_a_missing_capability_skips_when_it_is_optional(require, require_or_skip):
    require("")
    with pytest.raises(pytest.skip.Exception, match="no data here"):
        require_or_skip("data", "no data here")


def test_a_missing_capability_fails_when_it_is_required(require, require_or_skip):
    require("data")
    with pytest.raises(pytest.fail.Exception, match="no data here"):
        require_or_skip("data", "no data here")
