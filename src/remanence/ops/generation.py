"""Drawing tokens from a stack of layers with a head: one call for many steps, in the kernel or in plain torch.

Randomness comes from outside, as uniform numbers, so both are functions of their arguments alone: the same numbers give
the same tokens, away from ties between rounded sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from remanence._validate import dimension, message, real, shape

from ._backend import Backend, choose_backend
from ._checks import check_layers, expect
from ._half import widen_all
from ._kernel_config import SAVE_NOTHING, Config, encode
from ._kernel_tensors import one_device
from ._library import library
from ._spec import ScanSpec
from ._state import State
from ._weights import Weights
from .state_shapes import check_chain, empty_state
from .stream import check_stack_state, flatten, grown, present, reference_step


@torch.no_grad()
def generate(
    tokens: Tensor,
    layers: Sequence[Weights],
    state: State | None = None,
    *,
    spec: ScanSpec,
    head: Tensor,
    head_bias: Tensor | None = None,
    embedding: Tensor | None = None,
    steps: int,
    uniforms: Tensor | None = None,
    temperature: float = 1.0,
    backend: Backend = "auto",
) -> tuple[Tensor, State]:
    """Reads a token per row and draws the next one, again and again: encode, scan, head, sample, next.

    A token is drawn by inverting the cumulative distribution, in float64: it is the first one up to which the chances
    ``exp(logit / temperature)`` add up to more than ``uniform`` times their sum.

    Args:
        tokens: ``(B,)`` int64, what is read first.
        layers: parameters of each layer, the lowest first; all of one specification.
        state: fields ``(num_layers, B, ...)`` before `tokens`; ``None`` starts empty.
        spec: what kind of layer these are.
        head: ``(classes, features)``; its classes are the tokens that can be drawn.
        head_bias: ``(classes,)``.
        embedding: ``(input_size, features of the first layer)``; ``None`` reads tokens as one-hot vectors.
        steps: tokens to draw per row, T.
        uniforms: ``(T, B)`` float64 in [0, 1), one for each token; ``None`` takes the likeliest token.
        temperature: by which logits are divided; more than 0.
        backend: as in :func:`scan`.

    Returns:
        Tokens ``(T, B)`` and the state that has seen `tokens` and all that were drawn but the last. No gradient.

    Raises:
        RuntimeError: if logits are not finite, or as :func:`scan`.
        ValueError: if arguments do not fit together, the state among them, or as :func:`scan`.

    Example:
        >>> weights = Weights(ih=torch.randn(6, 3), hh=torch.randn(6, 6))
        >>> uniforms = torch.rand(20, 2, dtype=torch.float64)
        >>> options = {"spec": ScanSpec("rnn"), "head": torch.randn(3, 6), "steps": 20, "uniforms": uniforms}
        >>> drawn, state = generate(torch.tensor([0, 2]), [weights], **options)
        >>> drawn.shape, state.step.tolist()
        (torch.Size([20, 2]), [[20, 20]])
    """
    dimension("steps", steps)
    real("temperature", temperature, least=0.0)
    _check(tokens, layers, head, embedding, steps, uniforms, temperature)
    _check_ends(layers[0], spec, head, head_bias, embedding)
    if state is None:
        hidden = spec.cell.hidden_size(layers[0])
        state = empty_state(spec, hidden, (len(layers), len(tokens)), head)
    asked = _Request(tokens, layers, state, spec, head, head_bias, embedding, steps, uniforms, float(temperature))
    run = _reference
    if choose_backend(backend, spec, head) == "fused":
        run = _fused
    try:
        return run(asked)
    except (RuntimeError, TypeError, AttributeError, AssertionError):
        check_layers(layers, spec, layers[0].ih)
        check_stack_state(state, layers, spec, (len(tokens),))
        raise


def draw_tokens(logits: Tensor, uniforms: Tensor | None, temperature: float) -> Tensor:
    """One token per row of logits: the rule of :func:`generate` in plain torch.

    Logits are ``(..., classes)``, uniforms ``(...)`` float64 in [0, 1), or ``None`` for the likeliest token.

    Example:
        >>> draw_tokens(torch.tensor([0.2, 0.3, 0.5]).log(), torch.tensor(0.4, dtype=torch.float64), 1.0)
        tensor(1)
    """
    most = logits.amax(dim=-1, keepdim=True)
    if not bool(most.isfinite().all()):
        raise RuntimeError("the logits are not finite: there is nothing to draw from")
    if uniforms is None:
        return logits.argmax(dim=-1)
    sums = ((logits.double() - most.double()) / temperature).exp().cumsum(dim=-1)
    target = uniforms.unsqueeze(-1) * sums[..., -1:]
    # A target that rounding has moved onto the last sum would be beyond the last token.
    return torch.searchsorted(sums, target, right=True).squeeze(-1).clamp(max=logits.shape[-1] - 1)


def _check(
    tokens: Tensor,
    layers: Sequence[Weights],
    head: Tensor,
    embedding: Tensor | None,
    steps: int,
    uniforms: Tensor | None,
    temperature: float,
) -> None:
    for name, value in {"tokens": tokens, "head": head, "embedding": embedding, "uniforms": uniforms}.items():
        if value is None and name in ("embedding", "uniforms"):
            continue
        if not isinstance(value, Tensor) or value.is_meta:
            raise TypeError(message(name, "be a tensor with data", _kind(value)))
    if tokens.dtype != torch.int64 or tokens.dim() != 1 or not len(tokens):
        got = f"{tokens.dtype} {tuple(tokens.shape)}"
        raise ValueError(message("tokens", "be int64 of shape (B,), B >= 1", got))
    if not layers:
        raise ValueError(message("layers", "hold the weights of at least one layer", "none"))
    for layer in layers:
        if not isinstance(layer, Weights):
            raise TypeError(message("layers", "hold Weights", type(layer).__name__))
    known = shape("weights.ih", layers[0].ih, ("G", "input_size")).shape[1]
    if embedding is not None:
        known = len(embedding)
    low, high = (int(bound) for bound in tokens.aminmax())
    if low < 0 or high >= known:
        raise ValueError(message("tokens", f"be from 0 to {known - 1}", f"tokens from {low} to {high}"))
    if len(head) > known:
        raise ValueError(message("head", f"have at most {known} classes, the tokens that can be read", len(head)))
    if uniforms is None:
        return
    if uniforms.shape != (steps, len(tokens)) or uniforms.dtype != torch.float64:
        got = f"{uniforms.dtype} {tuple(uniforms.shape)}"
        raise ValueError(message("uniforms", f"be float64 of shape {(steps, len(tokens))}", got))
    if not bool(((uniforms >= 0) & (uniforms < 1)).all()):  # a NaN among them, too
        raise ValueError(message("uniforms", "be at least 0 and less than 1", "others"))
    if temperature == 0:
        raise ValueError(message("temperature", "be more than 0", temperature, "uniforms=None takes the likeliest"))


def _kind(value: object) -> str:
    if isinstance(value, Tensor):
        return f"one on {value.device}"
    return type(value).__name__


def _check_ends(
    first: Weights, spec: ScanSpec, head: Tensor, head_bias: Tensor | None, embedding: Tensor | None
) -> None:
    """Checks what stands before and behind the layers."""
    shape("weights.hh", first.hh, ("G", "m"))
    features = spec.output_size(spec.cell.hidden_size(first))
    shape("head", head, ("classes", features))
    if not len(head):
        raise ValueError(message("head", "have at least one class", "none"))
    if head_bias is not None:
        expect("head_bias", head_bias, head.shape[:1], head)
    if embedding is not None:
        expect("embedding", embedding, (len(embedding), first.ih.shape[1]), head)


class _Request(NamedTuple):
    """The arguments of :func:`generate`, checked."""

    tokens: Tensor
    layers: Sequence[Weights]
    state: State
    spec: ScanSpec
    head: Tensor
    head_bias: Tensor | None
    embedding: Tensor | None
    steps: int
    uniforms: Tensor | None
    temperature: float


def _reference(asked: _Request) -> tuple[Tensor, State]:
    """The specification: a loop over the reference scan, one step at a time."""
    drawn = []
    tokens = asked.tokens
    state = asked.state
    uniforms: Iterable[Tensor | None] = [None] * asked.steps
    if asked.uniforms is not None:
        uniforms = asked.uniforms
    for uniform in uniforms:
        if asked.embedding is None:
            x = F.one_hot(tokens, asked.layers[0].ih.shape[1]).to(asked.head.dtype)
        else:
            x = F.embedding(tokens, asked.embedding)
        output, state = reference_step(x, asked.layers, state, asked.spec)
        logits = F.linear(output, asked.head, asked.head_bias)
        tokens = draw_tokens(logits, uniform, asked.temperature)
        drawn.append(tokens)
    return torch.stack(drawn), state


def _fused(asked: _Request) -> tuple[Tensor, State]:
    s, c, h, chain, *held = widen_all(asked.state)
    drawn, s, c, h, *held = torch.ops.remanence.generate(
        asked.tokens,
        flatten(map(widen_all, asked.layers)),
        s,
        c,
        h,
        *held,
        *widen_all((asked.head, asked.head_bias, asked.embedding)),
        asked.uniforms,
        asked.steps,
        asked.temperature,
        encode(asked.spec, SAVE_NOTHING),
    )
    check_chain(chain, s)
    return drawn, State(s, c, h, chain, *held).to(asked.state.s.dtype)


def _fake(tokens: Tensor, weights: list[Tensor], *rest: Any) -> tuple[Tensor, ...]:
    *before, head, bias, embedding, uniforms, steps, _temperature, numbers = rest
    one_device((tokens, *present(weights), *before, head, bias, embedding, uniforms))
    s, c, h, recent, *others = before
    after = [torch.empty_like(field) for field in (s, c, h)]
    after += [grown(recent, steps, Config(*numbers)), *map(torch.empty_like, others)]
    return tokens.new_empty(steps, len(tokens)), *after


if library().problem is None:
    torch.library.register_fake("remanence::generate")(_fake)
