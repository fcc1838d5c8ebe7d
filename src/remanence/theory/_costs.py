"""What attention and recurrence cost: multiplications and stored numbers, no constants hidden."""

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
    """Cost of one attention over a sequence, heads one after the other, each of full width as in the notes.

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
    n = positive_int("length", length)
    d = positive_int("width", width)
    if kind == "softmax":
        time = 2 * n * n * d
        inner = n * n
    elif kind == "separable":
        time = 2 * n * d * d
        inner = d * d + 2 * n * d
    else:
        m = positive_int("features", features)
        time = 4 * n * m * d
        inner = 2 * n * m + m * d
    if heads == 1:
        return Cost(time, inner + n * d)
    return Cost(heads * (time + n * d * d), inner + heads * n * d + n * d)


def recurrent_cost(
    gates: int, length: int, inputs: int, hidden: int, *, slots: int | None = 0, keyed: bool = True
) -> Cost:
    """Cost of one recurrent layer over a sequence, with an attentive read of at most ``slots`` states at every step.

    The cell takes ``g n (d + n)`` a step. A read takes ``n^2`` for the query and ``n^2`` for the key of the new state,
    and ``2 n`` for every state read: its score, and its share of the sum. Between them the reads of T steps touch
    ``sum_t min(t, slots)`` states: linear in T for a bounded memory, ``T (T + 1) / 2`` for a full one. For the backward
    pass plain differentiation stores the gates and, for every state read, ``n`` numbers inside its score.

    Args:
        gates: g, 1 for an RNN, 4 for an LSTM, 3 for a GRU.
        length: T.
        inputs: d.
        hidden: n.
        slots: most states that a step reads; ``None`` for all so far, 0 for no memory.
        keyed: whether queries and keys are made by matrices, as those of additive and of dot-product scores are.

    Example:
        >>> recurrent_cost(4, 10, 3, 8).time, recurrent_cost(4, 10, 3, 8, slots=None).time
        (3520, 5680)
    """
    n = positive_int("hidden", hidden)
    steps = positive_int("length", length)
    positive_int("gates", gates)
    cell = steps * gates * n * (positive_int("inputs", inputs) + n)
    if slots == 0:
        return Cost(cell, steps * n * gates)
    most = steps
    if slots is not None:
        most = min(positive_int("slots", slots), steps)
    touched = most * (most + 1) // 2 + (steps - most) * most
    keys = 2 * steps * n * n if keyed else 0
    return Cost(cell + keys + 2 * n * touched, steps * n * (gates + 2) + n * touched)
