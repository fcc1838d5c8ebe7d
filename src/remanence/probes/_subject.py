"""A model and one batch: its inputs, runs on parts of them, and the last part of the output."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from remanence._validate import message

from ._flattened import Order, find_order, is_flattened, unflattened
from ._layout import Layout, changed_at, read_layout
from ._observe import modules, uncompiled, untouched
from ._outputs import OUTPUT_NAMES, is_list_of_steps, named_output, output_of

Model: TypeAlias = Callable[..., object]
"""Any callable on sequences."""
INPUT_NAMES = ("input_ids", "inputs_embeds", "tokens", "inputs", "input", "x", "src", "observations")
"""Keys under which a dictionary holds its sequence, the likeliest first."""


class Subject:
    """A model, the sequences it is measured on, and the layout in which both are read; arguments as of every probe.

    Example:
        >>> subject = Subject(torch.nn.LSTM(3, 4), torch.randn(9, 2, 3))
        >>> subject.layout.sizes
        'T = 9 steps, B = 2 rows'
        >>> subject.last(subject.output(subject.inputs)).shape
        torch.Size([2, 4])
    """

    def __init__(self, model: Model, batch: object, *, batch_first: bool | None = None, training: bool = False) -> None:
        self.model = model
        self.batch = batch
        self.training = training
        arguments = _arguments(model, batch)
        # What the model is called with: a tensor, or a dictionary in which the tensor of one name is the sequence.
        self._given: Any = arguments or given_inputs(batch)
        self._name = next(iter(arguments), None) or _name(self._given)
        self._whole: Tensor = self._given
        if self._name is not None:
            self._whole = self._given[self._name]
        self._whole = self._whole.detach()
        # Cut or repeated in a subject of another length; the whole stays, for what lies beside it is cut alike.
        self.inputs: Tensor = self._whole
        self._by_keyword = self._name is not None and _takes_keywords(model, self._given)
        # Some models keep their state on themselves: every run begins with what was there.
        self._attributes = [(part, _plain_attributes(part)) for part in modules(model)]
        self._batch_first = batch_first
        self._output_name = ""
        self._lists_steps: bool | None = None

    @functools.cached_property
    def layout(self) -> Layout:
        """The layout, read on first use; this may run the model a few times."""
        with self.untouched(), torch.no_grad():
            found = read_layout(self.model, self._repeatable, self.inputs, self._batch_first)
        return dataclasses.replace(found, names=self._unusual_names())

    def _unusual_names(self) -> str:
        """Names of input and output where they are not the usual ones, in words."""
        named = {"input": self._name, "output": self._output_name}
        chosen = {what: name for what, name in named.items() if name and name not in INPUT_NAMES + OUTPUT_NAMES}
        return ", ".join(f"{what} `{name}`" for what, name in chosen.items())

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Inside, the model is in the requested mode; everything is restored afterwards."""
        with untouched(self.model, training=self.training), uncompiled():
            try:
                yield
            finally:
                self._put_back()

    def run(self, inputs: Tensor, **options: object) -> object:
        """What the model returns for other inputs, from the state in which it was found."""
        self._put_back()
        if self._name is None:
            return self.model(inputs, **options)
        given = self._cut_beside(inputs)
        if self._by_keyword:
            return self.model(**given, **options)
        return self.model(given, **options)

    def output(self, inputs: Tensor) -> Tensor:
        """The output for other inputs, in the model's own layout."""
        return self.read(self.run(inputs), inputs)

    def read(self, result: object, inputs: Tensor) -> Tensor:
        """The output of a result, with a dimension for steps and one for rows where the model has them in another form.

        They may be a list with a tensor for each step, or one dimension for both.
        """
        self._output_name, output = named_output(self.joined(result))
        if not is_flattened(output, inputs) or self._flattened_order is None:
            return output
        return unflattened(output, inputs, self._flattened_order)

    def joined(self, result: Any) -> object:
        """The result as it is, or one tensor if it is a list with a tensor for each step."""
        if self._lists_steps is None:  # the layout is read from the whole inputs first
            self._lists_steps = is_list_of_steps(result, self._whole)
        if self._lists_steps:
            return torch.stack(list(result))
        return result

    @functools.cached_property
    def _flattened_order(self) -> Order | None:
        """In which order the model flattens steps and rows; ``None`` if it does not."""
        other = changed_at(self._whole, 0, 0)
        if other is None:
            return "kept"
        changed = self._whole.clone()
        changed[0, 0] = other[0, 0]
        with torch.no_grad():
            before = output_of(self.run(self._whole))
            after = output_of(self.run(changed))
        return find_order(before, after, self._whole)

    def last(self, output: Tensor) -> Tensor:
        """The output at the last step, or the only one: ``(B, ...)``."""
        if self.layout.output_time is None:
            return output
        return output.select(self.layout.output_time, -1)

    def by_row(self, output: Tensor) -> Tensor:
        """A last output as ``(B, C)``; ``(1, C)`` if it is one for all rows, as a loss is."""
        rows = self.layout.rows
        if output.numel() % rows != 0:
            rows = 1
        return output.reshape(rows, -1)

    def window(self, start: int, stop: int) -> Tensor:
        """The inputs of some steps."""
        return self.inputs.narrow(self.layout.time, start, stop - start)

    def runs_on(self, length: int) -> bool:
        """Whether the model runs on so few steps: a convolution does not on fewer than its kernel has."""
        try:
            self.output(self.window(self.layout.steps - length, self.layout.steps))
        except Exception:  # whatever a foreign model throws: it does not
            return False
        return True

    def at_length(self, length: int) -> Subject:
        """The same with its inputs repeated or cut along time; the batch that a loss sees is these inputs."""
        time = self.layout.time
        repeats = -(-length // self.layout.steps)
        other = copy.copy(self)
        other.inputs = torch.cat([self.inputs] * repeats, dim=time).narrow(time, 0, length)
        other.batch = other.inputs
        vars(other)["layout"] = dataclasses.replace(self.layout, steps=length)
        return other

    def last_row(self) -> Subject:
        """The same with the last of its rows alone."""
        row_dim = self.layout.row_dim
        if row_dim is None:
            return self
        other = copy.copy(self)
        other.inputs = self.inputs.narrow(row_dim, self.layout.rows - 1, 1)
        other.batch = other.inputs
        vars(other)["layout"] = dataclasses.replace(self.layout, rows=1)
        return other

    @property
    def has_other_inputs(self) -> bool:
        """Whether the model also gets tensors other than the measured sequence."""
        return self._name is not None and len(self._given) > 1

    @property
    def is_tokens(self) -> bool:
        """Whether the inputs are integers."""
        return not (self.inputs.is_floating_point() or self.inputs.is_complex())

    @property
    def resolution(self) -> float:
        """Relative rounding of the numbers that the model computes with."""
        like = next((p for part in modules(self.model) for p in part.parameters(recurse=False)), self.inputs)
        dtype = torch.float32
        if like.is_floating_point():
            dtype = like.dtype
        return float(torch.finfo(dtype).eps)

    def _repeatable(self, inputs: Tensor) -> Tensor:
        torch.manual_seed(0)
        return self.output(inputs)

    def _put_back(self) -> None:
        """A model that keeps a state on itself starts every run from the one in which it was found."""
        for part, kept in self._attributes:
            for name in _plain_attributes(part).keys() - kept.keys():
                delattr(part, name)
            for name, value in kept.items():
                if vars(part).get(name) is not value:
                    setattr(part, name, value)

    def _cut_beside(self, inputs: Tensor) -> dict[str, Any]:
        """The dictionary with other inputs; tensors with a time dimension, and lengths, are cut like them."""
        given = dict(self._given)
        for name, value in given.items():
            if name == self._name or not isinstance(value, Tensor):
                continue
            if value.shape[:2] == self._whole.shape[:2]:
                given[name] = _resized(value, self._whole, inputs)
            elif "len" in name.lower() and value.dim() == 1:
                given[name] = _fitted(value, self._whole, inputs)
        given[self._name] = inputs
        return given


def subject_of(model: Model, batch: object, *, batch_first: bool | None = None, training: bool = False) -> Subject:
    """The subject that was made before, or a new one, its layout read before anything is measured."""
    if isinstance(batch, Subject):
        return batch
    subject = Subject(model, batch, batch_first=batch_first, training=training)
    assert subject.layout is not None  # read now, while nothing watches the model
    return subject


def given_inputs(batch: Any) -> Any:
    """What the model is given of a batch: a tensor or a dictionary."""
    if isinstance(batch, Tensor | Mapping):
        return batch
    if isinstance(batch, PackedSequence):
        hint = "Pass a padded tensor, or one sequence"
        raise TypeError(message("batch", "hold a tensor of inputs", type(batch).__name__, hint))
    if hasattr(batch, "inputs"):
        return given_inputs(batch.inputs)
    if isinstance(batch, tuple | list) and batch:
        return given_inputs(batch[0])
    expected = "be a tensor, a dictionary of tensors, a tuple that starts with one, or have `inputs`"
    raise TypeError(message("batch", expected, type(batch).__name__))


def _arguments(model: Model, batch: object) -> dict[str, Any]:
    """A tuple as the arguments of a model that needs several, by name; empty for a model that needs its inputs alone.

    The first argument is the sequence that is measured: ``(source, target)``, or ``(x, lengths)``.
    """
    if not isinstance(batch, tuple | list) or isinstance(batch, PackedSequence) or hasattr(batch, "inputs"):
        return {}
    needed = _required(model)
    if len(needed) < 2 or len(batch) < len(needed) or not isinstance(batch[0], Tensor):
        return {}
    return dict(zip(needed, batch, strict=False))


def _required(model: Model) -> list[str]:
    """Names of the arguments that a model cannot do without."""
    try:
        arguments = inspect.signature(getattr(model, "forward", model)).parameters.values()
    except (TypeError, ValueError):
        return []
    by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return [each.name for each in arguments if each.kind is by_name and each.default is inspect.Parameter.empty]


def _name(given: Any) -> str | None:
    """The key under which a dictionary holds its sequence: a known one, or that of the tensor with most dimensions.

    ``None`` for a tensor.
    """
    if isinstance(given, Tensor):
        return None
    tensors = [name for name, value in given.items() if isinstance(value, Tensor)]
    known = [name for name in INPUT_NAMES if name in tensors]
    if known:
        return known[0]
    deepest = max((given[name].dim() for name in tensors), default=0)
    sequences = [name for name in tensors if given[name].dim() == deepest]
    if len(sequences) != 1:
        expected = f"hold one sequence, or one named {', '.join(INPUT_NAMES)}"
        hint = "Pass a function of one of them and that one alone: `lambda x: model({**batch, 'name': x})`"
        raise ValueError(message("batch", expected, f"the keys {', '.join(map(str, given)) or 'none'}", hint))
    return sequences[0]


def _takes_keywords(model: Model, given: Mapping[str, object]) -> bool:
    """Whether a dictionary's keys are names of the model's arguments."""
    try:
        names = inspect.signature(getattr(model, "forward", model)).parameters
    except (TypeError, ValueError):
        return False
    return all(key in names for key in given)


def _resized(value: Tensor, whole: Tensor, part: Tensor) -> Tensor:
    """A tensor that belongs to the inputs, cut to the sizes of a part of them."""
    for dim in range(2):
        if part.shape[dim] <= whole.shape[dim]:
            value = value.narrow(dim, whole.shape[dim] - part.shape[dim], part.shape[dim])
        else:
            repeats = -(-part.shape[dim] // whole.shape[dim])
            value = torch.cat([value] * repeats, dim=dim).narrow(dim, 0, part.shape[dim])
    return value


def _fitted(lengths: Tensor, whole: Tensor, part: Tensor) -> Tensor:
    """Lengths of the last rows of a part of the inputs: a full row stays full, and none is longer than the part."""
    for time in (1, 0):
        full = whole.shape[time]
        steps = part.shape[time]
        if len(lengths) == whole.shape[1 - time] and int(lengths.max()) <= full:
            fitted = torch.where(lengths == full, steps, lengths.clamp(max=steps))
            return fitted[-part.shape[1 - time] :]
    return lengths


def _plain_attributes(part: torch.nn.Module) -> dict[str, object]:
    """What a module keeps on itself apart from parameters, buffers, modules and its mode."""
    hidden = ("training", "forward")
    return {name: value for name, value in vars(part).items() if not name.startswith("_") and name not in hidden}
