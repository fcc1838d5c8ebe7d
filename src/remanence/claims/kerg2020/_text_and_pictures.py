"""Kerg et al. 2020, section 5.2: letters of the Penn Treebank and permuted MNIST (Table 3), on stored runs."""

from __future__ import annotations

from statistics import median

from remanence.claims._cells import Cells, in_all, unlike
from remanence.claims._framework import stored_claim
from remanence.claims._printed import TOLERANCE, comes_to, number
from remanence.claims._types import Evidence
from remanence.experiments import StoredCell

BITS = 0.05
SHARE = 1.0
TABLE = "kerg2020/table-3"
LETTER_MODELS = ("RNN", "OrthRNN", "RelRNN", "LSTM", "RelLSTM")
PIXEL_MODELS = ("RNN", "RelRNN", "LSTM", "RelLSTM")
OTHER_LETTERS = ("ExpRNN", "SABLSTM")
OTHER_PIXELS = ("OrthRNN", "ExpRNN", "HDetachLSTM", "SABLSTM")


def _runs(cells: Cells, task: str, models: tuple[str, ...]) -> dict[str, list[StoredCell]]:
    return {model: cells.at(task=task, model=model) for model in models}


def _tested(runs: dict[str, list[StoredCell]], reading: str) -> dict[str, float]:
    """Median over seeds of what was found on the test split, by model."""
    return {model: median(number(cell, reading) or 0.0 for cell in found) for model, found in runs.items()}


def _reached(runs: dict[str, list[StoredCell]], reading: str) -> Evidence:
    return comes_to(in_all(runs), reading)


def _compared(ahead: bool, runs: dict[str, list[StoredCell]], reading: str) -> Evidence:
    """A comparison of models: what it is judged by are runs that do not come to what is printed for them."""
    return Evidence(ahead, numbers=_tested(runs, reading), runs=_reached(runs, reading).runs, favour=unlike(runs))


@stored_claim(
    "kerg2020/table3-ptb",
    stored=TABLE,
    place="Table 3, PTB",
    printed="bits per character: RelRNN fewer than RNN and orth-RNN (1.43; 1.56, 1.53), RelLSTM as many as LSTM (1.36)",
    measures="bits per character on the test split",
    tolerance=f"fewer by any amount; as many within {BITS} bits; a run falls short a twentieth above what is printed",
    cells=tuple(f"Table 3 PTB, {model}" for model in LETTER_MODELS),
)
def screened_layers_on_letters(cells: Cells) -> Evidence:
    runs = _runs(cells, "ptb-char", LETTER_MODELS)
    found = _tested(runs, "bits")
    fewer = found["RelRNN"] < min(found["RNN"], found["OrthRNN"])
    return _compared(fewer and abs(found["RelLSTM"] - found["LSTM"]) <= BITS, runs, "bits")


@stored_claim(
    "kerg2020/table3-ptb-others",
    stored=TABLE,
    place="Table 3, PTB, expRNN and SAB",
    printed="expRNN needs 1.49 bits per character and SAB 1.37",
    measures="bits per character on the test split",
    tolerance=TOLERANCE,
    cells=tuple(f"Table 3 PTB, {model}" for model in OTHER_LETTERS),
)
def others_on_letters(cells: Cells) -> Evidence:
    return _reached(_runs(cells, "ptb-char", OTHER_LETTERS), "bits")


@stored_claim(
    "kerg2020/table3-pmnist",
    stored=TABLE,
    place="Table 3, pMNIST, and figure 8",
    printed="RelRNN beats RNN (92.8; 90.4 %) and RelLSTM beats LSTM (94.3; 91.1 %)",
    measures="accuracy on the test split",
    tolerance=f"ahead by {SHARE:g} % of the pictures; a run falls short {SHARE:g} % below what is printed",
    cells=tuple(f"Table 3 pMNIST, {model}" for model in PIXEL_MODELS),
)
def screened_layers_on_pixels(cells: Cells) -> Evidence:
    runs = _runs(cells, "pixel-mnist", PIXEL_MODELS)
    found = _tested(runs, "accuracy")
    ahead = found["RelRNN"] >= found["RNN"] + SHARE and found["RelLSTM"] >= found["LSTM"] + SHARE
    return _compared(ahead, runs, "accuracy")


@stored_claim(
    "kerg2020/table3-pmnist-others",
    stored=TABLE,
    place="Table 3, pMNIST, orth-RNN, expRNN, h-detach and SAB",
    printed="orth-RNN has 93.4 %, expRNN 96.6 %, h-detach 92.3 % and SAB 94.2 %",
    measures="accuracy on the test split",
    tolerance=TOLERANCE,
    cells=tuple(f"Table 3 pMNIST, {model}" for model in OTHER_PIXELS),
)
def others_on_pixels(cells: Cells) -> Evidence:
    return _reached(_runs(cells, "pixel-mnist", OTHER_PIXELS), "accuracy")
