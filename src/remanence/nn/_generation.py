"""Drawing sequences from a model, token by token."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor, nn

from remanence import ops
from remanence._validate import dimension, message, positive_int, real
from remanence.ops import State
from remanence.ops.generation import draw_tokens
from remanence.ops.states import drop_row, map_tensors

from ._core_layouts import CoreState
from ._encoder import Encoder
from ._layer import RecurrentLayer

MOST_AT_ONCE = 2**18
"""Uniform numbers that are drawn together, which bounds the memory and the time of one call of the kernel."""


# Not inference mode: its tensors may never enter a graph, and the state that comes back is one to go on from.
@torch.no_grad()
def draw_sequence(
    model: Any,
    length: int,
    prompt: Tensor | None,
    batch_size: int | None,
    temperature: float,
    generator: torch.Generator | None,
    state: CoreState,
    own_step: bool,
) -> tuple[Tensor, CoreState]:
    """Does what :meth:`remanence.nn.SequenceModel.generate` says; ``own_step``: a subclass steps in its own way."""
    positive_int("length", length)
    real("temperature", temperature, least=0.0)
    _check_alphabet(model)
    _check_start(prompt, batch_size, state)
    with evaluating(model):
        if prompt is None:
            tokens = _first_tokens(model, batch_size, generator)
        else:
            logits, state = model(prompt, state)
            logits = logits.select(int(model.core.batch_first and prompt.dim() == 2), -1)
            tokens = draw_tokens(logits, _uniforms(logits.shape[:-1], temperature, generator, logits), temperature)
        parts = [tokens.unsqueeze(0)]
        run = _by_scan
        if own_step or not _runs_by_scan(model):
            run = _by_steps
        for steps in _blocks(length - 1, tokens.numel()):
            last = parts[-1][-1]
            uniforms = _uniforms((steps, *last.shape), temperature, generator, model.head.weight)
            drawn, state = run(model, last, state, steps, uniforms, temperature)
            parts.append(drawn)
    drawn = torch.cat(parts)
    if drawn.dim() == 2 and model.core.batch_first:
        drawn = drawn.T.contiguous()
    return drawn, state


def _blocks(steps: int, rows: int) -> Iterator[int]:
    """Steps of one call after the other."""
    each = max(1, MOST_AT_ONCE // rows)
    for start in range(0, steps, each):
        yield min(each, steps - start)


def _uniforms(
    shape: tuple[int, ...], temperature: float, generator: torch.Generator | None, like: Tensor
) -> Tensor | None:
    """One number for each token; on the CPU the same ones however they are cut into blocks."""
    if temperature == 0:
        return None
    return torch.rand(shape, generator=generator, dtype=torch.float64, device=like.device)


def _runs_by_scan(model: Any) -> bool:
    """Whether a step of the model is encoder, scans and head, and nothing that a user put in between."""
    core = model.core
    head = model.head
    table = model.encoder.embedding
    if not isinstance(core, RecurrentLayer) or core.bidirectional or core.spec.max_steps is not None:
        return False
    plain = (
        type(core).forward is RecurrentLayer.forward
        and type(core).step is RecurrentLayer.step
        and isinstance(head, nn.Linear)
        and type(head).forward is nn.Linear.forward
        and type(model.encoder).forward is Encoder.forward
    )
    embeds = isinstance(table, nn.Embedding) and type(table).forward is nn.Embedding.forward and table.max_norm is None
    hooked = any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())
    autocast = torch.is_autocast_enabled(head.weight.device.type)
    return plain and (embeds or not model.encoder.learned) and not hooked and not autocast


def _by_scan(
    model: Any, tokens: Tensor, state: CoreState, steps: int, uniforms: Tensor | None, temperature: float
) -> tuple[Tensor, State]:
    """All steps in one call; as :func:`_by_steps`, for cores that run through the scan."""
    core = model.core
    encoder = model.encoder
    rows = tokens.reshape(-1)
    drawn, final = ops.generate(
        rows,
        [core.weights(f"_l{layer}") for layer in range(core.num_layers)],
        core._enter_state(state, len(rows), batched=tokens.dim() > 0),
        spec=core.spec,
        head=model.head.weight,
        head_bias=model.head.bias,
        embedding=getattr(encoder.embedding, "weight", None),
        steps=steps,
        uniforms=map_tensors(lambda numbers: numbers.reshape(steps, -1), uniforms),
        temperature=temperature or 1.0,
        backend=core.backend,
    )
    if tokens.dim():
        return drawn, final
    return drawn.squeeze(1), drop_row(final)


def _by_steps(
    model: Any, tokens: Tensor, state: CoreState, steps: int, uniforms: Tensor | None, temperature: float
) -> tuple[Tensor, CoreState]:
    """Any core, one step after the other, from ``tokens`` ``(B,)`` or ``()``; without ``uniforms`` the likeliest."""
    drawn = []
    for t in range(steps):
        logits, state = model.step(tokens, state)
        tokens = draw_tokens(logits, map_tensors(itemgetter(t), uniforms), temperature)
        drawn.append(tokens)
    return torch.stack(drawn), state


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
    rows = ()
    if batch_size is not None:
        rows = (dimension("batch_size", batch_size),)
    return torch.randint(model.output_size, rows, generator=generator, device=model.head.weight.device)


def _check_alphabet(model: Any) -> None:
    if model.encoder.kind == "dense":
        hint = "Use encoder='one-hot' or 'embedding'"
        raise ValueError(message("encoder", "read tokens for the model to generate them", "'dense'", hint))
    if model.output_size > model.input_size:
        expected = f"be at most input_size = {model.input_size} for the model to read what it generates"
        raise ValueError(message("output_size", expected, model.output_size))


def _check_start(prompt: Tensor | None, batch_size: int | None, state: CoreState) -> None:
    if prompt is None:
        if state is not None:
            hint = "Give the last token as prompt, which the state has not seen"
            raise ValueError(message("state", "come with a prompt", "a state alone", hint))
    elif batch_size is not None:
        raise ValueError(message("batch_size", "be absent with a prompt, whose rows count", batch_size))
    elif not isinstance(prompt, Tensor) or prompt.dim() not in (1, 2):
        got = type(prompt).__name__
        if isinstance(prompt, Tensor):
            got = str(tuple(prompt.shape))
        raise ValueError(message("prompt", "be tokens of shape (P, B), (B, P) if batch-first, or (P,)", got))
