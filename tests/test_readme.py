"""Every Python block of the README and the documentation runs, the blocks of a page one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """Gives the blocks of a page, each with the number of the line before it."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start()) + 1, match.group(1)) for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.stem)
def test_python_blocks_run(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # what a block writes stays out of the checkout
    names: dict[str, object] = {"__name__": "__readme__"}
    for line, block in python_blocks(page):
        # The blank lines make a failing line carry the number it has in the page.
        exec(compile("\n" * line + block, str(page), "exec"), names)


def test_the_readme_shows_code():
    assert len(python_blocks(ROOT / "README.md")) >= 2


def test_links_to_files_lead_somewhere():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
