"""Outputs whose steps and rows are flattened into one dimension, as `view(-1, classes)` leaves them."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

Order = Literal["kept", "swapped"]
"""Whether the first dimension of the inputs varies slowest, or the second."""


def is_flattened(output: Tensor, inputs: Tensor) -> bool:
    """Whether the first dimension of an output counts the steps of all rows.

    Example:
        >>> import torch
        >>> is_flattened(torch.zeros(12, 5), torch.zeros(4, 3, 2))
        True
    """
    return inputs.dim() > 1 and output.dim() > 0 and output.shape[0] == inputs.shape[0] * inputs.shape[1]


def unflattened(output: Tensor, inputs: Tensor, order: Order) -> Tensor:
    """The output with the first two dimensions of the inputs.

    Example:
        >>> import torch
        >>> unflattened(torch.arange(6), torch.zeros(2, 3), "swapped").tolist()
        [[0, 2, 4], [1, 3, 5]]
    """
    first = inputs.shape[0]
    second = inputs.shape[1]
    if order == "kept":
        return output.unflatten(0, (first, second))
    return output.unflatten(0, (second, first)).transpose(0, 1)


def find_order(before: Tensor, after: Tensor, inputs: Tensor) -> Order | None:
    """In which order an output is flattened: a change of one step of one row is felt along one line only.

    Args:
        before: the flattened output.
        after: the same after a change of the first step of the first row.
        inputs: ``(T, B, ...)`` or ``(B, T, ...)``.

    Returns:
        ``None`` if the change is felt elsewhere in both orders, or if there is one step or one row: the output is not
        a flattened one.

    Example:
        >>> import torch
        >>> sums = torch.tensor([[1, 2, 3], [1, 2, 3]])
        >>> find_order(sums.flatten(), (sums + torch.tensor([[1], [0]])).flatten(), torch.zeros(3, 2))
        'swapped'
    """
    if not is_flattened(before, inputs) or 1 in inputs.shape[:2]:
        return None
    felt = (after != before).unsqueeze(-1).flatten(1).any(dim=1)
    orders: tuple[Order, ...] = ("kept", "swapped")
    for order in orders:
        grid = unflattened(felt, inputs, order)
        if not grid[1:, 1:].any() and not (grid[1:, 0].any() and grid[0, 1:].any()):
            return order
    return None
