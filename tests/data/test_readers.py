"""Readers and corpora, on files made here and on the real ones."""

import contextlib
import gzip
import lzma

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from remanence import data
from remanence.data import DataError
from remanence.data._corpus import frequent_words
from remanence.probes import read_symbols


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return header + array.astype(np.uint8).tobytes()


@given(arrays(np.uint8, array_shapes(max_dims=4)))
@settings(max_examples=30, deadline=None)
def test_idx_round_trip(array):
    assert np.array_equal(data.read_idx(idx(array)), array)


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (b"", "not an IDX file"),
        (b"\0\0\x0d\x01\0\0\0\0", "not an IDX file"),
        (b"\0\0\x08\x03\0\0\0\x01", "header of 3 dimensions"),
        (b"\0\0\x08\x01\0\0\0\x05abc", "needs 5 bytes; got 3"),
    ],
)
def test_damaged_idx_is_refused(contents, complaint):
    with pytest.raises(DataError, match=complaint):
        data.read_idx(contents)


@pytest.mark.parametrize(("suffix", "pack"), [(".txt", bytes), (".gz", gzip.compress), (".xz", lzma.compress)])
def test_text_is_read_packed_or_not(tmp_path, suffix, pack):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(pack("naïve\r\ntext\n".encode()))
    assert data.read_text(path) == "naïve\r\ntext\n"


def test_text_must_be_utf8(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not UTF-8"):
        data.read_text(path)


NPY = b"\x93NUMPY\x01\x00"


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"PK\x03\x04" + bytes(60),
        b"\x80\x04N.",
        NPY[:7],
        NPY + (300).to_bytes(2, "little") + b"(" * 300,
        NPY + (60_000).to_bytes(2, "little") + b"[" * 60_000,
    ],
    ids=["empty", "archive", "pickle", "cut", "brackets", "many brackets"],
)
def test_what_is_no_array_is_named(tmp_path, contents):
    path = tmp_path / "a.npy"
    path.write_bytes(contents)
    with pytest.raises(DataError, match=r"a\.npy is not an \.npy file"):
        data.read_tokens(path)
    if contents:
        with pytest.raises(ValueError, match=r"a\.npy is not an \.npy file"):
            read_symbols(path)


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_packed_text_with_a_flipped_byte_is_named(tmp_path, suffix, pack):
    path, whole = tmp_path / f"a{suffix}", pack(b"a text " * 300)
    for place in range(len(whole)):
        contents = bytearray(whole)
        contents[place] ^= 255
        path.write_bytes(contents)
        with contextlib.suppress(DataError):  # some bytes of a header mean nothing
            assert data.read_text(path) == "a text " * 300


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2), int), np.array(["a"])])
def test_token_arrays_must_be_flat_integers(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DataError, match="one-dimensional array of integers"):
        data.read_tokens(tmp_path / "a.npy")


@given(st.text(min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_characters_round_trip(text):
    corpus = data.corpus_of_characters([text, text[:1], text[-1:]])
    assert corpus.vocabulary.decode(corpus.train) == text
    assert torch.equal(corpus.vocabulary.encode(text), corpus.train.long())
    assert len(corpus.vocabulary) == len(set(text))


def test_many_symbols_need_a_wider_type():
    letters = "".join(map(chr, range(1000, 1300)))
    corpus = data.corpus_of_characters([letters, "", ""])
    assert corpus.train.long().tolist() == list(range(300))


@given(st.lists(st.sampled_from(["a", "bb", "ccc"]), min_size=1))
@settings(max_examples=30, deadline=None)
def test_words_round_trip(words):
    corpus = data.corpus_of_words([words, [], []])
    assert corpus.vocabulary.decode(corpus.train) == " ".join(words)


def test_unknown_symbols_are_named():
    with pytest.raises(ValueError, match="'z'"):
        data.Vocabulary(("a",)).encode("az")


def test_user_files_are_cut_in_order(tmp_path):
    path = tmp_path / "tokens.txt"
    path.write_text(" ".join(map(str, range(20))))
    corpus = data.corpus_from_tokens(path, 0.1, 0.2)
    parts = [corpus.vocabulary.decode(part) for part in (corpus.train, corpus.validation, corpus.test)]
    assert " ".join(parts) == " ".join(map(str, range(20)))
    assert [len(part.split()) for part in parts] == [14, 2, 4]


def test_files_too_short_to_split_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("abcde")
    with pytest.raises(ValueError, match="at least 2 tokens"):
        data.corpus_from_text(path, "char", 0.1, 0.1)


REAL = {
    "ptb-char": ("ptb/ptb.char.train.txt", (5_017_482, 393_042, 442_423), 50),
    "ptb-word": ("ptb/ptb.train.txt", (929_589, 73_760, 82_430), 10_000),
    "wikitext2-char": ("wikitext-2/train.txt", (10_780_437, 1_120_192, 1_255_018), 283),
    "wikitext2-word": ("wikitext-2/train.txt", (2_088_628, 217_646, 245_569), 33_278),
}


@pytest.mark.parametrize("name", REAL)
def test_real_texts_have_the_published_sizes(name, require_or_skip):
    file, sizes, symbols = REAL[name]
    if not data.is_available(file):
        require_or_skip("data", f"data file {file} is not on this machine (set REMANENCE_DATA)")
    corpus = data.load_corpus(name)
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == sizes
    assert len(corpus.vocabulary) == symbols == len(corpus.train.unique())


@pytest.mark.slow
def test_the_prefix_of_text8_is_split_as_labelled(require_or_skip):
    if not data.is_available("text8/text8.first74081952.txt"):
        require_or_skip("data", "the prefix of text8 is not on this machine (set REMANENCE_DATA)")
    corpus = data.load_corpus("text8-prefix")
    assert (len(corpus.train), len(corpus.validation), len(corpus.test)) == (64_081_952, 5_000_000, 5_000_000)
    assert corpus.vocabulary.symbols == tuple(" abcdefghijklmnopqrstuvwxyz")


def test_real_digits_are_the_canonical_ones(require_or_skip):
    if not data.is_available("mnist/train-images-idx3-ubyte"):
        require_or_skip("data", "MNIST is not on this machine (set REMANENCE_DATA)")
    digits = data.load_mnist()
    assert digits.train_images.shape == (60_000, 784)
    assert digits.test_images.shape == (10_000, 784)
    assert digits.train_labels.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert f"{digits.train_images.double().mean() / 255:.4f}" == "0.1307"


def test_rare_words_become_the_sign_for_them():
    words = ["a", "b", "a", "<unk>", "c", "a", "b", "d"]
    corpus = data.corpus_of_words([words, ["d", "a"], ["b", "e"]])
    cut = frequent_words(corpus, 3)
    assert cut.vocabulary.symbols == ("a", "b", "<unk>")
    assert [cut.vocabulary.decode(part) for part in (cut.train, cut.validation, cut.test)] == [
        "a b a <unk> <unk> a b <unk>",
        "<unk> a",
        "b <unk>",
    ]
    assert frequent_words(corpus, 99).vocabulary == corpus.vocabulary
    with pytest.raises(ValueError, match="`count` must be"):
        frequent_words(corpus, 1)
