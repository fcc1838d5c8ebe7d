"""Ke et al. 2017, figure 3: heat maps of attention, on stored runs."""

from __future__ import annotations

from remanence.claims._cells import Cells, trained
from remanence.claims._framework import stored_claim
from remanence.claims._types import Evidence, Number


@stored_claim(
    "ke2017/figure3",
    stored="ke2017/figure-3",
    place="section 4, figure 3",
    printed="SAB's attention on Copy quickly focuses on the first ten steps, which hold the digits",
    measures="share of the answering steps' attention on the steps that show a symbol after each stage",
    tolerance="above one half in the end, and more than in the beginning",
    assumptions="'even' is the share of such steps among all that are ever stored",
)
def sparse_attention_focuses(cells: Cells) -> Evidence:
    runs = sorted(cells.at(), key=lambda cell: cell.place["updates"])
    last = runs[-1]
    found = {f"{cell.place['updates']} updates": (cell.result("attention") or {})["on_symbols"] for cell in runs}
    shares = list(found.values())
    focused = shares[-1] > 0.5 and shares[-1] > shares[0]
    numbers: dict[str, Number] = {**found, "even": (last.result("attention") or {})["even"], **last.state.validation}
    return Evidence(focused, numbers=numbers, runs=trained([last], lambda cell: not focused, lambda cell: "SAB"))
