"""Statements of the papers as functions that measure them and give a verdict; one folder per paper.

Start with ``@claim`` in ``_framework.py``, which registers a function that measures now, and ``@stored_claim``, which
registers one that reads stored runs; what both give is an :class:`Evidence`, from which the verdict follows.
"""

from . import _printed, ke2017, kerg2020, miller2018, notes, shen2019  # noqa: F401  (each registers its claims)
from ._framework import list_claims, verify
from ._not_measured import NOT_MEASURED
from ._rule import Budget, TrainedRun
from ._types import Claim, Evidence, Result, StoredRun

__all__ = [
    "Claim",
    "Evidence",
    "Result",
    "StoredRun",
    "TrainedRun",
    "Budget",
    "list_claims",
    "verify",
    "NOT_MEASURED",
]
