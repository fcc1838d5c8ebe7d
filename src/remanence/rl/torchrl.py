"""Recurrent layers of remanence in TorchRL, in place of its ``LSTMModule`` and ``GRUModule``.

It needs TorchRL: ``pip install 'remanence[torchrl]'``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor

from remanence._validate import boolean, message
from remanence.nn import LRU, DeltaRule, MinGRU, MinLSTM, RecurrentLayer
from remanence.rl._core import CORES, CoreState, grows

try:
    from tensordict import TensorDictBase  # type: ignore[import-not-found]
    from tensordict.nn import TensorDictModuleBase  # type: ignore[import-not-found]
    from torchrl.data import Composite, Unbounded  # type: ignore[import-not-found]
    from torchrl.envs import TensorDictPrimer  # type: ignore[import-not-found]
    from torchrl.modules.tensordict_module.rnn import recurrent_mode  # type: ignore[import-not-found]
except ImportError as error:
    raise ImportError(f"remanence.rl.torchrl needs {error.name}: pip install 'remanence[torchrl]'") from error

__all__ = ["RecurrentModule"]

Key: TypeAlias = str | tuple[str, ...]
"""Of an entry of a tensordict; several names lead to a nested one."""
Layer: TypeAlias = RecurrentLayer | MinGRU | MinLSTM | LRU | DeltaRule


class RecurrentModule(TensorDictModuleBase):
    """Any recurrent layer of :mod:`remanence.nn` as a TensorDict module: also MinGRU, MinLSTM, LRU and DeltaRule.

    While a collector plays, it takes one step for every row of the tensordict, whatever its batch shape. In
    ``set_recurrent_mode(True)`` the last batch dimension is time, and the whole sequence runs in one scan: where
    ``is_init`` is True the row is reset inside it, so nothing is split or padded.

    The state is in the tensordict under `state_key`, one entry per field, batch dimensions first; it is all that the
    layer carries, memory included. Add :meth:`make_tensordict_primer` and ``InitTracker`` to the environment.

    Args:
        layer: the layer, one direction; its state must have a fixed size.
        in_key: key of the input, ``(*batch, input_size)``.
        out_key: key of the output, ``(*batch, output_size)``.
        state_key: key under which the state is kept.
        is_init_key: key of the mask ``(*batch, 1)`` that marks the first step of an episode.
        default_recurrent_mode: the mode outside of ``set_recurrent_mode``.

    Example:
        >>> from tensordict import TensorDict
        >>> from torchrl.modules import set_recurrent_mode
        >>> from remanence.nn import RelLSTM
        >>> module = RecurrentModule(RelLSTM(3, 8, recent=2, relevant=2), "observation", "embed")
        >>> data = TensorDict({"observation": torch.randn(4, 20, 3), "is_init": torch.zeros(4, 20, 1).bool()}, [4, 20])
        >>> with set_recurrent_mode(True):
        ...     module(data)["embed"].shape
        torch.Size([4, 20, 8])
    """

    def __init__(
        self,
        layer: Layer,
        in_key: Key = "observation",
        out_key: Key = "embed",
        *,
        state_key: str = "recurrent_state",
        is_init_key: Key = "is_init",
        default_recurrent_mode: bool = False,
    ) -> None:
        super().__init__()
        self.layer = _checked(layer)
        self.state_key = state_key
        self.is_init_key = is_init_key
        self.default_recurrent_mode = boolean("default_recurrent_mode", default_recurrent_mode)
        # Fields of size 0, such as the cell of an RNN, are not worth an entry.
        self.carried = [name for name, part in _empty(layer)._asdict().items() if part.numel()]
        # TensorDict annotates its keys as tuples of one name, though it takes longer ones.
        state_keys = [(state_key, name) for name in self.carried]
        self.in_keys = cast(Any, [in_key, *state_keys, is_init_key])
        self.out_keys = cast(Any, [out_key, *(("next", *key) for key in state_keys)])

    @property
    def recurrent_mode(self) -> bool:
        """Whether the last batch dimension is time."""
        chosen = recurrent_mode()
        if chosen is None:
            return self.default_recurrent_mode
        return bool(chosen)

    def make_tensordict_primer(self) -> TensorDictPrimer:
        """The transform that puts the empty state into an environment's tensordicts and specifications."""
        empty = {name: part.squeeze(1) for name, part in _empty(self.layer)._asdict().items() if part.numel()}
        leaves = {name: Unbounded(shape=part.shape, dtype=part.dtype) for name, part in empty.items()}
        defaults: dict[Any, Any] = {self.state_key: {name: _default(name) for name in empty}}
        return TensorDictPrimer({self.state_key: Composite(leaves)}, default_value=defaults, expand_specs=True)

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Runs the layer over one step, or over the last batch dimension in recurrent mode.

        Args:
            tensordict: with the input, ``is_init``, and the state; without one, all rows start empty.
        """
        over_time = self.recurrent_mode
        if over_time and not tensordict.ndim:
            raise ValueError(message("tensordict", "have time as its last batch dimension", "no batch dimension"))
        batch = tensordict.shape
        steps = 1
        if over_time:
            *batch, steps = tensordict.shape
        x = tensordict.get(self.in_keys[0]).reshape(-1, steps, self.layer.input_size)
        begins = tensordict.get(self.is_init_key).reshape(-1, steps)
        output, after = self._run(x, self._state(tensordict, len(batch), over_time), begins)
        tensordict.set(self.out_keys[0], output.reshape(*tensordict.shape, -1))
        for name, key in zip(self.carried, self.out_keys[1:], strict=True):
            rows = _batch_first(getattr(after, name), batch)
            if over_time:
                rows = _at_the_end(rows, len(batch), steps)
            tensordict.set(key, rows)
        return tensordict

    def _run(self, x: Tensor, state: CoreState | None, begins: Tensor) -> tuple[Tensor, CoreState]:
        """The layer over rows first, ``(B, T, ...)``, whatever its own layout is."""
        if self.layer.batch_first:
            return self.layer(x, state, reset=begins)
        output, after = self.layer(x.transpose(0, 1), state, reset=begins.transpose(0, 1))
        return output.transpose(0, 1), after

    def _state(self, tensordict: TensorDictBase, batch_dims: int, over_time: bool) -> CoreState | None:
        """The state before the first step, from batch dimensions first to layers first."""
        fields: dict[str, Tensor] = {}
        for name, key in zip(self.carried, self.in_keys[1:-1], strict=True):
            part = tensordict.get(key, None)
            if part is None:
                return None
            first = part
            if over_time:
                first = part.select(batch_dims, 0)
            fields[name] = _layers_first(first, batch_dims)
        rows = fields["step"].shape[1]
        return self.layer.initial_state(rows)._replace(**fields)


def _checked(layer: Layer) -> Layer:
    if not isinstance(layer, CORES):
        raise TypeError(message("layer", "be a recurrent layer of remanence.nn", type(layer).__name__))
    if getattr(layer, "bidirectional", False):
        raise ValueError(message("layer", "run forward only", repr(layer)))
    if grows(layer):
        hint = "Give `limit` to a full memory, or take score='affine' or 'tanh'"
        raise ValueError(message("layer", "have a state of fixed size", repr(layer), hint))
    return layer


def _empty(layer: Layer) -> CoreState:
    return layer.initial_state(1)


def _default(name: str) -> int:
    """What stands in an empty state."""
    if name == "relevant_step":
        return -1
    return 0


def _batch_first(part: Tensor, batch: Sequence[int]) -> Tensor:
    """A field of a state, ``(layers, B, ...)``, with the batch dimensions of a tensordict first."""
    if not batch:
        return part.squeeze(1)
    return part.transpose(0, 1).unflatten(0, batch)


def _layers_first(part: Tensor, batch_dims: int) -> Tensor:
    """What :func:`_batch_first` has changed, as a layer takes it."""
    if not batch_dims:
        return part.unsqueeze(1)
    return part.flatten(0, batch_dims - 1).transpose(0, 1)


def _at_the_end(rows: Tensor, batch_dims: int, steps: int) -> Tensor:
    """The final state at the last step, zeros before it, as TorchRL's own modules have it."""
    before = rows.new_zeros(*rows.shape[:batch_dims], steps - 1, *rows.shape[batch_dims:])
    return torch.cat([before, rows.unsqueeze(batch_dims)], dim=batch_dims)
