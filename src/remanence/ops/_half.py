"""Half precision on the CPU: computed in float32 inside, returned in the caller's dtype."""

from __future__ import annotations

import torch
from torch import Tensor

from .states import Tree, map_tensors

HALF = (torch.bfloat16, torch.float16)


def widen(tensor: Tensor) -> Tensor:
    """A tensor of half precision in float32; any other as it is. Its gradient comes back in its own dtype.

    Example:
        >>> widen(torch.zeros(2, dtype=torch.bfloat16)).dtype
        torch.float32
    """
    if tensor.dtype in HALF:
        return tensor.float()
    return tensor


def widen_all(tree: Tree) -> Tree:
    """All tensors of a state or of weights, widened; counts stay counts, and what is ``None`` stays so."""
    return map_tensors(widen, tree)
