"""Kerg et al. 2020, section 5.2: letters of the Penn Treebank and permuted MNIST (Table 3), on stored runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from statistics import median

from remanence.claims._framework import stored_claim
from remanence.claims._rule import Budget, TrainedRun
from remanence.claims._types import Evidence
from remanence.claims.kerg2020._runs import Results, Run

BITS = 0.05
SHARE = 0.01
LETTER_PASSES = Budget(100, "passes")
PICTURE_PASSES = Budget(200, "passes")
_EQUAL = "equal numbers of parameters and one rate for all"
_DEPARTURES = {
    "ptb-char": ("100,000 parameters", "one rate for all models"),
    "pixel-mnist": ("70,000 parameters", "7 pixels a step", "one rate for all models"),
}


def runs_of(results: Results, task: str, model: str, what: str) -> list[Run]:
    """The runs of a model on a task that have a result on the test split; runs that failed do not count."""
    runs = [run for run in results["runs"] if run["arm"] == f"{task}-{model}" and run[what] is not None]
    if not runs:
        raise ValueError(f"the stored result 'dense' has no runs of {model} on {task}")
    return runs


def tested(results: Results, task: str, model: str, what: str) -> float:
    """Median over seeds of what was found on the test split."""
    return median(run[what] for run in runs_of(results, task, model, what))


def printed(results: Results, task: str, model: str, what: str) -> float:
    """What the table has for a model."""
    return results["arms"][f"{task}-{model}"]["document"][what]


def trained(results: Results, task: str, models: Iterable[str], short: Callable[[str, Run], bool]) -> list[TrainedRun]:
    """What the rule asks of the runs of some models; curves are of the loss by validation, so that lower is better."""
    what = "bits" if task == "ptb-char" else "accuracy"
    return [
        TrainedRun(
            model=model,
            budget=_passes(results["arms"][run["arm"]]["command"]),
            falls_short=short(model, run),
            curve=tuple(-loss for loss in run["curve"]["loss"]),
            departures=_DEPARTURES[task],
        )
        for model in models
        for run in runs_of(results, task, model, what)
    ]


def _passes(command: str) -> int:
    """How often a run saw its data, by the command that trains it."""
    found = re.search(r"budget\.epochs=(\d+)", command)
    if found is None:
        raise ValueError(f"a stored run must say its passes as budget.epochs; got {command!r}")
    return int(found[1])


def _too_many_bits(results: Results) -> Callable[[str, Run], bool]:
    return lambda model, run: run["bits"] > printed(results, "ptb-char", model, "bits") + BITS


def _too_few_right(results: Results) -> Callable[[str, Run], bool]:
    return lambda model, run: run["accuracy"] < printed(results, "pixel-mnist", model, "accuracy") - SHARE


LETTER_MODELS = ("RNN", "OrthRNN", "RelRNN", "LSTM", "RelLSTM")


@stored_claim(
    "kerg2020/table3-ptb",
    stored="dense",
    place="Table 3, PTB",
    printed="RelRNN needs fewer bits a letter than RNN and orth-RNN (1.43; 1.56, 1.53), RelLSTM as many as LSTM (1.36)",
    measures="bits a letter on the test split",
    tolerance=f"fewer by any amount; as many within {BITS} bits; a run falls short {BITS} bits above what is printed",
    assumptions=_EQUAL,
    expected="not settled at this budget",
    needs=LETTER_PASSES,
    cells=tuple(f"Table 3 PTB, {model}" for model in LETTER_MODELS),
)
def screened_layers_on_letters(results: Results) -> Evidence:
    found = {model: tested(results, "ptb-char", model, "bits") for model in LETTER_MODELS}
    fewer = found["RelRNN"] < min(found["RNN"], found["OrthRNN"])
    as_many = abs(found["RelLSTM"] - found["LSTM"]) <= BITS
    judged = trained(results, "ptb-char", LETTER_MODELS, _too_many_bits(results))
    return Evidence(fewer and as_many, numbers=found, runs=tuple(judged))


@stored_claim(
    "kerg2020/table3-ptb-others",
    stored="dense",
    place="Table 3, PTB, expRNN and SAB",
    printed="expRNN needs 1.49 bits a letter and SAB 1.37",
    measures="bits a letter on the test split",
    tolerance=f"at most {BITS} bits more",
    assumptions=_EQUAL,
    expected="not settled at this budget",
    needs=LETTER_PASSES,
    cells=("Table 3 PTB, ExpRNN", "Table 3 PTB, SABLSTM"),
)
def others_on_letters(results: Results) -> Evidence:
    models = ("ExpRNN", "SABLSTM")
    found = {model: tested(results, "ptb-char", model, "bits") for model in models}
    reached = all(bits <= printed(results, "ptb-char", model, "bits") + BITS for model, bits in found.items())
    return Evidence(reached, numbers=found, runs=tuple(trained(results, "ptb-char", models, _too_many_bits(results))))


PIXEL_MODELS = ("RNN", "RelRNN", "LSTM", "RelLSTM")


@stored_claim(
    "kerg2020/table3-pmnist",
    stored="dense",
    place="Table 3, pMNIST, and figure 8",
    printed="RelRNN beats RNN (92.8; 90.4 %) and RelLSTM beats LSTM (94.3; 91.1 %)",
    measures="accuracy on the test split",
    tolerance=f"ahead by {SHARE:.0%} of the pictures; a run falls short {SHARE:.0%} below what is printed",
    assumptions=_EQUAL,
    expected="not settled at this budget",
    needs=PICTURE_PASSES,
    cells=tuple(f"Table 3 pMNIST, {model}" for model in PIXEL_MODELS),
)
def screened_layers_on_pixels(results: Results) -> Evidence:
    found = {model: tested(results, "pixel-mnist", model, "accuracy") for model in PIXEL_MODELS}
    ahead = found["RelRNN"] >= found["RNN"] + SHARE and found["RelLSTM"] >= found["LSTM"] + SHARE
    judged = trained(results, "pixel-mnist", PIXEL_MODELS, _too_few_right(results))
    return Evidence(ahead, numbers=found, runs=tuple(judged))


@stored_claim(
    "kerg2020/table3-pmnist-others",
    stored="dense",
    place="Table 3, pMNIST, orth-RNN, expRNN, h-detach and SAB",
    printed="orth-RNN has 93.4 %, expRNN 96.6 %, h-detach 92.3 % and SAB 94.2 %",
    measures="accuracy on the test split",
    tolerance=f"at most {SHARE:.0%} of the pictures below",
    assumptions=_EQUAL,
    expected="not settled at this budget",
    needs=PICTURE_PASSES,
    cells=tuple(f"Table 3 pMNIST, {model}" for model in ("OrthRNN", "ExpRNN", "HDetachLSTM", "SABLSTM")),
)
def others_on_pixels(results: Results) -> Evidence:
    models = ("OrthRNN", "ExpRNN", "HDetachLSTM", "SABLSTM")
    found = {model: tested(results, "pixel-mnist", model, "accuracy") for model in models}
    reached = all(right >= printed(results, "pixel-mnist", model, "accuracy") - SHARE for model, right in found.items())
    judged = trained(results, "pixel-mnist", models, _too_few_right(results))
    return Evidence(reached, numbers=found, runs=tuple(judged))
