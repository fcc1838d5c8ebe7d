"""Kerg et al. 2020, section 6, figure 2 centre: memory of training against the length, on stored measurements."""

from __future__ import annotations

from functools import partial

from remanence.claims._cells import Cells, result_of
from remanence.claims._framework import stored_claim
from remanence.claims._types import Evidence, Number
from remanence.runs import Values

_ORDER = "an order is the highest whose term makes up a fifth at T = 2000"

_about_memory = partial(
    stored_claim,
    stored="kerg2020/figure-2-centre",
    place="section 6, figure 2 centre",
    measures="order of a + b T + c T^2 fitted to the peak of live bytes from T = 200 to 2000, plain torch and our "
    "kernel",
    tolerance=_ORDER,
)


def _memory(cells: Cells, layer: str) -> Values:
    (cell,) = cells.at(layer=layer)
    return result_of(cell, "training_memory")


def _numbers(cells: Cells, *layers: str) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for layer in layers:
        found = _memory(cells, layer)
        numbers |= {f"MB at T = {found['lengths'][-1]}, {layer}": found["megabytes"], f"order, {layer}": found["order"]}
    return numbers


def _orders(cells: Cells, *layers: str) -> list[str]:
    return [_memory(cells, layer)["order"] for layer in layers]


@_about_memory(
    "kerg2020/figure2-memory-full",
    printed="the memory of full attention (MemRNN) grows quadratically with T",
    assumptions="as it is written down; a kernel that makes the scores anew going back needs linear memory",
)
def full_attention_is_quadratic(cells: Cells) -> Evidence:
    layers = ("MemRNN", "MemRNN, kernel")
    return Evidence(_orders(cells, *layers) == ["quadratic", "linear"], numbers=_numbers(cells, *layers))


@_about_memory(
    "kerg2020/figure2-memory-sab",
    place="sections 4 and 6, figure 2 centre",
    printed="SAB's memory is quadratic in T too: storing one state in ten gains a constant factor over MemRNN",
    tolerance=f"{_ORDER}; the peaks between 2 and 20 apart at the longest T",
    assumptions="all stored states scored at every step; the printed score ignores the query, and linear is exact",
)
def sparse_attention_gains_a_constant(cells: Cells) -> Evidence:
    layers = ("MemRNN", "SAB", "SAB, kernel")
    gain = _memory(cells, "MemRNN")["megabytes"] / _memory(cells, "SAB")["megabytes"]
    holds = _orders(cells, "SAB", "SAB, kernel") == ["quadratic", "linear"] and 2 < gain < 20
    return Evidence(holds, numbers={**_numbers(cells, *layers), "gain": gain})


@_about_memory(
    "kerg2020/figure2-memory-screened",
    printed="the memory of RelLSTM grows linearly with T, as that of RNN and LSTM does",
)
def screened_memory_is_linear(cells: Cells) -> Evidence:
    layers = ("RNN", "LSTM", "RelRNN", "RelLSTM", "RelLSTM, kernel")
    return Evidence(set(_orders(cells, *layers)) == {"linear"}, numbers=_numbers(cells, *layers))
