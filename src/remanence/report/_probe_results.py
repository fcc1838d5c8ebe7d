"""Results of probes out of files: by the kind that they say, through the registry of all results."""

from __future__ import annotations

from typing import Any

from remanence.probes import ProbeResult
from remanence.report._version_0 import tagged
from remanence.runs import ResultError, result_from


def read_probe(values: Any, name: str = "") -> ProbeResult:
    """The result of a probe, tried out: its verdict can be said and its figures drawn.

    Args:
        values: as ``to_dict`` gave them; files of version 0 do not say their kind.
        name: under which they were found, by which files of version 0 tell what they are.

    Raises:
        ValueError: If they are not what that probe gives, of an unknown kind, or newer than this package.

    Example:
        >>> read_probe({"lengths": [1]}, "cost")
        Traceback (most recent call last):
        remanence.runs._result.ResultError: the cost has no `seconds`
    """
    result = result_from(tagged(values, name))
    if not isinstance(result, ProbeResult):
        raise ResultError(f"a result of a probe was expected, not a {result.kind}")
    try:
        _ = result.verdict, result.figures()
    except Exception as error:  # numbers of the right types that do not fit together; whatever breaks, it is the file
        raise ValueError(f"its numbers do not fit together ({error!r})") from error
    return result
