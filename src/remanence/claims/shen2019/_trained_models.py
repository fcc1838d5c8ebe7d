"""Shen 2019, sections 4.2, 5 and 6: what trained models carry, from runs that are kept, and what drawing costs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from remanence import probes
from remanence.claims._cells import Cells, in_all, result_of, trained, unlike
from remanence.claims._framework import claim, stored_claim
from remanence.claims._rule import TrainedRun
from remanence.claims._types import Evidence, Number
from remanence.experiments import StoredCell, kept_curve
from remanence.nn import SequenceModel
from remanence.runs import Settings, Values

_RECURRENT: dict[str, Values] = {
    "RNN": {"hidden_size": 16},
    "LSTM": {"hidden_size": 16},
    "RelLSTM": {"hidden_size": 16, "recent": 5, "relevant": 5},
}


def _operations(model: SequenceModel, before: int) -> int:
    """Floating-point operations in matrix products of one step of drawing, after so many symbols."""
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        _, state = model.eval()(torch.randint(2, (before, 1)))
        with FlopCounterMode(display=False) as counter:
            model.step(torch.randint(2, (1,)), state)
    return counter.get_total_flops()


@claim(
    "shen2019/generation",
    place="section 6",
    printed="to draw a sequence of length L RNNs need time O(L), Transformers O(L^2)",
    measures="operations of one step after 32 to 256 symbols: RNN, LSTM and RelLSTM; Transformer with all keys kept",
    tolerance="none: counts. A step costs the same at all places, or a + b times the place with b > 0",
    assumptions="keys and values are kept; without that a Transformer needs O(L^3)",
)
def drawing_costs(quick: bool) -> Evidence:
    places = (32, 64, 96, 128, 256)
    numbers: dict[str, Number] = {}
    constant = True
    for name, options in _RECURRENT.items():
        counts = [_operations(SequenceModel(2, name, 2, backend="reference", **options), at) for at in places]
        constant &= len(set(counts)) == 1
        numbers[f"{name}, operations of a step"] = counts[0]
    shape = {"encoder": "embedding", "embedding_size": 16, "heads": 4, "depth": 1}
    counts = [_operations(SequenceModel(2, "Transformer", 2, **shape), at) for at in places]
    slopes = np.diff(counts) / np.diff(places)
    numbers |= {"Transformer, after 32": counts[0], "Transformer, for each symbol more": float(slopes[0])}
    return Evidence(constant and bool((slopes == slopes[0]).all()) and slopes[0] > 0, numbers=numbers)


FIGURE_1 = "shen2019/figure-1"


def _found(cell: StoredCell) -> Values:
    """What was measured of samples of a model, or of the data."""
    return cell.result("sampled_information") or result_of(cell, "data_information")


def _law(cell: StoredCell) -> Values:
    """Fits to all lags that the paper fits."""
    return _found(cell)["fits"]["all"]


def _xi(cells: Iterable[StoredCell]) -> float:
    """Mean correlation length over seeds; NaN where one has none."""
    fits = [_law(cell)["exponential"] for cell in cells]
    if any(fit is None or fit["xi"] is None for fit in fits):
        return float("nan")
    return float(np.mean([fit["xi"] for fit in fits]))


def _gamma(cells: Iterable[StoredCell]) -> float:
    return float(np.mean([_law(cell)["power"]["gamma"] for cell in cells]))


def _refitted(cell: StoredCell, shortest: int, longest: int) -> probes.InformationLaw | None:
    """The best law of a kept curve on another range of lags."""
    return kept_curve(_found(cell)["curve"]).fit(shortest, longest)


def _said(law: probes.InformationLaw | None) -> str:
    if law is None:
        return "nothing to fit"
    return law.verdict


def _is(law: probes.InformationLaw | None, name: str) -> bool:
    return law is not None and law.law == name


def _named(cell: StoredCell) -> str:
    place = cell.place
    name = f"{place.get('model', 'Transformer')} {place['width']}"
    if place.get("depth", 1) == 1:
        return name
    return f"{name}x{place['depth']}"


def _judged(cells: Iterable[StoredCell], holds: bool) -> tuple[TrainedRun, ...]:
    """All runs fall short if the statement does not hold: they are what contradicts it."""
    return trained(cells, lambda cell: not holds, _named)


def _recurrent(cells: Cells, *shapes: tuple[str, int, int]) -> dict[str, list[StoredCell]]:
    found = [cells.at(model=model, width=width, depth=depth) for model, width, depth in shapes]
    return {_named(runs[0]): runs for runs in found}


@stored_claim(
    "shen2019/rnn",
    stored=FIGURE_1,
    place="section 4.2.1, figure 1a and 1c",
    printed="in samples of vanilla RNNs information falls exponentially, with a correlation length that saturates",
    measures="best law of each run of one layer; mean correlation length by width, and in the data",
    tolerance="every run exponential; from the second greatest width to the greatest less than a quarter more, and "
    "below half of the data's",
)
def rnns_forget_exponentially(cells: Cells) -> Evidence:
    widths = sorted({cell.place["width"] for cell in cells.at(model="RNN", depth=1)})
    runs = _recurrent(cells, *(("RNN", width, 1) for width in widths))
    lengths = {name: _xi(found) for name, found in runs.items()}
    *_, before, last = lengths.values()
    data = _xi(cells.at(model="data"))
    exponential = all(_law(cell)["best"] == "exponential" for cell in in_all(runs))
    holds = exponential and last < 1.25 * before and last < data / 2
    numbers: dict[str, Number] = {f"xi, {name}": xi for name, xi in lengths.items()}
    return Evidence(holds, numbers={**numbers, "xi, data": data}, runs=_judged(in_all(runs), holds))


@stored_claim(
    "shen2019/lstm",
    stored=FIGURE_1,
    place="section 4.2.1 and Appendix E.1",
    printed="LSTMs have longer correlations: one of width 4, with a tenth of the parameters, than an RNN of width 32",
    measures="mean correlation length of LSTMs of width 4, 8 and 32 against RNNs of width 8 and 32",
    tolerance="each LSTM above each RNN of one layer",
)
def lstms_reach_further(cells: Cells) -> Evidence:
    shapes = (("RNN", 8, 1), ("RNN", 32, 1), ("LSTM", 4, 1), ("LSTM", 8, 1), ("LSTM", 32, 1))
    runs = _recurrent(cells, *shapes)
    found = {name: _xi(own) for name, own in runs.items()}
    rnn, lstm = ([xi for name, xi in found.items() if name.startswith(kind)] for kind in ("RNN", "LSTM"))
    holds = min(lstm) > max(rnn)
    numbers: dict[str, Number] = {f"xi, {name}": xi for name, xi in found.items()}
    return Evidence(holds, numbers=numbers, runs=_judged(in_all(runs), holds), favour=unlike(runs))


@stored_claim(
    "shen2019/lstm-law",
    stored="beyond/long-bits",
    place="section 4.2.1",
    printed="information falls exponentially in samples of LSTMs too, though it is hard to see in large ones",
    measures="best law of an LSTM of width 32 up to lag 1024, in sequences eight times as long as those learnt from",
    tolerance="none: Akaike's choice between exponential, power law and constant",
)
def lstms_forget_exponentially(cells: Cells) -> Evidence:
    runs = cells.at(model="LSTM")
    laws = [_refitted(cell, 1, 1024) for cell in runs]
    holds = all(_is(law, "exponential") for law in laws)
    numbers: dict[str, Number] = {"xi": _xi(runs), "best law": "; ".join(map(_said, laws))}
    return Evidence(holds, numbers=numbers, runs=trained(runs, lambda cell: not holds))


@stored_claim(
    "shen2019/depth",
    stored=FIGURE_1,
    place="section 4.2.1, figures 1d and 7",
    printed="a second layer lengthens the correlations of RNN and LSTM; more than two layers of LSTM bring nothing",
    measures="mean correlation length of width 8 at depths 1, 2 and 4",
    tolerance="longer at 2 than at 1; for LSTM at 4 less than a tenth more than at 2",
)
def depth_helps_once(cells: Cells) -> Evidence:
    runs = _recurrent(cells, *((kind, 8, depth) for kind in ("RNN", "LSTM") for depth in (1, 2, 4)))
    found = {name: _xi(own) for name, own in runs.items()}
    helps = all(found[f"{kind} 8x2"] > found[f"{kind} 8"] for kind in ("RNN", "LSTM"))
    holds = helps and found["LSTM 8x4"] < 1.1 * found["LSTM 8x2"]
    numbers: dict[str, Number] = {f"xi, {name}": xi for name, xi in found.items()}
    return Evidence(holds, numbers=numbers, runs=_judged(in_all(runs), holds))


@stored_claim(
    "shen2019/transformer",
    stored="shen2019/figure-9, shen2019/figure-1",
    place="section 5.1, figures 3a and 9",
    printed="in samples of Transformers, even of width 4, information falls more slowly than exponentially",
    measures="best of exponential, power law and constant; mean exponents, and that of the data",
    tolerance="a power law in every run at width 16, with an exponent within 0.1 of the data's, and at width 4 in the "
    "run with the least validation loss: the paper keeps the best of five",
)
def transformers_keep_a_power_law(cells: Cells) -> Evidence:
    runs = {width: cells.at(experiment="shen2019/figure-9", width=width, depth=1) for width in (4, 16)}
    best = min(runs[4], key=lambda cell: cell.state.validation["loss"])
    power = all(_law(cell)["best"] == "power" for cell in [best, *runs[16]])
    data = _gamma(cells.at(experiment=FIGURE_1, model="data"))
    holds = power and abs(_gamma(runs[16]) - data) < 0.1
    numbers: dict[str, Number] = {f"gamma, Transformer {width}": _gamma(found) for width, found in runs.items()}
    powers = sum(_law(cell)["best"] == "power" for cell in runs[4])
    numbers |= {"gamma, data": data, "power laws, Transformer 4": f"{powers} of {len(runs[4])} runs"}
    return Evidence(holds, numbers=numbers, runs=_judged([*runs[4], *runs[16]], holds))


@stored_claim(
    "shen2019/context",
    stored="shen2019/figure-9",
    place="section 5",
    printed="beyond the steps that a Transformer looks back on, information falls exponentially",
    measures="a Transformer of one layer that looks back on 32 steps: the best law within 32 steps, and beyond them",
    tolerance="a power law up to lag 32, an exponential from there on, in every run",
)
def beyond_the_context_all_is_lost(cells: Cells) -> Evidence:
    runs = cells.at(context=32)
    numbers: dict[str, Number] = {}
    holds = True
    for cell in runs:
        within = _refitted(cell, 1, 32)
        beyond = _refitted(cell, 33, 200)
        holds &= _is(within, "power") and _is(beyond, "exponential")
        numbers |= {
            f"run {cell.place['seed']}, within": _said(within),
            f"run {cell.place['seed']}, beyond": _said(beyond),
        }
    return Evidence(holds, numbers=numbers, runs=_judged(runs, holds))


def _share(text: StoredCell, cell: StoredCell, shortest: int, longest: int) -> float:
    """Of the training text's information, less the bias of both, at a range of lags."""
    own, whole = (kept_curve(_found(one)["curve"]) for one in (cell, text))
    chosen = (own.lags >= shortest) & (own.lags <= longest)
    return float(own.excess[chosen].sum() / whole.excess[chosen].sum())


@stored_claim(
    "shen2019/words",
    stored="shen2019/figure-2",
    place="section 4.2.2 and Appendix E.2, figures 2 and 8",
    printed="small LSTMs of words hold the information at short and intermediate distances, those of characters do not",
    measures="share of the training text's information between characters in samples of LSTMs of either kind",
    tolerance="words: nine tenths at lags 1 to 5; at lags 15 to 30, beyond most words, twice the share of characters",
    assumptions="of each kind the least LSTM that was run",
)
def words_hold_more_than_characters(cells: Cells) -> Evidence:
    found: dict[str, float] = {}
    runs = []
    for kind in ("words", "characters"):
        (text,) = cells.at(data=kind, width="data")
        cell = _least_lstm(cells, kind)
        runs.append(cell)
        found[f"{kind}, lags 1 to 5"] = _share(text, cell, 1, 5)
        found[f"{kind}, lags 15 to 30"] = _share(text, cell, 15, 30)
    short = found["words, lags 1 to 5"]
    middle = found["words, lags 15 to 30"]
    holds = short > 0.9 and middle > 2 * found["characters, lags 15 to 30"]
    judged = trained(runs, lambda cell: not holds, lambda cell: f"LSTM of {cell.place['data']}")
    return Evidence(holds, numbers=dict[str, Number](found), runs=judged)


def _least_lstm(cells: Cells, kind: str) -> StoredCell:
    lstms = cells.at(
        lambda cell: (cell.values["work"]["config"] or {}).get("model", {}).get("name") == "LSTM", data=kind
    )
    return min(lstms, key=lambda cell: cell.place["width"])


def _beyond_bias(curve: Settings, shortest: int, longest: int) -> float:
    found = kept_curve(curve)
    return float(found.excess[(found.lags >= shortest) & (found.lags <= longest)].mean())


@stored_claim(
    "shen2019/figure3d",
    stored="shen2019/figure-3d",
    place="section 5.2, figure 3d",
    printed="texts of a large language model (GPT-2) have much more information at long distances than WikiText-2",
    measures="mean information less bias at lags 50 to 500 in texts of a language model and in pieces of WikiText-2 of "
    "the same lengths; and in both once each text is shuffled within itself",
    tolerance="'much more' is thrice",
    assumptions="texts of different kinds are pooled, as in the paper: what a shuffle of each leaves is no memory",
)
def language_models_have_more(cells: Cells) -> Evidence:
    cell = cells.at()[0]
    sources = {name: one for name, one in result_of(cell, "language_model").items() if name != "sample"}
    found = {name: _beyond_bias(source["curve"], 50, 500) for name, source in sources.items()}
    numbers: dict[str, Number] = {name.replace("model", cell.place["model"]): value for name, value in found.items()}
    return Evidence(found["model"] > 3 * found["data"], numbers=numbers)


def _held_out(cells: Cells, text: str) -> Values:
    (cell,) = cells.at(text=text, part="validation")
    return result_of(cell, "held_out_information")


@stored_claim(
    "shen2019/held-out",
    stored="shen2019/figure-6",
    place="section 4.2.2 and Appendix D.2, figure 6",
    printed="WikiText-2's training and validation sets differ in their information, those of text8 do not",
    measures="lags up to 1000 at which a part is outside the range of stretches of its training set of the same size",
    tolerance="twice as many as by chance, or no more than by chance",
)
def wikitext2_is_not_uniform(cells: Cells) -> Evidence:
    parts = {text: _held_out(cells, text) for text in ("ptb", "wikitext-2", "text8")}
    excess = {text: part["outside"] / part["outside_by_chance"] for text, part in parts.items()}
    numbers: dict[str, Number] = {f"lags outside against chance, {text}": ratio for text, ratio in excess.items()}
    return Evidence(excess["wikitext-2"] > 2 and excess["text8"] <= 1, numbers=numbers)


def _ratio(part: Settings, shortest: int, longest: int) -> float:
    """Information against the mean of stretches of the training set of the same size: geometric mean over lags."""
    rows = zip(part["lags"], part["values"], part["mean"], strict=True)
    return float(np.exp(np.mean([np.log(value / mean) for lag, value, mean in rows if shortest <= lag <= longest])))


@stored_claim(
    "shen2019/held-out-more",
    stored="shen2019/figure-6",
    place="section 4.2.2 and Appendix D.2, figure 6",
    printed="the validation sets of WikiText-2 and Penn Treebank hold much more information than the training sets",
    measures="information against that of stretches of the training set of the same size, at short and at long lags",
    tolerance="'much more' is a quarter more at long lags, where the paper sees the difference",
    corrected="at equal sizes WikiText-2's holds a fifth more at short lags and a fifth less at long ones, Penn "
    "Treebank's as much",
)
def held_out_sets_hold_no_more(cells: Cells) -> Evidence:
    parts = {text: _held_out(cells, text) for text in ("wikitext-2", "ptb")}
    long = {text: _ratio(part, 100, 1000) for text, part in parts.items()}
    numbers: dict[str, Number] = {f"{text}, lags 1 to 10": _ratio(part, 1, 10) for text, part in parts.items()}
    numbers |= {f"{text}, lags 100 to 1000": ratio for text, ratio in long.items()}
    return Evidence(min(long.values()) > 1.25, numbers=numbers)
