"""The projections are the nearest points, leave alone what is inside, and hold after rounding."""

from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from remanence.nn._projection import project_rows_, project_spectral_, row_sums, spectral_norm

DTYPES = [torch.float64, torch.float32, torch.bfloat16]
entries = st.floats(-10, 10, width=32)


def nearest_by_trying_all_supports(row: list[float], limit: float) -> torch.Tensor:
    """The nearest point of the ball by brute force: on its face over each support the nearest point is a formula."""
    size = torch.tensor(row, dtype=torch.float64)
    if size.abs().sum() <= limit:
        return size
    candidates = []
    for count in range(1, len(row) + 1):
        for chosen in map(list, combinations(range(len(row)), count)):
            point = torch.zeros_like(size)
            point[chosen] = size[chosen].abs() - (size[chosen].abs().sum() - limit) / count
            if (point >= 0).all():
                candidates.append(point * size.sign())
    return min(candidates, key=lambda point: float((point - size).norm()))


@settings(max_examples=200, deadline=None)
@given(row=st.lists(entries, min_size=1, max_size=5), limit=st.floats(0.125, 4))
def test_rows_go_to_the_nearest_point(row, limit):
    matrix = torch.tensor([row], dtype=torch.float64)
    project_rows_(matrix, limit)
    assert_close(matrix[0], nearest_by_trying_all_supports(row, limit))


def test_a_row_worked_by_hand():
    # 3, 1, 1 onto a sum of 3: all three would lose 2/3, which leaves 7/3 + 1/3 + 1/3.
    matrix = torch.tensor([[3.0, -1.0, 1.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
    project_rows_(matrix, 3.0)
    assert_close(matrix, torch.tensor([[7 / 3, -1 / 3, 1 / 3], [1.0, 1.0, 1.0]], dtype=torch.float64))


def test_rescaling_is_not_the_nearest_point():
    row = torch.tensor([[3.0, 1.0]], dtype=torch.float64)
    projected = row.clone()
    project_rows_(projected, 1.0)
    assert (projected - row).norm() < (row / row.abs().sum() - row).norm()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scale", [0.1, 1.0, 1e6])
def test_rows_keep_the_limit_after_rounding_and_only_shrink(dtype, scale):
    before = (torch.randn(20, 33, dtype=torch.float64) * scale).to(dtype)
    after = before.clone()
    project_rows_(after, 0.39)
    assert (row_sums(after) <= 0.39).all()
    assert (after.abs() <= before.abs()).all()
    assert (after * before >= 0).all()
    again = after.clone()
    project_rows_(again, 0.39)
    assert torch.equal(again, after)


def test_only_the_rows_outside_change():
    before = torch.randn(6, 8)
    before[::2] *= 0.3 / before[::2].abs().sum(dim=1, keepdim=True)
    after = before.clone()
    project_rows_(after, 0.39)
    assert torch.equal(after[::2], before[::2])
    assert (after[1::2] != before[1::2]).any(dim=1).all()


@pytest.mark.parametrize("shape", [(7, 7), (1, 1), (9, 4)], ids=str)
def test_spectral_projection_is_the_nearest_point(shape):
    # P is nearest to W within the set if and only if no Y in it has <W - P, Y> above <W - P, P>; the greatest
    # <D, Y> over the set is the limit times the sum of the singular values of D.
    before = torch.randn(shape, dtype=torch.float64) * 3
    after = before.clone()
    project_spectral_(after, 0.9)
    gap = before - after
    assert_close((gap * after).sum(), 0.9 * torch.linalg.svdvals(gap).sum())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scale", [0.3, 1.0, 1e6])
def test_spectral_norm_keeps_the_limit_after_rounding(dtype, scale):
    matrix = (torch.randn(24, 24, dtype=torch.float64) * scale).to(dtype)
    project_spectral_(matrix, 0.99)
    assert spectral_norm(matrix) <= 0.99
    again = matrix.clone()
    project_spectral_(again, 0.99)
    assert torch.equal(again, matrix)


def test_spectral_projection_clamps_singular_values_and_nothing_else():
    before = torch.randn(12, 12, dtype=torch.float64)
    after = before.clone()
    project_spectral_(after, 0.99)
    assert_close(torch.linalg.svdvals(after), torch.linalg.svdvals(before).clamp(max=0.99))


def test_a_matrix_inside_is_left_alone_bit_for_bit():
    before = torch.randn(12, 12)
    before *= 0.98 / spectral_norm(before)
    after = before.clone()
    project_spectral_(after, 0.99)
    assert torch.equal(after, before)
