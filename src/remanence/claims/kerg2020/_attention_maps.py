"""Kerg et al. 2020, figures 1, 7 and 9 to 11: heat maps of attention, most of them on stored runs."""

from __future__ import annotations

from statistics import fmean

import torch

from remanence import nn, probes, tasks
from remanence.claims._cells import Cells, in_all, result_of, trained
from remanence.claims._framework import claim, stored_claim
from remanence.claims._types import Evidence, Number
from remanence.experiments import StoredCell

RECENT = 10
SPARSE = ("copy", "denoise")
DENSE = {"ptb-char": "kerg2020/figure-7", "pixel-mnist": "kerg2020/figure-9"}
PRINTED_ACCURACY = {"kerg2020/figure-7": 0.66, "kerg2020/figure-9": 0.904}
"""The least that Table 3 prints for a recurrent model; it has none for MemRNN."""


@stored_claim(
    "kerg2020/figure1-denoise",
    stored="kerg2020/figure-1",
    place="section 3.3, figure 1 right",
    printed="with full attention on Denoise, too, only a sparse subset of the past is relevant, and attention shows it",
    measures="share of the answering steps' attention on the steps that show a symbol, and of an even read (MemRNN)",
    tolerance="at least three times an even read's share",
)
def attention_finds_scattered_symbols(cells: Cells) -> Evidence:
    runs = cells.at(task="denoise")
    found = {name: fmean(result_of(cell, "attention")[name] for cell in runs) for name in ("on_symbols", "even")}
    numbers = {"on symbols": found["on_symbols"], "even": found["even"], **runs[0].state.validation}
    judged = trained(runs, lambda cell: not _finds_symbols(cell), lambda cell: "MemRNN")
    return Evidence(all(map(_finds_symbols, runs)), numbers=numbers, runs=judged)


def _finds_symbols(cell: StoredCell) -> bool:
    found = result_of(cell, "attention")
    return found["on_symbols"] >= 3 * found["even"]


def _share(cell: StoredCell, what: str = "effective") -> float:
    """How many states an answering step reads, of those that it could."""
    found = result_of(cell, "attention")
    return found[what] / found["available"]


def _has_shares(cell: StoredCell) -> bool:
    return "effective" in result_of(cell, "attention")


@stored_claim(
    "kerg2020/figure7-9",
    stored="kerg2020/figure-1, kerg2020/figure-7, kerg2020/figure-9",
    place="section 5.2, figures 7 and 9",
    printed="attention is dense on PTB and MNIST, where it is sparse on Copy and Denoise",
    measures="exp(entropy) of an answering step's weights over the number of states it could read (MemRNN)",
    tolerance="each of the dense tasks above both sparse ones",
    assumptions="a full memory for all four. Attention begins even, so that a model of little training reads densely: "
    "one that has not the accuracy of Table 3's least model falls short",
)
def attention_is_dense_where_all_counts(cells: Cells) -> Evidence:
    sparse = {task: cells.at(_has_shares, task=task) for task in SPARSE}
    dense = {task: cells.at(_has_shares, experiment=id) for task, id in DENSE.items()}
    numbers: dict[str, Number] = {task: fmean(map(_share, runs)) for task, runs in (sparse | dense).items()}
    for task, runs in (sparse | dense).items():
        numbers[f"{task}, untrained"] = fmean(_share(cell, "untrained") for cell in runs)
    denser = min(map(_share, in_all(dense))) > max(map(_share, in_all(sparse)))
    judged = trained(in_all(dense), _has_not_learnt, lambda cell: f"MemRNN of {cell.experiment}")
    return Evidence(denser, numbers=numbers, runs=judged)


def _has_not_learnt(cell: StoredCell) -> bool:
    return cell.state.validation["accuracy"] < PRINTED_ACCURACY[cell.experiment]


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
