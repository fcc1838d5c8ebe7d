"""Writes the pages of the API reference: one per package, which lists the objects; autosummary makes one per object."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

PACKAGES = ("nn", "tasks", "data", "runs", "train", "rl", "kv", "probes", "theory", "claims", "experiments", "figures",
            "report", "testing", "ops")  # fmt: skip

NN_GROUPS = {
    "Cells without a memory": "RNN LSTM GRU",
    "Orthogonal recurrences": "OrthRNN ExpRNN GORU orthogonal_parameter_groups",
    "Certified stable layers": "StableRNN StableLSTM StabilityCertificate LayerCertificate NotCertifiedError",
    "A screened memory": "RelRNN RelLSTM RelGRU",
    "A full memory": "MemRNN MemLSTM MemGRU",
    "Sparse attentive backtracking": "SABRNN SABLSTM SABGRU",
    "Gradient cuts": "TruncatedBPTT HDetach HDetachLSTM TruncatedRNN",
}


def write_reference(folder: Path) -> None:
    """Writes one page per package; a page that is up to date is left alone, so that a second build is quick."""
    folder.mkdir(exist_ok=True)
    homes: dict[int, str] = {}
    for package in PACKAGES:
        path = folder / f"{package}.rst"
        text = package_page(package, homes)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def package_page(package: str, homes: dict[int, str]) -> str:
    """The page of a package: its docstring, then its public names in groups.

    Args:
        package: its name below ``remanence``.
        homes: the package of every object that has a page; the objects of this one are added.
    """
    name = f"remanence.{package}"
    lines = [
        name,
        "=" * len(name),
        "",
        f".. automodule:: {name}",
        "   :no-members:",
        "",
        f".. currentmodule:: {name}",
        "",
    ]
    values = public_values(package)
    documented = {
        public: value for public, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)
    }
    own = [public for public, value in documented.items() if homes.setdefault(id(value), package) == package]
    for title, names in grouped(package, own).items():
        if title:
            lines += [title, "-" * len(title), ""]
        lines += [".. autosummary::", "   :toctree: .", ""]
        lines += [f"   {public}" for public in names] + [""]
    lines += line_of("Constants and types", [public for public in values if public not in documented])
    lines += line_of("Documented in another package", [public for public in documented if public not in own])
    return "\n".join(lines)


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
