"""Proposition 1 of Kerg et al. 2020 on a real layer: the gradient between two states, split by the ways it takes."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import numpy as np
import torch

from remanence._validate import one_of, positive_int
from remanence.figures import Axis, Curve, Figure, log_axis

from . import closed_forms
from ._observe import untouched
from ._result import ProbeResult


@dataclasses.dataclass(frozen=True)
class GradientPaths(ProbeResult):
    """The derivative of a macro-state by an earlier state, and its parts by number of Jacobians.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> paths = gradient_paths(torch.nn.RNN(3, 4), torch.randn(6, 1, 3), t=1, k=4)
        >>> paths.sizes.nonzero()[0].tolist(), paths.error < 1e-12
        ([4], True)
    """

    kind: ClassVar[str] = "gradient_paths"

    t: int
    k: int
    total: np.ndarray
    """``(n, n)``: ds_{t+k}/dh_t by autograd."""
    parts: np.ndarray
    """``(k + 1, n, n)``: what goes through exactly s factors F."""

    @property
    def sizes(self) -> np.ndarray:
        """Frobenius norm of every part: ``(k + 1,)``."""
        return np.linalg.norm(self.parts, axis=(1, 2))

    @property
    def error(self) -> float:
        """Greatest difference between the sum of the parts and autograd's answer, relative to the latter."""
        scale = np.abs(self.total).max() or 1.0
        return float(np.abs(self.parts.sum(axis=0) - self.total).max() / scale)

    @property
    def verdict(self) -> str:
        """Which number of Jacobians carries most."""
        main = int(self.sizes.argmax())
        end = f"ds_{self.t + self.k}/dh_{self.t}"
        return f"{end}: most through {main} Jacobians; parts sum to autograd's ({self.error:.0e})"

    def figures(self) -> list[Figure]:
        """Norm of the parts against the number of Jacobians."""
        curve = Curve("norm", np.arange(self.k + 1), self.sizes, "both")
        axes = (Axis("Jacobians"), log_axis("norm of the part", self.sizes))
        return [Figure("Gradient paths", self.verdict, (curve,), *axes)]


def gradient_paths(
    layer: object, batch: object, t: int, k: int, *, row: int = 0, leak: Literal["h", "s"] = "h"
) -> GradientPaths:
    """Splits ds_{t+k}/dh_t by the number of factors F, in closed form, and compares it with autograd's result.

    The leak of a GRU with a memory carries h here, so what goes from step to step is the pair (s, h), and that is the
    macro-state of the proposition. With a leak that carries s, as in ``h_{t+1} = phi(s_t, x_t)`` of Kerg et al. 2020,
    s alone is.

    Args:
        layer: one forward layer with an RNN or GRU cell: one of ours without a memory or with ``Full`` or ``Screened``
            (additive score; combine sum or half), ``nn.RNN`` or ``nn.GRU``.
        batch: its input ``(T, B, input_size)``, or ``(B, T, input_size)`` if it is batch-first.
        t: step of the state, from 0.
        k: distance.
        row: row of the batch.
        leak: what the leak of a GRU with a memory carries: ``"h"``, as it does in the layers here, or ``"s"``: the run
            is then made with the layer's weights and that leak.

    Example:
        >>> from remanence.nn import MemRNN
        >>> gradient_paths(MemRNN(3, 4), torch.randn(8, 1, 3), t=1, k=5).error < 1e-12
        True
    """
    positive_int("t", t, minimum=0)
    positive_int("k", k, minimum=0)
    one_of("leak", leak, ("h", "s"))
    with untouched(layer):
        recording, total = closed_forms.record(layer, batch, row, t, k, leak)
        with torch.no_grad():
            parts = closed_forms.split_paths(recording, t, k)
    return GradientPaths(t, k, total.numpy(), parts.numpy())
