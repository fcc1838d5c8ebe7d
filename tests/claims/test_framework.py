import json
from pathlib import Path

import pytest
import torch

from remanence import claims
from remanence.claims import Evidence
from remanence.claims._framework import Claim, claim, measure


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


def drawing(quick):
    return Evidence(True, numbers={"drawn": float(torch.rand(()))})


def test_a_measurement_repeats_and_leaves_the_generator_alone():
    probe = Claim("000.test", "here", "p", "m", "t", "holds", drawing)
    before = torch.get_rng_state()
    first, second = measure(probe), measure(probe)
    assert first.numbers == second.numbers
    assert torch.equal(before, torch.get_rng_state())


def test_an_id_is_taken_once():
    with pytest.raises(ValueError, match=r"`id` must be new; got '004.4.1'"):
        claim("004.4.1", place="", printed="", measures="", tolerance="")


def test_unknown_documents_and_ids_are_refused():
    with pytest.raises(ValueError, match="`document` must be one of"):
        claims.list_claims(document="005")
    with pytest.raises(ValueError, match=r"Did you mean '002\.lemma1'"):
        claims.list_claims(only="002.lema1")


def test_every_claim_says_what_it_is():
    for item in claims.list_claims():
        assert all((item.place, item.printed, item.measures, item.tolerance)), item.id
        if item.expected != "holds":
            assert item.corrected, f"{item.id} must say what is true"


def test_the_page_about_the_papers_is_current():
    page = (Path(__file__).parents[2] / "docs" / "papers.md").read_text(encoding="utf-8")
    for item in claims.list_claims():
        place = page.find(f"### {item.id}: ")
        assert (place >= 0) == (item.expected != "holds"), f"write the page again: {item.id}"
        assert item.id in page
        if place >= 0:
            end = page.find("###", place + 4)
            assert f"**Verdict:** {item.expected}." in page[place : end if end > 0 else None]


def test_a_result_goes_into_json():
    (result,) = claims.verify(only="004.2.1", quick=True)
    read = json.loads(json.dumps(result.to_dict()))
    assert read["id"] == "004.2.1"
    assert read["document"] == "004"
    assert read["agrees"] is True
    assert "check" not in read
