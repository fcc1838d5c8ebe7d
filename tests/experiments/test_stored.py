import pytest

from remanence.experiments import load_stored, save_stored, stored_names

RECORD = {"what": "a trial", "command": "none", "scaled_down": "", "machine": "any", "results": {"b": [1.5], "a": 2}}


def test_a_record_comes_back_as_it_was_stored(tmp_path):
    save_stored("trial", RECORD, tmp_path)
    assert stored_names(tmp_path) == ["trial"]
    assert load_stored("trial", tmp_path) == RECORD


def test_the_same_record_gives_the_same_bytes(tmp_path):
    first = save_stored("trial", RECORD, tmp_path).read_bytes()
    assert save_stored("trial", dict(reversed(RECORD.items())), tmp_path).read_bytes() == first


@pytest.mark.parametrize("key", sorted(RECORD))
def test_a_record_that_does_not_say_how_it_was_made_is_refused(tmp_path, key):
    with pytest.raises(ValueError, match="scaled_down"):
        save_stored("trial", {name: value for name, value in RECORD.items() if name != key}, tmp_path)
    assert stored_names(tmp_path) == []


@pytest.mark.parametrize("name", stored_names())
def test_every_stored_result_is_complete(name, tmp_path):
    assert save_stored(name, load_stored(name), tmp_path).read_text().startswith("{")
