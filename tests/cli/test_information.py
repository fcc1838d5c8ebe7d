import gzip
import json
import lzma
import os
import sys
import threading

import numpy as np
import pytest
from typer.testing import CliRunner

from remanence.cli._app import app
from remanence.cli._information_sources import readable
from remanence.tasks import BinaryPowerLaw
from remanence.train import config_from, train


def run(*arguments, **options):
    return CliRunner().invoke(app, ["mi", *map(str, arguments)], **options)


@pytest.fixture
def bits(tmp_path):
    task = BinaryPowerLaw(length=512)
    np.save(tmp_path / "bits.npy", task.draw(400, task.stream("train", seed=0)).T.numpy())
    return tmp_path / "bits.npy"


def test_curve_and_law_are_printed(bits):
    result = run(bits, "--count", 15)
    assert result.exit_code == 0
    assert "400 sequences, 2 symbols" in " ".join(result.output.split())
    assert "power law, gamma = 0." in result.output


def test_json_holds_curve_fit_and_regimes(bits):
    (entry,) = json.loads(run(bits, "--json", "--longest", 50, "--threshold", 0.001).stdout)
    assert entry["lags"][-1] == 50
    assert entry["fit"]["law"] == "power"
    assert abs(entry["fit"]["exponent"] - 0.4) < 0.05
    assert entry["regimes"][0]["fit"]["law"] == "power"


def test_several_files_and_a_picture(bits, tmp_path):
    pytest.importorskip("plotly")
    (tmp_path / "text.txt").write_text("the cat sat on the mat " * 50)
    for files in ([bits], [bits, tmp_path / "text.txt"]):
        result = run(*files, "--output", tmp_path / "curve.html", "--json", "--count", 6, "--longest", 20)
        assert result.exit_code == 0
        assert len(json.loads(result.stdout)) == len(files)
        assert "lag" in (tmp_path / "curve.html").read_text()


def test_standard_input_and_what_to_be_wary_of():
    result = run("-", "--kind", "words", input="a b c d " * 3)
    assert result.exit_code == 0
    assert "no law: too few lags are above the floor" in result.output
    noise = np.random.default_rng(0).integers(0, 4, 300).astype(np.uint8).tobytes()
    assert "not above the noise floor" in run("-", input=noise).output


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (b"", (), "is empty"),
        (b"a", (), "at least two symbols"),
        (b"abcabc", ("--longest", "6"), "below the length of the longest sequence"),
        (b"abcabc", ("--longest", "-3"), "`longest` must be an int >= 1"),
        (b"abcabc", ("--count", "0"), "`count` must be an int >= 1"),
        (b"ab\xff", ("--kind", "characters"), "not UTF-8 text"),
        (b"abc", ("--kind", "npy"), "not an .npy file"),
        (b"abc", ("--kind", "letters"), "`kind` must be one of"),
        (b"abc", ("--estimator", "naive"), "`estimator` must be one of"),
    ],
)
def test_bad_input_is_one_clear_message(tmp_path, content, options, words):
    (tmp_path / "file").write_bytes(content)
    result = run(tmp_path / "file", *options)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("array", [np.array([0.5, 1.5]), np.array([0.0, np.nan])])
def test_arrays_of_other_things(tmp_path, array):
    np.save(tmp_path / "bad.npy", array)
    result = run(tmp_path / "bad.npy")
    assert result.exit_code == 2
    assert "must hold whole numbers" in " ".join(result.output.replace("│", " ").split())


def test_a_missing_file():
    assert run("nowhere.txt").exit_code == 2


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Two runs of a few updates: bits, and words of a text."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "text.txt").write_text(" = Cats = \n the cat sat on the mat and saw the rat \n" * 60)
    tasks = {
        "bits": {"name": "binary-power-law", "options": {"length": 40}},
        "words": {"name": "text", "options": {"path": str(folder / "text.txt"), "level": "word", "length": 8}},
    }
    for name, task in tasks.items():
        config = {"task": task, "model": {"name": "LSTM", "options": {"hidden_size": 4}}, "budget": {"updates": 2}}
        train(config_from({**config, "evaluation": {"every": 2, "batches": 1, "batch_size": 2}}), folder / name)
    return folder


def test_a_run_is_measured_beside_its_data(trained):
    result = run(trained / "bits", "--rows", 20, "--count", 5, "--json")
    assert result.exit_code == 0, result.output
    samples, training, validation = json.loads(result.stdout)
    assert [entry["file"].rpartition(": ")[2] for entry in (samples, training, validation)] == [
        "samples",
        "training",
        "validation",
    ]
    assert samples["lags"] == training["lags"] == validation["lags"]
    assert (samples["sequences"], training["sequences"], validation["sequences"]) == (20, 160, 20)
    assert abs(training["values"][0] - 0.1) < 0.02  # what the task says
    assert len(validation["uniformity"]["stretches"]) == 8
    assert "quality" not in samples


def test_a_run_of_words_is_measured_as_characters_with_its_quality(trained, tmp_path):
    pytest.importorskip("plotly")
    options = ("--rows", 10, "--length", 60, "--count", 6)
    result = run(trained / "words", *options, "--json", "--output", tmp_path / "page.html")
    assert result.exit_code == 0, result.output
    samples, training, _ = json.loads(result.stdout)
    letters = len(set(" = Cats = \n the cat sat on the mat and saw the rat \n"))
    assert training["alphabet"] == letters
    assert samples["quality"]["valid_words"] == 1.0  # it draws words of the text
    page = (tmp_path / "page.html").read_text()
    assert "windows apart" in page
    assert "stretch 1" in page
    shown = " ".join(run(trained / "words", *options).output.split())
    assert "words are in the reference" in shown
    assert "compared with the training data: outside the range" in shown


def test_a_folder_that_is_no_run_and_no_source_at_all(tmp_path):
    for arguments, words in (((tmp_path,), "`run` must be a run folder"), ((), "`files` must be files, runs")):
        result = run(*arguments)
        assert result.exit_code == 2
        assert words in " ".join(result.output.replace("│", " ").split())


def test_packed_files_are_unpacked_or_refused_by_name(tmp_path):
    contents = b"abracadabra " * 300
    (tmp_path / "a.txt").write_bytes(contents)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(contents))
    (tmp_path / "a.txt.xz").write_bytes(lzma.compress(contents))
    names = [str(tmp_path / name) for name in ("a.txt", "a.txt.gz", "a.txt.xz")]
    plain, *unpacked = json.loads(run(*names, "--count", "4", "--json").stdout)
    assert all(curve["values"] == plain["values"] for curve in unpacked)
    refused = run(tmp_path / "a.zip")
    assert refused.exit_code == 2
    assert "must be plain, .gz or .xz" in refused.output
    (tmp_path / "b.gz").write_bytes(b"no gzip")
    torn = run(tmp_path / "b.gz")
    assert torn.exit_code == 2
    assert "cannot be unpacked" in torn.output
    (tmp_path / "nothing.gz").write_bytes(gzip.compress(b""))
    assert run(tmp_path / "nothing.gz").output.strip() == f"error: {tmp_path / 'nothing.gz'} is empty"


def test_how_much_a_packed_file_holds_is_said_as_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("remanence.cli._information_sources.SAID_EVERY", 1 << 20)
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(bytes(3 << 20)))
    told = run(tmp_path / "zeros.gz", "--count", "2", "--json")
    assert [line.rpartition(": ")[2] for line in told.stderr.splitlines()] == ["1 MB read", "2 MB read", "3 MB read"]
    assert json.loads(told.stdout)[0]["alphabet"] == 1


def test_a_pipe_is_read_to_its_end(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b"abcab" * 400))
    writer.start()
    (curve,) = json.loads(run(tmp_path / "pipe", "--count", 3, "--json").stdout)
    writer.join()
    assert curve["alphabet"] == 3


def test_a_closed_standard_input_is_one_line(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="the standard input is closed"), readable("-"):
        pass


def test_abc_has_three_symbols(tmp_path):
    (tmp_path / "abc.txt").write_text("abc")
    (curve,) = json.loads(run(tmp_path / "abc.txt", "--json").stdout)
    assert curve["alphabet"] == 3
    assert "1 sequence, 3 symbols, 2 pairs" in " ".join(run(tmp_path / "abc.txt").output.split())
