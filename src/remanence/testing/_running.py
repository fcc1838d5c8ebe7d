"""Run a layer once and collect everything that it computes, forward and backward, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from remanence.ops import Screened, State


@torch.no_grad()
def sharpen_(layer: nn.Module, seed: int = 0) -> nn.Module:
    """Make the attention of a layer decisive, so that its relevant set is really replaced.

    At default initialisation attention is nearly uniform, the first states collect the most, and nothing is ever
    replaced: whatever is tested there tests little.

    Args:
        layer: changed in place and returned.
        seed: of the new attention parameters.

    Example:
        >>> import remanence
        >>> layer = sharpen_(remanence.nn.RelRNN(3, 8, recent=4, relevant=6))
        >>> trace, = layer.trace(torch.randn(48, 2, 3))
        >>> bool((trace.displaced >= 0).any())
        True
    """
    generator = torch.Generator().manual_seed(seed)
    scores = {name for name, parameter in layer.named_parameters() if "weight_score" in name and parameter.numel() > 1}
    for name, parameter in layer.named_parameters():
        dot = name.startswith("weight_query") and name.replace("query", "score") not in scores
        if name in scores or (dot and parameter.dim() > 1):
            _draw_(parameter, generator, 8.0)
        elif name.startswith(("weight_query", "weight_key")):
            _draw_(parameter, generator, 1.0 if parameter.dim() > 1 else 0.2)
        elif name.startswith("weight_ih"):
            _draw_(parameter, generator, 0.5)
    return layer


def _draw_(parameter: Tensor, generator: torch.Generator, scale: float) -> None:
    # drawn in float64 so that a float32 twin gets the same numbers
    parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * scale)


def replacements(layer: Any, input: Tensor, **call: Any) -> Tensor:
    """How often each row replaced an entry of its relevant set: ``(layers, B)``, least over nothing."""
    traces = layer.trace(input, **call)
    time = 1 if layer.batch_first else 0
    return torch.stack([(trace.displaced >= 0).sum(dim=time) for trace in traces])


def is_screened(layer: object) -> bool:
    """Whether the layer has a relevant set that is screened."""
    memory = getattr(getattr(layer, "spec", None), "memory", None)
    return isinstance(memory, Screened) and memory.relevant > 0


def random_like(tensors: Sequence[Tensor], seed: int) -> list[Tensor]:
    """Normal numbers shaped like the tensors, the same in every precision."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor) for tensor in tensors]


def collect(
    layer: nn.Module,
    input: Tensor,
    state: object = None,
    *,
    chunks: Sequence[int] | None = None,
    seed: int = 0,
    **call: Any,
) -> dict[str, Tensor]:
    """Run a layer forward and backward with random cotangents for its output and every float field of its state.

    Args:
        layer: follows the layer contract.
        input: leaf tensor, time first.
        state: where to start; its float fields get gradients.
        chunks: run in pieces of these lengths, handing the state over.
        seed: of the cotangents.
        call: further arguments of the layer, such as ``reset`` (time first).

    Returns:
        ``output``, ``state.*``, ``grad.input``, ``grad.state.*`` and ``grad.<parameter>``.
    """
    input = input.detach().clone().requires_grad_()
    start = state
    if isinstance(state, State):
        start = State(*(field.detach().clone().requires_grad_(field.is_floating_point()) for field in state))
    output, final = _run_in_chunks(layer, input, start, chunks, call)
    parameters = dict(layer.named_parameters())
    sources = {"input": input} | parameters
    if isinstance(start, State):
        sources |= {f"state.{name}": field for name, field in start._asdict().items() if field.requires_grad}
    results = [output, *(field for field in final if field.is_floating_point())]
    loss = torch.stack([(a * b).sum() for a, b in zip(results, random_like(results, seed), strict=True)]).sum()
    gradients = torch.autograd.grad(loss, list(sources.values()), allow_unused=True, materialize_grads=True)
    found = {"output": output.detach()} | {f"state.{name}": field.detach() for name, field in final._asdict().items()}
    return found | {f"grad.{name}": grad for name, grad in zip(sources, gradients, strict=True)}


def _run_in_chunks(
    layer: nn.Module, input: Tensor, state: Any, chunks: Sequence[int] | None, call: dict[str, Any]
) -> tuple[Tensor, State]:
    if chunks is None:
        return layer(input, state, **call)
    outputs = []
    first = 0
    for piece in input.split(list(chunks)):
        named = {name: value[first : first + len(piece)] for name, value in call.items()}
        output, state = layer(piece, state, **named)
        outputs.append(output)
        first += len(piece)
    return torch.cat(outputs), state
