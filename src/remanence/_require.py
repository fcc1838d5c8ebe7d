"""Capabilities that may be missing on a machine, and whether missing them is allowed there.

The variable ``REMANENCE_REQUIRE`` lists, separated by commas, what must be present: with ``REMANENCE_REQUIRE=kernel``
a fall-back to the reference path is an error and no longer a remark. Tests ask here before they skip.
"""

from __future__ import annotations

import os

from remanence._validate import one_of

VARIABLE = "REMANENCE_REQUIRE"
CAPABILITIES = ("kernel", "data", "browser", "arm", "torchrl", "transformers", "ray", "integrations")


def required() -> frozenset[str]:
    """Reads the capabilities that this process must have; a misspelt name is an error, as it would require nothing."""
    names = (name.strip() for name in os.environ.get(VARIABLE, "").split(","))
    return frozenset(one_of(VARIABLE, name, CAPABILITIES) for name in names if name)


def is_required(capability: str) -> bool:
    """Tells whether a capability, one of `CAPABILITIES`, must be present."""
    return one_of("capability", capability, CAPABILITIES) in required()
