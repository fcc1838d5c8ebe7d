"""JSON files that tell when they were damaged: an entry holds the checksum of all others."""

from __future__ import annotations

import hashlib
import json

from remanence.runs._plain import Settings, Values

SEAL = "sha256"


def sealed(table: Settings) -> str:
    """The text of a JSON object with its checksum; an older one is replaced.

    Example:
        >>> unsealed(json.loads(sealed({"update": 3})))
        {'update': 3}
    """
    plain = json.loads(json.dumps({key: value for key, value in table.items() if key != SEAL}))
    return json.dumps({**plain, SEAL: _checksum(plain)}, indent=1)


def unsealed(table: Settings) -> Values:
    """The object without its checksum, if it has one; ValueError if that is another one.

    Example:
        >>> unsealed({"update": 3, "sha256": "0"})
        Traceback (most recent call last):
        ValueError: its checksum is another one
    """
    rest = {key: value for key, value in table.items() if key != SEAL}
    if SEAL in table and table[SEAL] != _checksum(rest):
        raise ValueError("its checksum is another one")
    return rest


def _checksum(plain: Settings) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
