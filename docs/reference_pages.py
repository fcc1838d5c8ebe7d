"""Writes the pages of the API reference: one per package, which lists its objects, and one per object."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

PACKAGES = ("nn", "tasks", "data", "runs", "train", "rl", "kv", "probes", "theory", "claims", "experiments", "figures",
            "report", "testing", "ops", "nn.onnx", "nn.hub")  # fmt: skip

NN_GROUPS = {
    "Cells without a memory": "RNN LSTM GRU",
    "Orthogonal recurrences": "OrthRNN ExpRNN GORU orthogonal_parameter_groups",
    "Linear recurrences": "MinGRU MinLSTM LRU DeltaRule ScreenedDeltaRule linear_scan",
    "Certified stable layers": "StableRNN StableLSTM StabilityCertificate LayerCertificate NotCertifiedError",
    "A screened memory": "RelRNN RelLSTM RelGRU",
    "Screens": "Screen Attention MeanAttention ValueWeighted Learned Random Newest",
    "A full memory": "MemRNN MemLSTM MemGRU",
    "Sparse attentive backtracking": "SABRNN SABLSTM SABGRU",
    "Gradient cuts": "TruncatedBPTT HDetach HDetachLSTM TruncatedRNN",
}


def write_reference(folder: Path) -> None:
    """Writes all pages; one that is up to date is left alone, so that a second build is quick, and old ones go."""
    folder.mkdir(exist_ok=True)
    pages: dict[str, str] = {}
    homes: dict[int, str] = {}
    for package in PACKAGES:
        pages |= package_pages(package, homes)
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()  # of a name that is no longer public
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def package_pages(package: str, homes: dict[int, str]) -> dict[str, str]:
    """The page of a package, and one for each of its objects.

    Args:
        package: its name below ``remanence``.
        homes: the package of every object that has a page; the objects of this one are added.
    """
    values = public_values(package)
    objects = {name: value for name, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)}
    own = {name: value for name, value in objects.items() if homes.setdefault(id(value), package) == package}
    name = f"remanence.{package}"
    lines = [*heading(name, "="), f".. automodule:: {name}", "   :no-members:", "", f".. currentmodule:: {name}", ""]
    for title, names in grouped(package, list(own)).items():
        lines += heading(title, "-") if title else []
        lines += [".. autosummary::", "", *(f"   {public}" for public in names), ""]
    lines += line_of("Constants and types", [public for public in values if public not in objects])
    lines += line_of("Documented in another package", [public for public in objects if public not in own])
    pages = {f"{name}.{public}": object_page(package, public, value) for public, value in own.items()}
    return {package: "\n".join(lines), **pages}


def object_page(package: str, name: str, value: object) -> str:
    """The page of one class or function. It is in no table of contents, which would be rendered into every page."""
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    back = f"In :doc:`remanence.{package} <{package}>`."
    lines = [":orphan:", "", *heading(name, "="), back, "", f".. currentmodule:: remanence.{package}", ""]
    return "\n".join([*lines, f".. {kind}:: {name}", ""])


def heading(title: str, mark: str) -> list[str]:
    """A title in reStructuredText."""
    return [title, mark * len(title), ""]


def line_of(title: str, names: list[str]) -> list[str]:
    """Names without a page here, as one line."""
    return [f"{title}: {', '.join(f'``{name}``' for name in names)}.", ""] if names else []


def grouped(package: str, names: list[str]) -> dict[str, list[str]]:
    """Names by title; those that no group holds come last."""
    if package != "nn":
        return {"": names}
    groups = {title: [name for name in group.split() if name in names] for title, group in NN_GROUPS.items()}
    listed = {name for group in groups.values() for name in group}
    return {**groups, "Everything else": [name for name in names if name not in listed]}


def public_values(package: str) -> dict[str, object]:
    """What ``__all__`` names, by name; without names that need a library which is not installed."""
    module = importlib.import_module(f"remanence.{package}")
    values = {}
    for name in module.__all__:
        try:
            values[name] = getattr(module, name)
        except ImportError:
            continue
    return values
