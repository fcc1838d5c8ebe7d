import json

import pytest
from typer.testing import CliRunner

from remanence.cli._app import app

RUN = CliRunner()
SMOKE = ["reproduce", "kerg2020/table-2", "--scale", "smoke", "--only", "model=LSTM", "length=5"]


def ask(*arguments):
    return RUN.invoke(app, list(map(str, arguments)))


def test_all_tables_are_listed():
    rows = json.loads(ask("reproduce", "--list", "--json").output)
    assert {"kerg2020/table-2", "kerg2020/table-5"} <= {row["id"] for row in rows}
    assert "kerg2020/table-2" in ask("reproduce", "--list").output


def test_a_dry_run_estimates_hours_and_makes_nothing(tmp_path):
    found = ask(*SMOKE, "--dry-run", "--folder", tmp_path, "--json")
    (row,) = json.loads(found.output)
    assert row["hours"] >= 0
    assert list(tmp_path.iterdir()) == []
    assert "at most" in ask(*SMOKE, "--dry-run", "--folder", tmp_path).output


def test_a_table_is_run_stored_and_reported(tmp_path):
    cells, store = tmp_path / "cells", tmp_path / "record.json"
    ended = ask(*SMOKE, "--folder", cells, "--store", store)
    assert ended.exit_code == 0, ended.output
    assert "done" in ended.output
    assert json.loads(store.read_text())["experiment"] == "kerg2020/table-2"
    again = json.loads(ask(*SMOKE, "--folder", cells, "--json").output)
    assert again["cells"][0]["status"] == "done"
    page = tmp_path / "page.md"
    assert ask(*SMOKE, "--folder", cells, "--report", "-o", page).exit_code == 0
    assert "1 of 1 cells are done" in page.read_text()
    html = tmp_path / "page.html"
    assert ask(*SMOKE, "--folder", cells, "--report", "-o", html).exit_code == 0
    text = html.read_text()
    assert "1 of 1 cells are done" in text
    assert "accuracy of validation" in text
    assert "Table 7" in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reproduce"], "--list"),
        (["reproduce", "kerg2020/table-22"], "Did you mean"),
        (["reproduce", "kerg2020/table-2", "--scale", "papr"], "Did you mean 'paper'"),
        (["reproduce", "kerg2020/table-2", "--only", "model=LSMT"], "Did you mean 'LSTM'"),
        (["reproduce", "kerg2020/table-2", "--seeds", "none"], "how many"),
        (["reproduce", "kerg2020/table-2", "--engine", "slurm"], "must be one of 'local', 'ray'"),
        (["reproduce", "kerg2020/table-2", "--storage", "/mnt"], "Use --folder"),
        (["reproduce", "kerg2020/table-2", "--engine", "ray", "--storage", "nosuch://runs"], "URL that fsspec knows"),
    ],
)
def test_bad_input_gets_one_line_and_the_way_out(arguments, words):
    found = ask(*arguments)
    assert found.exit_code == 2
    assert words in found.output
    assert "Traceback" not in found.output
