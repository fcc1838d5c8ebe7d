"""Claims on stored runs: with records that bear them out they hold, with records that contradict them they fail."""

from __future__ import annotations

import copy

import pytest

from remanence import claims, experiments
from remanence.claims import _printed
from remanence.claims._framework import measure
from remanence.experiments import StoredCell, find_experiment, list_experiments

CLAIMS = {claim.id: claim for claim in claims.list_claims() if claim.stored}
TABLES = set(CLAIMS) & {experiment.id for experiment in list_experiments()}


def as_the_paper_ran_it(cell, seed):
    """The same cell as if it had had the paper's settings and budget, and had stopped learning; with another seed."""
    values = copy.deepcopy(dict(cell.values))
    values["place"] |= {"seed": seed}
    made = StoredCell(cell.record, {**values, "curve": {}})
    needed = made.paper.budget if made.paper.unit else None
    made.__dict__.update(departures=(), is_as_printed=True, spent=needed)
    return made


def world(*changes):
    """Records in which every change was made to every cell that it speaks about, and every training was run thrice."""

    def stored_cells(id):
        cells = []
        for cell in ORIGINAL(id):
            runs = 3 if cell.paper.unit else 1
            cells += [as_the_paper_ran_it(cell, 3 * cell.place["seed"] + run) for run in range(runs)]
        for cell in cells:
            for change in changes:
                change(cell)
        return cells

    return stored_cells


ORIGINAL = experiments.stored_cells


def answering(share, *models):
    """Some models, or all, answer so much at all lengths."""

    def change(cell):
        if not models or cell.place["model"] in models:
            for found in cell.result("answers").values():
                found["accuracy"] = share

    return change


def forgetting(*models):
    """Some models know everything at T = 100, and less with the length."""

    def change(cell):
        if cell.place["model"] in models:
            for length, found in cell.result("answers").items():
                found["accuracy"] = (100 / int(length)) ** 0.5

    return change


def of_neither_kind(share):
    """So many states are neither read by most later steps nor by almost none."""

    def change(cell):
        cell.result("dependencies").update(neither=share)

    return change


def as_printed(cell):
    """Every number that has a printed one is that."""
    experiment = find_experiment(cell.experiment)
    for reading in experiment.readings_at(cell.place):
        printed = experiment.printed_at(cell.place, reading.name)
        measure = next(filter(None, map(cell.result, reading.measure.split("|"))), None)
        if printed is not None and printed.value is not None and measure is not None:
            *path, last = reading.path_at(cell.place)
            for key in path:
                measure = measure.get(key, {})
            if last in measure:
                measure[last] = printed.value / (100 if reading.unit == "%" else 1)


def far_from_printed(cell):
    """Every number that has a printed one is a quarter of it, which is far also where few sequences were asked."""
    as_printed(cell)
    experiment = find_experiment(cell.experiment)
    for reading in experiment.readings_at(cell.place):
        measure = next(filter(None, map(cell.result, reading.measure.split("|"))), None)
        *path, last = reading.path_at(cell.place)
        for key in path:
            measure = (measure or {}).get(key, {})
        if measure and measure.get(last) is not None:
            measure[last] = measure[last] / 4 + 0.1


def scoring(what, **models):
    """Models come to so much on the test split."""

    def change(cell):
        found = cell.result("held_out")["test"]
        if what in found:
            found[what] = models.get(cell.place["model"], found[what])

    return change


def playing(part, **models):
    """Policies get so much in the small (train) or the large (test) environments."""

    def change(cell):
        found = cell.result("play")[part]
        found["mean"] = models.get(cell.place["model"], found["mean"])

    return change


def reaching(change_of_norm, *models, **place):
    """Gradients of some models change by so much from end to end."""

    def change(cell):
        model = cell.place.get("model", "RelLSTM")
        if model in models and place.items() <= cell.place.items():
            cell.result("gradients")["reach"]["1000"]["change"] = change_of_norm

    return change


def looking(share):
    """So much of the attention is on the steps that show a symbol."""

    def change(cell):
        found = cell.result("attention")
        if "on_symbols" in found:
            found |= {"on_symbols": share * cell.place.get("updates", 1) / 24_000 if "updates" in cell.place else share}
            found["even"] = 0.1

    return change


def reading_states(share, *figures):
    """So large a share of the states is read in some figures; all have learnt."""

    def change(cell):
        cell.values["validation"]["accuracy"] = 1.0
        found = cell.result("attention")
        if cell.experiment in figures and "effective" in found:
            found["effective"] = share * found["available"]

    return change


def growing(order, *layers):
    def change(cell):
        if cell.place["layer"] in layers:
            cell.result("training_memory")["order"] = order

    return change


def law(name, xi=None, gamma=None, **place):
    """The best law of some curves, and its parameters."""

    def change(cell):
        found = cell.result("sampled_information") or cell.result("data_information")
        if place.items() <= cell.place.items() and (place or "context" not in cell.place):
            fits = found["fits"]["all"]
            fits["best"] = name
            if xi is not None:
                fits["exponential"] = {"xi": xi}
            if gamma is not None:
                fits["power"] = {"gamma": gamma}

    return change


def falling(law_within, law_beyond, **place):
    """Points of some curves follow one law up to lag 32 and another one beyond."""
    laws = {"power": lambda lag: 0.1 * lag**-0.4, "exponential": lambda lag: 0.1 * 2.0 ** (-lag / 40)}

    def change(cell):
        if place.items() <= cell.place.items():
            curve = (cell.result("sampled_information") or {}).get("curve")
            if curve is not None:
                values = [laws[law_within if lag <= 32 else law_beyond](lag) for lag in curve["lags"]]
                curve |= {"values": values, "error": [value / 100 for value in values]}
                curve["floor"] = [0.0] * len(values)

    return change


def holding(words, characters):
    """Shares of the text's information that samples of words and of characters hold."""
    shares = {"words": words, "characters": characters}

    def change(cell):
        found = cell.result("sampled_information") or cell.result("data_information")
        curve = found["curve"]
        share = 1.0 if cell.place["width"] == "data" else shares[cell.place["data"]]
        curve |= {"values": [share] * len(curve["lags"]), "bias": [0.0] * len(curve["lags"])}

    return change


def telling(model, data):
    """So much information far apart in texts of a language model and in the data."""

    def change(cell):
        found = cell.result("language_model")
        for name, value in (("model", model), ("data", data)):
            curve = found[name]["curve"]
            curve |= {"values": [value] * len(curve["lags"]), "bias": [0.0] * len(curve["lags"])}

    return change


def outside(**texts):
    """Lags outside the range of stretches, against chance."""

    def change(cell):
        found = cell.result("held_out_information")
        found |= {"outside": texts.get(cell.place["text"].replace("-", "_"), 0), "outside_by_chance": 1.0}

    return change


def times_the_stretches(factor):
    def change(cell):
        found = cell.result("held_out_information")
        found["values"] = [factor * value for value in found["mean"]]

    return change


PTB = {"RNN": 1.56, "OrthRNN": 1.53, "RelRNN": 1.43, "LSTM": 1.36, "RelLSTM": 1.36}
PIXELS = {"RNN": 0.904, "RelRNN": 0.928, "LSTM": 0.911, "RelLSTM": 0.943}
OTHERS = ("OrthRNN", "ExpRNN", "HDetachLSTM", "SABLSTM")
SAME = dict.fromkeys(("LSTM", "MemLSTM", "RelLSTM"), 0.95)
ALL_PRINTED = world(as_printed)
FIG1, FIG7, FIG9 = (f"kerg2020/figure-{number}" for number in (1, 7, 9))

# Claim -> records that bear it out, records that contradict it.
WORLDS = {
    "kerg2020/table1": (ALL_PRINTED, world(as_printed, answering(0.5, "RelLSTM"))),
    "kerg2020/table1-recurrent": (world(forgetting("LSTM")), world(answering(1.0, "LSTM"))),
    "kerg2020/table1-hdetach": (world(forgetting("HDetachLSTM")), world(answering(1.0, "HDetachLSTM"))),
    "kerg2020/table1-orthogonal": (ALL_PRINTED, world(answering(1.0, "OrthRNN"))),
    "kerg2020/table1-full": (ALL_PRINTED, world(answering(0.5, "MemRNN"))),
    "kerg2020/table1-others": (ALL_PRINTED, world(answering(0.4, "SABLSTM", "ExpRNN"))),
    "kerg2020/table2": (ALL_PRINTED, world(answering(0.5))),
    "kerg2020/table2-full": (ALL_PRINTED, world(answering(0.5))),
    "kerg2020/table2-others": (ALL_PRINTED, world(answering(0.2))),
    "kerg2020/table2-same": (ALL_PRINTED, world(as_printed, answering(0.5, "RelLSTM"))),
    "kerg2020/table2-recurrent": (ALL_PRINTED, world(as_printed, answering(1.0, "GORU"))),
    "kerg2020/table5": (ALL_PRINTED, world(answering(0.5))),
    "kerg2020/table5-lstm": (ALL_PRINTED, world(answering(0.5))),
    "kerg2020/table5-others": (ALL_PRINTED, world(answering(0.5))),
    "kerg2020/table5-sab": (ALL_PRINTED, world(answering(0.5))),
    "kerg2020/denoise-lengths": (world(answering(1.0)), world(answering(0.5))),
    "kerg2020/table3-ptb": (ALL_PRINTED, world(scoring("bits", **PTB), scoring("bits", RelRNN=1.9))),
    "kerg2020/table3-ptb-others": (ALL_PRINTED, world(scoring("bits", ExpRNN=3.0, SABLSTM=3.0))),
    "kerg2020/table3-pmnist": (
        world(scoring("accuracy", **PIXELS)),
        world(scoring("accuracy", **PIXELS), scoring("accuracy", RelRNN=0.5)),
    ),
    "kerg2020/table3-pmnist-others": (ALL_PRINTED, world(scoring("accuracy", **dict.fromkeys(OTHERS, 0.5)))),
    "kerg2020/table4-memory": (world(playing("train", RelLSTM=0.95)), world(playing("train", RelLSTM=0.5))),
    "kerg2020/table4-doorkey": (ALL_PRINTED, world(as_printed, playing("test", **SAME))),
    "kerg2020/table4-transfer": (
        world(playing("test", **SAME)),
        world(playing("test", **SAME), playing("test", RelLSTM=0.1)),
    ),
    "kerg2020/table4-returns": (ALL_PRINTED, world(playing("test", LSTM=-5.0, MemLSTM=-5.0, RelLSTM=-5.0))),
    "kerg2020/figure1": (world(looking(0.9)), world(looking(0.1))),
    "kerg2020/figure1-denoise": (world(looking(0.9)), world(looking(0.1))),
    "kerg2020/figure7-9": (
        world(reading_states(0.9, FIG7, FIG9), reading_states(0.1, FIG1)),
        world(reading_states(0.1, FIG7, FIG9), reading_states(0.9, FIG1)),
    ),
    "kerg2020/figure2-rnn": (world(reaching(20.0, "RNN")), world(reaching(0.0, "RNN"))),
    "kerg2020/figure2-lstm": (world(reaching(-20.0, "LSTM")), world(reaching(0.0, "LSTM"))),
    "kerg2020/figure2-attention": (
        world(reaching(0.0, "MemRNN", "SABLSTM", "RelLSTM")),
        world(reaching(-20.0, "SABLSTM")),
    ),
    "kerg2020/figure2-recurrent": (world(reaching(20.0, "RNN", "LSTM")), world(reaching(0.0, "RNN", "LSTM"))),
    "kerg2020/figure2-tradeoff": (
        world(reaching(20.0, "RNN", "LSTM"), reaching(0.0, "RelLSTM")),
        world(reaching(0.0, "RNN", "LSTM", "RelLSTM")),
    ),
    "kerg2020/figure3-relevant": (
        world(reaching(0.0, "RelLSTM"), reaching(20.0, "RelLSTM", relevant=3)),
        world(reaching(0.0, "RelLSTM")),
    ),
    "kerg2020/figure3-recent": (world(reaching(0.0, "RelLSTM")), world(reaching(20.0, "RelLSTM", recent=3))),
    "kerg2020/figure2-memory-full": (world(), world(growing("linear", "MemRNN"))),
    "kerg2020/figure2-memory-sab": (world(), world(growing("linear", "SAB"))),
    "kerg2020/figure2-memory-screened": (world(), world(growing("quadratic", "RelLSTM"))),
    "ke2017/figure3": (world(looking(0.9)), world(looking(0.2))),
    "shen2019/rnn": (
        world(law("exponential", 50.0, model="RNN"), law("power", 200.0, model="data")),
        world(law("power", 50.0, model="RNN")),
    ),
    "shen2019/lstm": (
        world(law("exponential", 50.0, model="RNN"), law("exponential", 80.0, model="LSTM")),
        world(law("exponential", 90.0, model="RNN"), law("exponential", 80.0, model="LSTM")),
    ),
    "kerg2020/remark06-kinds": (world(of_neither_kind(0.2)), world(of_neither_kind(0.8))),
    "shen2019/depth": (
        world(law("exponential", 50.0), law("exponential", 40.0, depth=1)),
        world(law("exponential", 50.0), law("exponential", 60.0, depth=1)),
    ),
    "shen2019/lstm-law": (
        world(falling("exponential", "exponential", model="LSTM")),
        world(falling("power", "power", model="LSTM")),
    ),
    "shen2019/transformer": (world(law("power", gamma=0.4)), world(law("exponential", gamma=0.4))),
    "shen2019/context": (
        world(falling("power", "exponential", context=32)),
        world(falling("power", "power", context=32)),
    ),
    "shen2019/words": (world(holding(1.0, 0.2)), world(holding(0.5, 0.5))),
    "shen2019/figure3d": (world(telling(1.0, 0.1)), world(telling(0.1, 0.1))),
    "shen2019/held-out": (world(outside(wikitext_2=5, text8=0)), world(outside(wikitext_2=0, text8=5))),
    "shen2019/held-out-more": (world(times_the_stretches(2.0)), world(times_the_stretches(1.0))),
    **{id: (ALL_PRINTED, world(far_from_printed)) for id in TABLES},
}


def verdict(id, monkeypatch, stored_cells):
    monkeypatch.setattr(experiments, "stored_cells", stored_cells)
    return measure(CLAIMS[id], quick=True).verdict


def test_every_claim_on_stored_runs_is_here():
    assert set(WORLDS) == set(CLAIMS)


@pytest.mark.parametrize("id", sorted(CLAIMS))
def test_a_claim_holds_on_records_that_bear_it_out(id, monkeypatch):
    # A table of which some cells are stored is judged as if it had no others.
    monkeypatch.setattr(_printed, "_missing", lambda cells: "")
    assert verdict(id, monkeypatch, WORLDS[id][0]) == "holds on stored runs"


def test_a_table_with_cells_that_were_not_run_is_open_even_if_the_others_are_right(monkeypatch):
    assert verdict("kerg2020/table-1", monkeypatch, ALL_PRINTED) == "holds on stored runs"
    some = [cell for cell in ALL_PRINTED("kerg2020/table-1") if cell.place["model"] == "RelRNN"]
    assert verdict("kerg2020/table-1", monkeypatch, lambda id: some) == "not settled at this budget"


@pytest.mark.parametrize("id", sorted(CLAIMS))
def test_a_claim_fails_on_records_that_contradict_it(id, monkeypatch):
    assert verdict(id, monkeypatch, WORLDS[id][1]) == "fails as printed"


@pytest.mark.parametrize("id", sorted(CLAIMS))
def test_the_records_of_the_package_decide_every_claim(id):
    result = measure(CLAIMS[id], quick=True)
    assert result.claim.expected is None
    assert result.agrees
    assert result.source is not None
    assert result.numbers
