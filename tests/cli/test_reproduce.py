import json
import signal
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from remanence import experiments
from remanence.cli._app import app
from remanence.cli._cells import leave_if_failed, watching
from remanence.cli._reproduce import Asked, show_results
from remanence.data import DataError
from remanence.experiments import Failure, find_experiment, list_experiments, plan_cells
from remanence.runs import Stopped, locked

RUN = CliRunner()
SMOKE = ["reproduce", "kerg2020/table-2", "--scale", "smoke", "--only", "model=LSTM", "length=5"]


def ask(*arguments):
    return RUN.invoke(app, list(map(str, arguments)))


def test_all_tables_are_listed():
    rows = json.loads(ask("reproduce", "--list", "--json").output)
    assert {"kerg2020/table-2", "kerg2020/table-5"} <= {row["id"] for row in rows}
    assert all((row["kind"], row["version"]) == ("experiment", 1) for row in rows)
    assert "kerg2020/table-2" in ask("reproduce", "--list").output


def test_a_dry_run_estimates_hours_and_makes_nothing(tmp_path):
    found = ask(*SMOKE, "--dry-run", "--folder", tmp_path, "--json")
    (row,) = json.loads(found.output)
    assert (row["kind"], row["version"]) == ("planned-cell", 1)
    assert row["hours"] >= 0
    assert list(tmp_path.iterdir()) == []
    assert "at most" in ask(*SMOKE, "--dry-run", "--folder", tmp_path).output


@pytest.mark.parametrize("id", ["kerg2020/table-4", "shen2019/figure-5"])
def test_policies_and_measurements_are_estimated_too(tmp_path, id):
    rows = json.loads(ask("reproduce", id, "--scale", "smoke", "--dry-run", "--folder", tmp_path, "--json").output)
    assert rows
    assert all(row["hours"] is not None for row in rows)


def test_waiting_for_a_busy_machine_is_not_counted_as_work(tmp_path, monkeypatch):
    waited = 2.0
    monkeypatch.setattr("remanence.experiments._calibration.measured", lambda *arguments: time.sleep(waited))
    command = ("reproduce", "shen2019/figure-6", "--scale", "smoke", "--dry-run", "--folder", tmp_path, "--json")
    rows = json.loads(ask(*command).output)
    assert all(row["hours"] * 3600 < waited / 2 for row in rows)


def test_what_cannot_be_tried_is_said(tmp_path, monkeypatch):
    def no_data(*arguments):
        raise DataError("ptb/ptb.train.txt is missing")

    monkeypatch.setattr("remanence.experiments._calibration.measured", no_data)
    found = ask("reproduce", "shen2019/figure-6", "--scale", "smoke", "--dry-run", "--folder", tmp_path)
    assert found.exit_code == 0
    assert "cannot be tried: ptb/ptb.train.txt is missing" in found.output
    assert "not estimated" in found.output


def test_no_id_is_cut_where_the_terminal_is_narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = ask("reproduce", "--list").output
    assert all(experiment.id in shown for experiment in list_experiments())


def test_the_words_of_a_selection_come_in_any_order(tmp_path):
    def folders(*words):
        found = ask("reproduce", *words, "--scale", "paper", "--dry-run", "--json", "--folder", tmp_path)
        return [row["folder"] for row in json.loads(found.output)]

    wanted = folders("kerg2020/table-2", "--only", "model=LSTM,GORU", "--only", "length=100", "--seeds", "1,")
    assert len(wanted) == 2
    assert folders("kerg2020/table-2", "model=LSTM", "length=100", "model=GORU", "--seeds", "1,") == wanted
    assert folders("--only", "model=LSTM,GORU", "length=100", "kerg2020/table-2", "--seeds", "1,") == wanted


def test_a_table_is_run_stored_and_reported(tmp_path):
    cells, store = tmp_path / "cells", tmp_path / "record.json"
    ended = ask(*SMOKE, "--folder", cells, "--store", store)
    assert ended.exit_code == 0, ended.output
    assert "done" in ended.output
    assert "kerg2020/table-2 (smoke): measured [printed]" in ended.output
    assert json.loads(store.read_text())["experiment"] == "kerg2020/table-2"
    again = json.loads(ask(*SMOKE, "--folder", cells, "--json").output)
    assert (again["kind"], again["version"], again["experiment"]) == ("reproduced", 1, "kerg2020/table-2")
    assert again["cells"][0]["status"] == "done"
    page = tmp_path / "page.md"
    assert ask(*SMOKE, "--folder", cells, "--report", "-o", page).exit_code == 0
    assert "1 of 1 cells are done" in page.read_text()
    assert page.read_text().count("a few updates of a tiny model") == 1, "one reason is told once"
    assert "## Record: paper" in page.read_text()
    html = tmp_path / "page.html"
    assert ask(*SMOKE, "--folder", cells, "--report", "-o", html).exit_code == 0
    text = html.read_text()
    assert "1 of 1 cells are done" in text
    assert "accuracy of validation" in text
    assert "Table 7" in text


def test_what_a_signal_stops_is_stored_as_far_as_it_came(tmp_path, monkeypatch):
    cells, store = tmp_path / "cells", tmp_path / "record.json"
    both = [*SMOKE[:4], "--only", "model=LSTM,RelRNN", "length=5", "--folder", cells, "--store", store]
    real = experiments.run_cells

    def stopped(chosen, engine, tick):
        assert not store.exists(), "a record of nothing"
        real(chosen[:1], engine, tick)
        raise Stopped(signal.SIGTERM)

    monkeypatch.setattr(experiments, "run_cells", stopped)
    ended = ask(*both)
    assert ended.exit_code == 128 + signal.SIGTERM
    assert f"stored: {store}" in ended.output
    (kept,) = json.loads(store.read_text())["results"]["cells"]
    assert (kept["place"]["model"], kept["status"]) == ("LSTM", "done")


def test_a_table_that_is_too_wide_is_turned(monkeypatch, capsys):
    table = find_experiment("kerg2020/dependencies")
    place = {"task": "denoise", "model": "RelRNN", "length": 100}
    names = [reading.name for reading in table.readings]
    found = [experiments.TableNumber(place, name, "", None, False, {0: 1.0}, {}) for name in names]
    monkeypatch.setattr(experiments, "entries", lambda *arguments: found)
    asked = Asked(table.id, "paper", [], None, Path("runs"))
    for columns, lines in (("80", 2 + len(names)), ("400", 3)):
        monkeypatch.setenv("COLUMNS", columns)
        show_results(asked, [], as_json=False)
        assert len(capsys.readouterr().out.splitlines()) == lines


def test_where_no_cell_has_begun_nothing_is_stored(tmp_path):
    store = tmp_path / "record.json"
    said = ask(*SMOKE[:4], "--folder", tmp_path / "cells", "--report", "-o", tmp_path / "x.md", "--store", store)
    assert "stored nothing: no cell has begun" in said.output
    assert not store.exists()


def test_a_log_tells_now_and_then_how_far_the_cells_are(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr("remanence.cli._live.time.monotonic", lambda: clock[0])
    row = {"folder": "runs/copy-LSTM", "budget": 7_200, "validation": {"accuracy": 0.5}, "reason": ""}
    told = []
    with watching(["seed"], [], False, "saved") as tick:
        assert tick is not None
        for second in range(3_600):
            clock[0] = float(second)
            pace = {"status": "running", "update": second, "seconds": second, "seconds_left": 7_200.0 - second}
            tick([{**row, **pace}])
            told += [(second, line) for line in capsys.readouterr().out.splitlines()]
    seconds = [second for second, line in told if "of 1 cell done" in line]
    assert seconds[0] < 60
    assert 10 < len(seconds) < 60, "often at first, then less often"
    assert (seconds[0], f"copy-LSTM  running  {seconds[0]}/7,200  accuracy 0.5") in told
    assert told[-1][1].endswith("1 at work; those at work need at most 1.0 h more, all about 1.0 h")


def test_cells_that_go_on_elsewhere_are_named_when_a_command_is_stopped(tmp_path, capsys):
    """As after a driver was killed: the next one waits for its workers, and does not stop them."""
    cells = plan_cells(find_experiment("kerg2020/table-2"), "smoke", tmp_path, ["model=LSTM,RelRNN"])
    cells[0].folder.mkdir(parents=True)
    with locked(cells[0].folder), pytest.raises(typer.Exit), watching(["seed"], cells, False, "saved"):
        raise Stopped(signal.SIGTERM)
    assert "1 cell still running in processes left over from an earlier command; `pgrep" in capsys.readouterr().err


def test_one_error_of_many_cells_is_told_once(capsys):
    names = ("seed=0", "seed=1", "seed=2")
    failures = [Failure(name, "all alike" if name != "seed=2" else "another", Path(name)) for name in names]
    with pytest.raises(typer.Exit):
        leave_if_failed(failures)
    told = capsys.readouterr().err
    assert (told.count("all alike"), told.count("another")) == (1, 1)
    assert all(f"{name} failed; its log is {name}" in told for name in names)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reproduce"], "--list"),
        (["reproduce", "kerg2020/table-2", "kerg2020/table-1"], "be one table or figure"),
        (["reproduce", "kerg2020/table-22"], "Did you mean"),
        (["reproduce", "kerg2020/table-2", "--scale", "papr"], "Did you mean 'paper'"),
        (["reproduce", "kerg2020/table-2", "--only", "model=LSMT"], "Did you mean 'LSTM'"),
        (["reproduce", "kerg2020/table-2", "--seeds", "none"], "how many"),
        (["reproduce", "kerg2020/table-2", "--seeds", "0"], "For seed 0 alone write 0,"),
        (["reproduce", "kerg2020/table-2", "--seeds", "9000000000000000000"], "<= 10000"),
        (["reproduce", "kerg2020/table-2", "--list"], "`--list` must be given without ID"),
        (["reproduce", "kerg2020/table-2", "--dry-run", "--report"], "`--dry-run` must be given without --report"),
        (["reproduce", "kerg2020/table-2", "--dry-run", "--store", "here"], "without --store"),
        (["reproduce", "kerg2020/table-2", "--report", "--json"], "without --json"),
        (["reproduce", "kerg2020/table-2", "--output", "page.html"], "with --report"),
        (["reproduce", "kerg2020/table-2", "--report", "--output", "page.pdf"], "must be one of '.html', '.md'"),
        (["reproduce", "kerg2020/table-2", "--address", "auto"], "with --engine ray"),
        (
            ["reproduce", "kerg2020/table-2", "--engine", "ray", "--folder", "here", "--storage", "/mnt"],
            "be left out where --storage names the folder",
        ),
        (["reproduce", "kerg2020/table-2", "--folder", __file__], "be a folder, or a name for a new one"),
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


def test_a_file_that_cannot_take_the_results_is_named_before_anything_runs(tmp_path):
    store = tmp_path / "record.json"
    assert ask(*SMOKE, "--folder", tmp_path / "cells", "--store", store).exit_code == 0
    other = ["reproduce", "kerg2020/table-1", "--scale", "smoke", "--only", "model=LSTM"]
    found = ask(*other, "--folder", tmp_path / "others", "--store", store)
    assert found.exit_code == 2
    assert "name another file" in found.output
    assert not (tmp_path / "others").exists()
