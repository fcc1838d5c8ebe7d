"""Results of probes by their kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remanence import probes

KINDS: dict[str, type[probes.ProbeResult]] = {
    "layout": probes.Layout,
    "not_measured": probes.NotMeasured,
    "gradient_reach": probes.GradientReach,
    "perturbation_reach": probes.PerturbationReach,
    "context_use": probes.ContextUse,
    "attention_map": probes.AttentionMap,
    "dependency_depth": probes.DependencyDepth,
    "gradient_paths": probes.GradientPaths,
    "cost": probes.Cost,
    "tradeoff": probes.Tradeoff,
    "stability": probes.Stability,
    "truncation_gap": probes.TruncationGap,
    "memory_demand": probes.MemoryDemand,
    "mutual_information": probes.MutualInformation,
}


def read_result(kind: str, values: Any) -> probes.ProbeResult:
    """The result of a probe, tried out: its verdict can be said and its figures drawn.

    Args:
        kind: name of the probe.
        values: as ``to_dict`` gave them.

    Raises:
        ValueError: If they are not what that probe gives.

    Example:
        >>> read_result("cost", {"lengths": [1]})
        Traceback (most recent call last):
        ValueError: Cost lacks `seconds`
    """
    said = values.get("kind") if isinstance(values, Mapping) else None  # a probe that does not apply says so
    result = KINDS[said if said in KINDS else kind].from_dict(values)
    try:
        _ = result.verdict, result.figures()
    except Exception as error:  # numbers of the right types that do not fit together; whatever breaks, it is the file
        raise ValueError(f"its numbers do not fit together ({error!r})") from error
    return result
