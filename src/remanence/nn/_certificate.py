"""What a stable layer proves about itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


class NotCertifiedError(ValueError):
    """A layer's weights do not prove the contraction that was asked for; the message names the numbers.

    Example:
        >>> import torch
        >>> from remanence.nn._stable import StableRNN
        >>> layer = StableRNN(3, 4, contraction=0.9)
        >>> _ = torch.nn.init.constant_(layer.weight_hh_l0, 0.5)
        >>> layer.certificate()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        remanence.nn._certificate.NotCertifiedError: ...; got factor 2 in _l0 (spectral norm 2, at most 0.9)
    """


@dataclass(frozen=True)
class Bound:
    """One number that the weights give, and the maximum that :meth:`project_` allows.

    Example:
        >>> Bound("spectral norm", 0.75, 1.0).margin
        0.25
    """

    name: str
    value: float
    limit: float

    @property
    def margin(self) -> float:
        """How far the value lies below its limit."""
        return self.limit - self.value

    @property
    def holds(self) -> bool:
        """Whether the value is at most its limit; nan is not."""
        return self.value <= self.limit


@dataclass(frozen=True)
class LayerCertificate:
    """What holds for one layer and direction, for any input (within ``input_bound``).

    Args:
        suffix: ``"_l0"``, ``"_l0_reverse"``, ``"_l1"``, ...
        factor: one step brings any two states of the domain nearer to each other by at least this factor.
        bounds: the numbers behind it.
        cell_bound: the domain's greatest ``abs(c)``; a run that starts from zero never leaves it. ``None``: no bound
            is needed.
        input_bound: the domain's greatest ``abs(x)``, likewise.

    Example:
        >>> LayerCertificate("_l0", 0.5, (Bound("spectral norm", 0.5, 1.0),)).factor
        0.5
    """

    suffix: str
    factor: float
    bounds: tuple[Bound, ...]
    cell_bound: float | None = None
    input_bound: float | None = None

    @property
    def domain(self) -> str:
        """For which states and inputs the factor holds, in words."""
        if self.cell_bound is None:
            return "all states and inputs"
        return f"|c| <= {self.cell_bound:.4g}, |h| <= 1, |x| <= {self.input_bound:.4g}"


@dataclass(frozen=True)
class StabilityCertificate:
    """Proof that one step of a layer is a contraction: it exists only if the weights give it.

    Each layer and direction contracts its own state, whatever its input is. A stack of them forgets its start at every
    rate slower than ``factor``, the greatest of the layers' factors, because a layer drives only those above it.

    Args:
        contraction: the factor that was promised.
        norm: in which norm of the state distances are measured.
        layers: one :class:`LayerCertificate` per layer and direction, in the order of the state.

    Example:
        >>> layer = LayerCertificate("_l0", 0.75, (Bound("spectral norm", 0.75, 0.875),))
        >>> certificate = StabilityCertificate(0.875, "|h|_2", (layer,))
        >>> certificate.factor, certificate.margin
        (0.75, 0.125)
        >>> print(certificate)
        contraction by 0.75 a step in |h|_2 (promised 0.875, margin 0.125)
          _l0: factor 0.75, for all states and inputs
            spectral norm: 0.75 <= 0.875, margin 0.125
    """

    contraction: float
    norm: str
    layers: tuple[LayerCertificate, ...]

    @property
    def factor(self) -> float:
        """The greatest of the layers' factors."""
        return max(layer.factor for layer in self.layers)

    @property
    def margin(self) -> float:
        """How far the factor lies below what was promised."""
        return self.contraction - self.factor

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, strings, lists and dictionaries."""
        layers = [
            asdict(layer) | {"bounds": [asdict(bound) | {"margin": bound.margin} for bound in layer.bounds]}
            for layer in self.layers
        ]
        return asdict(self) | {"factor": self.factor, "margin": self.margin, "layers": layers}

    def __str__(self) -> str:
        promise = f"(promised {self.contraction:.4g}, margin {self.margin:.3g})"
        lines = [f"contraction by {self.factor:.4g} a step in {self.norm} {promise}"]
        for layer in self.layers:
            lines.append(f"  {layer.suffix}: factor {layer.factor:.4g}, for {layer.domain}")
            lines += [
                f"    {bound.name}: {bound.value:.4g} {'<=' if bound.holds else '>'} {bound.limit:.4g}, "
                f"margin {bound.margin:.3g}"
                for bound in layer.bounds
            ]
        return "\n".join(lines)


def certify(contraction: float, norm: str, layers: Sequence[LayerCertificate]) -> StabilityCertificate:
    """The certificate, or the refusal with every number that stands in its way.

    Raises:
        NotCertifiedError: If a layer's factor is above ``contraction``, or not a number.

    Example:
        >>> certify(0.9, "|h|_2", [LayerCertificate("_l0", 0.5, ())]).factor
        0.5
    """
    reasons = [_reason(layer) for layer in layers if not layer.factor <= contraction]
    if reasons:
        advice = "`project_` must be called after every change of the weights, to make each step a contraction by"
        raise NotCertifiedError(f"{advice} {contraction:g} in {norm}; got {' and '.join(reasons)}")
    return StabilityCertificate(contraction, norm, tuple(layers))


def _reason(layer: LayerCertificate) -> str:
    broken = [f"{bound.name} {bound.value:.6g}, at most {bound.limit:.6g}" for bound in layer.bounds if not bound.holds]
    return f"factor {layer.factor:.6g} in {layer.suffix} ({'; '.join(broken)})"
