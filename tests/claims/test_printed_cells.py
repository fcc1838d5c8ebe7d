"""Every printed number that the stored runs do not come to stands in a claim, or in a line that says why not."""

from __future__ import annotations

import pytest

from remanence import claims, experiments
from remanence._documents import PAPERS
from remanence.claims._framework import measure
from remanence.claims._printed import _missing, beside, differs
from remanence.experiments import nearest, stored_cells

PRINTED = [experiment for experiment in experiments.list_experiments() if experiment.printed]
TABLES = [experiment for experiment in PRINTED if experiment.document_recipe is None]
CHANGED = [experiment for experiment in PRINTED if experiment.document_recipe is not None]
MEASURED = [experiment.id for experiment in TABLES if stored_cells(experiment.id)]
CLAIMS = {claim.id: claim for claim in claims.list_claims()}


def contradicted(id):
    """Printed numbers of a table that the stored cells nearest to the paper's settings do not have."""
    for cell in nearest([cell for cell in stored_cells(id) if set(cell.place) <= {*axes_of(id), "seed"}]):
        for reading in beside(cell):
            if differs(cell, reading):
                yield " ".join(str(value) for name, value in cell.place.items() if name != "seed"), reading


def axes_of(id):
    return experiments.find_experiment(id).axes


@pytest.mark.parametrize("id", MEASURED)
def test_every_printed_number_that_is_missed_is_named_by_the_claim_of_its_table(id):
    assert id in CLAIMS, f"the claims of {id} must be registered"
    named = measure(CLAIMS[id]).numbers
    assert {f"{place}, {reading}" for place, reading in contradicted(id)} <= set(named)


@pytest.mark.parametrize("id", MEASURED)
def test_what_any_stored_run_misses_is_named_unless_runs_nearer_to_the_paper_have_it(id):
    named = measure(CLAIMS[id]).numbers
    near = nearest(stored_cells(id))
    for cell in stored_cells(id):
        for reading in beside(cell):
            place = {name: cell.place[name] for name in axes_of(id)}
            judges = [one for one in near if place.items() <= one.place.items() and reading in beside(one)]
            assert judges, f"nothing says anything about {cell.label}, {reading}"
            if any(differs(one, reading) for one in judges):
                assert f"{' '.join(map(str, place.values()))}, {reading}" in named


def test_a_table_that_changes_the_papers_settings_is_no_claim_of_the_paper():
    assert any(stored_cells(experiment.id) for experiment in CHANGED)
    assert not {experiment.id for experiment in CHANGED} & set(CLAIMS)


def test_something_is_missed():
    assert any(True for id in MEASURED for _ in contradicted(id)), "the test reads the wrong thing"


@pytest.mark.parametrize("id", ["kerg2020/table-1", "kerg2020/table-2", "kerg2020/table-3", "kerg2020/table-5"])
def test_every_model_that_misses_a_printed_number_has_a_claim_of_its_own(id):
    table = f"Table {id[-1]}"
    spoken_of = " ".join(cell for claim in CLAIMS.values() for cell in claim.cells if cell.startswith(table))
    models = {cell.place["model"] for cell in stored_cells(id) if beside(cell)}
    assert models
    assert [model for model in models if f", {model}" not in spoken_of] == []


def test_what_is_not_measured_names_papers_and_says_why():
    assert set(claims.NOT_MEASURED) <= set(PAPERS)
    assert all(": " in words for left_out in claims.NOT_MEASURED.values() for words in left_out)


def test_a_table_counts_the_numbers_that_nobody_measured():
    cells = stored_cells("kerg2020/table-1")
    assert _missing(cells) == ""
    rest = [cell for cell in cells if cell.place["model"] != "RelRNN"]
    assert _missing(rest) == "5 of 39 printed numbers were not measured"
