"""Half precision on the CPU: computed in float32 inside, returned in the caller's dtype."""

from __future__ import annotations

import torch
from torch import Tensor

from ._state import State
from ._weights import Weights
from .states import map_tensors

HALF = (torch.bfloat16, torch.float16)


def widen(tensor: Tensor) -> Tensor:
    """A tensor of half precision in float32; any other as it is. Its gradient comes back in its own dtype.

    Example:
        >>> widen(torch.zeros(2, dtype=torch.bfloat16)).dtype
        torch.float32
    """
    return tensor.float() if tensor.dtype in HALF else tensor


def widen_weights(weights: Weights) -> Weights:
    """All parameters of a layer, widened."""
    return map_tensors(widen, weights)


def widen_state(state: State | None) -> State | None:
    """All fields of a state, widened; its counts stay counts.

    Args:
        state: in any precision, or ``None``.
    """
    return None if state is None else State(*map(widen, state))


def narrow_state(state: State, dtype: torch.dtype) -> State:
    """All fields that hold numbers in a given dtype; counts stay what they are, whatever their size.

    Example:
        >>> from remanence.ops import ScanSpec
        >>> from remanence.ops.reference import empty_state
        >>> state = empty_state(ScanSpec("rnn"), 2, (1,), torch.zeros(1))._replace(step=torch.tensor([1001]))
        >>> narrow_state(state, torch.bfloat16).step
        tensor([1001])
    """
    return State(*(field.to(dtype) if field.is_floating_point() else field for field in state))
