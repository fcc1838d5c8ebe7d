"""Numbers in words: sensible digits, units, and never more than was measured."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from typing import TypeVar

Value = TypeVar("Value")

ABSENT = "–"
SPACE = "\N{NO-BREAK SPACE}"
"""Between a number and its unit."""


def as_number(value: object) -> float | None:
    """A number of a result file, None if it is none; booleans are none either.

    Example:
        >>> as_number(2), as_number("2"), as_number(True)
        (2.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:  # a whole number in JSON may have any size
        return None


def only_if(condition: object, words: str) -> str:
    """Part of a sentence that is said where it holds.

    Example:
        >>> "LSTM" + only_if(False, " so far")
        'LSTM'
    """
    if condition:
        return words
    return ""


def if_known(value: Value | None, words: Callable[[Value], str] = str) -> str:
    """A value in words; a dash for one that is not known.

    Example:
        >>> if_known(3), if_known(None), if_known(0.5, percent).replace(SPACE, " ")
        ('3', '–', '50.0 %')
    """
    if value is None:
        return ABSENT
    return words(value)


def the_only(values: Collection[Value]) -> Value | None:
    """What all have in common: the value, where there is one only.

    Example:
        >>> the_only({"bits"}), the_only({"bits", "nats"})
        ('bits', None)
    """
    if len(values) != 1:
        return None
    return next(iter(values))


def sortable(value: float | str) -> str:
    """A value as the page's script compares it.

    Example:
        >>> sortable(0.5), sortable(math.inf), sortable("LSTM")
        ('0.5', 'Infinity', 'LSTM')
    """
    number = as_number(value)
    if number is None:
        return str(value)
    if math.isnan(number):
        return "NaN"
    return repr(value).replace("inf", "Infinity")


def plain(value: float | None, digits: int = 3) -> str:
    """A number with a few digits; what is not finite as a word.

    Example:
        >>> plain(1234.5678), plain(math.inf), plain(-math.inf), plain(math.nan), plain(None)
        ('1,235', '∞', '−∞', 'NaN', '–')
    """
    if value is None:
        return ABSENT
    if math.isnan(value):
        return "NaN"
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−").replace("inf", "∞")


def percent(share: float | None) -> str:
    """A share in percent; only what is all is called 100 %.

    Example:
        >>> [percent(share).replace(SPACE, " ") for share in (0.5, 0.99961, 1.0, math.nan)]
        ['50.0 %', '> 99.9 %', '100 %', 'NaN']
    """
    if share is None or not math.isfinite(share):
        return plain(share)
    if share == 1:
        return f"100{SPACE}%"
    if 0.9995 <= share < 1:
        return f">{SPACE}99.9{SPACE}%"
    return f"{100 * share:.1f}{SPACE}%".replace("-", "−")


def points(difference: float) -> str:
    """A difference of two shares, in percentage points.

    Example:
        >>> points(-0.012), points(0.0)
        ('−1.2', '0.0')
    """
    text = f"{100 * difference:+.1f}"
    if text in ("+0.0", "-0.0"):
        return "0.0"
    return text.replace("-", "−")


def count(value: float | None) -> str:
    """A whole number with its thousands apart.

    Example:
        >>> count(68362), count(None)
        ('68,362', '–')
    """
    if value is None or not math.isfinite(value):
        return plain(value)
    return f"{value:,.0f}"


def size(octets: float | None) -> str:
    """Bytes with a unit.

    Example:
        >>> [size(octets).replace(SPACE, " ") for octets in (512, 24_100, 1.5e6)]
        ['512 B', '24.1 kB', '1.5 MB']
    """
    if octets is None or not math.isfinite(octets):
        return plain(octets)
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if octets >= scale:
            return f"{octets / scale:.3g}{SPACE}{unit}"
    return f"{octets:.0f}{SPACE}B"


def duration(seconds: float | None) -> str:
    """Seconds or minutes.

    Example:
        >>> [duration(seconds).replace(SPACE, " ") for seconds in (12.34, 600)]
        ['12.3 s', '10 min']
    """
    if seconds is None or not math.isfinite(seconds):
        return plain(seconds)
    if seconds < 100:
        return f"{seconds:.3g}{SPACE}s"
    return f"{seconds / 60:.3g}{SPACE}min"


def at_length(length: int | None) -> str:
    """A length, with the space that it needs before it.

    Example:
        >>> at_length(None), at_length(2000).replace(SPACE, " ")
        ('', ' at T = 2,000')
    """
    if length is None:
        return ""
    return f" at T{SPACE}={SPACE}{length:,}"


def unbroken(words: str) -> str:
    """A sentence whose percentages stay on one line.

    Example:
        >>> unbroken("3 % of 5") == f"3{SPACE}% of 5"
        True
    """
    return re.sub(r"(?<=\d) %", f"{SPACE}%", words)


def shortened(text: str, longest: int = 48) -> str:
    """A text cut to a length that a legend bears.

    Example:
        >>> shortened("abcdef", 4)
        'abc…'
    """
    if len(text) <= longest:
        return text
    return text[: longest - 1] + "…"
