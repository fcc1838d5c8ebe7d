"""Document 000, section 6, Appendix B and figure 1: gradients and attention of trained models, on stored runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ._framework import Evidence, stored_claim

STABLE = math.log(1000.0)
_STABLE = "stable is a change of ln |gradient| by less than ln 1000 from the nearest to the farthest tenth of the run"
LENGTH = "200"


def run_of(results: Mapping[str, Any], arm: str) -> dict[str, Any]:
    """The first run of an arm of the stored result ``gradients``."""
    found = [run for run in results["runs"] if run["arm"] == arm]
    if not found:
        raise ValueError(f"the stored result 'gradients' has no run of {arm}")
    return found[0]


def change(results: Mapping[str, Any], arm: str, length: str = LENGTH) -> float:
    """Mean ln |dL/dh| over the farthest tenth of the run less that over the nearest; -inf if nothing gets there."""
    norms = [math.nan if value is None else value for value in run_of(results, arm)["reach"][length]["log_norm"]]
    tenth = len(norms) // 10
    far = np.array(norms[-tenth:])
    if np.isnan(far).all():
        return -math.inf
    return float(np.nanmean(far) - np.nanmean(norms[:tenth]))


def screened(recent: int, relevant: int) -> str:
    """Name of an arm of figure 3."""
    return f"denoise-RelLSTM-recent{recent}-relevant{relevant}"


def _numbers(results: Mapping[str, Any], arms: Mapping[str, str]) -> dict[str, float]:
    numbers = {name: change(results, arm) for name, arm in arms.items()}
    return numbers | {f"accuracy, {name}": run_of(results, arm)["accuracy"] for name, arm in arms.items()}


@stored_claim(
    "000.figure2-rnn",
    stored="gradients",
    place="section 6, figure 2 left",
    printed="the gradient norms of the RNN explode with distance",
    measures="change of ln |dL/dh| on Denoise after training: orthogonal start with modReLU; tanh beside it",
    corrected="on the smaller task those of the orthogonal RNN stay as they are, and those of a tanh RNN vanish",
    tolerance=_STABLE,
    assumptions="the document's RNN is taken to be that of Table 7, modReLU with an orthogonal start",
    expected="fails as printed",
)
def rnn_explodes(results: Mapping[str, Any]) -> Evidence:
    arms = {"modReLU": "denoise-OrthRNN-fixed", "tanh": "denoise-RNN"}
    return Evidence(change(results, arms["modReLU"]) > STABLE, numbers=_numbers(results, arms))


@stored_claim(
    "000.figure2-lstm",
    stored="gradients",
    place="section 6, figure 2 left",
    printed="the gradient norms of the LSTM vanish with distance",
    measures="change of ln |dL/dh| on Denoise after training at one length, and after short sequences first",
    tolerance=_STABLE,
    assumptions="trained at one length, as in the document; one that learnt the task over short ones keeps it",
)
def lstm_vanishes(results: Mapping[str, Any]) -> Evidence:
    arms = {"one length": "denoise-LSTM-fixed", "short ones first": "denoise-LSTM"}
    return Evidence(change(results, arms["one length"]) < -STABLE, numbers=_numbers(results, arms))


@stored_claim(
    "000.figure2-attention",
    stored="gradients",
    place="section 6, figure 2 left",
    printed="the gradient norms of all attention models (MemRNN, SAB, RelLSTM) are stable",
    measures="change of ln |dL/dh| on Denoise after training",
    tolerance=_STABLE,
)
def attention_models_are_stable(results: Mapping[str, Any]) -> Evidence:
    arms = {"MemRNN": "denoise-MemRNN", "SABLSTM": "denoise-SABLSTM", "RelLSTM": screened(15, 15)}
    return Evidence(all(abs(change(results, arm)) < STABLE for arm in arms.values()), numbers=_numbers(results, arms))


@stored_claim(
    "000.figure3-relevant",
    stored="gradients",
    place="Appendix B, figure 3 left",
    printed="gradients are unstable with rho = 3 and stable with rho = 8, 18 and 25 (nu = 15)",
    corrected="on the smaller task those of rho = 3 are as stable as the others: its LSTM cell carries them too",
    measures="change of ln |dL/dh| on Denoise after training, for each rho",
    tolerance=_STABLE,
    expected="fails as printed",
)
def few_relevant_states_destabilise(results: Mapping[str, Any]) -> Evidence:
    changes = {f"rho = {rho}": change(results, screened(15, rho)) for rho in (3, 8, 18, 25)}
    others = [abs(value) for name, value in changes.items() if name != "rho = 3"]
    return Evidence(abs(changes["rho = 3"]) > STABLE > max(others), numbers=changes)


@stored_claim(
    "000.figure3-recent",
    stored="gradients",
    place="Appendix B, figure 3 right",
    printed="gradients stay stable whatever nu is (rho = 15)",
    measures="change of ln |dL/dh| on Denoise after training, for nu = 3, 8 and 15",
    tolerance=_STABLE,
    assumptions="the document has nu = 18 and 25 too",
)
def recent_states_matter_little(results: Mapping[str, Any]) -> Evidence:
    changes = {f"nu = {nu}": change(results, screened(nu, 15)) for nu in (3, 8, 15)}
    return Evidence(max(map(abs, changes.values())) < STABLE, numbers=changes)


@stored_claim(
    "000.figure1",
    stored="gradients",
    place="section 5.1, figure 1",
    printed="with full attention Copy's relevant events are its first steps, as the attention shows",
    measures="share of the answering steps' attention on the steps that show a symbol, and of an even read (MemRNN)",
    tolerance="at least five times an even read's share",
)
def attention_finds_the_symbols(results: Mapping[str, Any]) -> Evidence:
    found = run_of(results, "copy-MemRNN")["attention"]
    numbers = {"on symbols": found["on_symbols"], "even": found["even"]}
    return Evidence(found["on_symbols"] >= 5 * found["even"], numbers=numbers)
