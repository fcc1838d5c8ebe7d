"""Encoder, core and head: the one place where cores meet tasks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from remanence._validate import dimension, message, probability

from ._core_layouts import CoreState, refuse_script, step_of
from ._encoder import Encoder, EncoderName
from ._generation import draw_sequence
from ._model_init import ModelInit, check_model_init, fill_model_
from ._registry import get_model
from ._sequence import SequenceInput


class SequenceModel(nn.Module):
    """An encoder, any core, and a linear head that answers at every step.

    Args:
        input_size: number of different tokens, or features of a vector.
        core: a module with ``core(input, state) -> output, state`` (any here, and ``torch.nn.LSTM``, ``GRU``, ``RNN``),
            or a name in :func:`list_models`.
        output_size: numbers that the head gives at every step, such as class scores.
        encoder: ``"one-hot"`` and ``"embedding"`` read int64 tokens; ``"dense"`` reads float vectors and hands them on
            as they are, or through a linear map if there is an `embedding_size`.
        embedding_size: features that a learned encoder gives.
        tied: whether the embedding is the head's weight.
        dropout: probability of dropping, in training, what a learned encoder gives and what the head reads; a core made
            by name gets the same number for its inside.
        init: ``"torch"`` keeps what the layers draw themselves. ``"xavier"`` and ``"kaiming"`` draw as the code of
            Kerg et al. does: what reads the input (with the state, where there are gates) and the score of a read
            are normal, the head is Xavier.
        core_options: of a core made by name, but for its first size, which is the encoder's. ``device`` and ``dtype``
            belong here: encoder and head follow the core.

    Example:
        >>> model = SequenceModel(10, "RelLSTM", 9, hidden_size=32, recent=5, relevant=5)
        >>> logits, state = model(torch.randint(10, (40, 2)))
        >>> tokens, state = model.generate(20, prompt=torch.tensor([[1], [2]]))
        >>> logits.shape, tokens.shape
        (torch.Size([40, 2, 9]), torch.Size([20, 1]))
    """

    def __init__(
        self,
        input_size: int,
        core: nn.Module | str,
        output_size: int,
        *,
        encoder: EncoderName = "one-hot",
        embedding_size: int | None = None,
        tied: bool = False,
        dropout: float = 0.0,
        init: ModelInit = "torch",
        **core_options: Any,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.output_size = dimension("output_size", output_size)
        self.dropout = probability("dropout", dropout)
        self.encoder = Encoder(encoder, input_size, embedding_size)
        self.core = make_core(core, self.encoder.output_size, core_options, self.dropout)
        like = next(self.core.parameters())
        self.encoder.to(like)
        self.head = nn.Linear(core_output_size(self.core), output_size, device=like.device, dtype=like.dtype)
        fill_model_(self.core, self.head, check_model_init(init, self.core))
        if tied:
            self.encoder.tie(self.head)

    __prepare_scriptable__ = refuse_script

    @classmethod
    def for_task(cls, task: Any, core: nn.Module | str, **options: Any) -> Self:
        """A model with a task's sizes and kind of input: vectors are dense, tokens one-hot by default.

        Args:
            task: anything with `input_size`, `output_size` and `input_kind`, such as ``remanence.tasks.Copy()``.
            core: as in the class.
            options: as in the class.
        """
        encoder = {"vectors": "dense"}.get(task.input_kind, "one-hot")
        return cls(task.input_size, core, task.output_size, **{"encoder": encoder, **options})

    def forward(
        self, inputs: SequenceInput, state: CoreState = None, *, reset: Tensor | None = None
    ) -> tuple[Any, CoreState]:
        """Answers at every step of a sequence.

        Args:
            inputs: int64 tokens ``(T, B)``, or vectors ``(T, B, input_size)``; ``(B, T, ...)`` if the core is
                batch-first, ``(T, ...)`` unbatched, or a ``PackedSequence`` of either.
            state: the core's initial state; None starts empty.
            reset: bool ``(T, B)`` in the inputs' layout, True where a row is reset, for cores that accept it.

        Returns:
            Logits ``(T, B, output_size)`` in the inputs' layout, and the core's state.
        """
        output, state = self.core(_on_steps(self._encode, inputs), state, **reset_option(self.core, reset))
        return _on_steps(self._answer, output), state

    def step(self, input_t: Tensor, state: CoreState = None) -> tuple[Tensor, CoreState]:
        """One step of a stream: the same numbers as the whole run.

        Args:
            input_t: tokens ``(B,)`` or vectors ``(B, input_size)``, without ``B`` unbatched.
            state: the core's state so far; None starts empty.

        Returns:
            Logits ``(B, output_size)`` and the state after them.
        """
        output, state = core_step(self.core, self._encode(input_t), state)
        return self._answer(output), state

    def generate(
        self,
        length: int,
        *,
        prompt: Tensor | None = None,
        batch_size: int | None = None,
        temperature: float = 1.0,
        generator: torch.Generator | None = None,
        state: CoreState = None,
    ) -> tuple[Tensor, CoreState]:
        """Draws tokens, each given all before it, in evaluation mode and without gradient.

        A recurrent core of this package draws many tokens in one call of :func:`remanence.ops.generate`; any other one,
        or one with hooks, goes step by step. The rule and the random numbers are the same, so a seed gives the same
        tokens either way, unless rounding decides between two. On the CPU that also holds in chunks. Apart from the
        tokens, memory does not grow with `length`, unless the core's state does.

        Args:
            length: how many.
            prompt: tokens that come before, ``(P, B)``, ``(B, P)`` if the core is batch-first, ``(P,)`` unbatched. None
                draws the first token uniformly, because no step comes before it that could say more.
            batch_size: rows without a prompt; None for one unbatched sequence.
            temperature: by which logits are divided; 0 takes the most likely token.
            generator: source of the randomness; None is torch's global one.
            state: of the core before the prompt.

        Returns:
            Tokens ``(length, B)`` in the prompt's layout, and the state that has seen all but the last: to go on, give
            that token as the next prompt.
        """
        own_step = type(self).step is not SequenceModel.step
        return draw_sequence(self, length, prompt, batch_size, temperature, generator, state, own_step)

    def _encode(self, inputs: Tensor) -> Tensor:
        encoded = self.encoder(inputs)
        return functional.dropout(encoded, self.dropout, self.training and self.encoder.learned)

    def _answer(self, output: Tensor) -> Tensor:
        return self.head(functional.dropout(output, self.dropout, self.training))


def _on_steps(function: Callable[[Tensor], Tensor], sequence: SequenceInput) -> SequenceInput:
    """Applies what works on single steps to a tensor, or to the steps of a packed sequence."""
    if isinstance(sequence, PackedSequence):
        return sequence._replace(data=function(sequence.data))
    return function(sequence)


def make_core(core: nn.Module | str, width: int, options: dict[str, Any], dropout: float) -> nn.Module:
    """Builds a named core, or checks that a given one fits.

    Args:
        core: the module, or the name of a class in :func:`remanence.nn.list_models`.
        width: features that it will be given.
        options: further arguments of a named core.
        dropout: of a named core.

    Example:
        >>> make_core("RelLSTM", 3, {"hidden_size": 8}, 0.0).hidden_size
        8
    """
    if isinstance(core, str):
        if dropout:  # cores that cannot drop anything do not take the argument
            options = {"dropout": dropout, **options}
        return get_model(core)(width, **options)
    if not isinstance(core, nn.Module):
        raise TypeError(message("core", "be a module or the name of one", type(core).__name__))
    if options:
        hint = "Give them to the module itself"
        raise TypeError(message("core", f"be a name to take options ({', '.join(options)})", type(core).__name__, hint))
    if core.input_size != width:
        raise ValueError(message("core", f"have input_size {width}, as the encoder gives", str(core.input_size)))
    return core


def core_output_size(core: Any) -> int:
    """Features of a core's output; torch's layers do not name theirs."""
    if isinstance(core, nn.RNNBase):
        return (core.proj_size or core.hidden_size) * (1 + core.bidirectional)
    return core.output_size


def core_step(core: Any, input_t: Tensor, state: CoreState) -> tuple[Tensor, CoreState]:
    """One step of a stream; torch's layers know whole sequences only."""
    if not isinstance(core, nn.RNNBase):
        return core.step(input_t, state)
    if core.bidirectional:
        raise ValueError(message("core", "run forward only to be stepped", "bidirectional=True"))
    return step_of(core, input_t, state)


def reset_option(core: nn.Module, reset: Tensor | None) -> dict[str, Tensor]:
    """The keyword argument that hands `reset` to the core: none if there is nothing to hand over."""
    if reset is None:
        return {}
    if "reset" not in inspect.signature(core.forward).parameters:
        hint = "The recurrent layers of remanence.nn take it"
        raise ValueError(message("reset", f"be None with the core {type(core).__name__}", "a tensor", hint))
    return {"reset": reset}
