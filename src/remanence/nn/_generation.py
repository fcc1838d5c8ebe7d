"""Drawing sequences from a model, token by token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from remanence._validate import message, positive_int, real


# Not inference mode: its tensors may never enter a graph, and the state that comes back is one to go on from.
@torch.no_grad()
def draw_tokens(
    model: Any,
    length: int,
    prompt: Tensor | None,
    batch_size: int | None,
    temperature: float,
    generator: torch.Generator | None,
    state: Any,
) -> tuple[Tensor, Any]:
    """Does what :meth:`remanence.nn.SequenceModel.generate` says, with its arguments."""
    positive_int("length", length)
    real("temperature", temperature, least=0.0)
    _check_alphabet(model)
    _check_start(prompt, batch_size, state)
    batched = batch_size is not None if prompt is None else prompt.dim() == 2
    time = 1 if batched and model.core.batch_first else 0
    with evaluating(model):
        if prompt is None:
            drawn = [_first_tokens(model, batch_size, generator)]
        else:
            logits, state = model(prompt, state)
            drawn = [_draw(logits.select(time, -1), temperature, generator)]
        while len(drawn) < length:
            logits, state = model.step(drawn[-1], state)
            drawn.append(_draw(logits, temperature, generator))
    return torch.stack(drawn, dim=time), state


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Puts a model into evaluation mode, and every part of it back into its own mode afterwards.

    Example:
        >>> model = nn.Dropout()
        >>> with evaluating(model):
        ...     model.training
        False
        >>> model.training
        True
    """
    modes = {part: part.training for part in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def _first_tokens(model: Any, batch_size: int | None, generator: torch.Generator | None) -> Tensor:
    rows = () if batch_size is None else (positive_int("batch_size", batch_size),)
    return torch.randint(model.output_size, rows, generator=generator, device=model.head.weight.device)


def _draw(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
    """One token per row of the logits ``(B, classes)``, or one of ``(classes,)``."""
    if temperature == 0:
        return logits.argmax(dim=-1)
    chances = torch.softmax(logits / temperature, dim=-1)
    return torch.multinomial(chances, 1, generator=generator).squeeze(-1)


def _check_alphabet(model: Any) -> None:
    if model.encoder.kind == "dense":
        hint = "Use encoder='one-hot' or 'embedding'"
        raise ValueError(message("encoder", "read tokens for the model to generate them", "'dense'", hint))
    if model.output_size > model.input_size:
        expected = f"be at most input_size = {model.input_size} for the model to read what it generates"
        raise ValueError(message("output_size", expected, model.output_size))


def _check_start(prompt: Tensor | None, batch_size: int | None, state: Any) -> None:
    if prompt is None:
        if state is not None:
            hint = "Give the last token as prompt, which the state has not seen"
            raise ValueError(message("state", "come with a prompt", "a state alone", hint))
    elif batch_size is not None:
        raise ValueError(message("batch_size", "be absent with a prompt, whose rows count", batch_size))
    elif not isinstance(prompt, Tensor) or prompt.dim() not in (1, 2):
        got = str(tuple(prompt.shape)) if isinstance(prompt, Tensor) else type(prompt).__name__
        raise ValueError(message("prompt", "be tokens of shape (P, B), (B, P) if batch-first, or (P,)", got))
