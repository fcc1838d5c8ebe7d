"""Export to ONNX: a whole sequence as one loop over its steps, or one step of a stream with its state in and out.

Both are made of the plain torch step, so any runtime can run them; the graph does not grow with the length. Needs
``onnx`` and ``onnxscript``, which ``pip install "remanence[integrations]"`` brings along with ``onnxruntime``.
"""

from __future__ import annotations

import copy
import importlib.util
import warnings
from os import PathLike
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch.export import Dim

from remanence._validate import message
from remanence.ops import State

from ._layer import RecurrentLayer
from ._model import SequenceModel

__all__ = ["export_sequence", "export_step", "state_fields"]

Exportable: TypeAlias = RecurrentLayer | SequenceModel


def export_sequence(model: Exportable, path: str | PathLike[str] | None = None) -> torch.onnx.ONNXProgram:
    """Exports a model that reads whole sequences of any length and batch size, from the empty state.

    The graph has one ``Scan`` over the steps. Its input is ``input``, in the model's layout; its outputs are ``output``
    and the final state, one output per field with the suffix ``_out``.

    Args:
        model: a recurrent layer that runs forward only and whose state does not grow, or a model with such a core.
        path: where to write the file; ``None`` writes none.

    Returns:
        The program, which can be saved, and called to run it in onnxruntime.

    Raises:
        ImportError: if onnxscript is not installed.
        TypeError: if this is another kind of model.
        ValueError: if the layer cannot be stepped forward, or its state grows with the sequence.
    """
    looped = _Looped(_OneStep(model))
    time = int(looped.step.core.batch_first)
    names = {time: Dim("steps", min=1), 1 - time: Dim("rows", min=1)}
    return _export(looped, (looped.step.example(3, 2),), (names,), path)


def export_step(model: Exportable, path: str | PathLike[str] | None = None) -> torch.onnx.ONNXProgram:
    """Exports one step of a stream: the input and the state in, the output and the next state out; any batch size.

    Its inputs are ``input``, ``(B, input_size)`` or tokens ``(B,)``, and one per field of the state, by the names of
    :func:`state_fields`; its outputs are ``output`` and the same fields with the suffix ``_out``.

    Args:
        model: as in :func:`export_sequence`.
        path: where to write the file; ``None`` writes none.

    Returns:
        The program, which can be saved, and called to run it in onnxruntime; errors are those of
        :func:`export_sequence`.
    """
    step = _OneStep(model)
    rows = Dim("rows", min=1)
    fields = tuple(state_fields(step.core.initial_state(2)).values())
    shapes = ({0: rows}, tuple({1: rows} for _ in fields))
    return _export(step, (step.example(None, 2), *fields), shapes, path)


def state_fields(state: State) -> dict[str, Tensor]:
    """The fields of a layer's state that hold anything, by name: what an exported step takes and gives.

    Example:
        >>> import remanence
        >>> list(state_fields(remanence.nn.LSTM(3, 4).initial_state(1)))
        ['s', 'c', 'step']
    """
    return {name: field for name, field in state._asdict().items() if field.numel()}


class _OneStep(nn.Module):
    """One step as a function of tensors alone: a copy of a layer, or of a model, that runs on the reference."""

    def __init__(self, model: Exportable) -> None:
        super().__init__()
        _check(_core_of(model))
        self.model = copy.deepcopy(model).eval()
        self.core = _core_of(self.model)
        self.core.backend = "reference"  # the kernel is no ONNX operator
        self.names = tuple(state_fields(self.core.initial_state(1)))

    def forward(self, input: Tensor, *fields: Tensor) -> tuple[Tensor, ...]:
        """One step from an input ``(B, ...)`` and the fields of a state, in the order of `names`."""
        empty = self.empty_fields(input.shape[0])
        output, after = self.model.step(input, State(**{**empty, **dict(zip(self.names, fields, strict=True))}))
        return output, *(getattr(after, name) for name in self.names)

    def empty_fields(self, rows: int) -> dict[str, Tensor]:
        """The empty state of some rows, by name; their number may be a symbol."""
        one = self.core.initial_state(1)._asdict()
        return {name: field.expand(field.shape[0], rows, *field.shape[2:]).clone() for name, field in one.items()}

    def example(self, steps: int | None, rows: int) -> Tensor:
        """An input to trace with: ``(T, B, ...)`` in the model's layout, or ``(B, ...)`` of one step."""
        shape = (rows,)
        if steps is not None:
            shape = (steps, rows)
            if self.core.batch_first:
                shape = (rows, steps)
        like = next(self.core.parameters())
        if isinstance(self.model, SequenceModel) and self.model.encoder.kind != "dense":
            return torch.zeros(shape, dtype=torch.int64, device=like.device)
        return like.new_zeros(*shape, self.model.input_size)


class _Looped(nn.Module):
    """The step in a loop over time, as one operator of the graph."""

    def __init__(self, step: _OneStep) -> None:
        super().__init__()
        self.step = step

    def forward(self, input: Tensor) -> tuple[Tensor, ...]:
        """All steps from the empty state; `input` is ``(T, B, ...)`` in the model's layout."""
        steps = self._turned(input)
        empty = self.step.empty_fields(steps.shape[1])

        def advance(fields: list[Tensor], input_t: Tensor) -> tuple[list[Tensor], Tensor]:
            output, *after = self.step(input_t, *fields)
            return [field.clone() for field in after], output  # the loop wants no field handed on as it is

        final, outputs = scan(advance, [empty[name] for name in self.step.names], steps)
        return self._turned(outputs), *final

    def _turned(self, sequence: Tensor) -> Tensor:
        """From the model's layout to ``(T, B, ...)``, or back."""
        if self.step.core.batch_first:
            return sequence.transpose(0, 1)
        return sequence

    @property
    def names(self) -> tuple[str, ...]:
        """Fields of the state, in the order of the outputs."""
        return self.step.names


def _core_of(model: object) -> RecurrentLayer:
    core = model
    if isinstance(model, SequenceModel):
        core = model.core
    if not isinstance(core, RecurrentLayer):
        hint = "torch.onnx.export takes torch's own layers as they are"
        raise TypeError(
            message("model", "be a recurrent layer of remanence.nn, or have one", type(core).__name__, hint)
        )
    return core


def _check(core: RecurrentLayer) -> None:
    if core.bidirectional:
        raise ValueError(message("model", "run forward only", "bidirectional=True"))
    memory = core.spec.rule
    if memory.growing:
        hint = "MemLSTM(limit=N) and RelLSTM have a state of fixed size"
        raise ValueError(message("model", "have a state that does not grow", str(memory), hint))
    if importlib.util.find_spec("onnxscript") is None:
        raise ImportError("export to ONNX needs onnxscript: pip install 'remanence[integrations]'")


@torch.no_grad()
def _export(
    module: _OneStep | _Looped, example: tuple[Tensor, ...], shapes: tuple[Any, ...], path: str | PathLike[str] | None
) -> torch.onnx.ONNXProgram:
    """Traces a module and translates it."""
    given = module.names if len(example) > 1 else ()
    with warnings.catch_warnings():  # torch's own, about its own code
        warnings.simplefilter("ignore", (FutureWarning, DeprecationWarning))
        program = torch.onnx.export(
            torch.export.export(module, example, dynamic_shapes=shapes),
            dynamo=True,
            verbose=False,
            input_names=["input", *given],
            output_names=["output", *(f"{name}_out" for name in module.names)],
        )
    assert program is not None  # the exporter gives one whenever `dynamo` is true
    if path is not None:
        program.save(path)
    return program
