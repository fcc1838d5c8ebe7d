"""Multi-head attention of three kinds, as one layer: over all positions, or causal and able to stream."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from remanence._validate import boolean, dimension, message, one_of, probability, shape
from remanence.nn import _core_layouts
from remanence.nn._attention_state import (
    EMPTY,
    AttentionState,
    CacheState,
    RunningState,
    count_steps,
    extend_cache,
    newest,
    visible,
)
from remanence.nn._feature_sums import FeatureSums, attend_all, attend_past, floor, hide_padding
from remanence.nn._linear_attention import orthogonal_gaussian_projection, random_feature_logits
from remanence.nn._sequence import Layout, SequenceInput
from remanence.ops.states import drop_row

AttentionKind: TypeAlias = Literal["softmax", "separable", "positive-random-features"]
KINDS: tuple[AttentionKind, ...] = ("softmax", "separable", "positive-random-features")


class MultiHeadAttention(nn.Module):
    """Multi-head attention with softmax, separable or random-feature heads.

    ``"softmax"`` is torch's scaled dot product. ``"separable"`` and ``"positive-random-features"`` never form the n x n
    matrix: see :func:`separable_attention` and :func:`random_feature_attention`, and what the latter is unbiased for.
    With softmax heads the parameters, their names and the outputs are those of :class:`torch.nn.MultiheadAttention`.

    Args:
        width: features of input and output; ``heads`` must divide it.
        heads: number of heads.
        kind: ``"softmax"``, ``"separable"`` or ``"positive-random-features"``.
        causal: let a step see itself and the past only. Only then is there a state, and can the layer stream.
        context: let a step see the last ``context`` steps only, its own included; causal softmax only. The state is
            then of fixed size.
        dropout: probability of dropping an attention weight in training; softmax only, the others form no weights.
        bias: whether the projections have biases.
        features: number of random features per head; ``None`` is ``head_size * ln(head_size)``, at least ``head_size``.
        orthogonal: whether the random features are orthogonal in blocks, which lowers their variance.
        feature_seed: seed of the random features; ``None`` takes one from torch's global generator.
        batch_first: whether input and output are ``(B, T, width)``.
        device: of the parameters.
        dtype: of the parameters.

    Inputs:
        - input: ``(T, B, width)``, ``(B, T, width)`` with `batch_first`, ``(T, width)``, or a `PackedSequence`.
        - state: the state to continue from, or None; causal only.
        - memory: a second sequence in the input's layout, to take keys and values from; not causal only.
        - key_padding_mask: bool in the layout of the keys' sequence, ``(S, B)``, ``(B, S)`` with `batch_first` or
          ``(S,)``; True leaves a position out. A step that sees nothing reads 0.

    Outputs:
        - output: in the input's layout.
        - state: :class:`CacheState` or :class:`RunningState`; None if not causal.

    Example:
        >>> attention = MultiHeadAttention(8, 2, kind="separable", causal=True)
        >>> x = torch.randn(6, 3, 8)
        >>> whole, _ = attention(x)
        >>> first, state = attention(x[:4])
        >>> fifth, state = attention.step(x[4], state)
        >>> torch.allclose(whole[4], fifth, atol=1e-6)
        True
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kind: AttentionKind = "softmax",
        causal: bool = False,
        context: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        features: int | None = None,
        orthogonal: bool = True,
        feature_seed: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.width = dimension("width", width)
        self.heads = dimension("heads", heads)
        if width % heads:
            hint = "The width is heads x head size"
            raise ValueError(message("width", f"be a multiple of heads={heads}", width, hint))
        self.head_size = width // heads
        self.kind: AttentionKind = one_of("kind", kind, KINDS)
        self.causal = boolean("causal", causal)
        self.context = None if context is None else dimension("context", context)
        self.dropout = probability("dropout", dropout)
        self.orthogonal = boolean("orthogonal", orthogonal)
        self.batch_first = boolean("batch_first", batch_first)
        self._refuse_contradictions(features, feature_seed)

        like: dict[str, Any] = {"device": device, "dtype": dtype}
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width, **like))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * width, **like)) if boolean("bias", bias) else None
        self.out_proj = nn.Linear(width, width, bias=bias, **like)
        self.features = self._feature_count(features)
        if kind == "positive-random-features":
            self.register_buffer("projection", torch.empty(heads, self.features, self.head_size, **like))
        self._feature_seed = feature_seed
        self.reset_parameters()

    projection: Tensor  # (heads, features, head_size), only for kind="positive-random-features"
    input_size = property(lambda self: self.width, doc="Features of the input.")
    hidden_size = property(lambda self: self.width, doc="Features of the output, under the recurrent layers' name.")
    output_size = property(lambda self: self.width, doc="Features of the output.")

    def reset_parameters(self) -> None:
        """Initialises the parameters again, as torch's layer does, and the random features."""
        nn.init.xavier_uniform_(self.in_proj_weight)
        self.out_proj.reset_parameters()
        if self.in_proj_bias is not None:
            nn.init.zeros_(self.in_proj_bias)
            nn.init.zeros_(self.out_proj.bias)
        if self.kind == "positive-random-features":
            seed = self._feature_seed
            self.redraw_features(None if seed is None else torch.Generator().manual_seed(seed))

    @torch.no_grad()
    def redraw_features(self, generator: torch.Generator | None = None) -> None:
        """Draws new random features, the same on every device.

        Args:
            generator: source of the randomness (CPU); None is torch's global one.

        Example:
            >>> attention = MultiHeadAttention(8, 2, kind="positive-random-features", feature_seed=0)
            >>> attention.redraw_features(torch.Generator().manual_seed(1))
        """
        if self.kind != "positive-random-features":
            raise ValueError(message("kind", "be 'positive-random-features' to have features to redraw", self.kind))
        size = (self.features, self.head_size)
        for head in self.projection:
            if self.orthogonal:
                head.copy_(orthogonal_gaussian_projection(*size, generator, dtype=torch.float64))
            else:
                head.copy_(torch.randn(size, generator=generator, dtype=torch.float64))

    def initial_state(self, batch_size: int | None = None) -> AttentionState:
        """The state before the first step.

        Args:
            batch_size: number of rows; None for an unbatched sequence.
        """
        if not self.causal:
            raise ValueError(message("causal", "be True for a layer with a state", self.causal))
        state = self._empty(1 if batch_size is None else dimension("batch_size", batch_size))
        return drop_row(state) if batch_size is None else state

    def forward(
        self,
        input: SequenceInput,
        state: AttentionState | None = None,
        *,
        memory: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
    ) -> tuple[Any, AttentionState | None]:
        """Attends; shapes are in the class docstring."""
        self._refuse_mismatch(state, memory)
        x, padded, layout = _core_layouts.enter_rows(input, self, self.in_proj_weight)
        source = x if memory is None else self._enter_memory(memory, x, layout)
        if memory is not None:
            padded = None
        if key_padding_mask is not None:
            hidden = _core_layouts.enter_mask("key_padding_mask", key_padding_mask, source, layout)
            padded = hidden if padded is None else hidden | padded
        query, key, value = self._project(x, source)
        if self.causal:
            past = None if state is None else self._enter_state(state, x.shape[0], layout)
            output, after = self._attend_past(query, key, value, past, padded)
            after = after if layout.batched else drop_row(after)
        else:
            output = self._attend_all(query, key, value, padded)
            after = None
        return _core_layouts.leave_rows(self.out_proj(output.flatten(-2)), layout), after

    def step(self, input_t: Tensor, state: AttentionState | None = None) -> tuple[Tensor, AttentionState]:
        """One step of a stream: the same numbers as the whole run.

        Args:
            input_t: ``(B, width)``, or ``(width,)`` unbatched.
            state: the state so far; None at the start.

        Returns:
            The output, ``(B, width)`` or ``(width,)``, and the next state.
        """
        return _core_layouts.step_of(self, input_t, state)

    def _refuse_contradictions(self, features: int | None, feature_seed: int | None) -> None:
        softmax = self.kind == "softmax"
        random = self.kind == "positive-random-features"
        if not random and (features is not None or feature_seed is not None or not self.orthogonal):
            options = "`features`, `feature_seed` and `orthogonal` must be left out"
            raise ValueError(f"{options} unless kind='positive-random-features'; got kind={self.kind!r}")
        if self.dropout and not softmax:
            hint = "The linear kinds form no attention weights to drop"
            raise ValueError(message("dropout", "be 0 unless kind='softmax'", self.dropout, hint))
        if self.context is not None and not (softmax and self.causal):
            hint = "Running sums cannot forget single steps"
            raise ValueError(message("context", "be None unless causal with kind='softmax'", self.context, hint))

    def _feature_count(self, features: int | None) -> int:
        if features is not None:
            return dimension("features", features)
        size = self.head_size
        return size if self.kind != "positive-random-features" else max(size, math.ceil(size * math.log(size)))

    def _refuse_mismatch(self, state: AttentionState | None, memory: Tensor | None) -> None:
        if self.causal and memory is not None:
            hint = "Keys and values are the input's own"
            raise ValueError(message("memory", "be None when causal", "a tensor", hint))
        if not self.causal and state is not None:
            raise ValueError(message("state", "be None unless causal", type(state).__name__))

    def _enter_memory(self, memory: Tensor, x: Tensor, layout: Layout) -> Tensor:
        expected = layout.outer(x.transpose(0, 1)).shape
        time = 1 if layout.batched and layout.batch_first and layout.packed is None else 0
        shape("memory", memory, [*expected[:time], "S", *expected[time + 1 :]])
        if (memory.dtype, memory.device) != (x.dtype, x.device):
            kinds = (f"{of.dtype} on {of.device}" for of in (x, memory))
            raise ValueError("`memory` must be {} as `input` is; got {}".format(*kinds))
        return layout.inner(memory).transpose(0, 1)

    def _project(self, x: Tensor, source: Tensor) -> list[Tensor]:
        """Queries, keys and values, each ``(B, T, heads, head_size)``."""
        biases = [None] * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        triples = zip((x, source, source), self.in_proj_weight.chunk(3), biases, strict=True)
        return [linear(*triple).unflatten(-1, (self.heads, self.head_size)) for triple in triples]

    def _attend_all(self, query: Tensor, key: Tensor, value: Tensor, padded: Tensor | None) -> Tensor:
        if self.kind == "softmax":
            return self._softmax(query, key, value, visible=None if padded is None else ~padded.unsqueeze(1))
        query_logits, key_logits, value = self._logits(query, key, value, padded)
        return attend_all(query_logits, key_logits, value, by_mass=self._by_mass).transpose(1, 2)

    def _attend_past(
        self, query: Tensor, key: Tensor, value: Tensor, past: AttentionState | None, padded: Tensor | None
    ) -> tuple[Tensor, AttentionState]:
        fresh = past is None and padded is None
        past = self._empty(len(query)) if past is None else past
        if isinstance(past, CacheState):
            return self._attend_cache(query, key, value, past, padded, fresh)
        query_logits, key_logits, value = self._logits(query, key, value, padded)
        sums = FeatureSums(past.peak[0], past.mass[0], past.total[0])
        output, sums = attend_past(query_logits, key_logits, value, sums, by_mass=self._by_mass)
        peak, mass, total = (field.unsqueeze(0) for field in sums)
        return output.transpose(1, 2), RunningState(peak, mass, total, past.step + count_steps(key, padded))

    def _attend_cache(
        self, query: Tensor, key: Tensor, value: Tensor, past: CacheState, padded: Tensor | None, fresh: bool
    ) -> tuple[Tensor, CacheState]:
        cache, clock = extend_cache(past, key, value, padded)
        after = cache if self.context is None else newest(cache, self.context - 1)
        if fresh and (self.context is None or self.context >= key.shape[1]):
            return self._softmax(query, key, value, causal=True), after
        seen = visible(clock, cache.position[0], self.context)
        return self._softmax(query, cache.key[0], cache.value[0], visible=seen), after

    def _softmax(
        self, query: Tensor, key: Tensor, value: Tensor, *, visible: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        mask = None if visible is None else visible.unsqueeze(1)
        dropout = self.dropout if self.training else 0.0
        output = scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout, is_causal=causal)
        return output.transpose(1, 2)

    @property
    def _by_mass(self) -> bool:
        return self.kind == "positive-random-features"

    def _logits(
        self, query: Tensor, key: Tensor, value: Tensor, padded: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of queries and keys and the values, each ``(B, heads, T, ...)``, with padding hidden."""
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        if self._by_mass:
            query, key = random_feature_logits(query, key, self.projection, self.head_size**-0.5)
        else:
            query, key = (x.to(torch.promote_types(x.dtype, torch.float32)) for x in (query, key))
        key, value = hide_padding(key, value, None if padded is None else padded.unsqueeze(1))
        return query, key, value

    def _empty(self, batch_size: int) -> AttentionState:
        weight = self.in_proj_weight
        step = torch.zeros(1, batch_size, dtype=torch.int64, device=weight.device)
        if self.kind == "softmax":
            slots = 0 if self.context is None else self.context - 1
            key = weight.new_zeros(1, batch_size, slots, self.heads, self.head_size)
            return CacheState(key, key, step.new_full((1, batch_size, slots), EMPTY), step)
        dtype = torch.promote_types(weight.dtype, torch.float32)
        mass = weight.new_zeros(1, batch_size, self.heads, self.features, dtype=dtype)
        total = mass.new_zeros(*mass.shape, self.head_size)
        return RunningState(torch.full_like(mass, floor(dtype)), mass, total, step)

    def _enter_state(self, state: AttentionState, batch_size: int, layout: Layout) -> AttentionState:
        empty = self._empty(batch_size)
        growing = 2 if self.kind == "softmax" and self.context is None else None
        return _core_layouts.enter_state(state, empty, layout, growing=growing)

    def extra_repr(self) -> str:
        """The options that are not at their defaults."""
        shown = {"kind": "softmax", "causal": False, "context": None, "dropout": 0.0, "batch_first": False}
        options = [f"{name}={getattr(self, name)!r}" for name, usual in shown.items() if getattr(self, name) != usual]
        return ", ".join([str(self.width), str(self.heads), *options])
