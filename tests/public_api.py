"""The public names of the package, one per line; run with ``--write`` to commit to a wanted change."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

COMMITTED = Path(__file__).with_suffix(".txt")


def public_modules() -> Iterator[str]:
    """Yields the package and its public subpackages; a public module inside one of them is not an entrance."""
    import remanence

    yield "remanence"
    for module in pkgutil.iter_modules(remanence.__path__, "remanence."):
        if module.ispkg and not module.name.rpartition(".")[2].startswith("_"):
            yield module.name


def public_names() -> list[str]:
    """Lists every public name in full; naming something that does not exist is an AttributeError."""
    found = []
    for path in public_modules():
        module = importlib.import_module(path)
        for name in module.__all__:
            getattr(module, name)
            found.append(f"{path}.{name}")
    return sorted(found)


if __name__ == "__main__":
    names = public_names()
    if "--write" in sys.argv:
        COMMITTED.write_text("\n".join(names) + "\n", encoding="utf-8")
    else:
        print("\n".join(names))
