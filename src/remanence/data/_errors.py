"""What can go wrong with data files."""

from __future__ import annotations


class DataError(RuntimeError):
    """A data file is not available or not usable; the message says which and what to do.

    Example:
        >>> issubclass(MissingDataError, DataError)
        True
    """


class MissingDataError(DataError):
    """A data file is neither on this machine nor available from its mirrors.

    Example:
        >>> raise MissingDataError("no mirror answered")
        Traceback (most recent call last):
        remanence.data._errors.MissingDataError: no mirror answered
    """


class ChecksumError(DataError):
    """A file's bytes are not the expected ones; it has not been used.

    Args:
        what: The file or address.
        expected: SHA-256 that the catalogue states.
        got: SHA-256 of the bytes that came.
        hint: What to do about it.

    Example:
        >>> raise ChecksumError("a.gz", "00", "ff", "Delete it")
        Traceback (most recent call last):
        remanence.data._errors.ChecksumError: a.gz has SHA-256 ff, expected 00: it is not used. Delete it
    """

    def __init__(self, what: str, expected: str, got: str, hint: str) -> None:
        super().__init__(f"{what} has SHA-256 {got}, expected {expected}: it is not used. {hint}")
