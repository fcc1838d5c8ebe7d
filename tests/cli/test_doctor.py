import json

import pytest
import torch
from typer.testing import CliRunner

import remanence
from remanence import ops
from remanence.cli import _doctor
from remanence.cli._app import app

runner = CliRunner()


def report() -> dict:
    result = runner.invoke(app, ["doctor", "--json"])
    assert result.exit_code == 0
    return json.loads(result.output)


def test_versions_are_those_of_this_process():
    versions = report()["versions"]
    assert versions["remanence"] == remanence.__version__
    assert versions["torch"] == str(torch.__version__)


def test_the_active_path_comes_with_its_reason():
    backend = report()["backend"]
    assert backend == ops.backend_report()
    assert backend["active"] in ("reference", "fused")
    assert backend["reason"]


def test_threads_are_counted():
    assert report()["machine"]["threads"] == torch.get_num_threads()


def test_our_variables_are_shown_and_no_others(monkeypatch):
    monkeypatch.setenv("REMANENCE_REQUIRE", "data")
    monkeypatch.setenv("SECRET", "x")
    environment = report()["environment"]
    assert environment["REMANENCE_REQUIRE"] == "data"
    assert all(name.startswith("REMANENCE_") for name in environment)


def test_data_files_are_counted_where_they_lie(monkeypatch, tmp_path):
    (tmp_path / "ptb").mkdir()
    (tmp_path / "ptb" / "ptb.test.txt").touch()
    monkeypatch.setenv("REMANENCE_DATA", str(tmp_path))
    monkeypatch.setenv("REMANENCE_CACHE", str(tmp_path / "gone"))
    found = report()["data"]
    assert found["directories"] == [str(tmp_path), str(tmp_path / "gone")]
    counts = dict(entry.split() for entry in found["files_present"])
    assert counts["ptb"].startswith("1/")
    assert counts["mnist"].startswith("0/")


def test_a_narrow_terminal_cuts_nothing_off(monkeypatch, tmp_path):
    place = str(tmp_path / ("long" * 30))
    monkeypatch.setenv("REMANENCE_DATA", place)
    monkeypatch.setenv("COLUMNS", "60")
    shown = runner.invoke(app, ["doctor"]).output
    assert "\u2026" not in shown
    assert place in "".join(shown.split())


@pytest.mark.parametrize("line", ["flags\t\t: fpu avx2 fma", "Features\t: fp asimd"])
def test_instruction_sets_of_either_kind_of_processor(tmp_path, line):
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\n{line}\nbugs\t: none\n")
    assert _doctor.instruction_sets(path) == [name for name in ("avx2", "fma", "asimd") if name in line]


def test_without_cpuinfo_the_machine_is_named(tmp_path):
    assert len(_doctor.instruction_sets(tmp_path / "absent")) == 1


def test_the_table_names_the_path_and_the_version():
    result = runner.invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert remanence.__version__ in result.output
    assert ops.backend_report()["active"] in result.output


def test_square_brackets_in_a_value_are_shown_and_not_taken_for_markup(monkeypatch):
    monkeypatch.setenv("REMANENCE_NOTE", "[bold]x[/bold]")
    assert "[bold]x[/bold]" in runner.invoke(app, ["doctor"]).output
