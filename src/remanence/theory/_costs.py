"""What attention costs: multiplications and stored numbers, leading terms without constants hidden."""

from __future__ import annotations

from typing import Literal, NamedTuple

from remanence._validate import one_of, positive_int

Kind = Literal["softmax", "separable", "random-features"]


class Cost(NamedTuple):
    """Multiplications and stored numbers.

    Example:
        >>> Cost(time=10, space=4).time
        10
    """

    time: int
    """Multiplications of naive matrix products."""
    space: int
    """Numbers stored at once: results between the input and the output, and the output."""


def attention_cost(kind: Kind, length: int, width: int, *, features: int | None = None, heads: int = 1) -> Cost:
    """Cost of one attention over a sequence, heads one after the other, each of full width as in the document.

    Softmax: ``2 n^2 d`` and ``n^2 + n d``. Separable, ``Q (K^T V)``: ``2 n d^2`` and ``d^2 + 3 n d``. Random features:
    ``4 n m d`` (two feature maps and two products) and ``2 n m + m d + n d``. Several heads add the product with the
    output matrix, ``n d^2`` per head, and their concatenation; the attention matrix is needed once, since heads are
    computed one after the other.

    Args:
        kind: ``"softmax"``, ``"separable"`` or ``"random-features"``.
        length: n.
        width: d.
        features: m, for random features.
        heads: h.

    Example:
        >>> attention_cost("softmax", 100, 8).time, attention_cost("separable", 100, 8).time
        (160000, 12800)
    """
    one_of("kind", kind, ("softmax", "separable", "random-features"))
    n, d = positive_int("length", length), positive_int("width", width)
    if kind == "softmax":
        time, inner = 2 * n * n * d, n * n
    elif kind == "separable":
        time, inner = 2 * n * d * d, d * d + 2 * n * d
    else:
        m = positive_int("features", features)
        time, inner = 4 * n * m * d, 2 * n * m + m * d
    if heads == 1:
        return Cost(time, inner + n * d)
    return Cost(heads * (time + n * d * d), inner + heads * n * d + n * d)
