"""Which dimension of an input is time: as the caller or the model says, or measured, never guessed in silence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from torch import Tensor

from remanence._validate import message
from remanence._wording import number_of
from remanence.figures import Figure

from ._observe import modules
from ._result import ProbeResult

Source = Literal["given", "declared", "measured", "outputs", "unbatched", "single"]
REASONS: dict[Source, str] = {
    "given": "as `batch_first` says",
    "declared": "as the model's layers say",
    "measured": "measured: a change of one step reaches others, a change of one row does not",
    "outputs": "as the shape of the output shows: it has the rows and not the steps",
    "unbatched": "one sequence without a batch dimension",
    "single": "time first, the default where one of the two sizes is 1",
}
Run = Callable[[Tensor], Tensor]


@dataclasses.dataclass(frozen=True)
class Layout(ProbeResult):
    """How an input and an output were read.

    Example:
        >>> Layout(time=0, steps=200, rows=4, row_dim=1, output_time=0, source="declared").verdict
        "read as T = 200 steps, B = 4 rows (as the model's layers say)"
    """

    kind: ClassVar[str] = "layout"

    time: int
    """Dimension of the input along which time runs."""
    steps: int
    rows: int
    row_dim: int | None
    """Dimension of the input along which rows lie; ``None`` for one sequence without a batch dimension."""
    output_time: int | None
    """Dimension of the output along which time runs; ``None`` if there is one output for a whole row."""
    source: Source
    any_length: bool = True
    """Whether the model runs on shorter sequences too."""
    names: str = ""
    """Which part of a dictionary or a dataclass was read, where its name does not say so."""

    @property
    def verdict(self) -> str:
        """Steps and rows, why they are read so, and what was read if that is not obvious."""
        words = f"read as {self.sizes} ({REASONS[self.source]})"
        if self.time > 1:
            words += f"; time is dimension {self.time} of the input"
        if self.names:
            words += f"; {self.names}"
        return words

    def figures(self) -> list[Figure]:
        """None: there is nothing to draw."""
        return []

    @property
    def sizes(self) -> str:
        """Steps and rows in words."""
        return f"T = {number_of(self.steps, 'step')}, B = {number_of(self.rows, 'row')}"


def read_layout(model: object, run: Run, inputs: Tensor, batch_first: bool | None) -> Layout:
    """Finds where time is, by what is said or else by what a changed step and a changed row do to the output.

    Args:
        model: what `run` runs; its layers may say `batch_first`.
        run: the model's output for an input, always from the same state and random numbers.
        inputs: ``(T, B, ...)``, ``(B, T, ...)``, ``(B, F, T, ...)``, or one sequence ``(T,)`` or ``(T, F)``.
        batch_first: what the caller says.

    Raises:
        ValueError: If two readings are possible, which are then both named.

    Example:
        >>> layer = torch.nn.LSTM(3, 4)
        >>> read_layout(layer, lambda x: layer(x)[0], torch.randn(7, 2, 3), None).steps
        7
    """
    if inputs.dim() == 0 or 0 in inputs.shape:
        raise ValueError(message("batch", "hold at least one step of one row", f"shape {tuple(inputs.shape)}"))
    if inputs.dim() == 1 or _is_unbatched(model, inputs):
        return _with_output(run, inputs, time=0, row_dim=None, source="unbatched")
    if batch_first is not None:
        return _batched(run, inputs, batch_first, "given")
    declared = own_batch_first(model)
    if declared is not None:
        return _batched(run, inputs, declared, "declared")
    return _measured(model, run, inputs)


def own_batch_first(model: object) -> bool | None:
    """What the model itself says, not a layer inside it, which may see its input transposed; ``None`` if nothing.

    Causal language models of the Hugging Face library are batch first.

    Example:
        >>> own_batch_first(torch.nn.GRU(2, 3, batch_first=True))
        True
    """
    if is_language_model(model):
        return True
    declared = getattr(model, "batch_first", None)
    if isinstance(declared, bool):
        return declared
    return None


def is_language_model(model: object) -> bool:
    """Whether a model has the interface of the Hugging Face library: a configuration and input embeddings."""
    return hasattr(model, "config") and callable(getattr(model, "get_input_embeddings", None))


def _is_unbatched(model: object, inputs: Tensor) -> bool:
    """Whether a matrix is ``(T, input_size)`` of a layer that takes one sequence so."""
    layered = own_batch_first(model) is not None and inputs.is_floating_point()
    return layered and inputs.dim() == 2 and inputs.shape[-1] == getattr(model, "input_size", None)


def _batched(run: Run, inputs: Tensor, batch_first: bool, source: Source) -> Layout:
    """The layout with time second if `batch_first`."""
    if not batch_first:
        return _with_output(run, inputs, time=0, row_dim=1, source=source)
    return _with_output(run, inputs, time=1, row_dim=0, source=source)


def _later_time(run: Run, inputs: Tensor, base: Tensor) -> int | None:
    """The dimension of time behind the second, as convolutions have it: features cannot be left out, steps can.

    Inputs are then ``(B, F, T)``, ``(B, 1, F, T)`` or ``(B, F, T, H, W)``; ``None`` if they are not.
    """
    if _can_be_cut(run, inputs, dim=1):
        return None
    later = [dim for dim in range(2, inputs.dim()) if _can_be_cut(run, inputs, dim)]
    found = [dim for dim in later if _reaches_others(run, inputs, base, dim)]
    if len(found) > 1:
        raise ValueError(_several_readings(inputs, found))
    return next(iter(found), None)


def _measured(model: object, run: Run, inputs: Tensor) -> Layout:
    base = run(inputs)
    first, second = (_reaches_others(run, inputs, base, dim) for dim in (0, 1))
    if first and second and inputs.dim() == 2 and inputs.is_floating_point():
        return _with_output(run, inputs, time=0, row_dim=None, source="unbatched")
    if not first and (later := _later_time(run, inputs, base)) is not None:
        return _with_output(run, inputs, time=later, row_dim=0, source="measured")
    if first != second:
        return _batched(run, inputs, second, "measured")
    if (rows := _rows_of_output(inputs, base)) is not None:
        return _batched(run, inputs, rows == 0, "outputs")
    inner = inner_batch_first(model)
    if inner is not None and not first:
        return _batched(run, inputs, inner, "declared")
    if first or 1 not in inputs.shape[:2]:
        raise ValueError(_two_readings(inputs))
    return _batched(run, inputs, False, "single")


def inner_batch_first(model: object) -> bool | None:
    """What the first layer inside the model says; ``None`` if none says anything."""
    said = (getattr(part, "batch_first", None) for part in modules(model))
    return next((value for value in said if isinstance(value, bool)), None)


def _rows_of_output(inputs: Tensor, output: Tensor) -> int | None:
    """Which of the first two dimensions is that of the rows, if the output has one entry for each and none for a step.

    Rows are told so where each reaches the others, as in a model whose activations are quantised together.
    """
    sizes = list(inputs.shape[:2])
    if output.dim() == 0 or sizes[0] == sizes[1] or output.shape[0] not in sizes:
        return None
    rows = sizes.index(output.shape[0])
    if sizes[1 - rows] in output.shape:
        return None
    return rows


def _several_readings(inputs: Tensor, dims: list[int]) -> str:
    readings = " or ".join(f"T = {inputs.shape[dim]} steps along dimension {dim}" for dim in dims)
    hint = "Pass x.movedim(N, 1) and `lambda x: model(x.movedim(1, N))`, where N is the dimension of time"
    return message("batch", "have one dimension that can be time", f"shape {tuple(inputs.shape)}: {readings}", hint)


def _two_readings(inputs: Tensor) -> str:
    first = inputs.shape[0]
    second = inputs.shape[1]
    readings = f"T = {first} steps of B = {second} rows, or batch first: T = {second} of B = {first}"
    expected = "be given, because neither the model's layers nor its outputs show which dimension is time"
    hint = "Pass batch_first=True or False (--batch-first or --time-first)"
    return message("batch_first", expected, f"shape {tuple(inputs.shape)}: {readings}", hint)


def _reaches_others(run: Run, inputs: Tensor, base: Tensor, dim: int) -> bool:
    """Whether a change at one index along a dimension is seen in outputs that belong to others."""
    size = inputs.shape[dim]
    if size == 1:
        return False
    for index in sorted({size - 2, size // 2, 0}, reverse=True):
        other = changed_at(inputs, dim, index)
        if other is not None and _spreads(run(other), base, index, size):
            return True
    return False


def changed_at(inputs: Tensor, dim: int, index: int) -> Tensor | None:
    """The inputs with something else at one index: another token that occurs, or a number well apart.

    Example:
        >>> changed_at(torch.tensor([3, 5, 5]), 0, 1).tolist()
        [3, 3, 5]
    """
    other = inputs.clone()
    chosen = other.select(dim, index)
    if inputs.is_floating_point() or inputs.is_complex():
        spread = inputs.detach().abs().mean()
        chosen += torch.where(spread > 0, spread, torch.ones_like(spread)).to(inputs.dtype)
        return other
    tokens = inputs.unique()
    if len(tokens) < 2:
        return None
    chosen.copy_(tokens[(torch.searchsorted(tokens, chosen.contiguous()) + 1) % len(tokens)])
    return other


def _spreads(output: Tensor, base: Tensor, index: int, size: int) -> bool:
    """Whether outputs differ anywhere but at that index along a dimension of that size."""
    scale = torch.ones(())
    if bool(base.isfinite().any()):
        scale = base[base.isfinite()].abs().max()
    limit = 10 * torch.finfo(base.dtype).eps * scale
    changed = ((output - base).abs() > limit) | (output.isfinite() != base.isfinite())
    if not bool(changed.any()):
        return False
    return all(not _only_at(changed, dim, index) for dim in range(base.dim()) if base.shape[dim] == size)


def _only_at(changed: Tensor, dim: int, index: int) -> bool:
    places = changed.movedim(dim, 0).unsqueeze(-1).flatten(1).any(dim=1)
    return places.nonzero().flatten().tolist() == [index]


def _with_output(run: Run, inputs: Tensor, *, time: int, row_dim: int | None, source: Source) -> Layout:
    steps = inputs.shape[time]
    rows = 1
    if row_dim is not None:
        rows = inputs.shape[row_dim]
    whole = run(inputs).shape
    others = [_length_changed(run, inputs, time, length) for length in _other_lengths(steps)]
    found = next((dim for shape in others if shape for dim in _different(whole, shape, time)), None)
    runs = any(shape is not None for shape in others)
    if not runs:
        found = next((dim for dim in (time, *range(len(whole))) if dim < len(whole) and whole[dim] == steps), None)
    return Layout(time, steps, rows, row_dim, found, source, runs)


def _other_lengths(steps: int) -> list[int]:
    """One step less; and half of them, for outputs with fewer steps than the input."""
    if steps > 2:
        return [steps - 1, steps // 2]
    if steps == 2:
        return [1]
    return [2]


def _length_changed(run: Run, inputs: Tensor, time: int, length: int) -> torch.Size | None:
    """Shape of the output for another length; ``None`` if the model does not run on it."""
    parts = torch.cat([inputs] * (1 + length // inputs.shape[time]), dim=time)
    return _shape(run, parts.narrow(time, 0, length))


def _can_be_cut(run: Run, inputs: Tensor, dim: int) -> bool:
    """Whether a model runs with one entry less along a dimension, and with half of them: a stride may hide one."""
    size = inputs.shape[dim]
    return size > 1 and all(_shape(run, inputs.narrow(dim, 0, part)) is not None for part in (size - 1, size // 2))


def _shape(run: Run, inputs: Tensor) -> torch.Size | None:
    try:
        return run(inputs).shape
    except Exception:  # whatever a foreign model throws: it does not run on this
        return None


def _different(whole: torch.Size, other: torch.Size, time: int) -> list[int]:
    if len(whole) != len(other):
        return []
    dims = [dim for dim in range(len(whole)) if whole[dim] != other[dim]]
    return sorted(dims, key=lambda dim: dim != time)
