"""Where the papers' own text lies, if it does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

NUMBERS = {"kerg2020": "000", "ke2017": "001", "miller2018": "002", "shen2019": "003"}


@pytest.fixture(scope="session")
def paper_text() -> Callable[[str], str]:
    """Gives the text of a paper by its name; skips where it is not on this machine."""

    def read(paper: str) -> str:
        data = os.environ.get("REMANENCE_DATA")
        folder = Path(os.environ.get("REMANENCE_SEEDS", Path(data).parent / "seeds" if data else "../shared/seeds"))
        found = sorted(folder.glob(f"{NUMBERS[paper]}_*.txt"))
        if not found:
            pytest.skip(f"the text of {paper} is not in {folder}")
        return found[0].read_text(encoding="utf-8")

    return read
