"""The layer contract as named checks, for the layers of this package and for anybody's own."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator

from . import _clauses_shape, _clauses_time, _clauses_torch  # noqa: F401 -- each enters its clauses
from ._layer_under_test import CLAUSES, Check, LayerFactory, LayerUnderTest


def check_recurrent_layer(
    factory: LayerFactory, *, grows: bool = False, without: Collection[str] = ()
) -> Iterator[Check]:
    """The checks that a recurrent layer must pass, by name.

    Args:
        factory: called with ``(input_size, hidden_size, **options)``; the options are those of ``torch.nn.LSTM``,
            and ``cuts``.
        grows: the layer's state is meant to grow with the sequence.
        without: names of checks that do not apply.

    Yields:
        :class:`Check` objects; call each of them.

    Example:
        >>> import functools, remanence
        >>> small = functools.partial(remanence.nn.RelRNN, recent=4, relevant=6)
        >>> for check in check_recurrent_layer(small):
        ...     if check.name in ("shapes", "causality"):
        ...         check()
    """
    subject = LayerUnderTest(factory, grows)
    unknown = set(without) - {name for name, _, _ in CLAUSES}
    if unknown:
        raise ValueError(f"`without` must name checks; got {sorted(unknown)}, known are {check_names()}")
    for name, slow, function in CLAUSES:
        if name not in without:
            yield Check(name, slow, functools.partial(function, subject))


def check_names(*, slow: bool | None = None) -> list[str]:
    """Names of all checks; only the slow or only the fast ones on request.

    Example:
        >>> "causality" in check_names()
        True
    """
    return [name for name, is_slow, _ in CLAUSES if slow is None or slow == is_slow]
