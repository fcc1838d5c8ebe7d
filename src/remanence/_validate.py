"""Checks of arguments, all with one shape of message: what the argument must be, what came, and the way out.

Every helper returns the checked value, so that a constructor can read
``self.hidden_size = positive_int("hidden_size", hidden_size)``. A value of the wrong type is a TypeError, any other
that does not do a ValueError.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TypeVar

Default = TypeVar("Default", int, None)
Given = TypeVar("Given")

COUNTABLE = 2**63 - 1
"""What 64 bits count to: the largest position, seed or number of updates."""
MOST_STEPS = 2**62
"""The most steps that a stream counts, so that counting on from there does not overflow."""
LARGEST_SIZE = 2**31 - 1
"""The largest dimension of a tensor that a size may ask for."""
MOST_PARTS = 10_000
"""The most things that one call builds one by one, such as stacked layers."""
MOST_THREADS = 1024
"""The most threads that one process may compute with: the library that starts them ends the process if it cannot."""
LARGEST_REAL = 3.4028234663852886e38
"""The largest number of float32, which layers and optimisers compute in."""


def message(name: str, expected: str, got: object, hint: str = "") -> str:
    """Words one complaint about an argument.

    Args:
        name: The argument as the user writes it.
        expected: What it must be, to follow the word "must".
        got: What came; a string is shown as it is, anything else by its repr.
        hint: The way out, a full sentence without its final stop.

    Returns:
        The message, without a final stop.

    Example:
        >>> message("bias", "be a bool", repr("yes"), "Pass True or False")
        "`bias` must be a bool; got 'yes'. Pass True or False"
    """
    if not isinstance(got, str):
        got = repr(got)
    told = f"`{name}` must {expected}; got {got}"
    if not hint:
        return told
    return f"{told}. {hint}"


def positive_int(name: str, value: object, minimum: int = 1, maximum: int = COUNTABLE) -> int:
    """Checks a count; a bool is none.

    Example:
        >>> positive_int("updates", 8)
        8
        >>> positive_int("updates", 0)
        Traceback (most recent call last):
        ValueError: `updates` must be an int >= 1; got 0
        >>> positive_int("num_layers", 2**40, maximum=MOST_PARTS)
        Traceback (most recent call last):
        ValueError: `num_layers` must be an int >= 1 and <= 10000; got 1099511627776
    """
    expected = f"be an int >= {minimum}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(message(name, expected, _typed(value)))
    count = int(value)
    if count < minimum:
        raise ValueError(message(name, expected, value))
    if count > maximum:
        raise ValueError(message(name, f"{expected} and <= {maximum}", value))
    return count


def dimension(name: str, value: object, minimum: int = 1) -> int:
    """Checks a dimension of tensors: at least `minimum`, and no more than 32 bits hold.

    Example:
        >>> dimension("hidden_size", 8)
        8
        >>> dimension("hidden_size", 2**40)
        Traceback (most recent call last):
        ValueError: `hidden_size` must be an int >= 1 and <= 2147483647; got 1099511627776
    """
    return positive_int(name, value, minimum, LARGEST_SIZE)


@contextlib.contextmanager
def fitting(**sizes: int) -> Iterator[None]:
    """Names the sizes to blame if what is made inside does not fit into memory.

    Example:
        >>> import torch
        >>> with fitting(hidden_size=2**31):
        ...     torch.empty(2**31, 2**31)
        Traceback (most recent call last):
        ValueError: `hidden_size` must ask for no more than fits into memory; got hidden_size=2147483648
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        given = ", ".join(f"{name}={value}" for name, value in sizes.items())
        raise ValueError(message("`, `".join(sizes), "ask for no more than fits into memory", given)) from error


def out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory was not enough.

    Example:
        >>> out_of_memory(MemoryError()), out_of_memory(RuntimeError("shapes differ"))
        (True, False)
    """
    signs = ("can't allocate memory", "out of memory", "calculation overflowed", "integer multiplication overflow")
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in signs)


def optional_size(name: str, value: int | None, default: Default) -> int | Default:
    """Checks a size or a count that may be left out; then it is the default."""
    if value is None:
        return default
    return dimension(name, value)


def real(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> float:
    """Checks a number, finite in float32, above `above`, between `least` and `most`, and below `below`.

    Example:
        >>> real("learning_rate", 0.1, above=0)
        0.1
        >>> real("learning_rate", 0.0, above=0)
        Traceback (most recent call last):
        ValueError: `learning_rate` must be a finite number > 0; got 0.0
    """
    limits = {">": above, ">=": least, "<=": most, "<": below}
    bounds = [f"{sign} {limit:g}" for sign, limit in limits.items() if math.isfinite(limit)]
    expected = " ".join(["be a finite number", " and ".join(bounds)]).strip()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(message(name, expected, _typed(value)))
    try:
        number = float(value)
    except OverflowError:  # an int beyond float64
        number = math.inf
    if not (abs(number) <= LARGEST_REAL and above < number < below and least <= number <= most):
        raise ValueError(message(name, expected, value))
    return number


def probability(name: str, value: object) -> float:
    """Checks a probability, the ends 0 and 1 included.

    Example:
        >>> probability("dropout", 0.5)
        0.5
        >>> probability("dropout", 1.5)
        Traceback (most recent call last):
        ValueError: `dropout` must be a finite number >= 0 and <= 1; got 1.5
    """
    return real(name, value, least=0.0, most=1.0)


def boolean(name: str, value: object) -> bool:
    """Checks a switch; a truthy stand-in is refused, because an argument in the wrong place often looks like one.

    Example:
        >>> boolean("batch_first", True)
        True
        >>> boolean("batch_first", 2)
        Traceback (most recent call last):
        TypeError: `batch_first` must be a bool; got 2 (int)
    """
    if not isinstance(value, bool):
        raise TypeError(message(name, "be a bool", _typed(value)))
    return value


def one_of(name: str, value: Given, choices: Iterable[object]) -> Given:
    """Checks a named choice and proposes the nearest name.

    Example:
        >>> one_of("score", "dot", ["additive", "dot"])
        'dot'
        >>> one_of("score", "aditive", ["additive", "dot"])
        Traceback (most recent call last):
        ValueError: `score` must be one of 'additive', 'dot'; got 'aditive'. Did you mean 'additive'?
    """
    allowed = list(choices)
    # Comparing type and value keeps 1 from passing for True, and a tensor from being compared element by element.
    if any(type(value) is type(choice) and value == choice for choice in allowed):
        return value
    expected = "be one of " + ", ".join(map(repr, allowed))
    raise ValueError(message(name, expected, repr(value), _nearest(value, allowed)))


def shape(name: str, value: Given, expected: Sequence[int | str]) -> Given:
    """Checks the shape of anything that has one, of any rank.

    Args:
        name: The argument as the user writes it.
        value: Such as a tensor.
        expected: One entry per dimension: a fixed size, or the name of a free one, such as "T".

    Example:
        >>> import numpy
        >>> shape("input", numpy.zeros((5, 2, 3)), ("T", "B", 3)).ndim
        3
        >>> shape("input", numpy.zeros((5, 2, 4)), ("T", "B", 3))
        Traceback (most recent call last):
        ValueError: `input` must have shape (T, B, 3); got (5, 2, 4)
    """
    sizes_in_words = ", ".join(map(str, expected))
    if len(expected) == 1:
        sizes_in_words += ","
    wanted = f"have shape ({sizes_in_words})"
    if not hasattr(value, "shape"):
        raise TypeError(message(name, f"be a tensor and {wanted}", _typed(value)))
    sizes = tuple(value.shape)  # pyright: ignore[reportAttributeAccessIssue]
    fits = all(isinstance(want, str) or want == size for want, size in zip(expected, sizes, strict=False))
    if len(sizes) != len(expected) or not fits:
        raise ValueError(message(name, wanted, repr(sizes)))
    return value


def named_folder(folder: str | Path) -> str:
    """A folder that does not hold what it must, as a complaint shows it: it may not even be there.

    Example:
        >>> named_folder("no such folder")
        "'no such folder', which does not exist"
    """
    shown = repr(str(folder))
    if not os.path.lexists(folder):
        return f"{shown}, which does not exist"
    if not os.path.isdir(folder):
        return f"{shown}, which is no folder"
    return shown


def _typed(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"


def _nearest(value: object, allowed: list[object]) -> str:
    names = {choice.lower(): choice for choice in allowed if isinstance(choice, str)}
    if not isinstance(value, str):
        return ""
    close = difflib.get_close_matches(value.lower(), names, n=1)
    if not close:
        return ""
    return f"Did you mean {names[close[0]]!r}?"
