"""The history of a run: lines sorted by what they say, damaged ones left out, questions answered."""

import pytest

from remanence.runs import Growth, History, MetricsFile, NewerVersionError

LINES = [
    {"kind": "train", "update": 5, "loss": 0.9, "accuracy": 0.4, "seconds": 1.5},
    {"kind": "curriculum", "update": 7, "length": 20},
    {"kind": "validation", "update": 10, "loss": 0.7, "accuracy": 0.995, "best": True},
    {"kind": "validation", "update": 20, "loss": 0.8, "accuracy": 0.5, "best": False},
    {"kind": "train", "update": 25, "loss": None, "accuracy": 0.6, "seconds": 3.0},
    {"kind": "validation", "update": 30, "loss": 0.2, "accuracy": 0.99, "best": True},
    {"kind": "validation", "update": 40, "loss": None, "accuracy": 1.0, "best": False},
]
HISTORY = History.from_lines(LINES)


def test_lines_are_sorted_by_kind_and_keep_their_numbers():
    assert [line.update for line in HISTORY.training] == [5, 25]
    assert [line.update for line in HISTORY.validation] == [10, 20, 30, 40]
    assert HISTORY.lengths == (Growth(7, 20),)
    assert (HISTORY.training[0].loss, HISTORY.training[0]["seconds"], HISTORY.training[1].loss) == (0.9, 1.5, None)
    assert "best" not in HISTORY.validation[0].values


def test_questions_have_answers():
    assert (HISTORY.update, HISTORY.length, HISTORY.greatest("accuracy"), HISTORY.least("loss")) == (40, 20, 1.0, 0.2)
    assert HISTORY.best is HISTORY.validation[2]
    assert HISTORY.last is HISTORY.validation[3]
    assert HISTORY.curve("loss") == [(10, 0.7), (20, 0.8), (30, 0.2)]


@pytest.mark.parametrize(
    ("accuracy", "hold", "expected"),
    [(0.99, 1, 10), (0.99, 2, 30), (0.99, 3, None), (0.4, 4, 10), (1.0, 1, 40), (1.1, 1, None)],
)
def test_solved_at_is_the_first_of_the_evaluations_that_held(accuracy, hold, expected):
    assert HISTORY.solved_at(accuracy, hold) == expected


def test_an_empty_history_has_no_answers():
    empty = History()
    assert (empty.update, empty.best, empty.last, empty.length, empty.greatest("loss")) == (0, None, None, None, None)
    assert empty.solved_at(0.5) is None


def test_damaged_lines_are_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(
        '{"kind": "train", "update": 1, "loss": 0.5}\n{}\n[1]\n"a"\n{"kind": 3, "update": 2}\n'
        '{"kind": "train", "update": "x"}\n{"kind": "curriculum", "update": 3, "length": "long"}\ntorn {"ki'
    )
    history = History.from_lines(MetricsFile(path).read())
    assert [line.update for line in history.training] == [1]
    assert history.lengths == ()


def test_every_line_says_its_version_and_is_read_without_it(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.append({"kind": "train", "update": 1, "loss": 0.5})
    file.append({"kind": "train", "update": 2, "loss": 0.25})
    file.cut_after(1)
    assert file.path.read_text() == '{"kind": "train", "version": 1, "update": 1, "loss": 0.5}\n'
    assert file.read() == [{"kind": "train", "update": 1, "loss": 0.5}]
    assert History.from_lines(file.read()).training[0].values == {"loss": 0.5}


def test_a_line_of_a_newer_version_is_refused_by_name(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.path.write_text('{"kind": "train", "version": 2, "update": 1}\n')
    with pytest.raises(NewerVersionError, match=r"metrics\.jsonl: the train is of version 2.*upgrade remanence"):
        file.read()


@pytest.mark.parametrize("version", ["0", '"new"', "true", "null"])
def test_a_line_with_a_damaged_version_is_a_damaged_line(tmp_path, version):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.path.write_text(f'{{"kind": "train", "version": {version}, "update": 1}}\n')
    assert file.read_and_check() == ([], [1])
