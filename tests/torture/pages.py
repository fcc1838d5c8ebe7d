"""Reports on folders whose strings are hostile, opened in a browser: nothing in them may run or become an element."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from tests.torture.children import Answer, ask
from tests.torture.part import Part
from tests.torture.server import with_plotly
from tests.torture.subjects import COMMANDS, References
from tests.torture.table import FaultTable

from remanence import experiments
from remanence.runs import sealed

FAULT = "hostile strings, the page opened in a browser"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
HIT = "document.documentElement.dataset.hit=1"
HOSTILE = (
    f"</script><script>{HIT}</script><x-hit>",
    f'"><img src=x onerror="{HIT}"><x-hit>',
    f"'><svg onload='{HIT}'><x-hit>",
    f"</title></style></template><iframe srcdoc='<script>parent.{HIT}</script>'></iframe><x-hit>",
    f'<a href="javascript:{HIT}" autofocus onfocus="{HIT}">a</a><x-hit>',
    "<!-- <x-hit> {{ 7 * 7 }} {% raw %} ${7 * 7} %{x} \\u003cx-hit\\u003e",
    "]]><x-hit>\u2028\u202e\ufeff&lt;x-hit&gt;&#60;x-hit&#62;",
    f"\\');{HIT};//<x-hit>",
)
NAMES = tuple(text for text in HOSTILE if "/" not in text)
"""Those that the name of a folder may be."""
ALIVE = ("onerror", "onload", "onfocus", "srcdoc")
"""Attributes that none of our own elements has."""
RECORD = "a stored record"
SHARE = 0.3
"""Of the strings of a file, those that are replaced."""
STORED = Path(experiments.__file__).parent / "stored"
SMALL = 100_000
"""Bytes of a record that is drawn within a moment."""
LIMIT = 600.0
REFUSED = 2


class Pages(Part):
    """Replaces strings in the folders of runs, writes their report and opens it.

    Args:
        references: that know where undisturbed runs lie.
        table: where the outcomes go.
        draws: of commands, files and strings.
    """

    def __init__(self, references: References, table: FaultTable, draws: random.Random) -> None:
        super().__init__(references, table, draws)
        self.browser = find_browser()

    def attempt(self) -> None:
        """One folder, one page."""
        name = self.draws.choice([*COMMANDS, RECORD])
        folder = self.scratch / "hostile" / self.draws.choice(NAMES)
        shutil.rmtree(folder.parent, ignore_errors=True)
        if name == RECORD:
            folder.mkdir(parents=True)
            shutil.copy(self.draws.choice(small_records()), folder)
        else:
            self.references[name]  # makes it, if nobody has asked before
            shutil.copytree(self.references.folder(name), folder)
        for path in sorted(folder.rglob("*.json*")):
            if "checkpoint" not in path.parts:
                self._poison(path)
        for path in sorted(folder.rglob("*.toml")):
            path.write_text(self._poisoned_toml(path.read_text()))
        page = self.scratch / "hostile.html"
        page.unlink(missing_ok=True)
        answer = ask(["report", folder, "--no-probes", "-o", page], self.scratch, arm=with_plotly)
        self.table.note(FAULT, name, *self._judge(answer, page))

    def _poison(self, path: Path) -> None:
        """Other strings in a JSON file, with a checksum that fits."""
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        changed = [self._replaced(json.loads(line)) for line in lines if line]
        path.write_text("\n".join(sealed(each) if "sha256" in each else json.dumps(each) for each in changed))

    def _replaced(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._replaced(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self._replaced(each, key) for each in value]
        hit = isinstance(value, str) and key not in ("kind", "sha256") and self.draws.random() < SHARE
        return self.draws.choice(HOSTILE) if hit else value

    def _poisoned_toml(self, text: str) -> str:
        lines = []
        for line in text.splitlines():
            name, _, value = line.partition(" = ")
            hit = value.startswith('"') and self.draws.random() < SHARE
            lines.append(f"{name} = {json.dumps(self.draws.choice(HOSTILE))}" if hit else line)
        return "\n".join(lines) + "\n"

    def _judge(self, answer: Answer, page: Path) -> tuple[str, str]:
        if answer.code == REFUSED and answer.err.strip() and "Traceback" not in answer.err:
            return "refused", ""
        if answer.code != 0 or "Traceback" in answer.err:
            return "wrong", f"exit code {answer.code}: {answer.err[-500:]}"
        seen = inspect(self.browser, page, self.scratch / "profile")
        return ("wrong", seen) if seen else ("survived", "")


def inspect(browser: str | None, page: Path, profile: Path) -> str:
    """Opens a page; empty if it was drawn and nothing hostile came alive, else what was seen."""
    assert browser is not None, "without a browser this part of the campaign is left out"
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    command += ["--virtual-time-budget=10000", "--dump-dom", page.as_uri()]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return f"the browser did not end within {LIMIT:.0f} seconds"
    shown = Shown()
    shown.feed(done.stdout)
    return ", ".join(shown.complaints())


class Shown(HTMLParser):
    """The elements of a page as the browser had them in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.root: dict[str, str | None] = {}
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes what only a string of a file can have made."""
        found = dict(attrs)
        if tag == "html":
            self.root = found
        scripted = any((value or "").startswith("javascript:") for value in found.values())
        if tag in ("x-hit", "iframe") or scripted or any(name in found for name in ALIVE):
            self.foreign.append(tag)

    def complaints(self) -> Iterator[str]:
        """What may not be."""
        if "data-hit" in self.root:
            yield "a string of a file was executed"
        if self.foreign:
            yield f"strings of files became elements: {', '.join(self.foreign[:5])}"
        if "data-drawn" not in self.root:
            yield f"the pictures were not drawn: {self.root}"


def small_records() -> list[Path]:
    """Records of the package that are drawn within a moment."""
    return sorted(path for path in STORED.glob("*.json") if path.stat().st_size < SMALL)


def find_browser() -> str | None:
    """The program of a browser; None if none is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)
