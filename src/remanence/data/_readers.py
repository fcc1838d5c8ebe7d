"""Readers of file formats: IDX images, text, token files."""

from __future__ import annotations

import functools
import math
import struct
from pathlib import Path
from tokenize import TokenError
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from remanence import _validate
from remanence.data._errors import DataError
from remanence.data._files import load_bytes, unpack

_IDX_UNSIGNED_BYTE = 8


class Mnist(NamedTuple):
    """Handwritten digits.

    Attributes:
        train_images: uint8 `(60000, 784)`, rows of the picture one after the other.
        train_labels: int64 `(60000,)`.
        test_images: uint8 `(10000, 784)`.
        test_labels: int64 `(10000,)`.

    Example:
        >>> Mnist._fields
        ('train_images', 'train_labels', 'test_images', 'test_labels')
    """

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def read_idx(contents: bytes) -> np.ndarray:
    """Reads an array of unsigned bytes in the IDX format.

    Args:
        contents: The file's bytes: two zeros, type 8, number of dimensions, big-endian sizes, data.

    Returns:
        uint8 array of the stated shape.

    Raises:
        DataError: If the header is not one of IDX bytes, or the length does not fit it.

    Example:
        >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
        array([7, 9], dtype=uint8)
    """
    if len(contents) < 4 or contents[:2] != b"\0\0" or contents[2] != _IDX_UNSIGNED_BYTE:
        raise DataError(f"not an IDX file of unsigned bytes: it begins with {contents[:4]!r}")
    rank = contents[3]
    start = 4 + 4 * rank
    if len(contents) < start:
        raise DataError(f"an IDX header of {rank} dimensions needs {start} bytes; got {len(contents)}")
    sizes = struct.unpack(f">{rank}I", contents[4:start])
    if len(contents) - start != math.prod(sizes):
        raise DataError(f"an IDX file of shape {sizes} needs {math.prod(sizes)} bytes; got {len(contents) - start}")
    return np.frombuffer(contents, np.uint8, offset=start).reshape(sizes)


@functools.lru_cache(maxsize=1)
def load_mnist() -> Mnist:
    """Reads the four MNIST files, once.

    Raises:
        DataError: If a file cannot be had or is damaged.

    Example:
        >>> from remanence.data import is_available
        >>> if is_available("mnist/train-images-idx3-ubyte"):
        ...     assert load_mnist().train_images.shape == (60_000, 784)
    """

    def read(name: str) -> Tensor:
        return torch.from_numpy(read_idx(load_bytes(f"mnist/{name}")).copy())

    train_labels = read("train-labels-idx1-ubyte")
    test_labels = read("t10k-labels-idx1-ubyte")
    return Mnist(
        train_images=read("train-images-idx3-ubyte").flatten(1),
        train_labels=train_labels.long(),
        test_images=read("t10k-images-idx3-ubyte").flatten(1),
        test_labels=test_labels.long(),
    )


def read_text(path: str | Path) -> str:
    """Reads a user's text file, plain or packed with gzip or xz, with its line ends as they are.

    Raises:
        ValueError: If there is no such file.
        DataError: If it is damaged or not UTF-8.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.txt"
        ...     _ = path.write_text("abc")
        ...     print(read_text(path))
        abc
    """
    file = existing_file(path)
    try:
        return unpack(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text: {error}. Convert it, or use a token file") from error


def read_tokens(path: str | Path) -> np.ndarray:
    """Reads one long sequence of tokens.

    Args:
        path: A one-dimensional integer array (.npy), or text with tokens of any spelling between spaces and line ends.

    Returns:
        Array `(N,)` of integers or of strings.

    Raises:
        ValueError: If there is no such file.
        DataError: If a .npy file is damaged, or an array is not one-dimensional or not of integers.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "a.npy"
        ...     np.save(path, np.array([3, 1, 3]))
        ...     print(read_tokens(path))
        [3 1 3]
    """
    file = existing_file(path)
    if file.suffix != ".npy":
        return np.array(read_text(file).split())
    tokens = _read_array(file)
    if tokens.ndim != 1 or not np.issubdtype(tokens.dtype, np.integer):
        got = f"shape {tokens.shape} of {tokens.dtype}"
        raise DataError(f"{file} must hold a one-dimensional array of integers; got {got}")
    return tokens


def _read_array(file: Path) -> np.ndarray:
    """An array of a .npy file, which alone is read: numpy's own `load` also takes archives and pickles."""
    try:
        with file.open("rb") as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, TokenError) as error:
        raise DataError(f"{file} is not an .npy file: {error}") from error


def existing_file(path: str | Path) -> Path:
    """Checks that a path given by the user names a file.

    Example:
        >>> existing_file("no-such-file")
        Traceback (most recent call last):
        ValueError: `path` must name an existing file; got 'no-such-file'
    """
    file = Path(path).expanduser()
    if not str(path) or not file.is_file():
        raise ValueError(_validate.message("path", "name an existing file", repr(str(path))))
    return file
