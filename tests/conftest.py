"""What every test relies on: a fixed seed, one thread, and no silent skip where a capability is required."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from remanence._require import is_required


def pytest_configure() -> None:
    # Workers of pytest-xdist share the cores: one thread each keeps them from fighting over them.
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def seed() -> int:
    """Starts every test from the same state of torch's global generator; a test may ask for the number."""
    torch.manual_seed(20)
    return 20


@pytest.fixture(scope="session")
def require_or_skip() -> Callable[[str, str], None]:
    """Gives ``require_or_skip(capability, reason)``, which skips, or fails where skipping is not allowed."""

    def give_up(capability: str, reason: str) -> None:
        if is_required(capability):
            pytest.fail(f"{reason} (and REMANENCE_REQUIRE names {capability!r}, so this may not be skipped)")
        pytest.skip(reason)

    return give_up


@pytest.fixture(autouse=True)
def code_that_was_named(tmp_path_factory, monkeypatch):
    """What code a command has named is remembered for one test, and never in the user's own home."""
    monkeypatch.setenv("REMANENCE_TRUST", str(tmp_path_factory.mktemp("trusted")))
    monkeypatch.setattr("remanence.runs._trust._REMEMBERED", set())
