"""Results out of files: by the kind that they say, through the registry of all results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remanence.probes import ProbeResult
from remanence.runs import Result, result_from


def read_checked(values: Mapping[str, Any]) -> Result:
    """A result, and if it is a probe's, tried out: its verdict can be said and its figures drawn.

    Args:
        values: as ``to_dict`` gave them.

    Raises:
        ValueError: If they are of an unknown kind, newer than this package, damaged, or do not fit together.

    Example:
        >>> read_checked({"kind": "cost", "version": 1, "lengths": [1]})
        Traceback (most recent call last):
        remanence.runs._result.ResultError: the cost has no `seconds`
    """
    result = result_from(values)
    if not isinstance(result, ProbeResult):
        return result
    try:
        _ = result.verdict, result.figures()
    except Exception as error:  # numbers of the right types that do not fit together; whatever breaks, it is the file
        raise ValueError(f"its numbers do not fit together ({error!r})") from error
    return result
