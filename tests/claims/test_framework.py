import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from remanence import claims, experiments, runs
from remanence.claims import Budget, Claim, Evidence, StoredRun, TrainedRun, _framework
from remanence.claims._cells import trained
from remanence.claims._framework import claim, measure, stored_claim


@pytest.mark.parametrize(
    ("printed", "corrected", "verdict"),
    [
        (True, None, "holds"),
        (True, False, "holds"),
        (False, True, "holds with correction"),
        (False, False, "fails as printed"),
        (False, None, "fails as printed"),
    ],
)
def test_the_verdict_follows_from_the_evidence(printed, corrected, verdict):
    assert Evidence(printed, corrected).verdict == verdict


@pytest.mark.parametrize("corrected", [None, True, False])
def test_stored_runs_bear_out_what_is_printed_or_they_do_not(corrected):
    source = StoredRun("trial", "run trial")
    assert Evidence(True, corrected, source=source).verdict == "holds on stored runs"
    assert Evidence(False, corrected, source=source).verdict == "fails as printed"


def test_stored_runs_with_less_than_the_paper_had_settle_nothing():
    runs = (TrainedRun("LSTM", 600, falls_short=True),) * 3
    evidence = Evidence(False, source=StoredRun("trial", "run trial"), runs=runs, needs=Budget(1000, "updates"))
    assert evidence.verdict == "not settled at this budget"
    assert evidence.reason == "LSTM: 600 of 1,000 updates"


FIELDS: dict[str, Any] = {"place": "here", "printed": "more is better", "measures": "the gain", "tolerance": "none"}


def store(folder, xi, updates=200_000):
    """A record of three seeds, trained as the paper does but for the budget."""
    cells = [_cell(xi, updates, seed) for seed in range(3)]
    record = experiments.Record(
        "shen2019/figure-7", "paper", "a trial", "run it", "2 seeds", (), "any", {}, {"cells": cells, "table": []}
    )
    experiments.save_record(record, folder)


def _cell(xi, updates, seed):
    experiment = experiments.find_experiment("shen2019/figure-7")
    place = {"width": 4, "depth": 1, "seed": seed}
    work = json.loads(json.dumps(experiment.work("paper", place).to_dict()))
    work["config"]["budget"]["updates"] = updates
    values = {"fits": {"all": {"exponential": {"xi": xi}}}}
    return {
        "place": place, "work": work, "status": "done", "updates": updates, "budget": updates, "seconds": 1.0,
        "reason": "budget used up", "validation": {}, "curve": {}, "made_by": {},
        "measures": {"sampled_information": {"facts": {}, "values": values}},
    }  # fmt: skip


@pytest.fixture
def claim_on_runs(monkeypatch, tmp_path):
    """A registered claim about experiments, and the folder it reads from."""
    monkeypatch.setattr(_framework, "_REGISTRY", dict(_framework._REGISTRY))
    monkeypatch.setattr(experiments, "stored_cells", partial(experiments.stored_cells, folder=tmp_path))

    def reading(cells):
        runs = cells.at(width=4)
        xi = experiments.read(runs[0], experiments.find_experiment(runs[0].experiment).readings[0])
        return Evidence(xi > 0, numbers={"xi": xi}, runs=trained(runs, lambda cell: xi <= 0))

    stored_claim("shen2019/trial", stored="shen2019/figure-7", **FIELDS)(reading)
    return tmp_path


@pytest.mark.parametrize(
    ("xi", "updates", "verdict"),
    [
        (1.0, 200_000, "holds on stored runs"),
        (-1.0, 200_000, "fails as printed"),
        (-1.0, 2_000, "not settled at this budget"),
    ],
)
def test_a_claim_about_experiments_measures_from_the_stored_run(claim_on_runs, xi, updates, verdict):
    store(claim_on_runs, xi, updates)
    (result,) = claims.verify(only="shen2019/trial")
    assert (result.verdict, result.numbers["xi"]) == (verdict, xi)
    assert result.agrees, "what stored runs decide is taken as it comes"
    command = "remanence reproduce shen2019/figure-7 --scale paper"
    assert result.to_dict()["source"] == {"name": "shen2019/figure-7", "command": command, "scaled_down": "2 seeds"}


def test_a_record_that_comes_later_turns_the_verdict(claim_on_runs):
    store(claim_on_runs, -1.0, 2_000)
    assert claims.verify(only="shen2019/trial")[0].verdict == "not settled at this budget"
    store(claim_on_runs, -1.0)
    assert claims.verify(only="shen2019/trial")[0].verdict == "fails as printed"


def test_a_missing_stored_run_is_an_error_and_found_before_anything_is_measured(claim_on_runs, monkeypatch):
    monkeypatch.setattr(_framework, "measure", lambda claim, quick: pytest.fail("measured"))
    with pytest.raises(ValueError, match=r"claim kerg2020/\S+ reads the stored runs of \S+, which cannot be read"):
        claims.verify("kerg2020")
    with pytest.raises(ValueError, match=r"claim shen2019/trial reads the stored runs of shen2019/figure-7"):
        claims.verify(only="shen2019/trial")


def drawing(quick):
    return Evidence(True, numbers={"drawn": float(torch.rand(()))})


def test_a_measurement_repeats_and_leaves_the_generator_alone():
    probe = Claim("kerg2020/test", "here", "p", "m", "t", "holds", drawing)
    before = torch.get_rng_state()
    first, second = measure(probe), measure(probe)
    assert first.numbers == second.numbers
    assert torch.equal(before, torch.get_rng_state())


def test_an_id_is_taken_once():
    with pytest.raises(ValueError, match=r"`id` must be new; got 'notes/4.1'"):
        claim("notes/4.1", place="", printed="", measures="", tolerance="")


def test_unknown_documents_and_ids_are_refused():
    with pytest.raises(ValueError, match="`paper` must be one of"):
        claims.list_claims("005")
    with pytest.raises(ValueError, match=r"Did you mean 'miller2018/lemma1'"):
        claims.list_claims(only="miller2018/lema1")


WRONG = ("holds with correction", "fails as printed")


def test_every_claim_says_what_it_is():
    for item in claims.list_claims():
        assert all((item.place, item.printed, item.measures, item.tolerance)), item.id
        if item.expected in WRONG:
            assert item.corrected, f"{item.id} must say what is true"


def test_the_page_about_the_papers_is_current():
    page = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
    for item in claims.list_claims():
        assert item.id in page
        place = page.find(f"### {item.id}: ")
        if item.stored:
            continue  # records that come later may turn its verdict
        assert (place >= 0) == (item.expected in WRONG), f"write the page again: {item.id}"
        if place >= 0:
            end = page.find("###", place + 4)
            assert f"**Verdict:** {item.expected}." in page[place : end if end > 0 else None]


def test_a_result_goes_into_json():
    (result,) = claims.verify(only="notes/2.1", quick=True)
    read = json.loads(json.dumps(result.to_dict()))
    assert read["id"] == "notes/2.1"
    assert read["paper"] == "notes"
    assert read["agrees"] is True
    assert "check" not in read
    assert (read["kind"], read["version"]) == ("verdict", 1)


@pytest.mark.parametrize("id", ["notes/2.1", "kerg2020/table2-recurrent", "kerg2020/overflow"])
def test_a_verdict_is_read_back_as_it_was(id):
    (result,) = claims.verify(only=id, quick=True)
    read = runs.result_from(json.loads(json.dumps(result.to_dict(), allow_nan=False)))
    assert isinstance(read, claims.Result)
    assert read.to_dict() == result.to_dict()
    assert (read.source, read.agrees) == (result.source, result.agrees)
    with pytest.raises(ValueError, match="read from a file"):
        measure(read.claim)


def test_a_verdict_of_a_newer_version_is_refused():
    (result,) = claims.verify(only="notes/2.1", quick=True)
    with pytest.raises(runs.NewerVersionError, match="the verdict is of version 2"):
        claims.Result.from_dict(result.to_dict() | {"version": 2})
    with pytest.raises(runs.ResultError, match="the verdict has no `seconds`"):
        claims.Result.from_dict({name: value for name, value in result.to_dict().items() if name != "seconds"})


@pytest.mark.parametrize(("old", "id"), [("000.table2", "kerg2020/table2"), ("004.4.3a", "notes/4.3a")])
def test_ids_of_before_are_understood(old, id):
    assert [item.id for item in claims.list_claims(only=old)] == [id]


@pytest.mark.parametrize(("old", "paper"), [("001", "ke2017"), ("004", "notes")])
def test_numbers_of_before_are_understood(old, paper):
    assert claims.list_claims(old) == claims.list_claims(paper)
    with pytest.warns(DeprecationWarning, match="`document` is now called `paper`"):
        assert claims.list_claims(document=old) == claims.list_claims(paper)
    with pytest.warns(DeprecationWarning, match=r"`Claim\.document` is now `Claim\.paper`"):
        assert claims.list_claims(paper)[0].document == paper
