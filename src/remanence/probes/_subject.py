"""A model and one batch: its inputs, runs on parts of them, and the last part of the output."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from remanence._validate import message

from ._flattened import Order, find_order, is_flattened, unflattened
from ._layout import Layout, changed_at, read_layout
from ._observe import modules, untouched

Model: TypeAlias = Callable[..., object]
"""Any callable on sequences."""
INPUT_NAMES = ("input_ids", "inputs_embeds", "tokens", "inputs", "input", "x", "src", "observations")
"""Keys under which a dictionary holds its sequence, the likeliest first."""
OUTPUT_NAMES = ("logits", "last_hidden_state", "outputs", "output", "prediction")
"""Names under which a model may return its output."""
STATE_NAMES = ("past_key_values", "state", "states", "hidden", "cache_params", "mems")
"""Names under which a model may return what the next call needs."""


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
        self._given: Any = arguments or given_inputs(batch)
        self._name = next(iter(arguments), None) or _name(self._given)
        self._whole: Tensor = self._given
        if self._name is not None:
            self._whole = self._given[self._name]
        self._whole = self._whole.detach()
        self.inputs: Tensor = self._whole
        self._by_keyword = self._name is not None and _takes_keywords(model, self._given)
        self._attributes = [(part, _plain_attributes(part)) for part in modules(model)]
        self._batch_first = batch_first
        self._output_name = ""

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
        with untouched(self.model, training=self.training):
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
        self._output_name, output = named_output(self.run(inputs))
        return self.as_steps(output, inputs)

    def as_steps(self, output: Tensor, inputs: Tensor) -> Tensor:
        """An output with a dimension for steps and one for rows, if the model flattened them into one."""
        if not is_flattened(output, inputs) or self._flattened_order is None:
            return output
        return unflattened(output, inputs, self._flattened_order)

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

    def at_length(self, length: int) -> Subject:
        """The same with its inputs repeated or cut along time; the batch that a loss sees is these inputs."""
        time = self.layout.time
        repeats = -(-length // self.layout.steps)
        other = copy.copy(self)
        other.inputs = torch.cat([self.inputs] * repeats, dim=time).narrow(time, 0, length)
        other.batch = other.inputs
        vars(other)["layout"] = dataclasses.replace(self.layout, steps=length)
        return other

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


def output_of(result: object) -> Tensor:
    """The output: the result itself, ``.logits`` or the like, or the first of a tuple, as recurrent layers return it.

    Example:
        >>> output_of({"logits": torch.zeros(2), "loss": torch.zeros(())}).shape
        torch.Size([2])
    """
    return named_output(result)[1]


def named_output(result: object) -> tuple[str, Tensor]:
    """The output and the name under which the model returned it, empty if it has none; complex numbers as pairs.

    Of a dictionary or a dataclass without a known name the first tensor is taken that is not a single number.

    Example:
        >>> named_output({"loss": torch.zeros(()), "forecast": torch.zeros(2)})[0]
        'forecast'
    """
    if isinstance(result, Tensor):
        return "", _as_real(result)
    for name in OUTPUT_NAMES:
        if isinstance(found := _named(result, name), Tensor):
            return name, _as_real(found)
    if isinstance(result, tuple | list) and result and isinstance(result[0], Tensor):
        return "", _as_real(result[0])
    for name, found in _fields(result).items():
        if isinstance(found, Tensor) and found.dim():
            return name, _as_real(found)
    expected = "return a tensor, a tuple that starts with one, or a dictionary or dataclass that holds one"
    raise TypeError(message("model", expected, type(result).__name__, "Wrap it in a function"))


def _as_real(output: Tensor) -> Tensor:
    if output.is_complex():
        return torch.view_as_real(output)
    return output


def _fields(result: object) -> Mapping[str, object]:
    """What a dictionary or a dataclass holds."""
    if isinstance(result, Mapping):
        return result
    if not dataclasses.is_dataclass(result):
        return {}
    return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}


def state_of(result: object) -> Sequence[object]:
    """What a result hands over to the next call: the rest of a tuple, or the state of a language model."""
    if isinstance(result, Tensor):
        return ()
    named = [found for name in STATE_NAMES if (found := _named(result, name)) is not None]
    if named or not isinstance(result, tuple):
        return named
    return result[1:]


def _named(result: object, name: str) -> object:
    if isinstance(result, Mapping):
        return result.get(name)
    return getattr(result, name, None)


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
    """Lengths of the rows of a part of the inputs: a full row stays full, and none is longer than the part."""
    for time in (1, 0):
        full = whole.shape[time]
        steps = part.shape[time]
        if len(lengths) == whole.shape[1 - time] and int(lengths.max()) <= full:
            return torch.where(lengths == full, steps, lengths.clamp(max=steps))
    return lengths


def _plain_attributes(part: torch.nn.Module) -> dict[str, object]:
    """What a module keeps on itself apart from parameters, buffers, modules and its mode."""
    hidden = ("training", "forward")
    return {name: value for name, value in vars(part).items() if not name.startswith("_") and name not in hidden}
