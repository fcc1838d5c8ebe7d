r"""Attention in time and memory linear in the sequence length: the n x n matrix is never formed.

Both kinds below weigh a few *features* instead of all pairs. Every key :math:`k_j` has a logit :math:`\lambda_{jm}` per
feature, every query a weight :math:`w_{im}`, and the output is

.. math:: y_i = \sum_m w_{im} \frac{\sum_j e^{\lambda_{jm}} v_j}{\sum_j e^{\lambda_{jm}}},

where the inner fraction, one mean of values per feature, is computed first.

- *Separable*: the features are the coordinates, :math:`\lambda_j = k_j` and :math:`w_i = \mathrm{softmax}(q_i)`.
- *Positive random features* (Choromanski et al., "Rethinking attention with Performers", 2021):
  :math:`\lambda_{jm} = \omega_m \cdot k_j - |k_j|^2/2`, and the weights are
  :math:`w_i = \mathrm{softmax}_m(\omega_m \cdot q_i + \log \sum_j e^{\lambda_{jm}})`. This is the usual quotient of two
  sums, written so that every exponent is at most 0.

Causal forms take the sums over :math:`j \le i`. They are kept relative to a running maximum, as in the streaming
computation of a softmax, so that inputs of any size neither overflow nor divide by zero.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from remanence._validate import boolean, dimension, message, real, shape

from ._feature_sums import FeatureSums, attend_all, attend_past, floor, hide_padding


def separable_attention(
    query: Tensor, key: Tensor, value: Tensor, *, causal: bool = False, key_padding_mask: Tensor | None = None
) -> Tensor:
    """Softmax over the features of the queries times softmax over the positions of the keys.

    The attention matrix ``softmax(Q, -1) @ softmax(K, -2).T`` has rows that sum to 1 and, not causal, a rank of at most
    ``d``; ``softmax(K, -2).T @ V`` is computed first, in Theta(n d^2) time. The causal form takes, for every query, the
    softmax over the positions up to its own.

    Args:
        query: ``(..., T, d)``.
        key: ``(..., S, d)``.
        value: ``(..., S, d_value)``.
        causal: let query ``i`` see keys ``0 .. i`` only; then ``S`` must equal ``T``.
        key_padding_mask: ``(..., S)`` bool, True where a key is to be left out. A query that sees no key gets 0.

    Returns:
        ``(..., T, d_value)``.

    Example:
        >>> logits = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
        >>> separable_attention(logits, logits, torch.tensor([[2.0], [4.0]]), causal=True)
        tensor([[2.],
                [3.]])
    """
    _check(query, key, value, causal, key_padding_mask)
    query = _at_least_single(query)
    key = _at_least_single(key)
    return _attend(query, key, value, causal=causal, padded=key_padding_mask, by_mass=False)


def random_feature_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    projection: Tensor,
    *,
    causal: bool = False,
    scale: float | None = None,
    key_padding_mask: Tensor | None = None,
) -> Tensor:
    """Softmax attention estimated with positive random features (FAVOR+), in Theta(n m d) time.

    What is unbiased: the kernel before normalisation, ``f(q) . f(k)`` for ``exp(scale q . k)``. What is not: this
    function's output, a quotient of two estimates. Its bias shrinks with ``m`` as its variance does.

    Args:
        query: ``(..., T, d)``.
        key: ``(..., S, d)``.
        value: ``(..., S, d_value)``.
        projection: ``(..., m, d)``, rows distributed as N(0, I): `torch.randn`, or `orthogonal_gaussian_projection`.
        causal: let query ``i`` see keys ``0 .. i`` only; then ``S`` must equal ``T``.
        scale: factor of ``q . k``; ``None`` is ``1/sqrt(d)``, as in torch's scaled dot product.
        key_padding_mask: ``(..., S)`` bool, True where a key is to be left out. A query that sees no key gets 0.

    Returns:
        ``(..., T, d_value)``.

    Example:
        >>> q, k, v = torch.zeros(3, 4), torch.zeros(2, 4), torch.tensor([[2.0], [4.0]])
        >>> random_feature_attention(q, k, v, torch.randn(8, 4)).flatten()
        tensor([3., 3., 3.])
    """
    _check(query, key, value, causal, key_padding_mask)
    shape("projection", projection, (*projection.shape[:-2], "m", query.shape[-1]))
    if scale is None:
        scale = query.shape[-1] ** -0.5
    query, key = random_feature_logits(query, key, projection, real("scale", scale, above=0.0))
    return _attend(query, key, value, causal=causal, padded=key_padding_mask, by_mass=True)


def positive_random_features(x: Tensor, projection: Tensor) -> Tensor:
    """Positive random features, whose inner products estimate the softmax kernel without bias.

    ``f(x) = exp(w . x - |x|^2 / 2) / sqrt(m)``, with ``E f(q) . f(k) = exp(q . k)``. For independent rows
    ``w ~ N(0, I)`` ``f(q) . f(k)`` has variance ``e^(2 q.k) (e^(|q+k|^2) - 1) / m``. It grows fast with the norms,
    which is why attention scales ``q`` and ``k`` by ``d^(-1/4)`` first. This function takes the exponential itself, so
    large inputs may overflow; `random_feature_attention` works with the exponents and does not.

    Args:
        x: ``(..., d)``.
        projection: ``(m, d)``.

    Returns:
        ``(..., m)``, all positive.

    Example:
        >>> positive_random_features(torch.zeros(4), torch.randn(16, 4)).unique()
        tensor([0.2500])
    """
    shape("projection", projection, ("m", x.shape[-1]))
    return _log_kernel(x, projection).exp() / math.sqrt(projection.shape[-2])


def orthogonal_gaussian_projection(
    features: int, size: int, generator: torch.Generator | None = None, *, dtype: torch.dtype | None = None
) -> Tensor:
    """Gaussian directions that are exactly orthogonal within each block of ``size``: the same mean, less variance.

    Each block is a uniformly distributed orthogonal matrix; its rows are given independent lengths distributed as chi
    with ``size`` degrees of freedom. Every single row is therefore N(0, I) and the features stay unbiased.

    Args:
        features: number of rows, ``m``.
        size: number of columns, ``d``.
        generator: source of the randomness (CPU); ``None`` is torch's global one.
        dtype: of the result; ``None`` is torch's default.

    Returns:
        ``(features, size)``, on the CPU.

    Example:
        >>> w = orthogonal_gaussian_projection(3, 4, torch.Generator().manual_seed(0), dtype=torch.float64)
        >>> bool(((w @ w.T).triu(1).abs() < 1e-12).all())
        True
    """
    dimension("features", features)
    dimension("size", size)
    count = -(-features // size)
    # One draw for the directions and one for the lengths, which must not depend on them.
    gaussian = torch.randn(2, count, size, size, generator=generator, dtype=torch.float64)
    orthogonal, upper = torch.linalg.qr(gaussian[0])
    # The signs of R's diagonal make the factor unique, and with it Q uniformly distributed.
    directions = orthogonal * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    rows = directions * gaussian[1].norm(dim=-1, keepdim=True)
    return rows.flatten(0, 1)[:features].to(dtype or torch.get_default_dtype())


def _attend(
    query_logits: Tensor, key_logits: Tensor, value: Tensor, *, causal: bool, padded: Tensor | None, by_mass: bool
) -> Tensor:
    if padded is not None:
        key_logits, value = hide_padding(key_logits, value, padded)
    if not causal:
        return attend_all(query_logits, key_logits, value, by_mass=by_mass)
    *batch, _, features = torch.broadcast_shapes(query_logits.shape, key_logits.shape)
    peak = key_logits.new_full((*batch, features), floor(key_logits.dtype))
    empty = FeatureSums(peak, torch.zeros_like(peak), peak.new_zeros(*peak.shape, value.shape[-1]))
    return attend_past(query_logits, key_logits, value, empty, by_mass=by_mass)[0]


def random_feature_logits(query: Tensor, key: Tensor, projection: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Logarithms of the features of queries and keys, less all terms that cancel in the normalised output.

    Args:
        query: ``(..., T, d)``.
        key: ``(..., S, d)``.
        projection: ``(..., m, d)``.
        scale: factor of ``q . k``, shared between the two.

    Returns:
        ``(..., T, m)`` and ``(..., S, m)``.
    """
    projection = _at_least_single(projection)
    query, key = (_at_least_single(x) * math.sqrt(scale) for x in (query, key))
    return query @ projection.mT, _log_kernel(key, projection)


def _log_kernel(x: Tensor, projection: Tensor) -> Tensor:
    return x @ projection.mT - x.square().sum(-1, keepdim=True) / 2


def _at_least_single(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _check(query: Tensor, key: Tensor, value: Tensor, causal: bool, padded: Tensor | None) -> None:
    boolean("causal", causal)
    shape("key", key, (*key.shape[:-2], "S", query.shape[-1]))
    shape("value", value, (*key.shape[:-1], "d_value"))
    if causal and query.shape[-2] != key.shape[-2]:
        hint = "Query i sees keys 0 .. i, which needs one key per query"
        raise ValueError(message("key", f"have {query.shape[-2]} steps when causal", f"{key.shape[-2]}", hint))
    if padded is not None:
        shape("key_padding_mask", padded, key.shape[:-1])
        if padded.dtype != torch.bool:
            raise TypeError(message("key_padding_mask", "be a bool tensor", str(padded.dtype)))
