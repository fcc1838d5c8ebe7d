"""Kerg et al. 2020, section 5.2: letters of the Penn Treebank and permuted MNIST (Table 3), on stored runs."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from remanence.claims._framework import Evidence, Number, stored_claim

BITS = 0.05
SHARE = 0.01
_EQUAL = "equal numbers of parameters and one rate for all, far fewer passes than the document's"


def tested(results: Mapping[str, Any], task: str, model: str, what: str) -> float:
    """Median over seeds of what was found on the test split; runs that failed do not count."""
    runs = [run for run in results["runs"] if run["arm"] == f"{task}-{model}" and run[what] is not None]
    if not runs:
        raise ValueError(f"the stored result 'dense' has no runs of {model} on {task}")
    return median(run[what] for run in runs)


@stored_claim(
    "kerg2020/table3-ptb",
    stored="dense",
    place="Table 3, PTB",
    printed="RelRNN needs fewer bits a letter than RNN and orth-RNN (1.43; 1.56, 1.53), RelLSTM as many as LSTM (1.36)",
    measures="bits a letter on the test split",
    tolerance=f"fewer by any amount; as many within {BITS} bits",
    corrected="not at equal numbers of parameters after three passes: plain cells, being the widest, lead on both "
    "seeds, the plain RNN of all; what a hundred passes would show is open",
    assumptions=_EQUAL,
    expected="fails as printed",
)
def screened_layers_on_letters(results: Mapping[str, Any]) -> Evidence:
    models = ("RNN", "OrthRNN", "RelRNN", "LSTM", "RelLSTM")
    found: dict[str, Number] = {model: tested(results, "ptb-char", model, "bits") for model in models}
    rnn, orthogonal, rel, lstm, rel_lstm = map(float, found.values())
    return Evidence(rel < min(rnn, orthogonal) and abs(rel_lstm - lstm) <= BITS, numbers=found)


@stored_claim(
    "kerg2020/table3-pmnist",
    stored="dense",
    place="Table 3, pMNIST, and figure 8",
    printed="RelRNN beats RNN (92.8; 90.4 %) and RelLSTM beats LSTM (94.3; 91.1 %)",
    measures="accuracy on the test split",
    tolerance=f"ahead by {SHARE:.0%} of the pictures",
    corrected="not at equal numbers of parameters after five passes: plain cells, being wider, lead by 2 to 4 % of the "
    "pictures; what a hundred passes would show is open",
    assumptions=_EQUAL,
    expected="fails as printed",
)
def screened_layers_on_pixels(results: Mapping[str, Any]) -> Evidence:
    models = ("RNN", "RelRNN", "LSTM", "RelLSTM")
    found: dict[str, Number] = {model: tested(results, "pixel-mnist", model, "accuracy") for model in models}
    rnn, rel, lstm, rel_lstm = map(float, found.values())
    return Evidence(rel >= rnn + SHARE and rel_lstm >= lstm + SHARE, numbers=found)
