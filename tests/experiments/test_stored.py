import copy
import json
import os
import threading
import time
from dataclasses import replace

import pytest

from remanence.experiments import (
    Record,
    StoredCell,
    entries,
    find_experiment,
    list_experiments,
    load_record,
    make_page,
    merge_records,
    nearest,
    plan_cells,
    records_of,
    runs_by_settings,
    save_record,
    store_record,
    stored_cells,
    stored_names,
    stored_records,
)
from remanence.experiments import _stored as module
from remanence.experiments._stored import FOLDER
from remanence.runs import (
    DamagedFileError,
    NewerVersionError,
    ResultError,
    RunLockedError,
    StorageError,
    locked_file,
    sealed,
)

PLACE = {"length": 100, "model": "RelRNN", "seed": 0}
WORK = json.loads(json.dumps(find_experiment("kerg2020/table-5").work("paper", PLACE).to_dict()))
RECORD = Record("kerg2020/table-5", "paper", "", "", "", (), "", {}, {"cells": [], "table": []})
CELL = StoredCell(
    RECORD,
    {
        "place": PLACE,
        "work": WORK,
        "status": "done",
        "updates": 33_000,
        "budget": 200_000,
        "reason": "accuracy reached",
    },
)


def changed(**settings):
    """The same cell with other settings."""
    values = copy.deepcopy(dict(CELL.values))
    for key, value in settings.items():
        *path, last = key.split("__")
        table = values["work"]["config"]
        for part in path:
            table = table[part]
        table[last] = value
    return StoredCell(CELL.record, values)


@pytest.mark.parametrize("name", stored_names())
def test_every_stored_record_is_read_and_written_alike_with_its_checksum(name, tmp_path):
    record = load_record(FOLDER / f"{name}.json")
    path = save_record(record, tmp_path)
    assert path.name == f"{name}.json"
    assert path.read_text() == f"{sealed(json.loads((FOLDER / f'{name}.json').read_text()))}\n"


@pytest.mark.parametrize("id", sorted(stored_records()))
def test_every_cell_of_a_record_fills_its_table(id):
    experiment = find_experiment(id)
    assert stored_cells(id)
    for cell in stored_cells(id):
        assert isinstance(cell.departures, tuple)
        assert any(entry.values for entry in entries(experiment, [cell])), cell.label


def test_a_record_of_a_later_version_is_refused(tmp_path):
    values = records_of("kerg2020/table-5")[0].to_dict() | {"version": 99}
    path = tmp_path / "kerg2020_table-5_paper.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    with pytest.raises(NewerVersionError):
        stored_cells("kerg2020/table-5", tmp_path)


def test_what_a_run_learns_from_counts_as_a_departure_and_how_it_is_watched_does_not():
    assert CELL.departures == ()
    assert changed(evaluation__every=1, loop__save_every=7, seed=9, imports=["mine"]).departures == ()
    assert changed(optimiser__learning_rate=1.0).departures == ("learning_rate 1 for 0.0002",)
    assert changed(curriculum__start=10, curriculum__window=3).departures == ("short sequences first",)
    assert changed(model__options__mine=True).departures == ("mine True for default",)


def test_an_option_of_an_option_is_named_by_both():
    cells = stored_cells("kerg2020/table-2-causes")
    (cell,) = [cell for cell in cells if cell.place["change"] == "gradient cut after a stored state"]
    assert set(cell.departures) == {"truncate none for 10", "cuts.truncate 10 for default"}


def test_a_smaller_budget_is_no_departure_but_not_as_printed():
    less = changed(budget__updates=1000)
    assert (less.departures, less.is_as_printed, CELL.is_as_printed) == ((), False, True)
    assert less.spent == CELL.values["updates"]


def test_a_run_that_the_papers_own_rule_ended_had_the_whole_budget():
    ended = StoredCell(CELL.record, {**CELL.values, "reason": "budget used up", "updates": 7})
    stopped = StoredCell(CELL.record, {**CELL.values, "reason": "accuracy reached", "updates": 7})
    assert (ended.spent, stopped.spent) == (200_000, 7)


def test_the_cells_nearest_to_the_paper_are_chosen_whatever_came_of_them():
    far, near = changed(optimiser__learning_rate=1.0, model__options__mine=1), changed(optimiser__learning_rate=1.0)
    assert nearest([far, near]) == [near]
    assert nearest([far, near, changed(budget__updates=5)])[0].departures == ()
    assert nearest([far, changed(budget__updates=5), CELL]) == [CELL]


def test_a_setting_that_an_experiment_changes_on_purpose_is_a_departure_from_the_paper():
    cells = stored_cells("kerg2020/table-1-causes")
    changed = [cell for cell in cells if cell.place["change"] == "learning rate 0.001"]
    assert {cell.departures for cell in changed} == {("learning_rate 0.001 for 0.0002",)}
    assert not any(cell.is_as_printed for cell in cells)


def test_a_model_that_the_paper_does_not_have_is_said_to_be_none_of_it():
    others = [cell for cell in stored_cells("shen2019/figure-1") if cell.place["model"] == "RelLSTM"]
    assert {cell.departures for cell in others} == {("not in the paper",)}


# ---- merging ---------------------------------------------------------------------------------------------------------


def recorded(*cells):
    """A record of cells given as (model, status, updates)."""
    values = [
        {
            **CELL.values,
            "place": {**PLACE, "model": model},
            "status": status,
            "updates": updates,
            "validation": None,
            "seconds": 1.0,
            "made_by": {},
            "curve": {},
            "measures": {"answers": {"facts": {}, "values": {"100": {"accuracy": 0.5}}}} if status == "done" else {},
        }
        for model, status, updates in cells
    ]
    return Record("kerg2020/table-5", "paper", "", "", "", (), "", {}, {"cells": values, "table": []})


def test_storing_keeps_the_cells_that_the_file_has_already(tmp_path):
    store_record(recorded(("RelRNN", "done", 33_000), ("LSTM", "new", 0)), tmp_path)
    path = store_record(recorded(("RelRNN", "new", 0), ("LSTM", "done", 200_000), ("OrthRNN", "new", 0)), tmp_path)
    found = load_record(path)
    cells = {cell["place"]["model"]: (cell["status"], cell["updates"]) for cell in found.results["cells"]}
    assert cells == {"LSTM": ("done", 200_000), "OrthRNN": ("new", 0), "RelRNN": ("done", 33_000)}
    shown = {entry["model"]: list(entry["measured"]) for entry in found.results["table"]}
    assert shown == {"LSTM": ["0"], "OrthRNN": [], "RelRNN": ["0"]}


def test_what_is_stored_at_once_is_all_kept(tmp_path, monkeypatch):
    def slow(record, path):
        time.sleep(0.05)  # everybody has read the file by now, unless they wait for one another
        return save_record(record, path)

    monkeypatch.setattr(module, "save_record", slow)
    models = ["RelRNN", "LSTM", "OrthRNN"]
    records = [recorded((model, "done", 33_000)) for model in models]
    storing = [threading.Thread(target=store_record, args=(record, tmp_path)) for record in records]
    for thread in storing:
        thread.start()
    for thread in storing:
        thread.join()
    (path,) = tmp_path.iterdir()  # the lock is gone
    assert {cell["place"]["model"] for cell in load_record(path).results["cells"]} == set(models)


def test_a_record_that_another_process_holds_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    path = tmp_path / "mine.json"
    with locked_file(path), pytest.raises(RunLockedError, match=r"mine\.json is in use by another process"):
        store_record(recorded(("RelRNN", "done", 33_000)), path)
    assert store_record(recorded(("RelRNN", "done", 33_000)), path) == path


def test_of_two_cells_alike_the_new_one_is_stored():
    stored = recorded(("RelRNN", "done", 33_000))
    new = recorded(("RelRNN", "done", 54_000))
    assert merge_records(stored, new).results["cells"][0]["updates"] == 54_000
    assert merge_records(new, stored).results["cells"][0]["updates"] == 54_000


def test_the_cell_nearest_to_the_paper_is_stored_and_not_the_longest():
    other = recorded(("RelRNN", "done", 150_000))
    config = changed(optimiser__learning_rate=0.5).values["work"]
    other = replace(other, results={"cells": [{**other.results["cells"][0], "work": config}], "table": []})
    printed = recorded(("RelRNN", "done", 33_000))
    begun = recorded(("RelRNN", "running", 160_000))
    for one, two in ((other, printed), (printed, other)):
        assert merge_records(one, two).results["cells"][0]["updates"] == 33_000
    for one, two in ((other, begun), (begun, other)):
        assert merge_records(one, two).results["cells"][0]["updates"] == 150_000  # an unfinished one has no result


def test_records_of_different_tables_are_not_merged(tmp_path):
    path = store_record(recorded(("RelRNN", "done", 33_000)), tmp_path / "mine.json")
    other = Record("kerg2020/table-2", "paper", "", "", "", (), "", {}, {"cells": [], "table": []})
    with pytest.raises(ValueError, match=r"kerg2020/table-5 at scale paper.*name another file"):
        store_record(other, path)


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        ("", "not JSON"),
        ("[]", "not a list"),
        ("[" * 100_000, "not JSON"),
        ('{"kind": "status", "version": 1}', "a reproduction was expected"),
    ],
)
def test_a_file_that_is_no_record_is_named_and_kept(tmp_path, contents, words):
    path = tmp_path / "mine.json"
    path.write_text(contents)
    with pytest.raises((DamagedFileError, ResultError), match=words):
        store_record(recorded(("RelRNN", "done", 33_000)), path)
    assert path.read_text() == contents


@pytest.mark.parametrize("lost", ["place", "work", "status", "measures"])
def test_a_record_whose_cells_lack_something_is_named_and_kept(tmp_path, lost):
    path = save_record(recorded(("RelRNN", "done", 33_000)), tmp_path / "mine.json")
    values = json.loads(path.read_text())
    del values["results"]["cells"][0][lost]
    path.write_text(sealed(values))
    with pytest.raises(ResultError, match=r"mine.json do not fit together"):
        store_record(recorded(("RelRNN", "done", 33_000)), path)
    assert path.read_text() == sealed(values)


def test_a_changed_number_of_a_record_is_seen(tmp_path):
    path = save_record(recorded(("RelRNN", "done", 33_000)), tmp_path / "mine.json")
    path.write_text(path.read_text().replace("0.5", "0.9"))
    with pytest.raises(DamagedFileError, match="its checksum does not match"):
        load_record(path)


def test_a_record_is_stored_whole_or_not_at_all(tmp_path, monkeypatch):
    path = save_record(recorded(("RelRNN", "done", 33_000)), tmp_path / "mine.json")
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(StorageError, match="could not be written"):
        store_record(recorded(("LSTM", "done", 33_000)), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_no_file_of_its_own_takes_no_record(tmp_path, kind):
    path, elsewhere = tmp_path / "mine.json", tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    os.mkfifo(path) if kind == "pipe" else path.symlink_to(elsewhere)
    with pytest.raises(DamagedFileError, match=r"not a regular file|is a link"):
        store_record(recorded(("RelRNN", "done", 33_000)), path)
    assert elsewhere.read_text() == "precious"


def test_what_a_policy_has_trained_is_told_in_the_unit_of_its_budget():
    laid = runs_by_settings(find_experiment("beyond/agents"), stored_cells("beyond/agents"))
    told = {row[laid.head.index("trained")] for row in laid.rows}
    frames = {cell.values["work"]["config"]["frames"] for cell in stored_cells("beyond/agents")}
    assert told == {f"{amount:,} of 1,000,000 frames" for amount in frames}


def test_the_page_of_a_table_shows_stored_runs_of_all_scales_and_what_is_missing(tmp_path):
    table = find_experiment("kerg2020/table-2")
    page = make_page(table, "paper", plan_cells(table, "paper", tmp_path, ["length=100"], [0]))
    headings = [line for line in page.splitlines() if line.startswith("## ")]
    for scale in stored_records()["kerg2020/table-2"]:
        assert any(heading.startswith(f"## Record: {scale},") for heading in headings)
    assert "## Stored runs at the scale paper" in headings
    assert "## Not stored" in headings
    assert "not run; it takes 200,000 updates" in page


def test_the_page_of_a_table_of_which_nothing_is_stored_has_the_printed_numbers(tmp_path):
    table = next(table for table in list_experiments() if table.printed and not stored_cells(table.id))
    page = make_page(table, "paper", plan_cells(table, "paper", tmp_path))
    assert "No stored runs" in page
    printed = next(iter(table.printed.values())).value
    assert f"not run [{printed:g}]" in page


def test_a_figure_shows_the_stored_cells_of_its_tables_at_its_own_places():
    def runs(id, **wanted):
        cells = [cell for cell in stored_cells(id) if wanted.items() <= cell.place.items()]
        return [(cell.place["model"], cell.place["seed"], cell.departures, cell.curve) for cell in cells]

    shown = find_experiment("kerg2020/figure-4").axes["model"]
    tables = {"copy": "kerg2020/table-5", "denoise": "kerg2020/table-2"}
    for task, table in tables.items():
        assert runs("kerg2020/figure-4", task=task) == [run for run in runs(table) if run[0] in shown]
    assert {cell.place["model"] for cell in stored_cells("kerg2020/figure-5")} == {"LSTM"}
