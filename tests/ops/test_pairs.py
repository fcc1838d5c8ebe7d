import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from remanence import ops
from remanence._require import is_required
from remanence.ops._library import library

needs_kernel = pytest.mark.skipif(
    library().problem is not None and not is_required("kernel"), reason="the kernel is not built"
)


def by_hand(symbols, lags, alphabet, starts, groups):
    counts = torch.zeros(len(lags), len(groups) - 1, alphabet, alphabet, dtype=torch.int64)
    for k, lag in enumerate(lags):
        for begin, end in itertools.pairwise(starts):
            for t in range(begin, end - lag):
                group = max(g for g in range(len(groups) - 1) if groups[g] <= t)
                counts[k, group, int(symbols[t]), int(symbols[t + lag])] += 1
    return counts


@st.composite
def instances(draw):
    size = draw(st.integers(1, 60))
    alphabet = draw(st.sampled_from([1, 2, 5, 27, 256]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    symbols = torch.randint(alphabet, (size,), generator=generator, dtype=torch.uint8)
    cuts = sorted(draw(st.lists(st.integers(0, size), max_size=4)))
    groups = sorted(draw(st.sets(st.integers(1, size), max_size=3)) - {size})
    return (
        symbols,
        draw(st.lists(st.integers(0, 70), min_size=1, max_size=3)),
        alphabet,
        [0, *cuts, size],
        [
            0,
            *groups,
            size,
        ],
    )


@needs_kernel
@given(instances())
@settings(max_examples=60, deadline=None)
def test_both_paths_count_what_a_double_loop_counts(instance):
    symbols, lags, alphabet, starts, groups = instance
    exact = by_hand(*instance)
    for backend in ("reference", "fused"):
        places = {"starts": torch.tensor(starts), "groups": torch.tensor(groups)}
        assert torch.equal(ops.count_pairs(symbols, lags, alphabet, **places, backend=backend), exact)


@needs_kernel
@pytest.mark.parametrize("alphabet", [1, 2, 3, 8, 9, 27, 256])
def test_blocks_that_fill_and_split_lose_nothing(alphabet):
    symbols = torch.randint(alphabet, (50_001,), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    lags = [1, 7, 4096, 50_000]
    fused, reference = (ops.count_pairs(symbols, lags, alphabet, backend=b) for b in ("fused", "reference"))
    assert torch.equal(fused, reference)
    assert fused.sum((1, 2, 3)).tolist() == [50_001 - lag for lag in lags]


@needs_kernel
def test_op_is_registered_properly():
    arguments = (torch.zeros(9, dtype=torch.uint8), torch.tensor([1]), torch.tensor([0, 9]), torch.tensor([0, 9]), 2)
    torch.library.opcheck(torch.ops.remanence.pair_counts.default, arguments)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"symbols": torch.zeros(3)}, "`symbols` must be uint8"),
        ({"symbols": torch.zeros(0, dtype=torch.uint8)}, "`symbols` must be uint8"),
        ({"symbols": torch.full((3,), 2, dtype=torch.uint8)}, "below the alphabet's size 2; got 2"),
        ({"alphabet": 257}, "`alphabet` must be at most 256"),
        ({"lags": [-1]}, "`lags` must be a list of whole numbers >= 0"),
        ({"starts": torch.tensor([0, 4])}, "`starts` must rise from 0 to 3"),
        ({"groups": torch.tensor([0, 2, 1, 3])}, "`groups` must rise from 0 to 3"),
        ({"backend": "fast"}, "`backend` must be one of"),
    ],
)
def test_bad_arguments_are_named(change, words):
    arguments = {"symbols": torch.zeros(3, dtype=torch.uint8), "lags": [1], "alphabet": 2} | change
    with pytest.raises(ValueError, match=words):
        ops.count_pairs(**arguments)
