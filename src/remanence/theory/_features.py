"""Random features for the exponential kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from remanence._validate import positive_int


def random_feature_variance(query: Tensor, key: Tensor, features: int) -> Tensor:
    """Variance of the softmax kernel's estimate by independent positive random features.

    For ``exp(q . k)`` and m features it is ``exp(2 q . k) (exp(|q + k|^2) - 1) / m``, ``(...)``.

    Args:
        query: ``(..., d)``.
        key: ``(..., d)``.
        features: m.

    Example:
        >>> random_feature_variance(torch.zeros(3), torch.zeros(3), 8)
        tensor(0.)
    """
    positive_int("features", features)
    inner = (query * key).sum(dim=-1)
    size = (query + key).square().sum(dim=-1)
    return (2 * inner).exp() * torch.expm1(size) / features
