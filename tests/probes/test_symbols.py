import io
import sys
from pathlib import Path

import numpy as np
import pytest

from remanence import probes
from remanence.probes import _pair_counts, _spool
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
    assert probes.read_symbols("-", "characters").values.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        ("bytes", b"", "standard input is empty"),
        ("characters", b"", "standard input is empty"),
        ("characters", b"a\xff", "standard input is not UTF-8 text"),
        ("dna", b"", "standard input holds no A, C, G or T"),
        ("npy", b"", "standard input is not an .npy file"),
    ],
)
def test_bad_standard_input_is_named(monkeypatch, kind, content, words):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(ValueError, match=words):
        probes.read_symbols("-", kind)


def test_an_array_from_the_standard_input(monkeypatch):
    stream = io.BytesIO()
    np.save(stream, np.array([300, 5, 300]))
    stream.seek(0)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
    assert probes.read_symbols("-", "npy").values.tolist() == [1, 0, 1]


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
        ("a.txt", b"ab\xff", "characters", "not UTF-8 text: invalid start byte at byte 2. Read it as bytes"),
        ("a.fa", b">only a header\n", "auto", "holds no A, C, G or T"),
        ("a.fa", b"", "auto", "is empty"),
        ("a.txt", b"\xfe\xff", "words", "not UTF-8 text: invalid start byte at byte 0. Read it as bytes"),
        ("a.npy", b"not numpy", "auto", "is not an .npy file"),
        ("a.txt", b"  ", "words", "`sequence` must hold at least two symbols"),
        ("a.txt", b"ab", "letters", "`kind` must be one of"),
    ],
)
def test_bad_files_are_named(tmp_path, name, content, kind, words):
    with pytest.raises(ValueError, match=words):
        probes.read_symbols(written(tmp_path, name, content), kind)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device")
def test_a_device_is_not_said_to_be_empty():
    with pytest.raises(ValueError, match="`path` must be a regular file; got '/dev/zero'"):
        probes.read_symbols("/dev/zero")


@pytest.mark.parametrize("array", [np.array([0.5]), np.array([1.0, np.nan]), np.array(["a"])])
def test_arrays_of_other_things_are_refused(tmp_path, array):
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(ValueError, match="`sequence` must hold whole numbers"):
        probes.read_symbols(tmp_path / "bad.npy")


def test_a_missing_file_says_so():
    with pytest.raises(FileNotFoundError):
        probes.read_symbols("nowhere.txt")


@pytest.mark.parametrize("kind", ["characters", "words"])
@pytest.mark.parametrize("block", [1, 3, 7, 1 << 20])
def test_a_text_is_the_same_whatever_the_blocks(tmp_path, monkeypatch, kind, block):
    text = "naïve  cafés\nünd 𝄞 music, naïve again " * 3
    (tmp_path / "text").write_text(text, encoding="utf-8")
    monkeypatch.setattr(_spool, "BLOCK", block)
    found = probes.read_symbols(tmp_path / "text", kind)
    units = text if kind == "characters" else text.split()
    numbers = list(dict.fromkeys(found.values.tolist()))
    names = dict(zip(numbers, dict.fromkeys(units), strict=True))
    assert [names[number] for number in found.values.tolist()] == list(units)
    assert max(numbers) == len(numbers) - 1


def test_more_than_256_words_are_mapped_and_counted(tmp_path, monkeypatch):
    words = [f"w{number % 300}" for number in range(2000)]
    (tmp_path / "text").write_text(" ".join(words))
    monkeypatch.setattr(_spool, "BLOCK", 100)
    monkeypatch.setattr(_pair_counts, "_BLOCK", 64)
    found = probes.read_symbols(tmp_path / "text", "words")
    assert isinstance(found.values, np.memmap)
    assert found.alphabet == 300
    counted = [
        list(_pair_counts.pairs_by_lag(symbols, np.array([1, 300]), 4))
        for symbols in (found, as_symbols(" ".join(words), "words"))
    ]
    for in_blocks, at_once in zip(*counted, strict=True):
        assert sorted(in_blocks.counts.sum(0).tolist()) == sorted(at_once.counts.sum(0).tolist())
        assert in_blocks.counts.sum(1).tolist() == at_once.counts.sum(1).tolist()


@pytest.mark.parametrize("block", [1, 2, 100])
def test_the_bad_byte_is_named_whatever_the_blocks(tmp_path, monkeypatch, block):
    (tmp_path / "text").write_bytes("ä".encode() + b"bc\xff")
    monkeypatch.setattr(_spool, "BLOCK", block)
    with pytest.raises(ValueError, match=r"not UTF-8 text: .* at byte 4\. Read it as bytes"):
        probes.read_symbols(tmp_path / "text", "characters")


def test_half_a_character_at_the_end_is_an_error(tmp_path):
    (tmp_path / "text").write_bytes(b"ab\xc3")
    with pytest.raises(ValueError, match="unexpected end of data at byte 2"):
        probes.read_symbols(tmp_path / "text", "characters")
