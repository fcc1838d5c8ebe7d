"""Binary sequences whose mutual information falls as a power of the distance."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from remanence import _validate
from remanence.tasks._information import pair_correlation
from remanence.tasks._registry import register_task
from remanence.tasks._symbols import BinarySequences

Method = Literal["auto", "cholesky", "circulant"]

_CHOLESKY_LIMIT = 1024


@register_task("binary-power-law")
@dataclass(frozen=True)
class BinaryPowerLaw(BinarySequences):
    """Predict bits whose mutual information falls as A d^-gamma with their distance d.

    Description:
        The bits are the signs of Gaussian numbers X with unit variance. Two signs share the information I of two bits
        with correlation u = 2 arcsin(c) / pi, c being the covariance, so c is found from I = A d^-gamma by inverting
        this exactly, at every distance (Equation 46 of the reference)::

            X        0.3  1.1 -0.2 -0.9 -0.4  0.6
            input     1    1    0    0    0
            target    1    0    0    0    1

    Input:
        Tokens `(length - 1, B)`, 0 and 1.

    Target:
        Tokens `(length - 1, B)`: the next bit.

    Metric:
        Cross entropy in nats and accuracy over all steps.

    Chance level:
        Loss ln 2, accuracy 1/2. From the bit before alone: loss ln 2 - A, accuracy (1 + u(1)) / 2, which is 0.7197 at
        A = 0.1.

    Reference:
        Shen 2019, "Mutual information scaling and expressive power of sequence models", Appendix B. The constant of its
        Equation 47 should read pi sqrt(A / 2); it is not used here.

    Args:
        length: Bits of a sequence.
        train_sequences: Size of a fixed training set (10,000 in the reference), None for fresh sequences.
        amplitude: A, the information in nats of two neighbours, below ln 2.
        exponent: gamma.
        method: "cholesky" factors the covariance matrix, "circulant" uses the fast Fourier transform and serves for
            millions of bits, "auto" takes the first up to 1,024 bits.

    Example:
        >>> task = BinaryPowerLaw(length=64)
        >>> task.mutual_information([1, 10])
        tensor([0.1000, 0.0398], dtype=torch.float64)
        >>> task.draw(3, task.stream("train", seed=0)).shape
        torch.Size([64, 3])
    """

    amplitude: float = 0.1
    exponent: float = 0.4
    method: Method = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        _validate.real("amplitude", self.amplitude, above=0.0)
        if self.amplitude >= math.log(2):
            hint = "Two bits share no more than ln 2 nats"
            raise ValueError(_validate.message("amplitude", "be below ln 2 = 0.693", self.amplitude, hint))
        _validate.real("exponent", self.exponent, above=0.0)
        _validate.one_of("method", self.method, ["auto", "cholesky", "circulant"])

    def correlation(self, lags: Tensor) -> Tensor:
        """Gives the correlation of two bits, written as -1 and +1."""
        return pair_correlation(self.amplitude * lags.double() ** -self.exponent)

    def covariance(self, lags: Tensor) -> Tensor:
        """Gives the covariance of the Gaussian numbers behind two bits, float64 `(number of lags,)`."""
        # Signs of two Gaussian numbers correlate by 2/pi arcsin of their covariance; here the signs are given.
        known = torch.sin(0.5 * math.pi * self.correlation(lags.clamp(min=1)))
        return torch.where(lags == 0, torch.ones_like(known), known)

    def draw(self, batch_size: int, generator: torch.Generator) -> Tensor:
        """Draws whole sequences: bits, int64 `(length, B)`.

        Raises:
            ValueError: If no Gaussian sequence has the covariance that is asked for, or the circulant method cannot
                make it.
        """
        short = self.method == "auto" and self.length <= _CHOLESKY_LIMIT
        if short or self.method == "cholesky":
            gaussian = _draw_cholesky(_factor(self), batch_size, generator)
        else:
            gaussian = _draw_circulant(_amplitudes(self), self.length, batch_size, generator)
        return (gaussian > 0).long()


@functools.lru_cache(maxsize=2)
def _factor(task: BinaryPowerLaw) -> Tensor:
    """Factors the covariance matrix, `(length, length)`, lower triangular."""
    steps = torch.arange(task.length)
    matrix = task.covariance(steps)[(steps.unsqueeze(1) - steps).abs()]
    factor, failed = torch.linalg.cholesky_ex(matrix)
    if failed:
        least = torch.linalg.eigvalsh(matrix)[0].item()
        raise ValueError(
            f"no Gaussian sequence of {task.length} numbers has the covariance of amplitude {task.amplitude:g} and "
            f"exponent {task.exponent:g}: its least eigenvalue is {least:.3g}. Lower `amplitude` or `exponent`"
        )
    return factor


def _draw_cholesky(factor: Tensor, batch_size: int, generator: torch.Generator) -> Tensor:
    device = generator.device
    noise = torch.randn(len(factor), batch_size, generator=generator, dtype=torch.float64, device=device)
    return factor.to(device) @ noise


@functools.lru_cache(maxsize=2)
def _amplitudes(task: BinaryPowerLaw) -> Tensor:
    """Gives the square roots of the eigenvalues of a circulant matrix that holds the covariance matrix, `(size,)`."""
    # At least twice the greatest distance: on the circle no distance is met a second time the other way round.
    size = 1 << (2 * (task.length - 1) - 1).bit_length()
    half = task.covariance(torch.arange(size // 2 + 1))
    eigenvalues = torch.fft.fft(torch.cat([half, half[1:-1].flip(0)])).real
    rounding = torch.finfo(torch.float64).eps * size * eigenvalues.max()
    if eigenvalues.min() < -rounding:
        raise ValueError(
            f"the circulant method cannot make {task.length} bits of amplitude {task.amplitude:g} and exponent "
            f"{task.exponent:g}: its least eigenvalue is {eigenvalues.min().item():.3g} and must not be negative. "
            "Lower `amplitude`, or take method='cholesky' for short sequences"
        )
    return (eigenvalues.clamp(min=0) / size).sqrt()


def _draw_circulant(amplitudes: Tensor, length: int, batch_size: int, generator: torch.Generator) -> Tensor:
    """Colours complex noise; real and imaginary part are two independent sequences."""
    size = (len(amplitudes), math.ceil(batch_size / 2))
    device = generator.device
    noise = torch.randn(2, *size, generator=generator, dtype=torch.float64, device=device)
    coloured = torch.fft.fft(amplitudes.to(device).unsqueeze(1) * torch.complex(noise[0], noise[1]), dim=0)[:length]
    return torch.cat([coloured.real, coloured.imag], dim=1)[:, :batch_size]
