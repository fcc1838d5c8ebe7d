"""A file that is overwritten or truncated while it is measured changes neither the numbers nor ends the process."""

from __future__ import annotations

import numpy as np
import pytest

from remanence.probes._pair_counts import pairs_by_lag
from remanence.probes._symbols import read_symbols


def tables(symbols):
    return [pairs.counts.tolist() for pairs in pairs_by_lag(symbols, np.array([1, 3]), groups=2)]


@pytest.mark.parametrize("change", [b"", b"\xff" * 40_000, None], ids=["truncated", "overwritten", "removed"])
@pytest.mark.parametrize("kind", ["bytes", "characters", "npy"])
def test_what_was_read_stays(tmp_path, kind, change):
    path = tmp_path / ("symbols.npy" if kind == "npy" else "symbols.txt")
    numbers = np.random.default_rng(0).integers(97, 100, 40_000).astype(np.uint8)
    if kind == "npy":
        np.save(path, numbers)
    else:
        path.write_bytes(numbers.tobytes())
    symbols = read_symbols(path, kind)
    before = tables(symbols)
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change)
    assert tables(symbols) == before
