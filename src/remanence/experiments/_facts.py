"""Facts about the code and the machine that made a number."""

from __future__ import annotations

import json
from pathlib import Path

import remanence
from remanence.runs import Values, make_manifest
from remanence.train import RunConfig

LABELLED = ("remanence", "kernel", "torch", "machine", "instruction_set")


def machine_facts() -> Values:
    """Version and commit of the package, digest of the kernel, and what decides the last bits here."""
    manifest = make_manifest(RunConfig())
    facts = {name: manifest[name] for name in ("remanence", "backend", "instruction_set", "torch", "python", "machine")}
    return {**facts, "commit": (manifest["git"] or {}).get("commit"), "kernel": kernel_digest()}


def kernel_digest() -> str | None:
    """Digest of the sources that the kernel was built from, None without one."""
    path = Path(remanence.__file__).parent / "_build.json"
    if not path.is_file():
        return None
    return json.loads(path.read_text(encoding="utf-8")).get("sources")


def differences(facts: Values, here: Values | None = None) -> list[str]:
    """What was different where a number was made, in words; empty if nothing that matters.

    Example:
        >>> differences({"torch": "1.0"}, {"torch": "2.0"})
        ["torch '1.0' there, '2.0' here"]
    """
    now = here or machine_facts()
    named = [name for name in LABELLED if name in facts and facts[name] != now.get(name)]
    return [f"{name} {facts[name]!r} there, {now.get(name)!r} here" for name in named]
