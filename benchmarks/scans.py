"""What the fused scan is compared with: the usual research loop and a clear eager loop, written out here."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from remanence.ops import ScanSpec, Screened, Strided, Weights, fused, reference

INPUT = 10
RECENT = 10
RELEVANT = 10
NAIVE_BYTES = 300  # that the naive loop keeps per step, row and unit
MOST_BYTES = 8e9


def draw_weights(spec: ScanSpec, n: int, inputs: int = INPUT, sharp: float = 20.0) -> Weights:
    """Normal weights; sharpened scores, so that states are replaced in the relevant set."""
    gates = {"rnn": 1, "lstm": 4}[spec.cell] * n

    def draw(*shape: int, scale: float = 1.0) -> Tensor:
        return (torch.randn(*shape) * scale / n**0.5).requires_grad_()

    weights = Weights(draw(gates, inputs), draw(gates, n), draw(gates), draw(gates))
    if isinstance(spec.memory, Strided):
        return weights._replace(query=draw(n), key=draw(n), score=draw(1))
    if spec.has_memory:
        return weights._replace(query=draw(n, n), key=draw(n, n), score=draw(n, scale=sharp))
    return weights


def _memory_weights(weights: Weights) -> tuple[Tensor, Tensor, Tensor]:
    assert weights.query is not None
    assert weights.key is not None
    assert weights.score is not None
    return weights.query, weights.key, weights.score


def _cell(cell: str, gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    if cell == "rnn":
        return gates.tanh(), c
    i, f, g, o = gates.chunk(4, dim=1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def naive_scan(x: Tensor, weights: Weights, spec: ScanSpec) -> Tensor:
    """The usual research loop: at each step both maps of the score for the whole memory, lists, concatenation."""
    batch = x.shape[1]
    n = weights.hh.shape[1]
    query, key, score = _memory_weights(weights)
    s = c = x.new_zeros(batch, n)
    recent: list[Tensor] = []
    received: list[Tensor] = []
    relevant = (x.new_zeros(batch, 0, n),)
    relevance = x.new_zeros(batch, 0)
    outputs = []
    for x_t in x.unbind(0):
        gates = F.linear(x_t, weights.ih, weights.bias_ih) + F.linear(s, weights.hh, weights.bias_hh)
        h, c = _cell(spec.cell, gates, c)
        if len(recent) == RECENT:
            relevant, relevance = _screen(relevant, relevance, (recent.pop(0),), received.pop(0))
        recent.append(h)
        received.append(x.new_zeros(batch))
        held = torch.cat([torch.stack(recent, dim=1), *relevant], dim=1)
        asked = F.linear(s[:, None].expand_as(held), query)
        z = (torch.tanh(asked + F.linear(held, key)) @ score).softmax(dim=1)
        received = [old + z[:, i].detach() for i, old in enumerate(received)]
        s = h + (z[..., None] * held).sum(dim=1)
        outputs.append(s)
    return torch.stack(outputs)


def eager_scan(x: Tensor, weights: Weights, spec: ScanSpec) -> Tensor:
    """A clear eager loop: inputs projected at once, every key computed once, the ring moved by concatenation."""
    batch = x.shape[1]
    n = weights.hh.shape[1]
    query, key, score = _memory_weights(weights)
    s = c = x.new_zeros(batch, n)
    ring = keys = x.new_zeros(batch, 0, n)
    received = x.new_zeros(batch, 0)
    relevant = (ring, keys)
    relevance = received
    outputs = []
    for from_x in F.linear(x, weights.ih, weights.bias_ih).unbind(0):
        h, c = _cell(spec.cell, from_x + F.linear(s, weights.hh, weights.bias_hh), c)
        if ring.shape[1] == RECENT:
            relevant, relevance = _screen(relevant, relevance, (ring[:, 0], keys[:, 0]), received[:, 0])
            ring = ring[:, 1:]
            keys = keys[:, 1:]
            received = received[:, 1:]
        ring = torch.cat([ring, h[:, None]], dim=1)
        keys = torch.cat([keys, F.linear(h, key)[:, None]], dim=1)
        scores = torch.tanh(F.linear(s, query)[:, None] + torch.cat([keys, relevant[1]], dim=1)) @ score
        z = scores.softmax(dim=1)
        received = F.pad(received, (0, 1)) + z[:, : ring.shape[1]].detach()
        s = h + torch.einsum("bk,bkn->bn", z, torch.cat([ring, relevant[0]], dim=1))
        outputs.append(s)
    return torch.stack(outputs)


def _screen(
    relevant: tuple[Tensor, ...], relevance: Tensor, oldest: tuple[Tensor, ...], score: Tensor
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Offers what left the ring (states, perhaps their keys too) to the relevant set."""
    if relevance.shape[1] < RELEVANT:
        joined = [torch.cat([held, new[:, None]], dim=1) for held, new in zip(relevant, oldest, strict=True)]
        return tuple(joined), torch.cat([relevance, score[:, None]], dim=1)
    least, slot = relevance.min(dim=1)
    chosen = F.one_hot(slot, RELEVANT).bool() & (score > least)[:, None]
    kept = [torch.where(chosen[..., None], new[:, None], held) for held, new in zip(relevant, oldest, strict=True)]
    return tuple(kept), torch.where(chosen, score[:, None], relevance)


def fast_runs(cell: str, n: int, batch: int, steps: int) -> dict[str, Callable[[], object]]:
    """Forward and backward of torch.nn and of the fused scans at one point of the grid."""
    x = torch.randn(steps, batch, INPUT, requires_grad=True)
    cotangent = torch.randn(steps, batch, n)
    rel = ScanSpec(cell, Screened(RECENT, RELEVANT))  # type: ignore[arg-type]
    plain = ScanSpec(cell)  # type: ignore[arg-type]
    weights = draw_weights(rel, n)
    plain_weights = draw_weights(plain, n)
    layer = (torch.nn.LSTM if cell == "lstm" else torch.nn.RNN)(INPUT, n)
    return {
        "nn": lambda: layer(x)[0].backward(cotangent),
        "rel": lambda: fused.scan(x, weights, None, spec=rel)[0].backward(cotangent),
        "lean": lambda: fused.scan(x, weights, None, spec=rel, lean=True)[0].backward(cotangent),
        "plain": lambda: fused.scan(x, plain_weights, None, spec=plain)[0].backward(cotangent),
    }


def slow_runs(cell: str, n: int, batch: int, steps: int) -> dict[str, Callable[[], object]]:
    """The loops in Python, where they fit into memory."""
    if NAIVE_BYTES * n * batch * steps > MOST_BYTES:
        return {}
    x = torch.randn(steps, batch, INPUT, requires_grad=True)
    cotangent = torch.randn(steps, batch, n)
    rel = ScanSpec(cell, Screened(RECENT, RELEVANT))  # type: ignore[arg-type]
    weights = draw_weights(rel, n)
    return {
        "naive": lambda: naive_scan(x, weights, rel).backward(cotangent),
        "eager": lambda: eager_scan(x, weights, rel).backward(cotangent),
        "reference": lambda: reference.scan(x, weights, None, spec=rel)[0].backward(cotangent),
    }
