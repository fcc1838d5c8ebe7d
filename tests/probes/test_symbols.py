import io
import sys

import numpy as np
import pytest

from remanence import probes
from remanence.probes._symbols import as_symbols


def written(folder, name, content):
    place = folder / name
    place.write_bytes(content)
    return place


def test_bytes_are_mapped_not_loaded(tmp_path):
    symbols = probes.read_symbols(written(tmp_path, "text.bin", b"abca"))
    assert symbols.values.tolist() == [97, 98, 99, 97]
    assert isinstance(symbols.values, np.memmap)


def test_characters_and_words_of_a_text(tmp_path):
    place = written(tmp_path, "text.txt", "да, да нет".encode())
    assert probes.read_symbols(place, "characters").alphabet == 7
    assert probes.read_symbols(place, "words").values.tolist() == [0, 1, 2]


def test_dna_is_broken_at_unknown_letters_and_records(tmp_path):
    place = written(tmp_path, "genome.fa", b">one ACGT\nACgt\r\nACNNGG\n>two\nTTT\n")
    symbols = probes.read_symbols(place)
    assert symbols.starts.tolist() == [0, 6, 8, 11]
    assert symbols.values.tolist() == [0, 1, 2, 3, 0, 1, 2, 2, 3, 3, 3]


def test_dna_without_header(tmp_path):
    assert probes.read_symbols(written(tmp_path, "plain.fna", b"ACGT")).values.tolist() == [0, 1, 2, 3]


def test_an_array_of_sequences(tmp_path):
    np.save(tmp_path / "rows.npy", np.array([[5, 300, -2], [5, 5, 300]]))
    symbols = probes.read_symbols(tmp_path / "rows.npy")
    assert symbols.starts.tolist() == [0, 3, 6]
    assert symbols.values.tolist() == [1, 2, 0, 1, 1, 2]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"abab")))
    assert probes.read_symbols("-", "characters").alphabet == 98 + 1


def test_sequences_of_different_length():
    symbols = as_symbols([np.array([1, 2]), [3], np.array([4, 5, 6])])
    assert symbols.starts.tolist() == [0, 2, 3, 6]
    assert symbols.longest == 3


def test_many_symbols_are_numbered_afresh():
    symbols = as_symbols(np.arange(1000) * 7)
    assert symbols.alphabet == 1000
    assert symbols.values.dtype == np.int64


@pytest.mark.parametrize(
    ("name", "content", "kind", "words"),
    [
        ("a.txt", b"", "auto", "is empty"),
        ("a.npy", b"", "auto", "is empty"),
        ("a.txt", b"ab\xff", "characters", "no UTF-8 text: invalid start byte at byte 2. Read it as bytes"),
        ("a.fa", b">only a header\n", "auto", "holds no A, C, G or T"),
        ("a.npy", b"not numpy", "auto", "is no .npy file"),
        ("a.txt", b"  ", "words", "`sequence` must hold at least two symbols"),
        ("a.txt", b"ab", "letters", "`kind` must be one of"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, kind, words):
    with pytest.raises(ValueError, match=words):
        probes.read_symbols(written(tmp_path, name, content), kind)


@pytest.mark.parametrize("array", [np.array([0.5]), np.array([1.0, np.nan]), np.array(["a"])])
def test_arrays_of_other_things_are_refused(tmp_path, array):
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(ValueError, match="`sequence` must hold whole numbers"):
        probes.read_symbols(tmp_path / "bad.npy")


def test_a_missing_file_says_so():
    with pytest.raises(FileNotFoundError):
        probes.read_symbols("nowhere.txt")
