"""A causal Transformer with the protocol of the recurrent layers: whole sequences, chunks, or step by step."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from remanence._validate import MOST_PARTS, boolean, dimension, one_of, optional_size, positive_int, probability

from ._attention_state import AttentionState, step_numbers
from ._core_layouts import StreamingCore, enter_rows, leave_rows, unusual_options
from ._multi_head_attention import AttentionKind, MultiHeadAttention
from ._options import Device, Factory
from ._sequence import SequenceInput


class Transformer(StreamingCore[AttentionState]):
    """Causal self-attention blocks over an embedded sequence (Vaswani et al., "Attention is all you need", 2017).

    Positions are added to the input first. A block is ``x = norm(x + attention(x))`` and then
    ``x = norm(x + W2 relu(W1 x))``. Embedding and output layer, tied or not, belong to the model around this core.

    Args:
        width: features of input and output: ``heads`` times the size of a head.
        depth: number of blocks.
        heads: number of heads per block.
        feedforward: hidden units between the attention layers; ``None`` is ``4 * width``.
        dropout: probability of dropping in training: outputs of attention and feed-forward layers before they are
            added, and, with softmax attention, attention weights.
        kind: ``"softmax"``, or the linear ``"separable"`` and ``"positive-random-features"``.
        context: let a step attend to the last ``context`` steps only, its own included (softmax only): the state has a
            fixed size, and depth times ``context - 1`` steps are as far as the model can see.
        positions: ``"sinusoidal"``, or ``None`` to add nothing. There is no maximum length.
        features: number of random features per head.
        orthogonal: whether the random features are orthogonal in blocks.
        feature_seed: seed of the random features; every block has its own.
        batch_first: whether input and output are ``(B, T, width)``.
        device: of the parameters.
        dtype: of the parameters.

    Inputs:
        - input: ``(T, B, width)``, ``(B, T, width)`` with `batch_first`, ``(T, width)``, or a `PackedSequence`.
        - state: the state to continue from, or None.

    Outputs:
        - output: like the input.
        - state: :class:`CacheState` (softmax; it grows with the sequence unless there is a `context`) or
          :class:`RunningState`, one entry per block.

    Example:
        >>> core = Transformer(16, depth=2, heads=4)
        >>> x = torch.randn(10, 3, 16)
        >>> whole, _ = core(x)
        >>> _, state = core(x[:9])
        >>> last, state = core.step(x[9], state)
        >>> torch.allclose(whole[9], last, atol=1e-5)
        True
    """

    def __init__(
        self,
        width: int,
        depth: int,
        heads: int,
        *,
        feedforward: int | None = None,
        dropout: float = 0.0,
        kind: AttentionKind = "softmax",
        context: int | None = None,
        positions: Literal["sinusoidal"] | None = "sinusoidal",
        features: int | None = None,
        orthogonal: bool = True,
        feature_seed: int | None = None,
        batch_first: bool = False,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        dimension("width", width)
        positive_int("depth", depth, maximum=MOST_PARTS)
        hidden = optional_size("feedforward", feedforward, 4 * width)
        self.positions: Literal["sinusoidal"] | None = one_of("positions", positions, ("sinusoidal", None))
        options: dict[str, Any] = {"kind": kind, "context": context, "features": features, "orthogonal": orthogonal}
        like = Factory(device=device, dtype=dtype)
        options |= {"causal": True, "batch_first": True, **like}
        if kind == "softmax":  # the linear kinds have no attention weights to drop
            options["dropout"] = dropout
        seeds: list[int | None] = [None] * depth
        if feature_seed is not None:
            seeds = [feature_seed + block for block in range(depth)]
        attentions = [MultiHeadAttention(width, heads, feature_seed=seed, **options) for seed in seeds]
        self.blocks = nn.ModuleList(
            _Block(attention, hidden, probability("dropout", dropout), like) for attention in attentions
        )
        self.input_size = self.hidden_size = self.output_size = self.width = width
        self.depth = depth
        self.heads = heads
        self.kind = kind
        self.context = context
        self.batch_first = boolean("batch_first", batch_first)

    def forward(self, input: SequenceInput, state: AttentionState | None = None) -> tuple[Any, AttentionState]:
        """Runs over a sequence; shapes are in the class docstring."""
        x, padded, layout = enter_rows(input, self, self._attention(0).in_proj_weight)
        pasts: list[AttentionState | None] = [None] * self.depth  # a block that is given none attends the faster
        step = torch.zeros(1, dtype=torch.int64, device=x.device)
        if state is not None:
            past = self._enter_state(state, x.shape[0], layout)
            pasts = [_layer(past, number) for number in range(self.depth)]
            step = past.step[0]
        if self.positions is not None:
            x = x + sinusoidal_positions(step_numbers(step, x.shape[1], padded), self.width, x.dtype)
        after = []
        for block, past in zip(self.blocks, pasts, strict=True):
            x, state_after = block(x, past, padded)
            after.append(state_after)
        return leave_rows(x, layout), layout.outer_state(_stack(after))

    def redraw_features(self, generator: torch.Generator | None = None) -> None:
        """Draws new random features for every block; without a generator (CPU) from torch's global one."""
        for number in range(self.depth):
            self._attention(number).redraw_features(generator)

    def _growing(self) -> int | None:
        return self._attention(0)._growing()

    def _attention(self, number: int) -> MultiHeadAttention:
        return self.blocks[number].attention  # type: ignore[return-value]

    def _empty(self, rows: int) -> AttentionState:
        return _stack([self._attention(number)._empty(rows) for number in range(self.depth)])

    def extra_repr(self) -> str:
        """Whether the layout and positions are not the usual ones."""
        return ", ".join(unusual_options(self, {"positions": "sinusoidal", "batch_first": False}))


def sinusoidal_positions(position: Tensor, width: int, dtype: torch.dtype | None = None) -> Tensor:
    """Sines and cosines of the position at ``width / 2`` wavelengths, from 2 pi to 10000 times that.

    Args:
        position: ``(...)`` int64.
        width: number of features; even ones are sines, odd ones cosines.
        dtype: of the result; None is torch's default.

    Returns:
        ``(..., width)``.

    Example:
        >>> sinusoidal_positions(torch.tensor([0, 1]), 2)
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]])
    """
    dtype = dtype or torch.get_default_dtype()
    exact = torch.promote_types(dtype, torch.float32)
    pair = torch.arange(0, width, 2, device=position.device, dtype=exact)
    angle = position.unsqueeze(-1).to(exact) * 10000.0 ** (-pair / width)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(-2)[..., :width].to(dtype)


class _Block(nn.Module):
    """Attention and a feed-forward layer, each added to its input and then normalised."""

    def __init__(self, attention: MultiHeadAttention, hidden: int, dropout: float, like: Factory) -> None:
        super().__init__()
        width = attention.width
        self.attention = attention
        self.attention_norm = nn.LayerNorm(width, **like)
        self.expand = nn.Linear(width, hidden, **like)
        self.contract = nn.Linear(hidden, width, **like)
        self.feedforward_norm = nn.LayerNorm(width, **like)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, state: AttentionState | None, padded: Tensor | None
    ) -> tuple[Tensor, AttentionState | None]:
        attended, state = self.attention(x, state, key_padding_mask=padded)
        x = self.attention_norm(x + self.dropout(attended))
        transformed = self.contract(self.expand(x).relu())
        return self.feedforward_norm(x + self.dropout(transformed)), state


def _layer(state: AttentionState, number: int) -> AttentionState:
    return type(state)(*(field[number : number + 1] for field in state))


def _stack(states: list[AttentionState]) -> AttentionState:
    return type(states[0])(*(torch.cat(fields) for fields in zip(*states, strict=True)))
