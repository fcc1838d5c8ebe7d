"""What ``torch.jit.script`` is told when it is given a layer."""

from __future__ import annotations

from typing import Any, NoReturn


def refuse_script(self: Any) -> NoReturn:
    """Says that a module cannot be scripted, and what takes its place; torch calls it as `__prepare_scriptable__`.

    Raises:
        TypeError: always.
    """
    name = type(self).__name__
    raise TypeError(
        f"{name} cannot be compiled by torch.jit.script, which torch has deprecated: use torch.compile to"
        " run it in Python, torch.export.export to save it, remanence.nn.onnx to run it elsewhere"
    )
