"""Kerg et al. 2020, section 5.1: Copy, its transfer to other lengths, and Denoise, on stored runs."""

from __future__ import annotations

from itertools import pairwise

from remanence.claims._framework import stored_claim
from remanence.claims._types import Evidence
from remanence.claims.kerg2020._runs import (
    ALIKE,
    SOLVED,
    TUNED,
    UPDATES,
    Results,
    Run,
    accuracy,
    answered,
    by_seed,
    percent,
    runs_of,
    trained,
)

SCREENED = ("RelRNN", "RelLSTM")
_SOLVED = f"median over seeds at least {SOLVED:.0%}, where training stops, in one way of training or another"


def _solve(results: Results, task: str, *models: str) -> Evidence:
    """Whether models solve a task at T = 100."""
    runs = {model: runs_of(results, task, model) for model in models}
    judged = [
        judged for found in runs.values() for judged in trained(results, found, lambda run: answered(run) < SOLVED)
    ]
    return Evidence(
        all(accuracy(found) >= SOLVED for found in runs.values()),
        numbers={model: by_seed(found) for model, found in runs.items()},
        runs=tuple(judged),
    )


@stored_claim(
    "kerg2020/table2",
    stored="recall",
    place="Table 2, T = 100",
    printed="RelRNN and RelLSTM solve Denoise at T = 100",
    measures="best validation accuracy at T = 100, by seed",
    tolerance=_SOLVED,
    needs=UPDATES,
    cells=("Table 2, RelRNN", "Table 2, RelLSTM"),
)
def screened_layers_solve_denoise(results: Results) -> Evidence:
    return _solve(results, "denoise", *SCREENED)


@stored_claim(
    "kerg2020/table2-same",
    stored="recall",
    place="section 5.1, Denoise",
    printed="RelLSTM performs exactly as RelRNN on Denoise",
    measures="median best accuracy of both at T = 100; of the same weights at T = 2000 beside it",
    tolerance=f"{ALIKE:.0%} of answers at T = 100, the only length of Table 2 that was trained",
    needs=UPDATES,
)
def screened_layers_are_alike_on_denoise(results: Results) -> Evidence:
    rnn = runs_of(results, "denoise", "RelRNN")
    lstm = runs_of(results, "denoise", "RelLSTM")
    apart = abs(accuracy(rnn) - accuracy(lstm))
    numbers = {
        "RelRNN": percent(accuracy(rnn)),
        "RelLSTM": percent(accuracy(lstm)),
        "RelRNN, asked at T = 2000": percent(accuracy(rnn, 2000)),
        "RelLSTM, asked at T = 2000": percent(accuracy(lstm, 2000)),
    }
    judged = trained(results, [*rnn, *lstm], lambda run: answered(run) < SOLVED)
    return Evidence(apart <= ALIKE, numbers=numbers, runs=tuple(judged))


DENOISED = (200, 400, 1000, 2000, 5000)


@stored_claim(
    "kerg2020/denoise-lengths",
    stored="recall",
    place="Table 2, T to 2000",
    printed="RelRNN keeps its complete performance on Denoise for all T",
    measures="median accuracy of weights learnt at T = 100 on sequences of T = 200 to 5000",
    tolerance=f"at least {SOLVED:.0%} less {ALIKE:.0%}: 500 answers a run",
    assumptions="learnt at T = 100 alone, where the paper trains at every T: more is asked here",
    needs=UPDATES,
)
def relrnn_keeps_denoising(results: Results) -> Evidence:
    runs = runs_of(results, "denoise", "RelRNN")
    found = {length: accuracy(runs, length) for length in DENOISED}
    judged = trained(results, runs, lambda run: _least(run, DENOISED) < SOLVED - ALIKE)
    return Evidence(
        min(found.values()) >= SOLVED - ALIKE,
        numbers={f"T = {length}": percent(value) for length, value in found.items()},
        runs=tuple(judged),
    )


def _least(run: Run, lengths: tuple[int, ...]) -> float:
    """What a run answers at the length where it answers least."""
    return min(answered(run, length) for length in lengths)


PRINTED_LSTM = 0.82


@stored_claim(
    "kerg2020/table2-recurrent",
    stored="recall",
    place="section 5.1, Denoise, and Table 2, LSTM",
    printed="RelRNN outperforms purely recurrent models on Denoise: at T = 100 the LSTM reaches 82 %",
    measures="best accuracy at T = 100 by seed, each model in its better way of training",
    tolerance=f"RelRNN's median at least {ALIKE:.0%} of answers ahead",
    expected="not settled at this budget",
    needs=UPDATES,
    cells=("Table 2, LSTM",),
)
def relrnn_beats_lstm_on_denoise(results: Results) -> Evidence:
    screened = runs_of(results, "denoise", "RelRNN")
    plain = runs_of(results, "denoise", "LSTM")
    judged = [
        *trained(results, screened, lambda run: answered(run) < SOLVED),
        *trained(results, plain, lambda run: answered(run) < PRINTED_LSTM - ALIKE),
    ]
    return Evidence(
        accuracy(screened) >= accuracy(plain) + ALIKE,
        numbers={"RelRNN": by_seed(screened), "LSTM": by_seed(plain)},
        runs=tuple(judged),
        favour=TUNED,
    )


@stored_claim(
    "kerg2020/table5",
    stored="recall",
    place="Table 5, T = 100",
    printed="RelRNN and RelLSTM solve Copy at T = 100",
    measures="best validation accuracy at T = 100, by seed",
    tolerance=_SOLVED,
    needs=UPDATES,
    cells=("Table 5, RelRNN", "Table 5, RelLSTM"),
)
def screened_layers_solve_copy(results: Results) -> Evidence:
    return _solve(results, "copy", *SCREENED)


@stored_claim(
    "kerg2020/table5-lstm",
    stored="recall",
    place="Table 5, T = 100, LSTM",
    printed="the LSTM solves Copy at T = 100",
    measures="best validation accuracy at T = 100, by seed",
    tolerance=_SOLVED,
    expected="not settled at this budget",
    needs=UPDATES,
    cells=("Table 5, LSTM",),
)
def lstm_solves_copy(results: Results) -> Evidence:
    return _solve(results, "copy", "LSTM")


TRANSFER = (200, 400, 2000, 5000)


@stored_claim(
    "kerg2020/table1",
    stored="recall",
    place="Table 1 (Transfer Copy), RelRNN and RelLSTM",
    printed="learnt at T = 100, they keep 99 % at T = 200, 400, 2000 and 5000, both exactly alike",
    measures="accuracy of weights learnt at T = 100 at the other lengths: median, and the least of each seed",
    tolerance=f"at least {SOLVED:.0%} less {ALIKE:.0%}, and alike within {ALIKE:.0%}: 500 answers a run",
    expected="not settled at this budget",
    needs=UPDATES,
    cells=("Table 1, RelRNN", "Table 1, RelLSTM"),
)
def screened_layers_transfer(results: Results) -> Evidence:
    runs = {model: runs_of(results, "copy", model) for model in SCREENED}
    rnn, lstm = ([accuracy(found, length) for length in TRANSFER] for found in runs.values())
    apart = max(abs(one - other) for one, other in zip(rnn, lstm, strict=True))
    numbers = {
        f"{model}, T = {length}": percent(accuracy(found, length))
        for model, found in runs.items()
        for length in TRANSFER
    }
    for model, found in runs.items():
        numbers[f"{model}, least by seed"] = "; ".join(percent(_least(run, TRANSFER)) for run in found)
    judged = trained(results, [*runs["RelRNN"], *runs["RelLSTM"]], lambda run: _least(run, TRANSFER) < SOLVED - ALIKE)
    return Evidence(min(*rnn, *lstm) >= SOLVED - ALIKE and apart <= ALIKE, numbers=numbers, runs=tuple(judged))


FORGOTTEN = (100, *TRANSFER)
_FORGETS = f"learnt at T = 100, then falling, within {ALIKE:.0%}, and below one half at T = 5000"
_AT_ALL_LENGTHS = "median accuracy of weights learnt at T = 100 at T = 100, 200, 400, 2000 and 5000"


def _learns_and_forgets(results: Results, model: str) -> Evidence:
    """Whether a model knows Copy at T = 100, and the less of it the longer the sequence."""
    runs = runs_of(results, "copy", model)
    found = [accuracy(runs, length) for length in FORGOTTEN]
    falling = all(later <= earlier + ALIKE for earlier, later in pairwise(found))
    return Evidence(
        found[0] >= SOLVED - ALIKE and falling and found[-1] < 0.5,
        numbers={f"T = {length}": percent(value) for length, value in zip(FORGOTTEN, found, strict=True)},
        runs=tuple(trained(results, runs, lambda run: answered(run, 100) < SOLVED - ALIKE)),
    )


@stored_claim(
    "kerg2020/table1-recurrent",
    stored="recall",
    place="Table 1 (Transfer Copy), LSTM",
    printed="purely recurrent networks fail to transfer, the more so the greater T: the LSTM falls from 99 % to 14 %",
    measures=_AT_ALL_LENGTHS,
    tolerance=_FORGETS,
    assumptions="a model that has not learnt Copy at T = 100 has nothing to lose",
    expected="not settled at this budget",
    needs=UPDATES,
    cells=("Table 1, LSTM",),
)
def lstm_does_not_transfer(results: Results) -> Evidence:
    return _learns_and_forgets(results, "LSTM")


@stored_claim(
    "kerg2020/table1-hdetach",
    stored="recall",
    place="Table 1 (Transfer Copy), h-detach",
    printed="h-detach learns Copy at T = 100 and falls with the length: 100, 91, 77, 51 and 42 % from T = 100 to 5000",
    measures=_AT_ALL_LENGTHS,
    tolerance=_FORGETS,
    assumptions="a model that has not learnt Copy at T = 100 has nothing to lose",
    expected="not settled at this budget",
    needs=UPDATES,
    cells=("Table 1, HDetachLSTM",),
)
def h_detach_does_not_transfer(results: Results) -> Evidence:
    return _learns_and_forgets(results, "HDetachLSTM")
