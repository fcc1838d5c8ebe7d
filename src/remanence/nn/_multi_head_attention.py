"""Multi-head attention of three kinds, as one layer: over all positions, or causal and able to stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, scaled_dot_product_attention

from remanence._validate import boolean, dimension, message, one_of, optional_size, probability, shape

from ._attention_state import (
    EMPTY,
    AttentionState,
    CacheState,
    RunningState,
    extend_cache,
    newest,
    step_numbers,
    visible,
)
from ._core_layouts import StreamingCore, enter_mask, enter_rows, leave_rows, unusual_options
from ._feature_sums import FeatureSums, attend_all, attend_past, floor, hide_padding
from ._linear_attention import orthogonal_gaussian_projection, random_feature_logits
from ._options import Device, Factory
from ._sequence import CallLayout, SequenceInput

AttentionKind: TypeAlias = Literal["softmax", "separable", "positive-random-features"]
KINDS: tuple[AttentionKind, ...] = ("softmax", "separable", "positive-random-features")


class MultiHeadAttention(StreamingCore[AttentionState]):
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
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.width = self.input_size = self.hidden_size = self.output_size = dimension("width", width)
        self.heads = dimension("heads", heads)
        if width % heads:
            hint = "The width is heads x head size"
            raise ValueError(message("width", f"be a multiple of heads={heads}", width, hint))
        self.head_size = width // heads
        self.kind: AttentionKind = one_of("kind", kind, KINDS)
        self.causal = boolean("causal", causal)
        self.context = optional_size("context", context, None)
        self.dropout = probability("dropout", dropout)
        self.orthogonal = boolean("orthogonal", orthogonal)
        self.batch_first = boolean("batch_first", batch_first)
        self._refuse_contradictions(features, feature_seed)

        like = Factory(device=device, dtype=dtype)
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width, **like))
        self.in_proj_bias = None
        if boolean("bias", bias):
            self.in_proj_bias = nn.Parameter(torch.empty(3 * width, **like))
        self.out_proj = nn.Linear(width, width, bias=bias, **like)
        self.features = optional_size("features", features, self._usual_features())
        if self._by_mass:
            self.register_buffer("projection", torch.empty(heads, self.features, self.head_size, **like))
        self._feature_seed = feature_seed
        self.reset_parameters()

    projection: Tensor  # (heads, features, head_size), only for kind="positive-random-features"

    def reset_parameters(self) -> None:
        """Initialises the parameters again, as torch's layer does, and the random features."""
        nn.init.xavier_uniform_(self.in_proj_weight)
        self.out_proj.reset_parameters()
        if self.in_proj_bias is not None:
            nn.init.zeros_(self.in_proj_bias)
            nn.init.zeros_(self.out_proj.bias)
        if self._by_mass:
            generator = None
            if self._feature_seed is not None:
                generator = torch.Generator().manual_seed(self._feature_seed)
            self.redraw_features(generator)

    @torch.no_grad()
    def redraw_features(self, generator: torch.Generator | None = None) -> None:
        """Draws new random features, the same on every device; without a generator (CPU) from torch's global one.

        Example:
            >>> attention = MultiHeadAttention(8, 2, kind="positive-random-features", feature_seed=0)
            >>> attention.redraw_features(torch.Generator().manual_seed(1))
        """
        if not self._by_mass:
            raise ValueError(message("kind", "be 'positive-random-features' to have features to redraw", self.kind))
        size = (self.features, self.head_size)
        for head in self.projection:
            if self.orthogonal:
                head.copy_(orthogonal_gaussian_projection(*size, generator, dtype=torch.float64))
            else:
                head.copy_(torch.randn(size, generator=generator, dtype=torch.float64))

    def initial_state(self, batch_size: int | None = None) -> AttentionState:
        """The state before the first step; without ``batch_size`` that of an unbatched sequence."""
        if not self.causal:
            raise ValueError(message("causal", "be True for a layer with a state", self.causal))
        return super().initial_state(batch_size)

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
        x, padded, layout = enter_rows(input, self, self.in_proj_weight)
        source = x
        if memory is not None:
            source = self._enter_memory(memory, x, layout)
            padded = None
        if key_padding_mask is not None:
            hidden = enter_mask("key_padding_mask", key_padding_mask, source, layout)
            if padded is not None:
                hidden = hidden | padded
            padded = hidden
        query, key, value = self._project(x, source)
        after = None
        if self.causal:
            past = self._enter_state(state, x.shape[0], layout)
            fresh = state is None and padded is None
            output, after = self._attend_past(query, key, value, past, padded, fresh)
            after = layout.outer_state(after)
        else:
            output = self._attend_all(query, key, value, padded)
        return leave_rows(self.out_proj(output.flatten(-2)), layout), after

    def _refuse_contradictions(self, features: int | None, feature_seed: int | None) -> None:
        softmax = self.kind == "softmax"
        if not self._by_mass and (features is not None or feature_seed is not None or not self.orthogonal):
            options = "`features`, `feature_seed` and `orthogonal` must be left out"
            raise ValueError(f"{options} unless kind='positive-random-features'; got kind={self.kind!r}")
        if self.dropout and not softmax:
            hint = "The linear kinds form no attention weights to drop"
            raise ValueError(message("dropout", "be 0 unless kind='softmax'", self.dropout, hint))
        if self.context is not None and not (softmax and self.causal):
            hint = "Running sums cannot forget single steps"
            raise ValueError(message("context", "be None unless causal with kind='softmax'", self.context, hint))

    def _usual_features(self) -> int:
        size = self.head_size
        if not self._by_mass:
            return size
        # Of the order of d ln d features are enough at any length (Choromanski et al. 2021).
        return max(size, math.ceil(size * math.log(size)))

    def _refuse_mismatch(self, state: AttentionState | None, memory: Tensor | None) -> None:
        if self.causal and memory is not None:
            hint = "Keys and values are the input's own"
            raise ValueError(message("memory", "be None when causal", "a tensor", hint))
        if not self.causal and state is not None:
            raise ValueError(message("state", "be None unless causal", type(state).__name__))

    def _enter_memory(self, memory: Tensor, x: Tensor, layout: CallLayout) -> Tensor:
        expected: list[int | str] = list(layout.outer(x.transpose(0, 1)).shape)
        expected[layout.time] = "S"
        shape("memory", memory, expected)
        if (memory.dtype, memory.device) != (x.dtype, x.device):
            kinds = (f"{of.dtype} on {of.device}" for of in (x, memory))
            raise ValueError("`memory` must be {} as `input` is; got {}".format(*kinds))
        return layout.inner(memory).transpose(0, 1)

    def _project(self, x: Tensor, source: Tensor) -> list[Tensor]:
        """Queries, keys and values, each ``(B, T, heads, head_size)``."""
        biases: Sequence[Tensor | None] = (None, None, None)
        if self.in_proj_bias is not None:
            biases = self.in_proj_bias.chunk(3)
        triples = zip((x, source, source), self.in_proj_weight.chunk(3), biases, strict=True)
        return [linear(*triple).unflatten(-1, (self.heads, self.head_size)) for triple in triples]

    def _attend_all(self, query: Tensor, key: Tensor, value: Tensor, padded: Tensor | None) -> Tensor:
        if self.kind == "softmax":
            seen = None
            if padded is not None:
                seen = ~padded.unsqueeze(1)
            return self._softmax(query, key, value, seen)
        query_logits, key_logits, value = self._logits(query, key, value, padded)
        return attend_all(query_logits, key_logits, value, by_mass=self._by_mass).transpose(1, 2)

    def _attend_past(
        self, query: Tensor, key: Tensor, value: Tensor, past: AttentionState, padded: Tensor | None, fresh: bool
    ) -> tuple[Tensor, AttentionState]:
        if isinstance(past, CacheState):
            return self._attend_cache(query, key, value, past, padded, fresh)
        query_logits, key_logits, value = self._logits(query, key, value, padded)
        sums = FeatureSums(past.peak[0], past.mass[0], past.total[0])
        output, sums = attend_past(query_logits, key_logits, value, sums, by_mass=self._by_mass)
        peak, mass, total = (field.unsqueeze(0) for field in sums)
        clock = step_numbers(past.step[0], key.shape[1], padded)
        return output.transpose(1, 2), RunningState(peak, mass, total, clock[:, -1].unsqueeze(0) + 1)

    def _attend_cache(
        self, query: Tensor, key: Tensor, value: Tensor, past: CacheState, padded: Tensor | None, fresh: bool
    ) -> tuple[Tensor, CacheState]:
        cache, clock = extend_cache(past, key, value, padded)
        after = cache
        if self.context is not None:
            after = newest(cache, self.context - 1)
        # Without a past and without padding torch needs no mask, and takes its fastest kernel.
        if fresh and (self.context is None or self.context >= key.shape[1]):
            return self._softmax(query, key, value, None, causal=True), after
        seen = visible(clock, cache.position[0], self.context)
        return self._softmax(query, cache.key[0], cache.value[0], seen), after

    def _softmax(
        self, query: Tensor, key: Tensor, value: Tensor, seen: Tensor | None, *, causal: bool = False
    ) -> Tensor:
        """Torch's attention; ``seen`` is ``(B, T, slots)`` or ``(B, 1, slots)``, None for everything."""
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        if seen is not None:
            seen = seen.unsqueeze(1)
        dropout = self.dropout * self.training
        output = scaled_dot_product_attention(query, key, value, attn_mask=seen, dropout_p=dropout, is_causal=causal)
        return output.transpose(1, 2)

    @property
    def _by_mass(self) -> bool:
        """Whether the features are random: then the weight of a feature carries the mass of its keys."""
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
        if padded is not None:
            key, value = hide_padding(key, value, padded.unsqueeze(1))
        return query, key, value

    def _empty(self, rows: int) -> AttentionState:
        weight = self.in_proj_weight
        step = torch.zeros(1, rows, dtype=torch.int64, device=weight.device)
        if self.kind == "softmax":
            slots = (self.context or 1) - 1  # a step's own key and value are not kept for it
            key = weight.new_zeros(1, rows, slots, self.heads, self.head_size)
            return CacheState(key, key, step.new_full((1, rows, slots), EMPTY), step)
        dtype = torch.promote_types(weight.dtype, torch.float32)
        mass = weight.new_zeros(1, rows, self.heads, self.features, dtype=dtype)
        total = mass.new_zeros(*mass.shape, self.head_size)
        return RunningState(torch.full_like(mass, floor(dtype)), mass, total, step)

    def _growing(self) -> int | None:
        if self.kind == "softmax" and self.context is None:
            return 2
        return None

    def extra_repr(self) -> str:
        """The options that are not at their defaults."""
        shown = {"kind": "softmax", "causal": False, "context": None, "dropout": 0.0, "batch_first": False}
        return ", ".join([str(self.width), str(self.heads), *unusual_options(self, shown)])
