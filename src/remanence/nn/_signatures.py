"""How a preset shows its options: written once, in the base class, and complete in ``help`` and in signatures.

A preset writes ``(input_size, hidden_size, num_layers=1, *shape, own=..., **options: Unpack[...])``: torch's other
arguments by position go through ``*shape``, everything by name is typed by ``options``. What a reader of
``help(RelLSTM)`` or an editor sees is the whole list, each argument with its explanation.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from remanence.ops import find_cell

from ._options import options_of_other_cells

_ENTRY = re.compile(r"^    (\w+): ")


def show_options(cls: Any) -> None:
    """Give a subclass of ``RecurrentLayer`` a signature with all its options, and a docstring that explains them."""
    # The layer of a cell is the last base: what a memory adds to its options comes after them.
    bases = [base for base in reversed(cls.__bases__) if hasattr(base, "fixed")]
    hidden = {"self", *cls.fixed}
    if hasattr(cls, "cell"):
        hidden |= options_of_other_cells(find_cell(cls.cell))
    items: dict[str, inspect.Parameter] = {}
    for signature in map(inspect.signature, (cls.__init__, *bases)):
        for name, item in signature.parameters.items():
            if name not in hidden:
                items.setdefault(name, item)
    _show(cls, list(items.values()))
    for base in bases:
        explain_options(cls, base)


def add_options(cls: Any, source: Any, names: list[str]) -> None:
    """Name and explain further options of a layer, which are arguments of one of its parts, ``source``."""
    wanted = inspect.signature(source).parameters
    added = [wanted[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in names]
    _show(cls, [*inspect.signature(cls).parameters.values(), *added])
    explain_options(cls, source)


def _show(cls: Any, items: list[inspect.Parameter]) -> None:
    positional = [item for item in items if item.kind == item.POSITIONAL_OR_KEYWORD]
    named = [item for item in items if item.kind == item.KEYWORD_ONLY]
    cls.__signature__ = inspect.Signature([*positional, *named])


def explain_options(cls: Any, source: Any) -> None:
    """Complete the docstring of a layer: arguments that it does not explain itself, in the words of another class."""
    if not cls.__doc__ or not source.__doc__:
        return
    before, own, after = _split_arguments(inspect.cleandoc(cls.__doc__))
    _, theirs, _ = _split_arguments(inspect.cleandoc(source.__doc__))
    entries = {name: theirs[name] for name in inspect.signature(cls).parameters if name in theirs} | own
    lines = ["Args:", *(line for name in _in_order(cls, entries) for line in entries[name])]
    cls.__doc__ = "\n".join([*before, *lines, *after]) + "\n"


def _in_order(cls: Any, entries: dict[str, list[str]]) -> list[str]:
    """The layer's own entries first, as it explains them; then the others as in its signature."""
    shown = {name: place for place, name in enumerate(inspect.signature(cls).parameters)}
    return sorted(entries, key=lambda name: shown.get(name, len(shown)))


def _split_arguments(doc: str) -> tuple[list[str], dict[str, list[str]], list[str]]:
    """The lines before the arguments, the lines of each argument by its name, and the lines after them."""
    lines = doc.splitlines()
    if "Args:" not in lines:
        start = next((place for place, line in enumerate(lines) if line == "Example:"), len(lines))
        return lines[:start], {}, ["", *lines[start:]]
    start = lines.index("Args:")
    end = next((place for place in range(start, len(lines)) if not lines[place]), len(lines))
    entries: dict[str, list[str]] = {}
    name = ""
    for line in lines[start + 1 : end]:
        found = _ENTRY.match(line)
        if found:
            name = found.group(1)
        entries.setdefault(name, []).append(line)
    return lines[:start], entries, lines[end:]
