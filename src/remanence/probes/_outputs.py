"""What a model returns: its output, under whichever name, and what the next call needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from remanence._validate import message

OUTPUT_NAMES = ("logits", "last_hidden_state", "outputs", "output", "prediction")
"""Names under which a model may return its output."""
STATE_NAMES = ("past_key_values", "state", "states", "hidden", "cache_params", "mems")
"""Names under which a model may return what the next call needs."""
PAIR = 2
"""Of equal tensors: rather a state, as that of an LSTM, than outputs of two steps."""


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
    """Complex numbers as pairs; integers, such as the most likely classes, as numbers that can be compared."""
    if output.is_complex():
        return torch.view_as_real(output)
    if not output.is_floating_point():
        return output.double()
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


def is_list_of_steps(result: object, inputs: Tensor) -> bool:
    """Whether a result is a list or tuple that holds a tensor for each step of the inputs.

    Example:
        >>> is_list_of_steps([torch.zeros(2, 4)] * 9, torch.zeros(9, 2, 3))
        True
    """
    if not isinstance(result, tuple | list) or len(result) <= PAIR or len(result) not in inputs.shape[:2]:
        return False
    return all(isinstance(part, Tensor) and part.shape == result[0].shape for part in result)
