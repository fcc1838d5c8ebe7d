"""Every Python block of the README and the documentation runs, the blocks of a page one after the other."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from remanence.cli._app import app

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXTRAS = {"works-with": "integrations"}
"""Pages that show packages which a machine may lack, and the extra that has them."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page: Path) -> list[tuple[int, str]]:
    """Gives the blocks of a page, each with the number of the line before it."""
    text = page.read_text(encoding="utf-8")
    return [(text.count("\n", 0, match.start()) + 1, match.group(1)) for match in BLOCK.finditer(text)]


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.stem)
def test_python_blocks_run(page, monkeypatch, tmp_path, require_or_skip):
    monkeypatch.chdir(tmp_path)  # what a block writes stays out of the checkout
    try:
        run_blocks(page)
    except ImportError as error:
        if page.stem not in EXTRAS:
            raise
        require_or_skip(EXTRAS[page.stem], str(error))


def run_blocks(page: Path) -> None:
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


COMMAND = re.compile(r"^\$ remanence (.*?)(?:\s+#.*)?$", re.MULTILINE)
QUICKLY = ["--updates", "2", "--set", "model.options.hidden_size=4", "--set", "task.options.length=10"]
QUICKLY += ["--set", "task.batch_size=2", "--set", "evaluation.batches=1", "--set", "evaluation.batch_size=1"]


@pytest.mark.slow
def test_the_commands_on_own_data_run(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "own-data.md"
    Path("book.txt").write_text("The cat sat on the mat. " * 40)
    Path("events.txt").write_text("up down up up " * 60)
    exec(python_blocks(page)[0][1], {})
    commands = [shlex.split(command) for command in COMMAND.findall(page.read_text(encoding="utf-8"))]
    assert {command[0] for command in commands} >= {"train", "compare", "generate", "evaluate", "mi", "probe", "report"}
    for command in commands:
        quickly = QUICKLY if command[0] in ("train", "compare") else []
        done = CliRunner().invoke(app, [*command, *quickly])
        assert done.exit_code == 0, (command, done.output)


def test_the_table_of_the_papers_numbers_is_that_of_the_stored_records():
    make = runpy.run_path(str(ROOT / "docs/tables/make.py"))
    assert make["headline"]() in (ROOT / "README.md").read_text(encoding="utf-8")
