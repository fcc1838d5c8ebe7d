"""Every printed cell that the stored runs do not come to has a claim that speaks about it."""

from __future__ import annotations

from statistics import median

import pytest

from remanence import claims, experiments
from remanence._documents import PAPERS

CELLS = {cell for claim in claims.list_claims("kerg2020") for cell in claim.cells}
FAR = 0.02  # of answers, as the claims have it


def answered(run, length):
    found = run["elsewhere"][length]
    return found["accuracy"] if isinstance(found, dict) else found


def contradicted(name):
    """Cells of Tables 1, 2 and 5 that a stored way of training misses in the median over its seeds."""
    results = experiments.load_stored(name)["results"]
    for arm_name, arm in results["arms"].items():
        runs = [run for run in results["runs"] if run["arm"] == arm_name]
        for length in runs[0]["elsewhere"] if runs else ():
            printed = experiments.printed_accuracy(arm["task"], arm["model"], 100, int(length))
            if printed is None or printed.accuracy is None:
                continue
            if abs(median(answered(run, length) for run in runs) - printed.accuracy) > FAR:
                yield f"Table {printed.table}, {arm['model']}"


@pytest.mark.parametrize("name", ["recall", "others"])
def test_every_cell_of_copy_and_denoise_that_is_missed_has_a_claim(name):
    missed = set(contradicted(name))
    assert missed, "nothing is missed: the test reads the wrong thing"
    assert missed <= CELLS


@pytest.mark.parametrize(("task", "table"), [("ptb-char", "Table 3 PTB"), ("pixel-mnist", "Table 3 pMNIST")])
def test_every_cell_of_text_and_pictures_has_a_claim(task, table):
    arms = experiments.load_stored("dense")["results"]["arms"].values()
    trained = {arm["model"] for arm in arms if arm["task"] == task}
    assert {f"{table}, {model}" for model in trained} <= CELLS


def test_what_is_not_measured_names_papers_and_says_why():
    assert set(claims.NOT_MEASURED) <= set(PAPERS)
    assert all(": " in words for left_out in claims.NOT_MEASURED.values() for words in left_out)
