"""Every statement of the documents as a function that measures it and gives a verdict."""

from importlib import import_module

from ._framework import Claim, Evidence, Result, StoredRun, list_claims, verify

for _name in (
    "_attention_004",
    "_attention_maps",
    "_backtracking_001",
    "_chains_000",
    "_contraction_002",
    "_dense_000",
    "_gradients_000",
    "_information_003",
    "_linear_003",
    "_memory_000",
    "_models_003",
    "_optimisation_004",
    "_others_000",
    "_parameters_000",
    "_paths_000",
    "_policies_000",
    "_recall_000",
    "_sparse_000",
    "_stability_002",
    "_uniform_000",
):
    import_module(f"{__name__}.{_name}")  # registers its claims

__all__ = ["Claim", "Evidence", "Result", "StoredRun", "list_claims", "verify"]
