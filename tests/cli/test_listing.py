"""What strangers' files can do to the list of runs: nothing but one line that says so."""

import json

import pytest
from typer.testing import CliRunner

from remanence.cli._app import app

GOOD = 'seed = 0\n[task]\nname = "copy"\n[model]\nname = "LSTM"\n'
BAD_SEEDS = ["1979-05-27", "[07:32:00]", "nan", "{a = inf}", "true", "0x" + "f" * 900]


def listed(place, *options):
    return CliRunner().invoke(app, ["runs", str(place), *options], env={"COLUMNS": "400"})


def strict(text):
    """Reads JSON as other languages do, which know no NaN."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@pytest.fixture
def place(tmp_path):
    """Two runs, a/ and b/, that nothing is wrong with."""
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text(GOOD)
        (tmp_path / name / "status.json").write_text('{"status": "done", "update": 3, "best": 0.5}')
    return tmp_path


@pytest.mark.parametrize("seed", BAD_SEEDS)
def test_a_seed_that_is_no_whole_number_spoils_no_other_row(place, seed):
    (place / "a" / "config.toml").write_text(GOOD.replace("seed = 0", f"seed = {seed}"))
    first, second = strict(listed(place, "--json").stdout)
    assert first["status"] == "damaged"
    assert "config.toml is damaged: `seed` must be a whole number; got" in first["reason"]
    assert second["status"] == "done"
    table = listed(place)
    assert table.exit_code == 0
    assert "damaged" in table.stdout


def test_a_number_too_long_to_be_shown_spoils_no_other_row(place):
    (place / "a" / "config.toml").write_text(GOOD.replace("seed = 0", f"seed = 0x{'f' * 9000}"))
    first, second = strict(listed(place, "--json").stdout)
    assert "config.toml is damaged: it holds a whole number of thousands of digits" in first["reason"]
    assert (first["status"], second["status"]) == ("damaged", "done")


@pytest.mark.parametrize("best", ["[1]", '"good"', "{}", "true"])
def test_a_best_value_that_is_no_number_is_damage(place, best):
    (place / "a" / "status.json").write_text(f'{{"status": "done", "update": 3, "best": {best}}}')
    first, second = strict(listed(place, "--json").stdout)
    assert "status.json is damaged: `best` must be a number; got" in first["reason"]
    assert second["best"] == 0.5


@pytest.mark.parametrize(("best", "shown"), [("NaN", None), ("Infinity", "inf"), ("1e999", "inf")])
def test_a_best_value_that_is_not_finite_is_valid_json(place, best, shown):
    (place / "a" / "status.json").write_text(f'{{"status": "done", "update": 3, "best": {best}}}')
    assert strict(listed(place, "--json").stdout)[0]["best"] == shown


def test_names_send_no_commands_to_the_terminal(place):
    hostile = GOOD.replace('"copy"', '"\\u001b]0;title\\u0007\\u202ecopy"')
    (place / "a" / "config.toml").write_text(hostile)
    table = listed(place).stdout
    assert "\\x1b]0;title\\x07\\u202ecopy" in table
    assert not {"\x1b", "\x07", "\u202e"} & set(table)


@pytest.mark.parametrize("command", ["evaluate", "generate", "resume"])
def test_errors_send_no_commands_to_the_terminal_either(tmp_path, command):
    folder = tmp_path / "a\x1b]0;title\x07"
    folder.mkdir()
    (folder / "config.toml").write_text("no toml")
    told = CliRunner().invoke(app, [command, str(folder)]).output
    assert "\\x1b]0;title\\x07" in told
    assert "\x1b" not in told
