"""Proposition 1 of Kerg et al. 2020 in closed form: every factor of the gradient between two states of a real layer.

:func:`record` runs a layer, and each function gives one derivative of the paper from that recording. Shapes: T steps, n
units, and m numbers in a macro-state: n, or 2n where the recurrence carries h as well as s.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from remanence._validate import message
from remanence.ops import GRUCell, RNNCell, ScanSpec, SoftmaxRead, Trace, Weights
from remanence.ops.reference import scan as reference_scan
from remanence.ops.states import map_tensors

from ._attention import dense_attention
from ._observe import recurrent_spec, recurrent_weights
from ._subject import given_inputs

__all__ = [
    "Recording",
    "record",
    "LeakThroughMacroState",
    "leaking_macro_state",
    "split_paths",
    "factor",
    "partial_by_state",
    "partial_by_macro",
    "score_by_state",
    "score_by_macro",
    "state_jacobian",
]


class LeakThroughMacroState(ScanSpec):
    """A gated cell with memory whose leak carries s, which grows, where the layers here carry h.

    Example:
        >>> from remanence.ops import Full
        >>> LeakThroughMacroState("gru", memory=Full()).keeps_leak, ScanSpec("gru", memory=Full()).keeps_leak
        (False, True)
    """

    @property
    def keeps_leak(self) -> bool:
        """Never: s, which is carried anyway, is all it needs."""
        return False


@dataclasses.dataclass(frozen=True)
class Recording:
    """One row of a run, in float64: what the closed forms need.

    Example:
        >>> record(torch.nn.RNN(3, 4), torch.randn(6, 1, 3), row=0, t=1, k=4)[0].h.shape
        torch.Size([6, 4])
    """

    spec: ScanSpec
    weights: Weights
    inputs: Tensor
    """``(T, G)`` projected."""
    h: Tensor
    """``(T, n)``."""
    s: Tensor
    """``(T, n)``."""
    attention: Tensor
    """``(T, T)``: weight of the read of step j by step t."""

    @property
    def doubled(self) -> bool:
        """Whether the recurrence also carries h in addition to s (the leak of a gated cell with memory)."""
        return self.spec.keeps_leak

    @property
    def alignment(self) -> tuple[Tensor, Tensor, Tensor]:
        """W_a, U_a ``(n, n)`` and v_a ``(n,)`` of a layer that reads a memory."""
        weights = self.weights
        assert weights.query is not None
        assert weights.key is not None
        assert weights.score is not None
        return weights.query, weights.key, weights.score

    def previous(self, t: int) -> Tensor:
        """Macro-state before step t: ``(n,)``."""
        if t == 0:
            return torch.zeros_like(self.s[0])
        return self.s[t - 1]


def _recurrence(layer: Any) -> tuple[ScanSpec, Weights]:
    """Kind and parameters of a layer, or a complaint."""
    spec = recurrent_spec(layer)
    if spec is None:
        raise TypeError(message("layer", "be a recurrent layer of torch or of this library", type(layer).__name__))
    if layer.num_layers != 1 or layer.bidirectional:
        raise ValueError(message("layer", "have one layer and run forward", repr(layer)))
    additive = isinstance(spec.read, SoftmaxRead) and spec.read.score == "additive" and spec.combine != "concat"
    if not isinstance(spec.cell, RNNCell | GRUCell) or not (additive or spec.read is None):
        hint = "RNN and GRU cells with no memory or an additive read have these closed forms"
        raise ValueError(message("layer", "be of a kind that splits", str(spec), hint))
    return spec, recurrent_weights(layer)


def leaking_macro_state(spec: ScanSpec) -> ScanSpec:
    """The same kind of layer with a leak that carries s.

    Example:
        >>> from remanence.ops import Full
        >>> leaking_macro_state(ScanSpec("gru", memory=Full())).keeps_leak
        False
    """
    return LeakThroughMacroState(**{item.name: getattr(spec, item.name) for item in dataclasses.fields(spec)})


def record(layer: Any, batch: Any, row: int, t: int, k: int, leak: str = "h") -> tuple[Recording, Tensor]:
    """Runs a layer over one row in float64, up to step t + k.

    Args:
        layer: as for :func:`remanence.probes.gradient_paths`.
        batch: its input ``(T, B, input_size)``, or ``(B, T, input_size)`` if it is batch-first.
        row: row of the batch.
        t: step of the state, from 0.
        k: distance.
        leak: what the leak of a GRU with a memory carries, ``"h"`` or ``"s"``.

    Returns:
        The recording, and ds_{t+k}/dh_t by autograd: ``(n, n)``.

    Example:
        >>> recording, total = record(torch.nn.RNN(3, 4), torch.randn(6, 1, 3), row=0, t=1, k=4)
        >>> torch.allclose(split_paths(recording, 1, 4).sum(dim=0), total)
        True
    """
    spec, weights = _recurrence(layer)
    if leak == "s":
        spec = leaking_macro_state(spec)
    inputs = given_inputs(batch).detach()
    x = inputs.select(int(not layer.batch_first), row)[:, None]
    if t + k >= len(x):
        raise ValueError(message("k", f"end within the {len(x)} steps of the input", f"t + k = {t + k}"))
    x = x[: t + k + 1].double()
    weights = map_tensors(lambda weight: weight.detach().double(), weights)
    traces: list[Trace] = []
    n = spec.cell.hidden_size(weights)
    offset = torch.zeros(len(x), 1, n, dtype=torch.float64, requires_grad=True)
    macro, *_ = reference_scan(x, weights, None, spec=dataclasses.replace(spec, output="macro"), h_offset=offset)
    hidden, *_ = reference_scan(x, weights, None, spec=dataclasses.replace(spec, output="hidden"), trace=traces)
    rows = [torch.autograd.grad(value, offset, retain_graph=True)[0][t, 0] for value in macro[-1, 0]]
    attention = dense_attention(traces[0])[0].double()
    projected = spec.cell.project(x, weights)[:, 0]
    recording = Recording(spec, weights, projected, hidden[:, 0].detach(), macro[:, 0].detach(), attention)
    return recording, torch.stack(rows)


def split_paths(recording: Recording, t: int, k: int) -> Tensor:
    """The parts of Proposition 1, ``(k + 1, n, n)``: P_k(s) = sum_j F_{k,j} P_j(s-1), P_k(0) = E_k."""
    direct = [partial_by_state(recording, t, t + j) for j in range(k + 1)]
    table = torch.zeros(k + 1, k + 1, *direct[0].shape, dtype=torch.float64)
    for j in range(k + 1):
        table[j, 0] = direct[j]
        for i in range(j):
            table[j, 1:] += factor(recording, t + i, t + j) @ table[i, :-1]
    return table[k, :, : recording.h.shape[1]]


def factor(recording: Recording, j: int, k: int) -> Tensor:
    """F of Corollary 1: what the macro-state of step ``k`` owes that of step ``j < k`` over h_{j+1} or directly."""
    through = partial_by_state(recording, j + 1, k) @ state_jacobian(recording, j)
    if j == k - 1:
        through = through + partial_by_macro(recording, k)
    return through


def partial_by_state(recording: Recording, j: int, k: int) -> Tensor:
    """Partial derivative of macro-state k by h_j (Lemma 6): ``1_{k=j} d1f + alpha d2f (I + X)``; ``(m, n)``."""
    first, second = _shares(recording)
    eye = torch.eye(recording.h.shape[1], dtype=torch.float64)
    result = first * eye * (j == k)
    weight = recording.attention[k, j]
    if weight:
        h = recording.h
        away = h[j] - recording.attention[k, : k + 1] @ h[: k + 1]
        result = result + second * weight * (eye + torch.outer(away, score_by_state(recording, j, k)))
    if recording.doubled:
        result = torch.cat([result, eye * (j == k)])
    return result


def partial_by_macro(recording: Recording, k: int) -> Tensor:
    """Partial derivative of macro-state k by macro-state k-1 (Lemma 5): ``d2f sum_i alpha_i Y_i``; ``(m, m)``."""
    n = recording.h.shape[1]
    _, second = _shares(recording)
    result = torch.zeros(n, n, dtype=torch.float64)
    read = recording.attention[k, : k + 1].nonzero()[:, 0].tolist()
    if read:
        slopes = torch.stack([score_by_macro(recording, i, k) for i in read])
        weights = recording.attention[k, read]
        centred = slopes - weights @ slopes
        result = second * (recording.h[read].T * weights) @ centred
    if recording.doubled:
        result = torch.block_diag(result, torch.zeros(n, n, dtype=torch.float64))
    return result


def _shares(recording: Recording) -> tuple[float, float]:
    """Derivatives of s = f(h, c) by h and by c."""
    if not recording.spec.has_memory:
        return 1.0, 0.0
    if recording.spec.combine == "half":
        return 0.5, 0.5
    return 1.0, 1.0


def _score_slope(recording: Recording, j: int, k: int) -> Tensor:
    """``v_a (1 - tanh^2(W_a s_{k-1} + U_a h_j))``, Remark 5: ``(n,)``."""
    query, key, score = recording.alignment
    inner = query @ recording.previous(k) + key @ recording.h[j]
    return score * (1 - inner.tanh().square())


def score_by_state(recording: Recording, j: int, k: int) -> Tensor:
    """Derivative of the score e_{j,k} by h_j: ``(n,)``."""
    _, key, _ = recording.alignment
    return _score_slope(recording, j, k) @ key


def score_by_macro(recording: Recording, j: int, k: int) -> Tensor:
    """Derivative of the score e_{j,k} by s_{k-1}: ``(n,)``."""
    query, _, _ = recording.alignment
    return _score_slope(recording, j, k) @ query


def state_jacobian(recording: Recording, j: int) -> Tensor:
    """J_j = dh_{j+1}/d(macro-state j): ``(n, m)``."""
    empty = torch.zeros(1, 0, dtype=torch.float64)

    def step(s: Tensor, leak: Tensor) -> Tensor:
        projected = recording.inputs[j + 1][None]
        return recording.spec.cell.step(recording.weights, projected, s[None], empty, leak[None])[0][0]

    jacobians = torch.func.jacrev(step, argnums=(0, 1))
    if recording.doubled:
        return torch.cat(jacobians(recording.s[j], recording.h[j]), dim=1)
    by_s, by_leak = jacobians(recording.s[j], recording.s[j])
    return by_s + by_leak
