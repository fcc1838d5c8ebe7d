"""The vocabulary of the scan: what a layer is made of, what it carries, what it reports.

A layer is *cell x memory x read x gradient cuts*. The classes below name the points of that space; they hold no
arithmetic. :mod:`remanence.ops.reference` says what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.utils import _pytree

from remanence._validate import one_of, positive_int

CellName: TypeAlias = Literal["rnn", "lstm", "gru", "goru"]
Nonlinearity: TypeAlias = Literal["tanh", "relu", "modrelu", "identity"]
Combine: TypeAlias = Literal["sum", "half", "concat"]

EMPTY = -1
"""Value of ``relevant_step`` in a slot that holds nothing."""

BEFORE_START = -2
"""Value of ``relevant_step`` for the all-zero state that :class:`Strided` may start with."""


@dataclass(frozen=True)
class Full:
    """Every past state may be attended (MemRNN, MemLSTM); the state of the layer **grows with the sequence**.

    Args:
        limit: keep only the newest ``limit`` states, in a ring of fixed size; ``None`` keeps all.
        score: ``"additive"`` (Bahdanau) or ``"dot"`` (scaled dot product).

    Example:
        >>> Full(limit=100).recent
        100
    """

    limit: int | None = None
    score: Literal["additive", "dot"] = "additive"

    def __post_init__(self) -> None:
        if self.limit is not None:
            positive_int("limit", self.limit)
        one_of("score", self.score, ("additive", "dot"))

    @property
    def recent(self) -> int | None:
        """Size of the short-term buffer; ``None`` means unbounded."""
        return self.limit

    @property
    def relevant(self) -> int:
        """Size of the relevant set: there is none."""
        return 0


@dataclass(frozen=True)
class Screened:
    """The newest ``recent`` states and the ``relevant`` most attended of the older ones (RelRNN, RelLSTM).

    ``recent >= T`` is :class:`Full`; ``recent = relevant = 0`` is no memory at all.

    Args:
        recent: size of the short-term buffer (the paper's nu).
        relevant: size of the relevant set (the paper's rho); needs ``recent >= 1``.
        screen: how relevance is measured: ``"attention"``, the attention that a state received while in the buffer.
        score: ``"additive"`` (Bahdanau) or ``"dot"`` (scaled dot product).

    Example:
        >>> Screened(recent=10, relevant=5)
        Screened(recent=10, relevant=5, screen='attention', score='additive')
    """

    recent: int = 10
    relevant: int = 10
    screen: Literal["attention"] = "attention"
    score: Literal["additive", "dot"] = "additive"

    def __post_init__(self) -> None:
        positive_int("recent", self.recent, minimum=0)
        positive_int("relevant", self.relevant, minimum=0)
        one_of("screen", self.screen, ("attention",))
        one_of("score", self.score, ("additive", "dot"))
        if self.relevant and not self.recent:
            raise ValueError(
                f"`relevant` must be 0 when `recent` is 0, because states are screened as they leave the buffer; got "
                f"relevant={self.relevant}, recent=0. Give `recent` at least 1."
            )


@dataclass(frozen=True)
class Strided:
    """Every ``every``-th state is stored and the ``top_k`` best are read (Sparse Attentive Backtracking).

    With a static score (``"affine"``, ``"tanh"``) and a sparse forward pass the state holds ``top_k`` entries whatever
    the length; otherwise all stored states are kept and **the state grows with the sequence**.

    Args:
        top_k: rank of the score that serves as threshold (k_top).
        every: stride at which states are stored (k_att).
        keep: ``"k-1"`` takes the k-th largest score as threshold, as printed, which leaves k-1 positive weights;
            ``"k"`` takes the next one, which leaves k.
        score: ``"affine"`` (the document), ``"tanh"`` (the authors' code) or ``"mlp"`` (depends on the query).
        normalise: divide the weights by their sum; with ``sparse="backward"``, softmax over the scores.
        underfull: weights while at most ``top_k`` states are stored: ``"threshold"`` takes the least stored score as
            threshold, ``"raw"`` takes the scores themselves (the authors' code).
        sparse: ``"forward"`` reads the best states only; ``"backward"`` reads all and sends gradient to the best.
        hops: ``"many"`` lets the gradient of a read go on through the reads of the state it reaches; ``"one"`` stops it
            there ("one skip-step", section 7.2 of the document).
        start: ``"empty"``, or ``"zero"`` for the authors' all-zero first entry.

    Example:
        >>> Strided(top_k=5, every=2).slots
        5
    """

    top_k: int = 5
    every: int = 2
    keep: Literal["k-1", "k"] = "k-1"
    score: Literal["affine", "tanh", "mlp"] = "affine"
    normalise: bool = False
    underfull: Literal["threshold", "raw"] = "threshold"
    sparse: Literal["forward", "backward"] = "forward"
    hops: Literal["many", "one"] = "many"
    start: Literal["empty", "zero"] = "empty"

    def __post_init__(self) -> None:
        positive_int("top_k", self.top_k)
        positive_int("every", self.every)
        one_of("keep", self.keep, ("k-1", "k"))
        one_of("score", self.score, ("affine", "tanh", "mlp"))
        one_of("underfull", self.underfull, ("threshold", "raw"))
        one_of("sparse", self.sparse, ("forward", "backward"))
        one_of("hops", self.hops, ("many", "one"))
        one_of("start", self.start, ("empty", "zero"))

    @property
    def rank(self) -> int:
        """Rank of the score that serves as threshold."""
        return self.top_k + (self.keep == "k")

    @property
    def slots(self) -> int | None:
        """Entries of the state; ``None`` when it grows."""
        return None if self.score == "mlp" or self.sparse == "backward" else self.rank


Memory: TypeAlias = Full | Screened | Strided | None


@dataclass(frozen=True)
class ScanSpec:
    """Everything about a scan that is not a tensor.

    Args:
        cell: ``"rnn"``, ``"lstm"``, ``"gru"`` or ``"goru"``.
        memory: which past states may be attended, or ``None``.
        nonlinearity: of the ``"rnn"`` cell.
        combine: how state ``h`` and read ``r`` make the macro-state ``s``: ``"sum"``, ``"half"`` or ``"concat"``.
        output: ``"macro"`` returns ``s``, ``"hidden"`` returns ``h``, ``"summary"`` ``[s; r]``, ``"weights"`` ``[s; the
            weights of all stored states]`` (Strided only).
        cut_reads: whether a cut through ``s`` also cuts the gradient into what the memory holds at that moment.
        max_steps: longest row, for ``output="weights"``.

    Example:
        >>> ScanSpec("lstm", Screened(10, 10)).has_memory
        True
    """

    cell: CellName
    memory: Memory = None
    nonlinearity: Nonlinearity = "tanh"
    combine: Combine = "sum"
    output: Literal["macro", "hidden", "summary", "weights"] = "macro"
    cut_reads: bool = False
    max_steps: int | None = None

    @property
    def has_memory(self) -> bool:
        """Whether anything can ever be attended."""
        return not (self.memory is None or (isinstance(self.memory, Screened) and self.memory.recent == 0))

    @property
    def screens(self) -> bool:
        """Whether relevance is collected: every :class:`Screened` memory with a buffer."""
        return isinstance(self.memory, Screened) and self.has_memory

    @property
    def keeps_leak(self) -> bool:
        """Whether the state must carry ``h`` beside ``s``: the leak of a gated cell goes through ``h``."""
        return self.has_memory and self.cell in ("gru", "goru")

    def macro_size(self, hidden_size: int) -> int:
        """Size of the macro-state ``s``."""
        return 2 * hidden_size if self.has_memory and self.combine == "concat" else hidden_size

    def output_size(self, hidden_size: int) -> int:
        """Features of the output."""
        if self.output == "hidden" or not self.has_memory:
            return hidden_size
        if self.output == "weights":
            assert isinstance(self.memory, Strided)
            assert self.max_steps is not None
            return hidden_size + self.max_steps // self.memory.every + (self.memory.start == "zero")
        return 2 * hidden_size if self.output == "summary" else self.macro_size(hidden_size)


class Weights(NamedTuple):
    """Parameters of one layer and direction; those that the specification does not ask for are ``None``.

    Gates are stacked in torch's order: i, f, g, o (LSTM); r, z, n (GRU); r, g, candidate (GORU).
    ``G`` is their number times ``n``, ``m`` the size of the macro-state.
    """

    ih: Tensor
    """``(G, input_size)``."""
    hh: Tensor
    """``(G, m)``."""
    bias_ih: Tensor | None = None
    """``(G,)``."""
    bias_hh: Tensor | None = None
    """``(G,)``."""
    query: Tensor | None = None
    """``(n, m)``; ``(n,)`` with the affine and tanh scores."""
    key: Tensor | None = None
    """``(n, n)``; ``(n,)`` with the affine and tanh scores."""
    score: Tensor | None = None
    """``(n,)``, or ``(1,)``, the bias of the affine score."""
    modrelu: Tensor | None = None
    """``(n,)``."""


class State(NamedTuple):
    """What a layer carries from one call to the next: a value, never hidden on the module.

    Every field is ``(num_layers * directions, B, ...)``, without ``B`` when unbatched; one that a layer does not need
    has a dimension of size 0, so all layers share this one class. Its size does not depend on the sequence length,
    except for :class:`Full` without a limit and :class:`Strided` where it says so.

    Example:
        >>> import torch, remanence
        >>> layer = remanence.nn.RelLSTM(3, 4, recent=2, relevant=1)
        >>> _, state = layer(torch.randn(7, 5, 3))
        >>> h, c = state.hx
        >>> h.shape, state.recent.shape, state.step.tolist()
        (torch.Size([1, 5, 4]), torch.Size([1, 5, 2, 4]), [[7, 7, 7, 7, 7]])
    """

    s: Tensor
    """``(..., m)``: macro-state, what enters the recurrence."""
    c: Tensor
    """``(..., n)``: cell of an LSTM."""
    h: Tensor
    """``(..., n)``: hidden state of a GRU or GORU cell with a memory, whose leak goes through ``h`` and not ``s``."""
    chain: Tensor
    """``(..., w)``: recurrent state with the reads cut off; only ``Strided(hops="one")`` needs it."""
    recent: Tensor
    """``(..., recent, n)``: short-term buffer; step ``i`` stands in slot ``i mod recent``."""
    recent_score: Tensor
    """``(..., recent)``: attention received so far (no gradient)."""
    relevant: Tensor
    """``(..., relevant, n)``: relevant set, or the stored states of :class:`Strided`."""
    relevant_score: Tensor
    """``(..., relevant)``: relevance, frozen at entry (no gradient)."""
    relevant_step: Tensor
    """``(..., relevant)`` int64: the step that a slot holds, -1 if it is empty."""
    step: Tensor
    """``(...)`` int64: steps since the row's start."""

    @property
    def hx(self) -> Tensor | tuple[Tensor, Tensor]:
        """What enters the recurrence, in torch's shapes: ``s_n``, or ``(s_n, c_n)`` for an LSTM."""
        return (self.s, self.c) if self.c.shape[-1] else self.s

    @property
    def nbytes(self) -> int:
        """Bytes of all fields together."""
        return sum(field.nbytes for field in self)

    def detach(self) -> State:
        """The same values cut off from the graph, memory included: the only cut between calls."""
        return State(*(field.detach() for field in self))

    def to(self, *args: Any, **kwargs: Any) -> State:
        """Move or cast like :meth:`torch.Tensor.to`; step counters stay int64."""
        moved = [field.to(*args, **kwargs) for field in self]
        kept = [new if old.is_floating_point() else new.to(torch.int64) for old, new in zip(self, moved, strict=True)]
        return State(*kept)

    def select(self, rows: Tensor | Sequence[int] | slice) -> State:
        """The state of some rows of the batch (indices, a boolean mask or a slice).

        Args:
            rows: ``(K,)`` indices, ``(B,)`` mask, or a slice.
        """
        if not isinstance(rows, slice | Tensor):
            rows = torch.tensor(rows) if len(rows) else torch.zeros(0, dtype=torch.int64)
        return State(*(field[:, rows] for field in self))

    @staticmethod
    def cat(states: Sequence[State]) -> State:
        """Rows of several states beside each other; growing memories are filled up with empty slots."""
        fields = [_cat_rows(name, [getattr(state, name) for state in states]) for name in State._fields]
        return State(*fields)


def _cat_rows(name: str, tensors: list[Tensor]) -> Tensor:
    if name in ("recent", "recent_score", "relevant", "relevant_score", "relevant_step"):
        size = max(tensor.shape[2] for tensor in tensors)
        tensors = [fill_slots(tensor, size, EMPTY if name == "relevant_step" else 0) for tensor in tensors]
    return torch.cat(tensors, dim=1)


def fill_slots(tensor: Tensor, size: int, value: int) -> Tensor:
    """Lengthen dimension 2 (slots) to ``size`` with ``value``."""
    missing = size - tensor.shape[2]
    if not missing:
        return tensor
    filling = tensor.new_full((*tensor.shape[:2], missing, *tensor.shape[3:]), value)
    return torch.cat([tensor, filling], dim=2)


class Log(NamedTuple):
    """Who entered the memory when: the discrete choices of a scan, apart from its arithmetic.

    ``scan(..., forced_log=log)`` takes these choices instead of making its own, so that gradients can be compared given
    the same choices.
    """

    slot: Tensor
    """``(T, B)`` int64: slot of the relevant set that was written at this step, -1 for none."""
    displaced: Tensor
    """``(T, B)`` int64: the step that stood there before, -1 for none."""


class Trace(NamedTuple):
    """What one layer attended to, step by step.

    ``slots`` are the short-term buffer, oldest first, then the relevant set.
    """

    weights: Tensor
    """``(T, B, slots)``: weights of the read; 0 where nothing is stored."""
    steps: Tensor
    """``(T, B, slots)`` int64: the row's step that each slot holds, -1 for none."""
    scores: Tensor
    """``(T, B, slots)``: scores before the softmax or the threshold; -inf where nothing is stored."""
    entered: Tensor
    """``(T, B)`` int64: the step that entered the relevant set now, -1 for none."""
    displaced: Tensor
    """``(T, B)`` int64: the step that it displaced, -1 for none."""


for _kind in (State, Log, Weights):  # so that exported programs can be saved
    _pytree._register_namedtuple(_kind, serialized_type_name=f"remanence.ops.{_kind.__name__}")
