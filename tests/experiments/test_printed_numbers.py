"""Printed numbers against the papers' own text, line by line."""

import re

import pytest

from remanence.experiments import find_experiment
from remanence.experiments.ke2017._methods import BPTT

NAMES = {
    "OrthRNN": "orth-RNN",
    "ExpRNN": "expRNN",
    "SABLSTM": "SAB",
    "HDetachLSTM": "h-detach",
}
# Cells that the text at hand has torn out of their lines: first column of three rows of Table 2.
TORN = {("GORU", 92), ("SABLSTM", 99), ("RelLSTM", 100)}


def numbers(line):
    """All numbers of a line, None for OOM."""
    found = re.findall(r"(?<![\w.])(\d+(?:\.\d+)?|OOM)(?![\w])", line.replace("%", " ").replace("$", " "))
    return [None if part == "OOM" else float(part) for part in found]


def holds(line, wanted):
    """Whether some numbers stand in a line, side by side."""
    found = numbers(line)
    wanted = [None if value is None else float(value) for value in wanted]
    return any(found[start : start + len(wanted)] == wanted for start in range(len(found)))


def section(text, begin, end):
    """The lines between two headings."""
    return text[text.index(begin) : text.index(end)].splitlines()


def row(experiment, key, readings=None):
    """Printed numbers of a row, in the order of the columns."""
    return [printed.value for place, printed in experiment.printed.items() if place[0] == key]


@pytest.mark.parametrize("id", ["kerg2020/table-1", "kerg2020/table-2"])
def test_transfer_and_denoise(id, paper_text):
    lines = section(paper_text("kerg2020"), "Table 2: Results", "score found in Figure 1")
    experiment = find_experiment(id)
    for model in experiment.axes["model"]:
        (line,) = [one for one in lines if one.startswith(NAMES.get(model, model) + "\t")] or [
            one for one in lines if f"\t{NAMES.get(model, model)}\t" in one
        ]
        wanted = row(experiment, model)
        if id.endswith("2"):
            line = line[line.rindex(NAMES.get(model, model)) :]
            if (model, wanted[0]) in TORN:
                assert any(f"${wanted[0]:g}%$" in other for other in lines)
                wanted = wanted[1:]
            line = re.sub(r"\$\d+%\$", "", line)  # what was torn out of the three rows below
        assert holds(line, wanted), (model, line)


def test_copy(paper_text):
    lines = section(paper_text("kerg2020"), "Table 5: Results for Copy", "Table 6")
    experiment = find_experiment("kerg2020/table-5")
    (line,) = [one for one in lines if one.startswith("100\t")]
    assert numbers(line) == [100.0] * 8
    (line,) = [one for one in lines if one.startswith("2000\t")]
    assert numbers(line)[1:] == [
        experiment.printed[2000, model, "accuracy"].value for model in experiment.axes["model"]
    ]
    (line,) = [one for one in lines if one.startswith("1000\t")]
    others = [model for model in experiment.axes["model"] if model != "LSTM"]
    assert numbers(line)[1:][-6:] == [experiment.printed[1000, model, "accuracy"].value for model in others]
    assert experiment.printed_at({"model": "LSTM", "length": 1000}, "accuracy") is None


def test_text_and_pictures(paper_text):
    lines = section(paper_text("kerg2020"), "Table 3: PTB", "In contrast to sparse")
    experiment = find_experiment("kerg2020/table-3")
    for model in experiment.axes["model"]:
        (line,) = [one for one in lines if one.startswith(NAMES.get(model, model) + "\t")]
        wanted = [experiment.printed.get((model, *column)) for column in COLUMNS]
        assert numbers(line) == [printed.value for printed in wanted if printed is not None]


COLUMNS = [("ptb-char", "bits"), ("ptb-char", "accuracy"), ("pixel-mnist", "accuracy")]


def test_policies(paper_text):
    lines = section(paper_text("kerg2020"), "Table 4: Average", "These tasks are difficult")
    experiment = find_experiment("kerg2020/table-4")
    for family in experiment.axes["environment"]:
        found = [numbers(one.split("\t", 1)[1]) for one in lines if one.startswith(family)]
        assert len(found) == 2
        for reading, line in zip(("train", "test"), found, strict=True):
            assert line == [
                experiment.printed[family, model, reading].value for model in ("LSTM", "MemLSTM", "RelLSTM")
            ]


def test_hyperparameters(paper_text):
    text = paper_text("kerg2020")
    lines = section(text, "Table 6: Hyper", "Figure 5: Training")
    names = {"OrthRNN": "orthRNN", "ExpRNN": "expRNN"}
    for table, id, end in (("Table 6", "kerg2020/table-5", "Figure 5"), ("Table 7", "kerg2020/table-2", "Table 8")):
        lines = section(text, f"{table}: Hyper", f"{end}:")
        for model in ("OrthRNN", "ExpRNN", "LSTM", "RelRNN"):
            (line,) = [one for one in lines if one.startswith(names.get(model, model) + "\t")]
            cells = [part.strip() for part in line.split("\t")]
            recipe = find_experiment(id).recipe({"model": model, "length": 100})
            assert recipe is not None
            settings = {setting.key: setting.value for setting in recipe.settings}
            assert settings["optimiser.learning_rate"] == float(cells[1])
            assert settings["optimiser.name"] == cells[2].lower()
            assert settings.get("model.options.nonlinearity", "-") == cells[3]
            assert str(settings.get("model.options.recent", "-")) == cells[4]
            assert str(settings.get("model.options.relevant", "-")) == cells[5]


TABLES = {
    1: ("Method\tCopy Length", "Table 1: Test"),
    2: ("Table 1: Test", "Table 2: Test"),
    3: ("Table 2: Test", "Table 3: Test"),
    4: ("Tables 4 and 5 report", "Table 4: Perf"),
    5: ("Table 4: Perf", "Table 5: Perf"),
    6: ("As shown in Table 6", "Table 6: BPC"),
    7: ("Table 7 reports", "Table 7: Bit"),
    8: ("Table 8 shows", "Table 8: Test"),
}


@pytest.mark.parametrize("number", TABLES)
def test_sparse_attentive_backtracking(number, paper_text):
    text = paper_text("ke2017").replace("<b>", "").replace("</b>", "")
    lines = [one for one in section(text, *TABLES[number]) if one.startswith(("LSTM", "SAB"))]
    experiment = find_experiment(f"ke2017/table-{number}")
    rows = experiment.axes["method"]
    assert len(lines) == len(rows)
    for method, line in zip(rows, lines, strict=True):
        name, *cells = line.split("\t")
        given = list(map(int, re.findall(r"=\s*(\d+)", name)))
        if method != BPTT:
            assert list(map(int, re.findall(r"\d+", method)))[: len(given)] == given
        wanted = [printed.value for key, printed in experiment.printed.items() if key[0] == method]
        assert [float(cell) for cell in cells][-len(wanted) :] == wanted


def test_perplexities(paper_text):
    text = paper_text("miller2018")
    printed = find_experiment("miller2018/perplexity").printed
    assert f"The RNN has test perplexity {printed['RNN', 'test perplexity'].value}" in text
    assert f"the LSTM has test perplexity of {printed['LSTM', 'test perplexity'].value}" in text


def test_amounts_of_the_paper_on_information(paper_text):
    text = paper_text("shen2019")
    for words in ("10000 sequences of length 512", "generate 2000 sequences", "batch size is 50", "clipped to 0.25"):
        assert words in text
    for words in ("learning rate is 0.005", "learning rate is 0.001", "embedding layer of size 200", "60 epochs"):
        assert words in text
