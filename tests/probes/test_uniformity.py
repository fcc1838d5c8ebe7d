import numpy as np
import pytest

from remanence import probes
from remanence.tasks import BinaryPowerLaw


def test_a_part_of_the_same_kind_is_outside_no_more_often_than_by_chance():
    generator = np.random.default_rng(0)
    shares = []
    for _ in range(30):
        symbols = generator.integers(0, 3, 5000)
        found = probes.uniformity(symbols[:4500], symbols[4500:], range(1, 11))
        assert found.stretches.shape == (9, 10)
        shares.append(found.outside.mean())
    assert abs(np.mean(shares) - found.chance) < 0.05


def test_a_part_of_another_kind_is_outside_everywhere():
    generator = np.random.default_rng(0)
    found = probes.uniformity(generator.integers(0, 2, 8000).astype(np.uint8), b"\0\1" * 400, [1, 2, 3])
    assert found.outside.all()
    assert "at 3 of 3 lags" in found.verdict
    assert found.plot() is not None


def test_whole_sequences_stay_whole():
    task = BinaryPowerLaw(length=64)
    train, validation = (task.draw(rows, task.stream("train", seed=rows)).T for rows in (200, 20))
    found = probes.uniformity(train, validation)
    assert len(found.stretches) == 10
    assert found.symbols == 20 * 64
    assert found.lags.max() == 6


def test_a_part_as_large_as_the_reference_is_cut():
    found = probes.uniformity(b"0011" * 300, b"0110" * 300, [1])
    assert len(found.stretches) == 4
    assert found.symbols == 300


def test_too_little_to_cut_is_an_error():
    with pytest.raises(ValueError, match="`reference` must hold at least 4 sequences or stretches"):
        probes.uniformity([[0, 1, 0], [1, 0, 0]], [[0, 1, 1]], [1])
