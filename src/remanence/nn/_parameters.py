"""The parameters of a recurrent layer: which there are, their first values, and all of them as the scan takes them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from remanence.ops import PARAMETER_NAMES, ScanSpec, Weights

from ._options import Bias, Factory
from .init import RecurrentInit, fill_recurrent_


class LayerParameters(nn.Module):
    """Base of :class:`RecurrentLayer`: parameters with torch's names, ``weight_ih_l0``, ``bias_ih_l0_reverse``, ..."""

    input_size: int
    hidden_size: int
    num_layers: int
    bias: Bias
    bidirectional: bool
    recurrent_init: RecurrentInit
    forget_bias: float
    spec: ScanSpec

    @property
    def directions(self) -> int:
        """2 if bidirectional, else 1."""
        return 1 + self.bidirectional

    @property
    def output_size(self) -> int:
        """Features of the output, both directions together."""
        return self.spec.output_size(self.hidden_size) * self.directions

    def _suffixes(self) -> Iterator[tuple[int, str]]:
        """Layer number and name suffix of every layer and direction, in the order of the state."""
        for index in range(self.num_layers * self.directions):
            yield index // self.directions, self.suffix(index)

    def suffix(self, index: int) -> str:
        """Name suffix of a layer and direction, counted as the state does: ``"_l0"``, ``"_l0_reverse"``, ..."""
        layer, direction = divmod(index, self.directions)
        return f"_l{layer}" + "_reverse" * direction

    def parameter_shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Names (without suffix) and shapes of one layer's parameters, in torch's order."""
        gates = len(self.spec.cell.gates) * self.hidden_size
        sizes = [self.input_size] + [self.output_size] * layer
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (gates, sizes[layer]),
            "weight_hh": (gates, self.spec.macro_size(self.hidden_size)),
        }
        if self.bias:
            shapes["bias_ih"] = (gates,)
        if self.bias is True:
            shapes["bias_hh"] = (gates,)
        return shapes | {name: own.shape for name, own in self.spec.own_parameters(self.hidden_size).items()}

    def _create_parameters(self, factory: Factory) -> None:
        for layer, suffix in self._suffixes():
            for name, shape in self.parameter_shapes(layer).items():
                self.register_parameter(name + suffix, nn.Parameter(torch.empty(shape, **factory)))
        # Kept, because to find out takes longer than a small step.
        present = self.parameter_shapes(0)
        self._optional = [name if name in present else None for name in PARAMETER_NAMES[2:]]
        self._further = [name for name in self.spec.own_parameters(self.hidden_size) if name not in PARAMETER_NAMES]

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise all parameters again: torch's uniform, then what differs from it."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)
        declared = self.spec.own_parameters(self.hidden_size)
        for _, suffix in self._suffixes():
            self._reset_recurrence(suffix)
            for name, own in declared.items():
                if own.init is not None:
                    own.init(self._parameter(name, suffix))

    def _reset_recurrence(self, suffix: str) -> None:
        if self.recurrent_init is not None and not self._parameter("weight_hh", suffix).is_meta:
            fill_recurrent_(self._parameter("weight_hh", suffix), self.recurrent_init)
        if self.forget_bias:
            gates = self.spec.cell.gates
            forget = self._parameter("bias_ih", suffix).chunk(len(gates))[gates.index("f")]
            forget += self.forget_bias

    def _parameter(self, name: str, suffix: str) -> Tensor:
        # `getattr` would take longer than a small step; pruning and parametrisations need it.
        found = self._parameters.get(name + suffix)
        if found is None:
            return getattr(self, name + suffix)
        return found

    def _like(self) -> Tensor:
        return self._parameter("weight_ih", "_l0")

    def recurrent_weight(self, suffix: str) -> Tensor:
        """The recurrent matrix ``(gates * n, m)`` as the scan sees it; parametrised layers override this."""
        return self._parameter("weight_hh", suffix)

    def weights(self, suffix: str = "_l0") -> Weights:
        """Parameters of one layer and direction, such as ``"_l0"`` or ``"_l1_reverse"``, as the scan sees them."""
        optional = [None if name is None else self._parameter(name, suffix) for name in self._optional]
        further = None
        if self._further:
            further = {name: self._parameter(name, suffix) for name in self._further}
        return Weights(self._parameter("weight_ih", suffix), self.recurrent_weight(suffix), *optional, further=further)
