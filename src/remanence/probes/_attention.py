"""What a model attends to."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from remanence._wording import number_of
from remanence.figures import Axis, Curve, Figure, HeatMap, Look
from remanence.ops import Log, ScanSpec, Screened, State, Trace, Weights
from remanence.ops.reference import scan as reference_scan

from ._layout import is_language_model
from ._observe import FAST_PATH, forward_replaced, modules, watched_scans
from ._result import ProbeResult
from ._subject import Model, Subject

NOTHING = np.zeros(0)
"""The occupancy of a memory without a relevant set."""


@dataclasses.dataclass(frozen=True)
class AttentionMap(ProbeResult):
    """Attention weights against (reader, read) steps for every attention of a model, in the order of the run.

    Example:
        >>> from remanence.nn import RelLSTM
        >>> found = attention_map(RelLSTM(3, 8, recent=2, relevant=2), torch.randn(20, 4, 3))
        >>> found.maps[0].shape, found.kappa
        ((20, 20), 4)
    """

    kind: ClassVar[str] = "attention_map"

    names: tuple[str, ...]
    maps: tuple[np.ndarray, ...]
    """Each ``(T, T')``, rows are readers, averaged over the batch (and heads)."""
    occupancy: tuple[np.ndarray, ...]
    """Each ``(T,)``: share of the relevant set that is filled, averaged over rows; empty where there is none."""
    replacements: tuple[int, ...]
    """How often a state displaced another from the relevant set, over all rows."""
    kappa: int
    """Most states that any step of any row attends to."""
    recent: int | None = None
    """States of the recent buffer that lies before a relevant set; ``None`` without a relevant set."""

    @property
    def verdict(self) -> str:
        """How many attentions, how sparse, how busy."""
        if not self.maps:
            return "no attention found"
        steps = self.maps[0].shape[0]
        words = f"{number_of(len(self.maps), 'attention')} over {steps} steps, at most {self.kappa} states read at once"
        if any(map(len, self.occupancy)):
            words += f", {sum(self.replacements)} replacements in relevant sets"
        return words

    def figures(self) -> list[Figure]:
        """Heat maps, as figures 1, 7 and 9 to 11 of Kerg et al. 2020 and figure 3 of Ke et al. 2017."""
        return [self._figure(*found) for found in zip(self.names, self.maps, self.occupancy, strict=True)]

    def _figure(self, name: str, weights: np.ndarray, occupancy: np.ndarray) -> Figure:
        words = f"Row: the step that reads; column: the step that is read. {self.verdict}."
        parts: list[HeatMap | Curve] = [HeatMap(weights)]
        if self.recent is not None and len(occupancy):
            stays = _stays(weights, self.recent)
            if len(stays.x):
                words += " Orange: how long each state stayed in the relevant set, once it was no longer recent."
                parts.append(stays)
        return Figure(name, words, tuple(parts), Axis("step read"), Axis("reader", downwards=True))


def _stays(weights: np.ndarray, recent: int) -> Curve:
    """A line along the readers for each state that was attended to when it was older than the recent buffer."""
    x: list[int | None] = []
    y: list[float | None] = []
    for state in range(weights.shape[1]):
        readers = state + recent + np.flatnonzero(weights[state + recent :, state] > 0)
        if len(readers):
            x += [state, state, None]
            y += [float(readers[0]) - 0.5, float(readers[-1]) + 0.5, None]
    return Curve("in the relevant set", x, y, look=Look("#D55E00"), faint=True)


def attention_map(model: Model, batch: object, *, training: bool = False) -> AttentionMap:
    """Runs a model once, without gradient, and collects what every attention in it read.

    Seen are the memories of this library's layers, torch's ``MultiheadAttention``, every call of torch's
    ``scaled_dot_product_attention``, and what a model of the Hugging Face library gives as ``attentions``.

    Args:
        model: any callable on sequences.
        batch: the input: a tensor, a dictionary of tensors, a tuple that starts with either, or anything with
            ``inputs``.
        training: whether to keep training mode, with its dropout; by default the model is probed in evaluation mode.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
        >>> attention_map(layer, torch.randn(6, 2, 8)).maps[0].sum(axis=1).round(4).tolist()
        [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    subject = batch
    if not isinstance(subject, Subject):
        subject = Subject(model, batch, training=training)
    seen = _Seen()
    with subject.untouched(), torch.no_grad(), ExitStack() as stack:
        stack.enter_context(watched_scans(seen.scan))
        stack.enter_context(without_fast_path())
        for part in modules(model):
            if isinstance(part, nn.MultiheadAttention):
                stack.enter_context(_weights_asked(part, seen))
        stack.enter_context(_AttentionCalls(seen))
        subject.run(subject.inputs)
    if not seen.maps and is_language_model(model):
        _ask_for_attentions(subject, seen)
    return AttentionMap(
        names=tuple(seen.names),
        maps=tuple(seen.maps),
        occupancy=tuple(seen.occupancy),
        replacements=tuple(seen.replacements),
        kappa=seen.kappa,
        recent=seen.recent,
    )


def _ask_for_attentions(subject: Subject, seen: _Seen) -> None:
    """Adds what a language model gives when asked, where it computes its attention in plain products."""
    with subject.untouched(), torch.no_grad():
        result = subject.run(subject.inputs, output_attentions=True)
    for weights in getattr(result, "attentions", None) or ():
        if weights is not None:
            seen.add("attention", weights)


class _Seen:
    """Collects maps in the order in which they are made."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.maps: list[np.ndarray] = []
        self.occupancy: list[np.ndarray] = []
        self.replacements: list[int] = []
        self.recent: int | None = None
        self.kappa = 0

    def add(self, name: str, weights: Tensor, occupancy: np.ndarray = NOTHING, replacements: int = 0) -> None:
        """Takes ``(..., T, T')`` weights."""
        rows = weights.detach().double().reshape(-1, *weights.shape[-2:])
        self.names.append(f"{len(self.names)}: {name}")
        self.maps.append(rows.mean(dim=0).cpu().numpy())
        self.occupancy.append(occupancy)
        self.replacements.append(replacements)
        self.kappa = max(self.kappa, int((rows > 0).sum(dim=-1).max()))

    def scan(
        self, x: Tensor, weights: Weights, state: State | None, log: Log, spec: ScanSpec, options: dict[str, Any]
    ) -> None:
        """Reads a scan of ours again, with the same choices, for its attention."""
        if not spec.has_memory:
            return
        traces: list[Trace] = []
        kept = {name: value for name, value in options.items() if name not in ("backend", "h_offset")}
        reference_scan(x, weights, state, spec=spec, **{**kept, "forced_log": log}, trace=traces)
        trace = traces[0]
        memory = spec.memory
        occupancy = NOTHING
        if isinstance(memory, Screened) and memory.relevant:
            occupancy = (trace.steps[..., -memory.relevant :] >= 0).double().mean(dim=(1, 2)).numpy()
            self.recent = memory.recent
        name = f"{spec.cell} with {type(memory).__name__}"
        self.add(name, dense_attention(trace), occupancy, int((trace.displaced >= 0).sum()))


def dense_attention(trace: Trace) -> Tensor:
    """Weights over (row, reader, read): ``(B, T, T)``; steps before the run are left out."""
    length, batch, _ = trace.weights.shape
    dense = torch.zeros(length, batch, length + 1, dtype=trace.weights.dtype)
    place = torch.where((trace.steps >= 0) & (trace.steps < length), trace.steps + 1, 0)
    dense.scatter_add_(2, place, trace.weights)
    return dense[..., 1:].transpose(0, 1)


@contextmanager
def without_fast_path() -> Iterator[None]:
    """Inside, torch's encoder does not run as one operation that hides its attention."""
    with FAST_PATH.kept():
        torch.backends.mha.set_fastpath_enabled(False)
        yield


@contextmanager
def _weights_asked(part: nn.MultiheadAttention, seen: _Seen) -> Iterator[None]:
    """Inside, the module computes its weights for us and gives its caller what was asked for."""
    original = part.forward

    def forward(*args: Any, **options: Any) -> tuple[Tensor, Tensor | None]:
        with torch._C.DisableTorchFunction():
            output, weights = original(*args, **{**options, "need_weights": True, "average_attn_weights": False})
        assert weights is not None  # asked for just above
        seen.add("MultiheadAttention", weights)
        if not options.get("need_weights", True):
            return output, None
        if options.get("average_attn_weights", True):
            weights = weights.mean(dim=-3)
        return output, weights

    with forward_replaced(part, forward):
        yield


class _AttentionCalls(TorchFunctionMode):
    """Sees calls of ``scaled_dot_product_attention`` anywhere below."""

    def __init__(self, seen: _Seen) -> None:
        super().__init__()
        self.seen = seen

    def __torch_function__(self, func: Any, types: object, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is nn.functional.scaled_dot_product_attention:
            self.seen.add("dot product", _softmax_weights(*args, **kwargs))
        return func(*args, **kwargs)


def _softmax_weights(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """The weights behind torch's attention: ``(..., T, T')``; with `enable_gqa` a key serves a group of queries."""
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    scores = query @ key.mT * scale
    if is_causal:
        scores = scores.masked_fill(~torch.ones_like(scores, dtype=torch.bool).tril(), -math.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return scores.softmax(dim=-1).nan_to_num(0.0)
