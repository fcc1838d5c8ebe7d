"""Heat maps of attention: figures 1, 7 and 9 to 11 of document 000 and figure 3 of 001, on stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._framework import Evidence, stored_claim

RECENT = 10
STAGES = ("1000", "6000", "24000")


def run_of(results: Mapping[str, Any], arm: str) -> dict[str, Any]:
    """The run of an arm of the stored result ``attention``."""
    found = [run for run in results["runs"] if run["arm"] == arm]
    if not found:
        raise ValueError(f"the stored result 'attention' has no run of {arm}")
    return found[0]


def share(results: Mapping[str, Any], arm: str) -> float:
    """How many states an answering step reads, of those that it could."""
    run = run_of(results, arm)
    return run["effective"] / run["available"]


@stored_claim(
    "000.figure1-denoise",
    stored="attention",
    place="section 3.3, figure 1 right",
    printed="with full attention on Denoise, too, only a sparse subset of the past is relevant, and attention shows it",
    measures="share of the answering steps' attention on the steps that show a symbol, and of an even read (MemRNN)",
    tolerance="at least three times an even read's share",
)
def attention_finds_scattered_symbols(results: Mapping[str, Any]) -> Evidence:
    run = run_of(results, "denoise-MemRNN")
    numbers = {"on symbols": run["on_symbols"], "even": run["even"], "accuracy": run["accuracy"]}
    return Evidence(run["on_symbols"] >= 3 * run["even"], numbers=numbers)


@stored_claim(
    "000.figure7-9",
    stored="attention",
    place="section 5.2, figures 7 and 9",
    printed="attention is dense on PTB and MNIST, where it is sparse on Copy and Denoise",
    measures="exp(entropy) of an answering step's weights over the number of states it could read (MemRNN)",
    tolerance="each of the dense tasks above both sparse ones",
    assumptions="a full memory for all four; attention begins even; the dense tasks had 2,000 updates",
)
def attention_is_dense_where_all_counts(results: Mapping[str, Any]) -> Evidence:
    shares = {task: share(results, f"{task}-MemRNN") for task in ("copy", "denoise", "ptb-char", "pixel-mnist")}
    holds = min(shares["ptb-char"], shares["pixel-mnist"]) > max(shares["copy"], shares["denoise"])
    fresh = {name: run_of(results, f"{name}-MemRNN") for name in shares}
    before = {f"{name}, untrained": run["untrained"] / run["available"] for name, run in fresh.items()}
    return Evidence(holds, numbers={**shares, **before})


@stored_claim(
    "000.figure10-11",
    stored="attention",
    place="appendix C, figures 10 and 11",
    printed="with the short-term buffer alone (rho = 0), attention on Copy and Denoise is a band",
    measures="the farthest that any step reads, nu = 10; accuracy beside it, and with full attention",
    tolerance="none: steps are counted; at most nu - 1 back",
)
def buffer_alone_is_a_band(results: Mapping[str, Any]) -> Evidence:
    numbers = {}
    for task in ("copy", "denoise"):
        numbers[f"farthest, {task}"] = run_of(results, f"{task}-RelRNN")["farthest"]
        numbers[f"accuracy, {task}"] = run_of(results, f"{task}-RelRNN")["accuracy"]
        numbers[f"accuracy with full attention, {task}"] = run_of(results, f"{task}-MemRNN")["accuracy"]
    return Evidence(all(numbers[f"farthest, {task}"] == RECENT - 1 for task in ("copy", "denoise")), numbers=numbers)


@stored_claim(
    "001.figure3",
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
