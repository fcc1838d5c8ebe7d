"""``remanence probe``: the probes on a model that anybody's code makes, with all pictures in one page."""

from __future__ import annotations

import html
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from remanence import probes
from remanence._validate import message, positive_int

RUN_ROWS = 8
"""Rows of the batch on which a run is probed."""
LONG = 256
"""Steps on which what a layer keeps outweighs the buffers of its weights."""


def run_probe(
    target: str,
    shape: str | None,
    tokens: int | None,
    output: Path | None,
    as_json: bool,
    batch_first: bool | None = None,
) -> None:
    """Runs the probes on a trained run, or on what a factory makes, prints the verdicts and writes the page.

    Example:
        >>> run_probe("torch.nn:Identity", "6,1,2", None, None, as_json=False)  # doctest: +ELLIPSIS
        gradient_reach: ...
    """
    if Path(target).is_dir():
        results = measure_run(Path(target))
    elif shape is None:
        raise ValueError(message("shape", "be given for a factory", "nothing", "For instance --shape 100,2,3"))
    else:
        results = measure_all(load_model(target), make_input(shape, tokens), batch_first)
    if as_json:
        print(json.dumps({name: result.to_dict() for name, result in results.items()}, indent=2))
    else:
        console = Console(soft_wrap=True, highlight=False)
        for name, result in results.items():
            console.print(f"{name}: {result.verdict}", markup=False)
    if output is not None:
        output.write_text(page(target, results), encoding="utf-8")


def load_model(target: str) -> Callable[..., Any]:
    """What ``package.module:factory`` makes when it is called without arguments, or the module itself.

    Example:
        >>> load_model("torch.nn:Identity")
        Identity()
    """
    place, _, name = target.partition(":")
    if not place or not name:
        raise ValueError(message("target", "have the form package.module:factory", repr(target)))
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module beside which the command runs
    try:
        made: Any = getattr(importlib.import_module(place), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(message("target", "name something that can be imported", repr(target), str(error))) from error
    if not callable(made):
        raise ValueError(message("target", "name a factory or a module", type(made).__name__))
    try:
        model = made if isinstance(made, torch.nn.Module) else made()
    except TypeError as error:
        raise ValueError(message("target", "be callable without arguments", repr(target), str(error))) from error
    if not callable(model):
        raise ValueError(message("target", "make a callable", type(model).__name__))
    return model


def make_input(shape: str, tokens: int | None) -> torch.Tensor:
    """A random input of a shape such as ``100,2,3``; int64 tokens below ``tokens`` if that is given.

    Example:
        >>> make_input("5,2", tokens=7).dtype
        torch.int64
    """
    try:
        sizes = [positive_int("shape", int(size)) for size in shape.split(",")]
    except ValueError as error:
        raise ValueError(message("shape", "be sizes with commas, such as 100,2,3", repr(shape))) from error
    generator = torch.Generator().manual_seed(0)
    if tokens is not None:
        return torch.randint(positive_int("tokens", tokens), sizes, generator=generator)
    return torch.randn(sizes, generator=generator)


def measure_run(folder: Path) -> dict[str, Any]:
    """The probes on a trained run: on its task's test batch, with its task's loss, and whether the task needs memory.

    Example:
        >>> measure_run(Path("no such run"))
        Traceback (most recent call last):
        ...
        ValueError: ...
    """
    from remanence.train import Run

    try:
        model, task = Run.open(folder).load()
    except (OSError, RuntimeError) as error:
        raise ValueError(message("target", "be the folder of a run", str(folder), str(error))) from error
    batch = task.batch(0, RUN_ROWS, split="test")
    results = measure_all(model, batch.inputs)
    results["gradient_reach"] = probes.gradient_reach(model, batch, task.loss)
    return {**results, "memory_demand": probes.memory_demand(task, model)}


def measure_all(model: Callable[..., Any], inputs: torch.Tensor, batch_first: bool | None = None) -> dict[str, Any]:
    """The probes that fit any model, in the order in which one reads them.

    Example:
        >>> sorted(measure_all(torch.nn.Identity(), torch.randn(6, 1, 2)))[:2]
        ['attention_map', 'cost']
    """
    time = 1 if batch_first or any(getattr(part, "batch_first", False) for part in _modules(model)) else 0
    length = inputs.shape[time]
    windows = sorted({max(1, length // d) for d in (16, 8, 4, 2, 1)})
    results: dict[str, Any] = {
        "gradient_reach": probes.gradient_reach(model, inputs, batch_first=batch_first),
        "attention_map": probes.attention_map(model, inputs),
        "stability": probes.stability(model, inputs, batch_first=batch_first),
        "truncation_gap": probes.truncation_gap(model, inputs, windows, batch_first=batch_first),
        "cost": probes.cost(model, cost_lengths(length), inputs, batch_first=batch_first),
    }
    maps = results["attention_map"].maps
    if maps and maps[0].shape[0] == maps[0].shape[1]:
        results["dependency_depth"] = probes.dependency_depth(results["attention_map"])
    return results


def cost_lengths(length: int) -> list[int]:
    """Three lengths to measure the cost at: up to that of the input, or beyond a short one.

    On a few steps the buffers of a layer's weights outweigh what grows with T, and growth looks steeper than it is.

    Example:
        >>> cost_lengths(1000), cost_lengths(60)
        ([250, 500, 1000], [30, 60, 120])
    """
    longest = length if length >= LONG else 2 * length
    return sorted({max(1, longest // 4), max(2, longest // 2), max(3, longest)})


def _modules(model: Any) -> list[torch.nn.Module]:
    return list(model.modules()) if isinstance(model, torch.nn.Module) else []


def page(title: str, results: dict[str, Any]) -> str:
    """One self-contained HTML page with a verdict and a picture per probe; needs plotly.

    Example:
        >>> page("x", {})[:15]
        '<!doctype html>'
    """
    parts = [f"<h1>{html.escape(title)}</h1>"]
    for number, (name, result) in enumerate(results.items()):
        figure = result.plot().to_html(full_html=False, include_plotlyjs=number == 0)
        parts.append(f"<h2>{html.escape(name)}</h2><p>{html.escape(result.verdict)}</p>{figure}")
    style = "body{font-family:sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{style}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>'
