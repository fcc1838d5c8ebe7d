"""The arrows between the subpackages point one way.

`csrc -> ops -> nn -> train -> rl -> experiments -> report -> cli`; `data -> tasks`; `runs` lies below `train`, `rl`
and `probes` and knows no model; `probes` may use `ops`, `theory` and `figures` but never `nn`; `kv` may use `ops`,
`runs` and `figures`; `theory` and `figures` use none of us; `claims` may use all of these; only tests use `testing`.
Imports anywhere in a file count, those inside functions and under TYPE_CHECKING too. No package imports another
package's private module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "remanence"

CHAIN = ["ops", "nn", "train", "rl", "experiments", "report", "cli"]
MAY_IMPORT: dict[str, set[str]] = {name: set(CHAIN[:place]) for place, name in enumerate(CHAIN)}
MAY_IMPORT |= {
    "data": set(),
    "figures": set(),
    "runs": {"ops"},
    "tasks": {"data"},
    "theory": set(),
    "probes": {"ops", "theory", "figures", "runs"},
    "kv": {"ops", "runs", "figures"},
    "claims": {"runs", "ops", "nn", "train", "rl", "experiments", "data", "tasks", "theory", "probes"},
    "testing": {"ops", "nn", "data", "tasks", "theory", "probes"},
}
for upper in ("train", "rl", "experiments", "report", "cli"):
    MAY_IMPORT[upper] |= {"runs", "data", "tasks", "probes", "theory"}
for upper in ("experiments", "report", "cli"):
    MAY_IMPORT[upper] |= {"figures"}
MAY_IMPORT["report"] |= {"claims"}
MAY_IMPORT["cli"] |= {"claims", "kv"}

# What lies below all subpackages.
SHARED = {"_validate", "_require", "_documents", "_renamed", "_statistics", "_wording", "__version__"}


def imported_names(tree: ast.Module, package: list[str]) -> Iterator[str]:
    """Yields every name that a file imports, in full, relative imports resolved against its package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def subpackages_imported(text: str, package: list[str]) -> set[str]:
    """Names the parts of remanence that a file imports, by the first name after `remanence`."""
    names = (name.split(".") for name in imported_names(ast.parse(text), package))
    return {parts[1] for parts in names if parts[0] == "remanence" and len(parts) > 1} - SHARED


def offences(owner: str, text: str, package: list[str]) -> set[str]:
    """Names what a file of the subpackage `owner` imports and may not."""
    return subpackages_imported(text, package) - MAY_IMPORT[owner] - {owner}


def private_modules_imported(owner: str, text: str, package: list[str]) -> set[str]:
    """Names the private modules of other subpackages that a file imports, such as `probes._paths`."""
    names = (name.split(".") for name in imported_names(ast.parse(text), package))
    return {
        f"{parts[1]}.{parts[2]}"
        for parts in names
        if parts[0] == "remanence" and len(parts) > 2 and parts[1] != owner and parts[2].startswith("_")
    }


def private_imports() -> set[tuple[str, str]]:
    """All pairs of a subpackage and another one's private module that it imports."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).parent.parts
        if place:
            reached = private_modules_imported(place[0], path.read_text(encoding="utf-8"), ["remanence", *place])
            found |= {(place[0], module) for module in reached}
    return found


SUBPACKAGES = sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.rglob("*.py")))


@pytest.mark.parametrize("owner", SUBPACKAGES)
def test_every_import_follows_the_arrows(owner):
    assert owner in MAY_IMPORT, f"give `{owner}` its place among the arrows in this file"
    found = {}
    for path in sorted((SOURCE / owner).rglob("*.py")):
        package = ["remanence", *path.relative_to(SOURCE).parent.parts]
        found[str(path.relative_to(SOURCE))] = offences(owner, path.read_text(encoding="utf-8"), package)
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


def test_what_lies_below_imports_no_subpackage():
    for name in ("_validate", "_require", "_documents"):
        assert subpackages_imported((SOURCE / f"{name}.py").read_text(encoding="utf-8"), ["remanence"]) == set()


@pytest.mark.parametrize(
    ("owner", "text", "wrong"),
    [
        ("ops", "from remanence.nn import RelLSTM", {"nn"}),
        ("ops", "from remanence import nn", {"nn"}),
        ("ops", "import remanence.nn._state", {"nn"}),
        ("ops", "from ..nn import RelLSTM", {"nn"}),
        ("ops", "from .. import nn", {"nn"}),
        ("ops", "def f():\n    from remanence import train", {"train"}),
        ("probes", "from remanence import nn, ops", {"nn"}),
        ("nn", "from remanence import testing", {"testing"}),
        ("cli", "import remanence.testing", {"testing"}),
        ("theory", "from remanence import ops", {"ops"}),
        ("tasks", "from remanence.nn import LSTM", {"nn"}),
        ("nn", "from remanence.ops import scan\nfrom remanence._validate import shape\nfrom . import _state", set()),
        ("tasks", "from remanence.data import mnist\nimport torch.nn", set()),
    ],
)
def test_the_check_finds_wrong_imports_and_only_those(owner, text, wrong):
    assert offences(owner, text, ["remanence", owner]) == wrong


def test_no_package_imports_another_ones_private_module():
    assert private_imports() == set(), "give the name a place in the other package's __all__"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from remanence.train._run import Run", {"train._run"}),
        ("from remanence.probes import _paths as closed", {"probes._paths"}),
        ("import remanence.ops._types", {"ops._types"}),
        ("from ..nn._core import make_core", {"nn._core"}),
        ("from remanence.rl._run import PolicyRun\nfrom remanence._validate import shape\nfrom . import _state", set()),
        ("from remanence.train import Run\nfrom remanence import __version__", set()),
    ],
)
def test_the_check_finds_private_imports_and_only_those(text, found):
    assert private_modules_imported("rl", text, ["remanence", "rl"]) == found


# Modules that other packages, users or `python -m` name; any other has an underscore, and its public names are in the
# package's `__init__`.
ENTRANCES = {
    "experiments": {"worker"},
    "nn": {"cuts", "hub", "init", "onnx"},
    "ops": {"fused", "generation", "packed", "reference", "state_shapes", "states", "stream"},
    "probes": {"closed_forms"},
    "rl": {"torchrl"},
}


@pytest.mark.parametrize("owner", SUBPACKAGES)
def test_a_module_has_an_underscore_unless_it_is_an_entrance(owner):
    bare = {path.stem for path in (SOURCE / owner).rglob("*.py") if not path.stem.startswith("_")}
    assert bare == ENTRANCES.get(owner, set())
