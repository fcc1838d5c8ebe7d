"""Kerg et al. 2020, figures 1, 7 and 9 to 11: heat maps of attention, most of them on stored runs."""

from __future__ import annotations

import torch

from remanence import nn, probes, tasks
from remanence.claims._framework import claim, stored_claim
from remanence.claims._rule import TrainedRun
from remanence.claims._stored_runs import run_of
from remanence.claims._types import Evidence, Number
from remanence.claims.kerg2020._runs import Results, Run

RECENT = 10
SPARSE = ("copy", "denoise")
DENSE = ("ptb-char", "pixel-mnist")
PRINTED_ACCURACY = {"ptb-char": 0.66, "pixel-mnist": 0.904}
"""The least that Table 3 prints for a recurrent model; it has none for MemRNN."""


def share(run: Run) -> float:
    """How many states an answering step reads, of those that it could."""
    return run["effective"] / run["available"]


@stored_claim(
    "kerg2020/figure1-denoise",
    stored="attention",
    place="section 3.3, figure 1 right",
    printed="with full attention on Denoise, too, only a sparse subset of the past is relevant, and attention shows it",
    measures="share of the answering steps' attention on the steps that show a symbol, and of an even read (MemRNN)",
    tolerance="at least three times an even read's share",
)
def attention_finds_scattered_symbols(results: Results) -> Evidence:
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
    assumptions="a full memory for all four. Attention begins even, so that a model of little training reads densely: "
    "one that has not the accuracy of Table 3's least model falls short",
    expected="not settled at this budget",
)
def attention_is_dense_where_all_counts(results: Results) -> Evidence:
    runs = {task: run_of(results, f"{task}-MemRNN") for task in (*SPARSE, *DENSE)}
    shares = {task: share(run) for task, run in runs.items()}
    numbers: dict[str, Number] = dict(shares)
    for task, run in runs.items():
        numbers[f"{task}, untrained"] = run["untrained"] / run["available"]
    judged = tuple(
        TrainedRun(
            model=f"MemRNN on {task}",
            budget=runs[task]["updates"],
            falls_short=runs[task]["accuracy"] < PRINTED_ACCURACY[task],
            departures=("2,000 updates", "width 64"),
        )
        for task in DENSE
    )
    denser = min(shares[task] for task in DENSE) > max(shares[task] for task in SPARSE)
    return Evidence(denser, numbers=numbers, runs=judged)


@claim(
    "kerg2020/figure10-11",
    place="appendix C, figures 10 and 11",
    printed="with the short-term buffer alone (rho = 0), attention on Copy and Denoise is a band",
    measures="the farthest that any step reads, nu = 10, on sequences of both tasks, with random weights",
    tolerance="none: steps are counted; nu - 1 back",
    assumptions="true by construction: a buffer of nu states holds none that is older, whatever was learnt",
)
def buffer_alone_is_a_band(quick: bool) -> Evidence:
    farthest = {name: _farthest_read(name) for name in SPARSE}
    numbers: dict[str, Number] = {f"farthest, {name}": steps for name, steps in farthest.items()}
    return Evidence(set(farthest.values()) == {RECENT - 1}, numbers=numbers)


def _farthest_read(name: str) -> int:
    """How many steps back a layer with a short-term buffer alone reads at most, on sequences of a task."""
    task = tasks.make_task(name, length=40)
    inputs = task.sample(4, task.stream("train", seed=0)).inputs
    layer = nn.RelRNN(inputs.shape[-1], 16, recent=RECENT, relevant=0)
    weights = torch.from_numpy(probes.attention_map(layer, inputs).maps[0])
    reader, read = weights.nonzero(as_tuple=True)
    return int((reader - read).max())
