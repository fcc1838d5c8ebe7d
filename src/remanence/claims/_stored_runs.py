"""Reading stored results: what claims about experiments of several papers share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def run_of(results: Mapping[str, Any], arm: str) -> dict[str, Any]:
    """The run of an arm of the stored result ``attention``."""
    found = [run for run in results["runs"] if run["arm"] == arm]
    if not found:
        raise ValueError(f"the stored result 'attention' has no run of {arm}")
    return found[0]
