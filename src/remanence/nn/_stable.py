"""Recurrent layers whose step is a certified contraction.

After Miller and Hardt, "When recurrent models don't need to be recurrent", 2018. Call ``project_()`` after every
optimiser step; ``certificate()`` then proves, from the weights alone, how fast the layer forgets.
"""

# Torch's arguments may come by position (`*shape`) or by name, which pyright cannot tell apart in a call of `super`.
# pyright: reportCallIssue=false

from __future__ import annotations

import math
from typing import Unpack

import torch
from torch import Tensor

from remanence._validate import message, real
from remanence.ops import Backend, LSTMCell, Nonlinearity

from ._certificate import Bound, LayerCertificate, NotCertifiedError, StabilityCertificate, certify
from ._layer import RecurrentLayer
from ._options import Device, ShapeOptions, TorchArgument, refuse_unknown
from ._projection import project_rows_, project_spectral_, row_sums, spectral_norm
from ._recurrent import LSTM, RNN
from .cuts import Cuts
from .init import RecurrentInit

_ROUNDING = 1e-12
"""How much lower than asked the projection of an LSTM aims, so that sums of rounded limits keep their promise."""

_GATES = LSTMCell.gates
_NO_MEMORY = ("memory", "combine", "output", "max_steps")


class StableOptions(ShapeOptions, total=False):
    """Options of the stable layers: those of every recurrent layer, without the ones about a memory."""

    recurrent_init: RecurrentInit
    cuts: Cuts
    backend: Backend
    device: Device
    dtype: torch.dtype | None


class StableRNNOptions(StableOptions, total=False):
    """Those of the RNN."""

    nonlinearity: Nonlinearity


class StableLayer(RecurrentLayer):
    """What the stable layers share: they start projected, and have no options of a memory."""

    document = "miller2018"
    fixed = _NO_MEMORY

    def __init__(self, *shape: TorchArgument, **options: Unpack[StableRNNOptions]) -> None:
        # What is read from the past would enter the recurrence uncertified.
        refuse_unknown({name: value for name, value in options.items() if name in _NO_MEMORY}, type(self).__name__)
        super().__init__(*shape, **options)

    def reset_parameters(self) -> None:
        """Initialise all parameters again, then project."""
        super().reset_parameters()
        if not self._like().is_meta:
            self.project_()

    def project_(self) -> None:
        """Move the weights to the nearest ones that are certified."""
        raise NotImplementedError


class StableRNN(StableLayer, RNN):
    """RNN whose step brings any two states nearer by ``contraction`` in the Euclidean norm, for every input.

    All nonlinearities are 1-Lipschitz (modReLU as long as its bias is not positive), so the spectral norm of the
    recurrent matrix bounds the factor. The layer starts projected.

    Args:
        contraction: greatest factor allowed (lambda), above 0 and below 1.

    Example:
        >>> layer = StableRNN(3, 8, contraction=0.9)
        >>> optimiser = torch.optim.SGD(layer.parameters(), lr=1.0)
        >>> layer(torch.randn(5, 2, 3))[0].sum().backward()
        >>> optimiser.step()
        >>> layer.project_()
        >>> layer.certificate().factor <= 0.9
        True
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: TorchArgument,
        contraction: float = 0.99,
        **options: Unpack[StableRNNOptions],
    ) -> None:
        self.contraction = real("contraction", contraction, above=0, below=1)
        super().__init__(input_size, hidden_size, num_layers, *shape, **options)

    @torch.no_grad()
    def project_(self) -> None:
        """Move the weights to the nearest ones that are certified: call it after every optimiser step.

        Singular values of the recurrent matrices are clamped to ``contraction`` and biases of modReLU to 0. What
        already obeys stays bit for bit as it is.
        """
        _check_finite(self, ValueError)
        for _, suffix in self._suffixes():
            project_spectral_(self._parameter("weight_hh", suffix), self.contraction)
            if self.nonlinearity == "modrelu":
                self._parameter("bias_modrelu", suffix).clamp_(max=0)

    def certificate(self) -> StabilityCertificate:
        """What the present weights prove, whether they were projected or not.

        Raises:
            NotCertifiedError: If a spectral norm is above ``contraction``, a modReLU has a positive bias and so a jump
                at zero, or a parameter is not finite.
        """
        _check_finite(self, NotCertifiedError)
        return certify(self.contraction, "|h|_2", [self._certify(suffix) for _, suffix in self._suffixes()])

    def _certify(self, suffix: str) -> LayerCertificate:
        norm = spectral_norm(self._parameter("weight_hh", suffix))
        bounds = [Bound("spectral norm", norm, self.contraction)]
        if self.nonlinearity == "modrelu":
            jump = float(self._parameter("bias_modrelu", suffix).detach().max())
            bounds.append(Bound("modReLU bias (a positive one makes a jump)", jump, 0.0))
            if jump > 0:
                norm = math.inf
        return LayerCertificate(suffix, norm, tuple(bounds))

    def extra_repr(self) -> str:
        """As every layer, and the contraction."""
        return f"{super().extra_repr()}, contraction={self.contraction}"


class StableLSTM(StableLayer, LSTM):
    r"""LSTM whose step brings any two states nearer by ``contraction`` in ``max(|c|, |h|)`` (greatest entries).

    It holds for ``|x| <= input_bound`` and every state that a run from zero can reach: with all forget gates at most
    ``F``, that is ``|c| <= 1/(1-F)`` and ``|h| <= 1``. Write ``W_f`` for the sum of absolute values of one row of that
    block. A sigmoid has slope at most 1/4, a tanh at most 1 and values below 1, so one step gives, row by row::

        |dc'| <= F |dc| + (W_f / (4 (1 - F)) + W_i / 4 + W_g) |dh|
        |dh'| <= |dc'| + W_o / 4 |dh|

    The limits ``W_f <= (1 - F) (lambda - F)``, ``W_i, W_o <= lambda - F``, ``W_g <= (lambda - F) / 4`` make each of the
    four terms ``(lambda - F) / 4``, and the factor exactly ``F + (lambda - F) = lambda``. The forget gate is at most
    ``sigmoid(W_f + input_bound U_f + b_f)``, biases included: they are kept at or below 0 and ``U_f`` at or below
    ``(logit(F) - (1 - F) (lambda - F)) / input_bound``. Layers above the first see outputs, at most 1 (``1/(1-p)``
    under dropout ``p``). The layer starts projected.

    Args:
        contraction: greatest factor allowed (lambda), above ``forget`` and below 1.
        forget: greatest value of a forget gate allowed (F); about 0.56 is the least that leaves room for an input.
        input_bound: greatest absolute value of an input's entries. It is not checked at run time; beyond it the layer
            works and the certificate says nothing.

    Example:
        >>> layer = StableLSTM(3, 8, contraction=0.95)
        >>> certificate = layer.certificate()
        >>> certificate.factor <= 0.95, certificate.norm
        (True, 'max(|c|, |h|)')
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: TorchArgument,
        contraction: float = 0.99,
        forget: float = 0.6,
        input_bound: float = 1.0,
        **options: Unpack[StableOptions],
    ) -> None:
        self.forget = real("forget", forget, above=0, below=1)
        self.contraction = real("contraction", contraction, least=self.forget + 1e-6, below=1)
        self.input_bound = real("input_bound", input_bound, above=0)
        self.limits = _row_limits(self.contraction - _ROUNDING, self.forget - _ROUNDING)
        super().__init__(input_size, hidden_size, num_layers, *shape, **options)

    @torch.no_grad()
    def project_(self) -> None:
        """Move the weights to the nearest ones within the limits: call it after every optimiser step.

        Every limit concerns rows of one block, or one bias, alone. The set is therefore a product of balls and
        half-lines, and projecting each part by itself is the Euclidean projection onto the whole, which is convex, as
        projected gradient descent needs. Weights only shrink, forget biases only fall, and what already obeys stays
        bit for bit as it is.
        """
        _check_finite(self, ValueError)
        for layer, suffix in self._suffixes():
            for gate, block in self._blocks("weight_hh", suffix).items():
                project_rows_(block, self.limits[gate])
            project_rows_(self._blocks("weight_ih", suffix)["f"], self._input_limit(layer))
            for name in self._biases():
                self._blocks(name, suffix)["f"].clamp_(max=0)

    def certificate(self) -> StabilityCertificate:
        """What the present weights prove, whether they were projected or not.

        The factor comes from the weights themselves, row by row, and not from the limits, so a layer may pass with one
        limit broken if the others leave enough room; the margins show it.

        Raises:
            NotCertifiedError: If the factor is above ``contraction``, or a parameter is not finite.
        """
        _check_finite(self, NotCertifiedError)
        layers = [self._certify(layer, suffix) for layer, suffix in self._suffixes()]
        return certify(self.contraction, "max(|c|, |h|)", layers)

    def _certify(self, layer: int, suffix: str) -> LayerCertificate:
        recurrent = {gate: row_sums(block) for gate, block in self._blocks("weight_hh", suffix).items()}
        driven = row_sums(self._blocks("weight_ih", suffix)["f"])
        bias = self._forget_bias(suffix)
        gate = torch.sigmoid(recurrent["f"] + self._bound_of_input(layer) * driven + bias)
        cell_bound = 1 / (1 - gate.max())
        factor = gate + cell_bound * recurrent["f"] / 4 + recurrent["i"] / 4 + recurrent["g"] + recurrent["o"] / 4
        bounds = [Bound("forget gate", float(gate.max()), self.forget)]
        bounds += [Bound(f"row sum of W_{name}", float(recurrent[name].max()), self.limits[name]) for name in _GATES]
        bounds.append(Bound("row sum of U_f", float(driven.max()), self._input_limit(layer)))
        bounds.append(Bound("forget bias", float(bias.max()), 0.0))
        domain = {"cell_bound": float(cell_bound), "input_bound": self._bound_of_input(layer)}
        return LayerCertificate(suffix, float(factor.max()), tuple(bounds), **domain)

    def _blocks(self, name: str, suffix: str) -> dict[str, Tensor]:
        """The gates' parts of a parameter, views of it that a projection may change."""
        return dict(zip(_GATES, self._parameter(name, suffix).detach().chunk(4), strict=True))

    def _biases(self) -> tuple[str, ...]:
        return {True: ("bias_ih", "bias_hh"), "single": ("bias_ih",), False: ()}[self.bias]

    def _forget_bias(self, suffix: str) -> Tensor:
        """Sum of the forget gate's biases, ``(n,)`` float64; zeros if there are none."""
        biases = [self._blocks(name, suffix)["f"].double() for name in self._biases()]
        zero = torch.zeros(self.hidden_size, dtype=torch.float64, device=self._like().device)
        return sum(biases, start=zero)

    def _bound_of_input(self, layer: int) -> float:
        """Greatest entry of what a layer sees: an output below it is at most 1, and dropout enlarges it."""
        if layer == 0:
            return self.input_bound
        if self.dropout == 1:  # everything is dropped: there is nothing to enlarge
            return 1.0
        return 1 / (1 - self.dropout)

    def _input_limit(self, layer: int) -> float:
        return self.limits["x"] / self._bound_of_input(layer)

    def extra_repr(self) -> str:
        """As every layer, and the three numbers of the certificate."""
        own = f"contraction={self.contraction}, forget={self.forget}, input_bound={self.input_bound}"
        return f"{super().extra_repr()}, {own}"


def _row_limits(contraction: float, forget: float) -> dict[str, float]:
    """The greatest row sums: of the recurrent blocks by gate, and ``"x"`` for the input's part in the forget gate."""
    room = contraction - forget
    limits = {"i": room, "f": (1 - forget) * room, "g": room / 4, "o": room}
    limits["x"] = math.log(forget / (1 - forget)) - limits["f"]
    if limits["x"] <= 0:
        expected = "be so great that logit(forget) > (1 - forget) (contraction - forget)"
        hint = "With less, no input could move a forget gate; take 0.6"
        raise ValueError(message("forget", expected, f"{forget:.6g} with contraction {contraction:.6g}", hint))
    return limits


def _check_finite(layer: RecurrentLayer, error: type[ValueError]) -> None:
    for name, parameter in layer.named_parameters():
        wrong = int((~parameter.isfinite()).sum())
        if wrong:
            hint = "Lower the learning rate or clip the gradient"
            raise error(message(name, "be finite", f"{wrong} entries that are nan or infinite", hint))
