import pytest

from remanence.experiments import printed_accuracy


@pytest.mark.parametrize(
    ("cell", "table", "accuracy"),
    [
        (("copy", "OrthRNN", 1000), 5, 0.8),
        (("copy", "LSTM", 100, 100), 5, 1.0),
        (("denoise", "GORU", 2000), 2, 0.73),
        (("copy", "HDetachLSTM", 100, 5000), 1, 0.42),
        (("denoise", "MemRNN", 2000), 2, None),
    ],
)
def test_cells_are_those_of_the_tables(cell, table, accuracy):
    found = printed_accuracy(*cell)
    assert (found.table, found.accuracy) == (table, accuracy)


@pytest.mark.parametrize(
    "cell",
    [
        ("copy", "GRU", 100),
        ("copy", "LSTM", 101),
        ("adding", "LSTM", 100),
        ("copy", "LSTM", 200, 400),
        ("denoise", "LSTM", 100, 400),
        ("copy", "LSTM", 1000),
        ("copy", "MemRNN", 500),
    ],
)
def test_what_no_table_prints_has_no_cell(cell):
    assert printed_accuracy(*cell) is None
