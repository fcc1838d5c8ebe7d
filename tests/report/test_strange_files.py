"""Files of a run that are no regular files are named as problems; none is waited for."""

import json
import os
from pathlib import Path

import pytest

from remanence.experiments import KEPT_CURVE, Record
from remanence.experiments._stored import FOLDER
from remanence.report._page import Problem
from remanence.report._reading import find_results
from remanence.report._run_record import read_run
from remanence.runs import History, sealed, tag, write_result


@pytest.mark.parametrize("name", ["config.toml", "status.json", "manifest.json", "metrics.jsonl", "probes.json"])
@pytest.mark.parametrize("kind", ["pipe", "directory"])
def test_what_is_no_regular_file_is_named(make_run, name, kind):
    path = make_run("mine") / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    problems: list[Problem] = []
    record = read_run(path.parent, problems)
    found = {
        "config.toml": (record.config, record.settings) == ({}, ""),
        "status.json": record.status == "unknown",
        "manifest.json": record.manifest == {},
        "metrics.jsonl": record.history == History(),
        "probes.json": record.weights is None,
    }
    assert [name for name, nothing in found.items() if nothing] == [name]
    assert [problem.text for problem in problems] == ["cannot be read: it is not a regular file"]


def test_deep_json_is_named(make_run):
    run: Path = make_run("mine")
    for name in ("metrics.jsonl", "manifest.json"):
        (run / name).write_text("[" * 100_000 + "\n")
    problems: list[Problem] = []
    record = read_run(run, problems)
    assert record.history == History()
    assert record.manifest == {}
    assert len(problems) == 2


@pytest.mark.parametrize("name", ["manifest.json", "status.json"])
def test_a_file_that_was_lost_is_named(make_run, name):
    run: Path = make_run("mine")
    (run / name).unlink()
    problems: list[Problem] = []
    read_run(run, problems)
    assert problems == []  # nothing was learnt here
    (run / "checkpoint").mkdir()
    read_run(run, problems)
    assert [problem.text for problem in problems] == ["is missing"]


def test_a_number_that_changed_by_itself_is_named(make_run):
    path: Path = make_run("mine") / "manifest.json"
    path.write_text(sealed({"torch": "2.13.0", "cores": 12}))
    problems: list[Problem] = []
    assert read_run(path.parent, problems).manifest == {"torch": "2.13.0", "cores": 12}
    path.write_text(path.read_text().replace("12", "14"))
    assert read_run(path.parent, problems).manifest == {}
    assert "its checksum does not match" in problems[0].text


def test_a_pipe_among_results_is_named_and_not_waited_for(make_run):
    run: Path = make_run("mine")
    os.mkfifo(run.parent / "answers.json")
    problems = find_results([run.parent]).problems
    assert ["not a regular file" in problem.text for problem in problems if "answers" in problem.place] == [True]


RECORD = "kerg2020_table-5_earlier-init"


def changed_record(change):
    """A stored record, of which something is lost or of another type."""
    values = json.loads((FOLDER / f"{RECORD}.json").read_text())
    change(values["results"]["cells"][0])
    return sealed(values)


@pytest.mark.parametrize("wrong", ["gone", 3, "x", [], None])
@pytest.mark.parametrize("name", ["place", "work", "measures", "status"])
def test_a_record_whose_entries_do_not_fit_is_named(tmp_path, name, wrong):
    path = tmp_path / "record.json"
    path.write_text(changed_record(lambda cell: cell.pop(name) if wrong == "gone" else cell.update({name: wrong})))
    found = find_results([path])
    if found.records:  # another status is one that is not done
        assert name == "status"
        return
    (problem,) = found.problems
    assert problem.place == "record.json"
    assert "its reproduction cannot be read" in problem.text


def test_a_curve_whose_numbers_do_not_fit_is_named(tmp_path):
    path = tmp_path / "curve.json"
    points = {"lags": [1], "values": [0.5, 0.2], "low": [0, 0], "high": [1, 1], "error": [0.1], "bias": 0, "floor": 0}
    curve = {**tag(KEPT_CURVE), **points}
    write_result(path, Record("mine/a", "", "bits", "", "", (), "", {}, {"curve": curve}))
    found = find_results([path])
    assert not found.records
    assert "cannot be read" in found.problems[0].text
