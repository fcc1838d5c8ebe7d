"""A causal Transformer with the protocol of the recurrent layers: whole sequences, chunks, or step by step."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from remanence._validate import MOST_PARTS, boolean, dimension, one_of, positive_int, probability
from remanence.nn import _core_layouts
from remanence.nn._attention_state import AttentionState, step_numbers
from remanence.nn._multi_head_attention import AttentionKind, MultiHeadAttention
from remanence.nn._sequence import SequenceInput
from remanence.ops.states import drop_row


class Transformer(nn.Module):
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
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        dimension("width", width)
        positive_int("depth", depth, maximum=MOST_PARTS)
        hidden = 4 * width if feedforward is None else dimension("feedforward", feedforward)
        self.positions: Literal["sinusoidal"] | None = one_of("positions", positions, ("sinusoidal", None))
        options: dict[str, Any] = {"kind": kind, "context": context, "features": features, "orthogonal": orthogonal}
        options |= {"dropout": dropout if kind == "softmax" else 0.0, "device": device, "dtype": dtype}
        seeds = [None if feature_seed is None else feature_seed + block for block in range(depth)]
        attentions = [
            MultiHeadAttention(width, heads, causal=True, batch_first=True, feature_seed=seed, **options)
            for seed in seeds
        ]
        self.blocks = nn.ModuleList(
            _Block(attention, hidden, probability("dropout", dropout), device, dtype) for attention in attentions
        )
        self.input_size = self.hidden_size = self.output_size = self.width = width
        self.depth = depth
        self.heads = heads
        self.kind = kind
        self.context = context
        self.batch_first = boolean("batch_first", batch_first)

    def initial_state(self, batch_size: int | None = None) -> AttentionState:
        """The state before the first step.

        Args:
            batch_size: number of rows; None for an unbatched sequence.
        """
        state = self._empty(1 if batch_size is None else dimension("batch_size", batch_size))
        return drop_row(state) if batch_size is None else state

    def forward(self, input: SequenceInput, state: AttentionState | None = None) -> tuple[Any, AttentionState]:
        """Runs over a sequence; shapes are in the class docstring."""
        x, padded, layout = _core_layouts.enter_rows(input, self, self._attention(0).in_proj_weight)
        past = (
            None
            if state is None
            else _core_layouts.enter_state(state, self._empty(x.shape[0]), layout, growing=self._growing)
        )
        if self.positions is not None:
            step = torch.zeros(1, dtype=torch.int64, device=x.device) if past is None else past.step[0]
            x = x + sinusoidal_positions(step_numbers(step, x.shape[1], padded), self.width, x.dtype)
        after = []
        for number, block in enumerate(self.blocks):
            x, state_after = block(x, None if past is None else _layer(past, number), padded)
            after.append(state_after)
        stacked = _stack(after)
        return _core_layouts.leave_rows(x, layout), stacked if layout.batched else drop_row(stacked)

    def step(self, input_t: Tensor, state: AttentionState | None = None) -> tuple[Tensor, AttentionState]:
        """One step of a stream: the same numbers as the whole run.

        Args:
            input_t: ``(B, width)``, or ``(width,)`` unbatched.
            state: the state so far; None at the start.

        Returns:
            The output, ``(B, width)`` or ``(width,)``, and the next state.
        """
        return _core_layouts.step_of(self, input_t, state)

    def redraw_features(self, generator: torch.Generator | None = None) -> None:
        """Draws new random features for every block.

        Args:
            generator: source of the randomness (CPU); None is torch's global one.
        """
        for number in range(self.depth):
            self._attention(number).redraw_features(generator)

    @property
    def _growing(self) -> int | None:
        return 2 if self.kind == "softmax" and self.context is None else None

    def _attention(self, number: int) -> MultiHeadAttention:
        return self.blocks[number].attention  # type: ignore[return-value]

    def _empty(self, batch_size: int) -> AttentionState:
        return _stack([self._attention(number).initial_state(batch_size) for number in range(self.depth)])

    def extra_repr(self) -> str:
        """Whether the layout and positions are not the usual ones."""
        shown = {"positions": "sinusoidal", "batch_first": False}
        return ", ".join(
            f"{name}={getattr(self, name)!r}" for name, usual in shown.items() if getattr(self, name) != usual
        )


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

    def __init__(
        self, attention: MultiHeadAttention, hidden: int, dropout: float, device: Any, dtype: torch.dtype | None
    ) -> None:
        super().__init__()
        like: dict[str, Any] = {"device": device, "dtype": dtype}
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
