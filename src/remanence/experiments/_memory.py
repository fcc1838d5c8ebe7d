"""Memory of training against the length of the sequence: figure 2 (centre) of document 000.

The stored result ``memory`` has, under ``results``: the ``lengths``, and ``models``, by name: ``what`` it is,
``peak_bytes`` at each length (the most bytes of tensors alive at once in a forward and a backward pass, weights and
input not counted; they depend on no chance and on no machine) and the fitted ``growth``: ``order``, ``constant``,
``linear`` and ``quadratic`` term. ``RelLSTM (plain)`` and the like run as plain torch, as the document's code does;
those with ``(kernel)`` run in this library's.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from remanence.experiments._stored import save_stored
from remanence.nn import LSTM, RNN, SABLSTM, MemRNN, RecurrentLayer, RelLSTM, RelRNN
from remanence.probes._fit import fit_growth
from remanence.probes._meter import peak_bytes

LENGTHS = (200, 400, 800, 2000)
WIDTH = 32
_SIZES = (10, WIDTH)
_ALL_SCORED: dict[str, Any] = {"score": "mlp", "top_k": 10, "backend": "reference"}

Make = Callable[[], RecurrentLayer]
MODELS: dict[str, tuple[str, Make]] = {
    "RNN (plain)": ("no memory", lambda: RNN(*_SIZES, backend="reference")),
    "LSTM (plain)": ("no memory", lambda: LSTM(*_SIZES, backend="reference")),
    "MemRNN (plain)": ("attends to all states", lambda: MemRNN(*_SIZES, backend="reference")),
    "SABLSTM (plain)": ("scores one state in 10 at every step", lambda: SABLSTM(*_SIZES, every=10, **_ALL_SCORED)),
    "RelRNN (plain)": ("10 recent states, 10 relevant", lambda: RelRNN(*_SIZES, backend="reference")),
    "RelLSTM (plain)": ("10 recent states, 10 relevant", lambda: RelLSTM(*_SIZES, backend="reference")),
    "MemRNN (kernel)": ("attends to all states, scores made anew going back", lambda: MemRNN(*_SIZES)),
    "SABLSTM (kernel)": ("static scores: no state returns to the top", lambda: SABLSTM(*_SIZES, every=10, top_k=10)),
    "RelLSTM (kernel)": ("10 recent states, 10 relevant", lambda: RelLSTM(*_SIZES)),
}


def training_bytes(layer: RecurrentLayer, length: int) -> int:
    """Most bytes of tensors alive at once in a forward and a backward pass over one sequence.

    Args:
        layer: any of ours.
        length: of the sequence.

    Example:
        >>> layer = RNN(10, 4)
        >>> training_bytes(layer, 200) > training_bytes(layer, 100)
        True
    """
    inputs = torch.zeros(length, 1, layer.input_size)
    found = peak_bytes(lambda: layer(inputs)[0].square().sum().backward())
    layer.zero_grad()
    return found


def measure(names: Sequence[str] = tuple(MODELS), lengths: Sequence[int] = LENGTHS) -> dict[str, Any]:
    """Measures the models.

    Args:
        names: of models.
        lengths: of sequences, rising.

    Returns:
        The record, as the module describes it.

    Example:
        >>> found = measure(["LSTM (plain)"], (10, 20, 40))["results"]["models"]
        >>> found["LSTM (plain)"]["growth"]["order"]
        'linear'
    """
    models = {}
    for name in names:
        what, make = MODELS[name]
        layer = make()
        sizes = [training_bytes(layer, length) for length in lengths]
        fitted = asdict(fit_growth(list(lengths), list(map(float, sizes))))
        growth = {key: _short(value) for key, value in fitted.items()}
        models[name] = {"what": what, "peak_bytes": sizes, "growth": growth}
    return {
        "what": "peak memory of a forward and a backward pass against the length of the sequence",
        "command": "python -m remanence.experiments memory RUNS",
        "scaled_down": f"width {WIDTH} and one sequence, tensors counted; document 000 reads a GPU's peak, which has a "
        "constant of some 490 MB in it",
        "machine": f"{platform.machine()}: bytes of tensors, the same on all",
        "results": {"lengths": list(lengths), "models": models},
    }


def _short(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value


def run_memory(folder: Path) -> Path:
    """Measures all models and writes the stored result.

    Args:
        folder: not used: nothing is trained.
    """
    return save_stored("memory", measure())
