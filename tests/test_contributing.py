"""The walks through the code in CONTRIBUTING.md name files and functions that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOPS = sorted(set(re.findall(r"`([\w/]+\.(?:py|cpp)): (\w+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))))


def test_there_are_walks():
    assert len(HOPS) > 25


@pytest.mark.parametrize(("path", "name"), HOPS)
def test_every_hop_exists(path, name):
    text = (ROOT / "src" / "remanence" / path).read_text(encoding="utf-8")
    defined = rf"^\s*(?:def|class) {name}\b" if path.endswith(".py") else rf"\b{name}\("
    assert re.search(defined, text, re.MULTILINE), f"{path} defines no {name}"
