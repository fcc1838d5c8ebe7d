"""Ke et al. 2017, figure 3: heat maps of attention, on stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remanence.claims._framework import stored_claim
from remanence.claims._stored_runs import run_of
from remanence.claims._types import Evidence

STAGES = ("1000", "6000", "24000")


@stored_claim(
    "ke2017/figure3",
    stored="attention",
    place="section 4, figure 3",
    printed="SAB's attention on Copy quickly focuses on the first ten steps, which hold the digits",
    measures="share of the answering steps' attention on the steps that show a symbol after each stage",
    tolerance="above one half in the end, and more than in the beginning",
    assumptions="T = 50, short sequences first; 'even' is the share of such steps among all that are ever stored",
)
def sparse_attention_focuses(results: Mapping[str, Any]) -> Evidence:
    runs = {stage: run_of(results, f"copy-SABLSTM-{stage}") for stage in STAGES}
    found = {f"{stage} updates": run["on_symbols"] for stage, run in runs.items()}
    first, *_, last = found.values()
    numbers = {**found, "even": runs[STAGES[-1]]["even"], "accuracy": runs[STAGES[-1]]["accuracy"]}
    return Evidence(last > 0.5 and last > first, numbers=numbers)
