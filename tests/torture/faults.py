"""Damage that is done to one file of a run's folder."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from remanence.runs import sealed, write_tensors

FITTING = "values of other types, checksums that fit"
STRANGE = [None, [], {}, "", "x", -1, 1e400, True, [[]], {"a": {}}, "../../secret", "[bold]a[/b]", 10**30]


def truncate(path: Path, draws: random.Random, outside: Path) -> None:
    contents = path.read_bytes()
    path.write_bytes(contents[: draws.randrange(max(len(contents), 1))])


def flip(path: Path, draws: random.Random, outside: Path) -> None:
    contents = bytearray(path.read_bytes() or b"\0")
    contents[draws.randrange(len(contents))] ^= 1 << draws.randrange(8)
    path.write_bytes(bytes(contents))


def empty(path: Path, draws: random.Random, outside: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path, draws: random.Random, outside: Path) -> None:
    path.unlink()


def directory(path: Path, draws: random.Random, outside: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path, draws: random.Random, outside: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link(path: Path, draws: random.Random, outside: Path) -> None:
    path.unlink()
    path.symlink_to(outside if draws.random() < 0.7 else outside.with_name("nowhere"))


def strange(path: Path, draws: random.Random, outside: Path) -> None:
    """Another type of one value, or of the whole."""
    if path.suffix == ".toml":
        path.write_text(_strange_toml(path.read_text(), draws))
    elif path.suffix in (".json", ".jsonl"):
        lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
        place = draws.randrange(max(len(lines), 1))
        lines[place : place + 1] = [json.dumps(_strange_json(json.loads(lines[place]), draws))]
        path.write_text("\n".join(lines) + "\n")
    else:
        path.write_bytes(draws.randbytes(draws.randrange(200)))


def _strange_json(value: Any, draws: random.Random) -> Any:
    if isinstance(value, dict) and value and draws.random() < 0.8:
        key = draws.choice(sorted(value))
        return {**value, key: _strange_json(value[key], draws)}
    return draws.choice(STRANGE)


def _strange_toml(text: str, draws: random.Random) -> str:
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if " = " in line]
    place = draws.choice(places)
    name = lines[place].split(" = ")[0]
    lines[place] = f"{name} = " + draws.choice(['"x"', "-1", "[]", "{}", "inf", "true", '"[bold]a[/b]"', "1" * 40])
    return "\n".join(lines)


def fitting(path: Path, draws: random.Random, outside: Path) -> None:
    """Another type of one value, and every checksum made to fit: what a stranger writes, and no accident does."""
    if path.suffix == ".safetensors":
        _strange_tensors(path, draws)
    elif path.suffix == ".json" and isinstance(table := json.loads(path.read_text()), dict):
        key = draws.choice(sorted(table))
        changed = {**table, key: _strange_json(table[key], draws)}
        path.write_text(sealed(changed) if "sha256" in table else json.dumps(changed))
    else:
        strange(path, draws, outside)
    sums = path.with_name("sha256.json")
    if path != sums and sums.is_file():
        sums.write_text(json.dumps({**json.loads(sums.read_text()), path.name: _sha256(path.read_bytes())}))


def _sha256(contents: bytes) -> str:
    return hashlib.sha256(contents).hexdigest()


def _strange_tensors(path: Path, draws: random.Random) -> None:
    """One tensor of another kind, size or value, or under another name."""
    tensors = safetensors.torch.load(path.read_bytes())
    if tensors:
        name = draws.choice(sorted(tensors))
        tensor = tensors.pop(name)
        others = [torch.zeros(0), torch.zeros(3, dtype=torch.bool), torch.full((2,), float("nan"))]
        others += [tensor.to(torch.int8), tensor.double(), tensor[None], tensor.flatten()[:-1].clone(), tensor * 0 + 7]
        tensors[draws.choice([name, name, name, f"../{name}"])] = draws.choice(others)
    write_tensors(path, tensors, draws.choice([{"update": 3}, {"update": "x"}, {}]))


def deep(path: Path, draws: random.Random, outside: Path) -> None:
    nested = "[" * 100_000
    path.write_text(f"a = {nested}" if path.suffix == ".toml" else nested)


FAULTS: dict[str, Callable[[Path, random.Random, Path], None]] = {
    "truncated": truncate,
    "one bit flipped": flip,
    "emptied": empty,
    "removed": remove,
    "a directory instead": directory,
    "a pipe instead": pipe,
    "a link that leads outside": link,
    "values of other types": strange,
    FITTING: fitting,
    "nested 100,000 deep": deep,
}


def deny(path: Path, draws: random.Random) -> None:
    """Takes the rights to a file or its folder."""
    victim = draws.choice([path, path.parent])
    victim.chmod(draws.choice([0, 0o444] if victim == path else [0, 0o555]))
