import pytest

from remanence._documents import DOCUMENTS, PAPERS, paper_key


def test_every_paper_goes_by_its_key_and_by_its_number():
    assert [paper_key(paper.number) for paper in PAPERS.values()] == list(PAPERS)
    assert [paper_key(key) for key in PAPERS] == list(PAPERS)
    assert list(DOCUMENTS) == list(PAPERS)


def test_an_unknown_paper_gets_the_nearest_proposed():
    with pytest.raises(ValueError, match=r"`paper` must be one of .* Did you mean 'kerg2020'\?"):
        paper_key("kerg2021")
