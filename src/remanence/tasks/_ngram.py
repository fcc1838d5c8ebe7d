"""What counting alone reaches on a text: the baselines of the text tasks."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from remanence.data import Corpus
from remanence.tasks._batch import Baseline

_DENSE_LIMIT = 1 << 22
_BLOCK = 1 << 22


class _Pairs(NamedTuple):
    """Different neighbouring pairs of tokens, first * symbols + second, in rising order, and how often they come."""

    codes: np.ndarray
    counts: np.ndarray


@functools.lru_cache(maxsize=6)
def unigram(corpus: Corpus) -> Baseline:
    """Judges the token frequencies of the training split, one added to every count, on the validation split.

    The accuracy is that of always naming the most frequent token.
    """
    counts = _frequencies(corpus) + 1.0
    chances = counts / counts.sum()
    held_out = corpus.validation.numpy()[1:]
    right = (held_out == counts.argmax()).mean()
    return Baseline(float(-np.log(chances)[held_out].mean()), float(right))


@functools.lru_cache(maxsize=6)
def bigram(corpus: Corpus) -> Baseline:
    """Judges a bigram model of the training split on the validation split.

    A token's followers share out the weight by their counts, and the number of different followers is the weight of the
    token frequencies mixed in (Witten-Bell smoothing). The accuracy is that of naming the most frequent follower.
    """
    symbols = len(corpus.vocabulary)
    frequencies = _frequencies(corpus) + 1.0
    chances = frequencies / frequencies.sum()
    pairs = _count_pairs(corpus.train.numpy(), symbols)
    first = pairs.codes // symbols
    seen = np.bincount(first, pairs.counts, minlength=symbols)
    followers = np.bincount(first, minlength=symbols)

    held_out = corpus.validation.numpy().astype(np.int64)
    before = held_out[:-1]
    after = held_out[1:]
    # Codes are sorted; a pair that was never seen lands on another code, and counts 0 below.
    place = np.searchsorted(pairs.codes, before * symbols + after).clip(max=len(pairs.codes) - 1)
    joint = np.where(pairs.codes[place] == before * symbols + after, pairs.counts[place], 0)
    # A token that training never followed up would have no weight at all.
    fallback = np.where(followers[before] > 0, followers[before], 1)
    mixed = (joint + fallback * chances[after]) / (seen[before] + fallback)
    right = _likeliest_followers(pairs, symbols, int(frequencies.argmax()))[before] == after
    return Baseline(float(-np.log(mixed).mean()), float(right.mean()))


def _frequencies(corpus: Corpus) -> np.ndarray:
    return np.bincount(corpus.train.numpy(), minlength=len(corpus.vocabulary))


def _count_pairs(tokens: np.ndarray, symbols: int) -> _Pairs:
    if symbols * symbols > _DENSE_LIMIT:
        wide = tokens.astype(np.int64)
        return _Pairs(*np.unique(wide[:-1] * symbols + wide[1:], return_counts=True))
    table = np.zeros(symbols * symbols, dtype=np.int64)
    # In blocks: the pairs of a hundred million characters would need most of a gigabyte at once.
    for start in range(0, len(tokens) - 1, _BLOCK):
        block = tokens[start : start + _BLOCK + 1].astype(np.int64)
        table += np.bincount(block[:-1] * symbols + block[1:], minlength=len(table))
    codes = np.flatnonzero(table)
    return _Pairs(codes, table[codes])


def _likeliest_followers(pairs: _Pairs, symbols: int, otherwise: int) -> np.ndarray:
    best = np.full(symbols, otherwise)
    rising = np.argsort(pairs.counts, kind="stable")
    # The last of repeated assignments stays, which is the highest count.
    best[pairs.codes[rising] // symbols] = pairs.codes[rising] % symbols
    return best
