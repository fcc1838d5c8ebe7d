"""Data sets: where their files lie, how they are fetched and checked, and how they are read.

Files, sizes and checksums are in ``catalogue.csv``; :func:`load_corpus` and :func:`load_mnist` give what is learnt.
"""

from remanence._renamed import renamed
from remanence.data._catalogue import DataFile, Form, entry, names
from remanence.data._corpus import (
    END_OF_LINE,
    Corpus,
    CorpusName,
    Level,
    Vocabulary,
    corpus_from_text,
    corpus_from_tokens,
    corpus_of_characters,
    corpus_of_words,
    frequent_words,
    load_corpus,
)
from remanence.data._errors import ChecksumError, DataError, MissingDataError
from remanence.data._fetch import fetch, sha256_of
from remanence.data._files import cache_directory, data_directories, is_available, load_bytes, locate
from remanence.data._readers import Mnist, load_mnist, read_idx, read_text, read_tokens
from remanence.data._series import Series, read_series

__all__ = [
    "DataFile",
    "Form",
    "entry",
    "names",
    "cache_directory",
    "data_directories",
    "is_available",
    "locate",
    "load_bytes",
    "fetch",
    "sha256_of",
    "DataError",
    "MissingDataError",
    "ChecksumError",
    "Corpus",
    "CorpusName",
    "Level",
    "Vocabulary",
    "load_corpus",
    "frequent_words",
    "END_OF_LINE",
    "corpus_from_text",
    "corpus_from_tokens",
    "corpus_of_characters",
    "corpus_of_words",
    "Mnist",
    "load_mnist",
    "read_idx",
    "read_text",
    "read_tokens",
    "Series",
    "read_series",
]

__getattr__ = renamed(__name__, {"Entry": "DataFile"})
