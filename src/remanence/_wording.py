"""Lists and amounts as they stand in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def enumerated(parts: Sequence[str]) -> str:
    """Words joined by commas and a last "and".

    Example:
        >>> enumerated(["a", "b", "c"])
        'a, b and c'
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def number_of(amount: int, thing: str) -> str:
    """An amount and its noun.

    Example:
        >>> number_of(1, "seed"), number_of(3, "seed"), number_of(2, "entry")
        ('1 seed', '3 seeds', '2 entries')
    """
    if amount == 1:
        return f"1 {thing}"
    if thing.endswith("ry"):
        return f"{amount:,} {thing[:-1]}ies"
    return f"{amount:,} {thing}s"


def all_of(amount: int, thing: str) -> str:
    """Several things, all of them.

    Example:
        >>> all_of(2, "model"), all_of(3, "model")
        ('Both models', 'All 3 models')
    """
    if amount == 2:
        return f"Both {thing}s"
    return f"All {number_of(amount, thing)}"


def bracketed(name: str, note: str) -> str:
    """A name with a note behind it, if there is one.

    Example:
        >>> bracketed("RelRNN", "recent 5"), bracketed("LSTM", "")
        ('RelRNN (recent 5)', 'LSTM')
    """
    if not note:
        return name
    return f"{name} ({note})"


def printable(text: str) -> str:
    r"""A text of somebody else for a terminal: what would be a command there, or turn the line around, is spelt out.

    Example:
        >>> print(printable("\x1b[31mred"))
        \x1b[31mred
    """
    return "".join(letter if letter.isprintable() else _spelt(letter) for letter in text)


def _spelt(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def agreeing(verdict: str, amount: int) -> str:
    """The verdict of so many claims.

    Example:
        >>> agreeing("holds", 1), agreeing("fails as printed", 2)
        ('holds', 'fail as printed')
    """
    verb, space, rest = verdict.partition(" ")
    if amount == 1 or verb not in ("holds", "fails"):
        return verdict
    return f"{verb[:-1]}{space}{rest}"
