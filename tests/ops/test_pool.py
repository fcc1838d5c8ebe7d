"""The memory that the fused scan uses again: never what somebody still holds, and given back on request."""

from __future__ import annotations

import pytest
import torch

from remanence.ops import ScanSpec, Screened, fused
from remanence.testing import assert_matches

SPEC = ScanSpec("lstm", Screened(3, 4))


@pytest.fixture
def case(scans):
    return scans.make_case(SPEC, steps=200, batch=16, hidden=32)


def run(case) -> torch.Tensor:
    with torch.no_grad():
        return fused.scan(case.x, case.weights, None, spec=SPEC)[0]


def test_an_output_that_is_held_is_not_written_again(case):
    held = run(case)
    kept = held.clone()
    case.x = -case.x
    others = [run(case) for _ in range(3)]
    assert torch.equal(held, kept)
    assert len({output.data_ptr() for output in [held, *others]}) == 4


def test_memory_that_is_free_is_used_again(case):
    output = run(case)
    place, value = output.data_ptr(), output.clone()
    del output
    again = run(case)
    assert again.data_ptr() == place
    assert torch.equal(again, value)


def test_results_stay_the_same_after_memory_was_given_back(case):
    output = run(case)
    kept = output.clone()
    torch.ops.remanence.release_memory()
    assert torch.equal(output, kept)
    assert torch.equal(run(case), kept)


def test_the_packed_product_is_a_matrix_product():
    a, weights = torch.randn(13, 40), torch.randn(32, 40)
    exact = a.double() @ weights.double().T
    assert_matches({"c": torch.ops.remanence.packed_product(a, weights)}, {"c": exact}, {"c": a @ weights.T})
    with pytest.raises(RuntimeError, match="multiple of 16"):
        torch.ops.remanence.packed_product(a, weights[:31])
