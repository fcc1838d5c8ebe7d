"""Statements of the papers as functions that measure them and give a verdict; one folder per paper."""

from . import ke2017, kerg2020, miller2018, notes, shen2019  # noqa: F401  (each registers its claims)
from ._framework import Claim, Evidence, Result, StoredRun, list_claims, verify

__all__ = ["Claim", "Evidence", "Result", "StoredRun", "list_claims", "verify"]
