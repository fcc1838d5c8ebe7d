"""The user's own time series: reading, units, splits, baselines."""

import gzip
import math

import pytest
import torch

from remanence import data
from remanence.tasks import Score, SeriesFile, make_task
from remanence.testing import assert_matches


def write(folder, text, name="mine.csv"):
    file = folder / name
    file.write_text(text)
    return str(file)


def assert_near(actual, exact):
    assert_matches({"value": actual}, {"value": exact}, {"value": exact.float()})


@pytest.fixture
def wave(tmp_path):
    """A wave of period 8 and a column that rises by 2 a row."""
    rows = [f"{math.sin(math.pi * t / 4):.6f},{2 * t}" for t in range(200)]
    return write(tmp_path, "wave,count\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_columns_are_named_by_the_first_line_or_numbered(tmp_path, separator):
    named = data.read_series(write(tmp_path, f"a{separator} b\n1{separator}2\n3{separator}4\n\n"))
    assert (named.columns, named.values.tolist()) == (("a", "b"), [[1.0, 2.0], [3.0, 4.0]])
    plain = data.read_series(write(tmp_path, f"1{separator}2\n3{separator}4"), ["1"])
    assert (plain.columns, plain.values.tolist()) == (("1",), [[2.0], [4.0]])


def test_packed_files_and_byte_order_marks_are_read(tmp_path):
    packed = tmp_path / "mine.csv.gz"
    packed.write_bytes(gzip.compress("\ufeffa\n1\n2\n".encode()))
    assert data.read_series(packed).columns == ("a",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n1,\n", r"line 3: column 'b' must hold finite numbers; got ''"),
        ("a,b\n1,2\n1,nan\n", r"line 3: column 'b' must hold finite numbers; got 'nan'"),
        ("day,b\n2026-01-01,2\n", r"line 2: column 'day'.*name the columns to use"),
        ("a,b\n1,2\n3\n", r"line 3: expected 2 values; got 1"),
        ("", "is empty"),
        ("\n\n\n", "is empty"),
        ("1," * 20_000_000 + "1\n", "line 1: expected at most 65,536 values; got 20,000,001"),
        ("a,b\n" + "," * 20_000_000, "line 2: expected at most 65,536 values; got 20,000,001"),
        (",".join(["n" * 1000] * 2), r"2 columns named 'n{50,59}; give"),
        ("a,b\n" + "9" * 200_000 + ",1\n", "not a table of numbers: field larger than field limit"),
        ("a,b\n" + "9" * 100_000 + ",1\n", r"got '9{50,60}\. Fill it in"),
        ("a,a\n1,2\n3,4\n", "2 columns named 'a'"),
        ("a\0,b\n1,\0\n", "column 'b' must hold finite numbers"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(tmp_path, text, words):
    with pytest.raises(data.DataError, match=words):
        data.read_series(write(tmp_path, text))


def test_an_unknown_column_gets_the_nearest_proposed(wave):
    with pytest.raises(ValueError, match="Did you mean 'wave'"):
        data.read_series(wave, ["waves"])
    with pytest.raises(ValueError, match="Did you mean 'count'"):
        SeriesFile(path=wave, target="counts").batch(0, 2)


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_perfect_answer_is_the_value_some_steps_later(wave, horizon):
    task = SeriesFile(path=wave, length=9, horizon=horizon)
    values = data.read_series(wave).values
    batch = task.batch(0, batch_size=1)
    exact = values[horizon : horizon + 9].unsqueeze(1)
    assert_near(task.forecast(batch.targets, batch.inputs), exact)
    assert task.loss(batch.targets, batch).item() == 0.0
    assert task.accuracy(batch.targets, batch).item() == 1.0


def test_repeating_the_last_value_costs_one_in_training(wave):
    _, targets = SeriesFile(path=wave).pairs("train")
    assert_near(targets.square().mean(0), torch.ones(2, dtype=torch.float64))


def test_units_come_from_training_alone(tmp_path):
    rows = [0.0, 1.0] * 40 + [1e6] * 20
    task = SeriesFile(path=write(tmp_path, "\n".join(map(str, rows))))
    inputs, _ = task.pairs("train")
    assert inputs.unique().tolist() == [-1.0, 1.0]


def test_splits_follow_one_another_and_share_no_row(wave):
    task = SeriesFile(path=wave, columns=("count",), validation=0.2, test=0.1)
    steps = [task.forecast(torch.zeros(1), task.pairs(split)[0]).squeeze(1) / 2 for split in ("train", "validation")]
    assert [(part[0].round().item(), part[-1].round().item()) for part in steps] == [(0, 138), (140, 178)]


def test_baselines_are_those_of_a_series_that_can_be_worked_out(tmp_path):
    """Zero and one in turn: the last value is always wrong by one step, a line through the present row never."""
    task = SeriesFile(path=write(tmp_path, "\n".join(str(t % 2) for t in range(200))))
    assert (task.chance.loss, task.chance.accuracy) == (1.0, 0.0)
    assert_near(torch.tensor(1 + task.memory_free.loss), torch.tensor(1.0, dtype=torch.float64))
    assert task.memory_free.accuracy == 1.0
    assert task.report(Score(4.0, 1, 0, 1))["rmse"] == 2.0


def test_one_target_among_several_inputs(wave):
    task = make_task("series", path=wave, target="wave")
    assert (task.input_size, task.output_size) == (2, 1)
    assert "rmse" in task.report(Score(1.0, 1, 0, 1))
    assert "rmse" not in make_task("series", path=wave).report(Score(1.0, 1, 0, 1))


def test_a_column_that_never_changes_stays_finite(tmp_path):
    task = SeriesFile(path=write(tmp_path, "\n".join(["5"] * 50)))
    assert task.chance.loss == 0.0
    assert task.batch(0, 1).inputs.isfinite().all()


def test_a_file_that_is_too_short_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"more than 4 rows \(horizon\); got 32, 4 and 4"):
        SeriesFile(path=write(tmp_path, "\n".join("1234" * 10)), horizon=4).batch(0, 1)
