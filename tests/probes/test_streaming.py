"""Files larger than the memory: what is held does not grow with the file."""

import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest

from remanence import probes
from remanence.probes import _many_symbols, _pair_counts, _spool

UNIT = 20_000  # symbols; files have one or eight times as many


def letters(count):
    return np.random.default_rng(0).integers(0, 4, count)


def words(count):
    return " ".join(f"w{number}" for number in np.random.default_rng(0).integers(0, 600, count)).encode()


def fasta(count):
    lines = np.frombuffer(b"ACGT", np.uint8)[letters(count)].tobytes()
    cut = [lines[at : at + 70] for at in range(0, count, 70)]
    return b">first\n" + b"\n".join(cut[: len(cut) // 2]) + b"\nNNN\n>second ACGT\n" + b"\n".join(cut[len(cut) // 2 :])


def saved(path, array):
    np.save(path, array)
    return path


def written(path, content):
    path.write_bytes(content)
    return path


FILES = {
    "bytes": lambda place, count: written(place / "a.bin", letters(count).astype(np.uint8).tobytes()),
    "characters": lambda place, count: written(place / "a.txt", "aäbc".encode() * (5 * count)),
    "words": lambda place, count: written(place / "w.txt", words(count)),
    "dna": lambda place, count: written(place / "a.fa", fasta(count)),
    "npy": lambda place, count: saved(place / "a.npy", letters(count) * 1000 - 5),
    "npy of bytes": lambda place, count: saved(place / "a.npy", letters(count).astype(np.uint8)),
    "npy of rows": lambda place, count: saved(place / "a.npy", letters(count).reshape(4, -1)),
    "npy of columns": lambda place, count: saved(place / "a.npy", np.asfortranarray(letters(count).reshape(4, -1))),
    "npy of many": lambda place, count: saved(place / "a.npy", np.random.default_rng(0).integers(0, 600, count) << 40),
}


@pytest.fixture
def small_blocks(monkeypatch):
    for module, name in (
        (_spool, "BLOCK"),
        (_many_symbols, "HELD"),
        (_many_symbols, "_BLOCK"),
        (_pair_counts, "_BLOCK"),
    ):
        monkeypatch.setattr(module, name, 2048)


def curve(path, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return probes.mutual_information(probes.read_symbols(path, kind.split()[0]), [1, 50], groups=2, draws=2)


def most_memory(path, kind):
    tracemalloc.start()
    curve(path, kind)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("kind", FILES)
def test_memory_does_not_grow_with_the_file(tmp_path, small_blocks, kind):
    curve(FILES[kind](tmp_path, 1000), kind)  # whatever is made once
    short, long = (most_memory(FILES[kind](tmp_path, UNIT * times), kind) for times in (1, 8))
    assert long < 1.5 * short


@pytest.mark.parametrize("kind", FILES)
def test_blocks_change_nothing(tmp_path, request, kind):
    path = FILES[kind](tmp_path, UNIT)
    whole = curve(path, kind)
    request.getfixturevalue("small_blocks")
    parts = curve(path, kind)
    assert parts.pairs.tolist() == whole.pairs.tolist()
    np.testing.assert_allclose(parts.values, whole.values)


@pytest.mark.parametrize("block", [1, 2, 7, 1 << 20])
def test_dna_is_the_same_whatever_the_blocks(tmp_path, monkeypatch, block):
    monkeypatch.setattr(_spool, "BLOCK", block)
    content = b">one ACGT\nACgt\r\nAC>CN\nGG\n>two\n\nTTT\n>empty\n>last\nA"
    symbols = probes.read_symbols(written(tmp_path / "a.fa", content))
    assert symbols.starts.tolist() == [0, 6, 7, 9, 12, 13]
    assert symbols.values.tolist() == [0, 1, 2, 3, 0, 1, 1, 2, 2, 3, 3, 3, 0]


LIMITED = """
import resource, sys, warnings
import numpy as np
import remanence.probes as probes

def used():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024

warnings.simplefilter("ignore")
probes.mutual_information(np.arange(2000) % 700, [1])
probes.mutual_information(b"ab" * 50, [1])
bound = used() + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
found = probes.mutual_information(probes.read_symbols(sys.argv[1], sys.argv[2]), [1, 1000], draws=2)
print(found.pairs[0])
"""


PIECES = {
    "bytes": lambda: letters(1 << 20).astype(np.uint8).tobytes(),
    "dna": lambda: fasta(1 << 20),
    "npy": lambda: letters(1 << 17).astype("<i8").tobytes(),
    "words": lambda: words(1 << 17).replace(b"w", b"w" * 60) + b" ",
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory as Linux does")
@pytest.mark.parametrize(("kind", "megabytes"), [("bytes", 50), ("dna", 150), ("npy", 150), ("words", 200)])
def test_a_file_larger_than_the_memory_is_measured(tmp_path, kind, megabytes):
    """Private memory is limited to less than the file's size; what is mapped does not count."""
    path, size = tmp_path / "large", (megabytes + 50) << 20
    piece = PIECES[kind]()
    with path.open("wb") as file:
        if kind == "npy":
            shape = (size // len(piece) * len(piece) // 8,)
            np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": shape})
        for _ in range(size // len(piece)):
            file.write(piece)
    command = [sys.executable, "-c", LIMITED, str(path), kind, str(megabytes << 20)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert int(result.stdout) > size // 100
