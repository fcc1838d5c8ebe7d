"""The one recurrent layer: stacking, directions, layouts, state hand-over. Arithmetic is in :mod:`remanence.ops`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from remanence import ops
from remanence._validate import MOST_PARTS, boolean, dimension, fitting, message, one_of, positive_int, probability
from remanence.ops import BACKENDS, Backend, Cell, Memory, State, Trace, find_cell
from remanence.ops.state_shapes import empty_state
from remanence.ops.states import add_row

from ._call import call_layer, trace_layer
from ._core_layouts import refuse_script, unusual_options
from ._options import Bias, Device, check_cuts, check_forget_bias, make_spec, options_of_other_cells, refuse_unknown
from ._parameters import LayerParameters
from ._sequence import SequenceInput
from ._signatures import show_options
from ._single_step import step_at_once
from ._state_entry import StateLike, enter_state
from .cuts import Cuts
from .init import RECURRENT_INITS, RecurrentInit


class RecurrentLayer(LayerParameters):
    """Base of all recurrent layers: any cell with any memory, read and gradient cuts.

    Use :class:`RNN`, :class:`LSTM`, :class:`GRU` or a preset of theirs; this class holds what they share.

    Args:
        input_size: number of input features.
        hidden_size: number of hidden units, n.
        num_layers: number of stacked layers.
        bias: ``True`` for torch's two biases per gate, ``"single"`` for one, ``False`` for none.
        batch_first: input and output are ``(B, T, ...)``; states are not affected.
        dropout: probability of dropout on the output of every layer except the last, in training mode.
        bidirectional: add a second scan from the end; its output is concatenated to that of the first.
        memory: which past states can be attended to: ``None``, :class:`Full`, :class:`Screened` or :class:`Strided`.
        nonlinearity: nonlinearity of the RNN cell; other cells do not accept it.
        combine: how state and read form the macro-state: ``"sum"``, ``"half"``, ``"concat"``; ``None`` is sum for
            bounded cells and half for relu, modrelu and identity, where the sum overflows.
        output: ``"macro"`` returns ``s``, ``"hidden"`` returns ``h``; with :class:`Strided` also ``"summary"``,
            ``[s; r]``, and ``"weights"``, ``[s; weights of all stored states]``.
        recurrent_init: ``"henaff"``, ``"cayley"``, ``"random"`` (orthogonal), ``"identity"``, ``"xavier"``,
            ``"kaiming"``; ``None`` is torch's uniform.
        forget_bias: added to the initial forget bias of an LSTM; 1 makes the cell remember, -4 makes it forget and
            rely on its memory. Other cells do not accept it.
        cuts: gradient cuts: ``None``, :class:`TruncatedBPTT` or :class:`HDetach`.
        max_steps: longest row, for ``output="weights"`` only.
        backend: ``"auto"``, ``"reference"`` or ``"fused"``.
        device: device of the parameters.
        dtype: dtype of the parameters.
    """

    cell: ClassVar[Cell | str]
    """The cell, or the name of one; ``self.spec.cell`` is the cell itself."""
    document: ClassVar[str] = ""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Options that a preset decides itself."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        show_options(cls)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: Bias = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        memory: Memory = None,
        nonlinearity: ops.Nonlinearity | None = None,
        combine: ops.Combine | None = None,
        output: Literal["macro", "hidden", "summary", "weights"] = "macro",
        recurrent_init: RecurrentInit = None,
        forget_bias: float = 0.0,
        cuts: Cuts = None,
        max_steps: int | None = None,
        backend: Backend = "auto",
        device: Device = None,
        dtype: torch.dtype | None = None,
        **unknown: object,
    ) -> None:
        super().__init__()
        others = options_of_other_cells(find_cell(self.cell))
        if nonlinearity is not None and "nonlinearity" in others:
            unknown["nonlinearity"] = nonlinearity
        if forget_bias and "forget_bias" in others:
            unknown["forget_bias"] = forget_bias
        refuse_unknown(unknown, type(self).__name__)
        self.input_size = dimension("input_size", input_size)
        self.hidden_size = dimension("hidden_size", hidden_size)
        self.num_layers = positive_int("num_layers", num_layers, maximum=MOST_PARTS)
        self.bias = one_of("bias", bias, (True, False, "single"))
        self.batch_first = boolean("batch_first", batch_first)
        self.dropout = probability("dropout", dropout)
        self.bidirectional = boolean("bidirectional", bidirectional)
        self.recurrent_init = recurrent_init
        if recurrent_init is not None:
            one_of("recurrent_init", recurrent_init, RECURRENT_INITS)
        self.forget_bias = check_forget_bias(forget_bias, self.bias)
        self.cuts = check_cuts(cuts)
        self.backend: Backend = one_of("backend", backend, BACKENDS)
        self.spec = make_spec(self.cell, memory, nonlinearity, combine, output, max_steps, self.cuts)
        with fitting(input_size=self.input_size, hidden_size=self.hidden_size, num_layers=self.num_layers):
            self._create_parameters({"device": device, "dtype": dtype})
        self.reset_parameters()

    if TYPE_CHECKING:  # what calling the layer gives; `nn.Module` says nothing of it

        @overload
        def __call__(
            self, input: Tensor, state: StateLike = None, *, reset: Tensor | None = None
        ) -> tuple[Tensor, State]: ...
        @overload
        def __call__(
            self, input: PackedSequence, state: StateLike = None, *, reset: Tensor | None = None
        ) -> tuple[PackedSequence, State]: ...
        def __call__(
            self, input: SequenceInput, state: StateLike = None, *, reset: Tensor | None = None
        ) -> tuple[Any, State]: ...

    # ---- running ----------------------------------------------------------------------------------------------------

    def forward(
        self, input: SequenceInput, state: StateLike = None, *, reset: Tensor | None = None
    ) -> tuple[Any, State]:
        """Run over a sequence.

        Args:
            input: ``(T, B, input_size)``, ``(B, T, input_size)`` with ``batch_first``, ``(T, input_size)`` unbatched,
                or a ``PackedSequence``.
            state: initial state: a :class:`State`, or torch's ``hx`` (memory empty); ``None`` starts empty.
            reset: bool in the input's layout, ``(T, B)``; True resets the row before that step.

        Returns:
            The output in the input's layout, ``(T, B, output_size)``, and the final state; ``state.hx`` is torch's
            second result.
        """
        return call_layer(self, input, state, reset)

    def step(self, input_t: Tensor, state: StateLike = None) -> tuple[Tensor, State]:
        """One step of a stream: the same numbers as the whole run.

        Args:
            input_t: ``(B, input_size)``, or ``(input_size,)`` unbatched.
            state: the state so far; ``None`` starts empty.

        Returns:
            The output ``(B, output_size)`` and the state after it.
        """
        if self.bidirectional:
            raise ValueError(
                "`step` needs a layer that runs forward only; got bidirectional=True, whose output waits for the end"
            )
        if not isinstance(input_t, Tensor) or input_t.dim() not in (1, 2):
            shape = tuple(input_t.shape) if isinstance(input_t, Tensor) else type(input_t).__name__
            raise ValueError(message("input_t", "have shape (B, input_size) or (input_size,)", str(shape)))
        if (at_once := step_at_once(self, input_t, state)) is not None:
            return at_once
        time = int(self.batch_first and input_t.dim() == 2)
        output, after = self(input_t.unsqueeze(time), state)
        return output.squeeze(time), after

    @torch.no_grad()
    def trace(self, input: SequenceInput, state: StateLike = None, *, reset: Tensor | None = None) -> tuple[Trace, ...]:
        """What every layer (and direction, in its own order of time) attended to, step by step; no gradient.

        Arguments as in :meth:`forward`. One :class:`Trace` per layer and direction, in the input's layout.
        """
        return trace_layer(self, input, state, reset)

    def cut_masks(self, x: Tensor, start: State | None, reset: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Where the gradient stops in one layer and direction: masks ``(T, B)`` for the paths through ``s`` and ``c``.

        Args:
            x: ``(T, B, ...)``, its input.
            start: its state before, fields ``(B, ...)``.
            reset: ``(T, B)`` bool or ``None``.
        """
        if self.cuts is None:
            return None, None
        step = x.new_zeros(x.shape[1], dtype=torch.int64)
        if start is not None:
            step = start.step
        cut_h, cut_c = self.cuts.masks(ops.row_positions(step, x.shape[0], reset), self.training)
        if not self.spec.cell.has_c:
            cut_c = None
        return cut_h, cut_c

    # ---- state ------------------------------------------------------------------------------------------------------

    def initial_state(self, batch_size: int | None = None) -> State:
        """The empty state; without ``batch_size`` that of unbatched input."""
        if batch_size is None:
            return self._empty_state()
        return self._empty_state(dimension("batch_size", batch_size))

    def _empty_state(self, *rows: int) -> State:
        """As :meth:`initial_state`, for a number of rows that comes from a shape: in an export it is a symbol."""
        like = self._like()
        to_local = getattr(like, "to_local", None)
        if to_local is not None:  # a weight that FSDP2 has sharded; a state belongs to this process alone
            like = to_local()
        return empty_state(self.spec, self.hidden_size, (self.num_layers * self.directions, *rows), like)

    def _enter_state(self, state: StateLike, rows: int, *, batched: bool) -> State | None:
        """Check a given state, or make one of torch's ``hx``; fields come out with a batch dimension."""
        if state is None:
            return None
        if batched:
            return self._checked_state(state, rows)
        return add_row(self._checked_state(state))

    def _checked_state(self, state: StateLike, *rows: int) -> State:
        depth = self.num_layers * self.directions
        return enter_state(state, self.spec, self.hidden_size, (depth, *rows), self._like())

    # ---- torch's habits ---------------------------------------------------------------------------------------------

    __prepare_scriptable__ = refuse_script

    @classmethod
    def from_torch(cls, module: nn.RNNBase, **options: Any) -> Self:
        """A layer with the sizes and weights of a torch layer; parameters that torch does not have are initialised.

        Args:
            module: ``nn.RNN``, ``nn.LSTM`` or ``nn.GRU``, to match this layer's cell.
            options: further arguments of this layer.
        """
        kind = find_cell(cls.cell).torch_layer
        if kind is None or not isinstance(module, kind):
            wanted = getattr(kind, "__name__", "a matching layer (there is none)")
            raise TypeError(message("module", f"be torch's {wanted}", type(module).__name__))
        if module.proj_size:
            raise ValueError(message("module", "have proj_size 0", module.proj_size, "Projections are not supported"))
        like = module.weight_ih_l0
        if isinstance(module, nn.RNN):
            options.setdefault("nonlinearity", module.nonlinearity)
        layer = cls(
            module.input_size,
            module.hidden_size,
            module.num_layers,
            bias=module.bias,
            batch_first=module.batch_first,
            dropout=module.dropout,
            bidirectional=module.bidirectional,
            **{"device": like.device, "dtype": like.dtype, **options},
        )
        layer.load_state_dict({**layer.state_dict(), **module.state_dict()})
        return layer

    def flatten_parameters(self) -> None:
        """Nothing to do here; torch's layers have it, and code written for them calls it."""

    def extra_repr(self) -> str:
        """Sizes, and every option that differs from its default."""
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        defaults |= {"recurrent_init": None, "forget_bias": 0.0, "cuts": None, "backend": "auto"}
        parts = [str(self.input_size), str(self.hidden_size), *unusual_options(self, defaults)]
        if self.spec.has_memory:
            parts.append(f"memory={self.spec.memory}, combine={self.spec.combine!r}, output={self.spec.output!r}")
        return ", ".join(parts)
