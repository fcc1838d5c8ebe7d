"""Kerg et al. 2020, figures 1, 7 and 9 to 11: heat maps of attention, on stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remanence.claims._framework import Evidence, stored_claim
from remanence.claims._stored_runs import run_of

RECENT = 10


def share(results: Mapping[str, Any], arm: str) -> float:
    """How many states an answering step reads, of those that it could."""
    run = run_of(results, arm)
    return run["effective"] / run["available"]


@stored_claim(
    "kerg2020/figure1-denoise",
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
    "kerg2020/figure7-9",
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
    "kerg2020/figure10-11",
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
