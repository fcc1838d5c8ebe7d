"""The pages that programs write: they hold what the stored records hold, and a person can read them."""

import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
LETTERS = 200
"""Of a cell: more is a paragraph, and stretches the row over the screen."""


def cells_of(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("| "):
            yield from line.strip("|").split("|")


def test_the_tables_are_those_of_the_stored_records():
    for name, text in runpy.run_path(str(DOCS / "tables/make.py"))["pages"]().items():
        page = DOCS / "tables" / f"{name}.md"
        assert page.read_text(encoding="utf-8") == text, f"{page} is out of date: python docs/tables/make.py"


def test_the_tables_of_the_agents_are_those_of_the_stored_records(capsys, monkeypatch, tmp_path):
    page = (DOCS / "rl.md").read_text(encoding="utf-8")
    scope = runpy.run_path(str(DOCS / "agents.py"))
    monkeypatch.setitem(scope["main"].__globals__, "HERE", tmp_path)
    scope["main"]()
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) > 10
    for row in rows:
        assert row in page
    assert (tmp_path / "agents.svg").read_text(encoding="utf-8") == (DOCS / "agents.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_no_cell_of_a_table_is_a_paragraph(page):
    assert [cell for cell in cells_of(page) if len(cell) > LETTERS] == []
