"""Recurrences without a matrix from state to state: minGRU, minLSTM, a diagonal linear recurrence, and the delta rule.

What is linear in the state runs over all steps at once, by a parallel scan; ``step`` gives the same numbers.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from remanence._validate import message, optional_size

from ._carrying import CarryingLayer
from ._options import Device, Factory


def linear_scan(decay: Tensor, drive: Tensor, start: Tensor) -> Tensor:
    """All values of ``h_t = decay_t h_{t-1} + drive_t``, in log2 T rounds instead of T steps.

    Args:
        decay: ``(T, B, n)``, real or complex, of absolute value up to 1.
        drive: ``(T, B, n)``.
        start: ``(B, n)``, the value before the first step.

    Returns:
        ``(T, B, n)``.

    Example:
        >>> linear_scan(torch.full((3, 1, 1), 0.5), torch.ones(3, 1, 1), torch.zeros(1, 1))[:, 0, 0]
        tensor([1.0000, 1.5000, 1.7500])
    """
    drive = torch.cat([drive[:1] + decay[:1] * start, drive[1:]])
    distance = 1
    while distance < len(drive):  # what an entry sums up reaches twice as far back after every round
        drive = torch.cat([drive[:distance], drive[distance:] + decay[distance:] * drive[:-distance]])
        decay = torch.cat([decay[:distance], decay[distance:] * decay[:-distance]])
        distance *= 2
    return drive


def _with_events(decay: Tensor, drive: Tensor, starts: Tensor | None, live: Tensor | None) -> tuple[Tensor, Tensor]:
    """Decay 0 where a row starts afresh; decay 1 and drive 0 where it has ended."""
    if starts is not None:
        decay = torch.where(starts[..., None], 0.0, decay)
    if live is not None:
        decay = torch.where(live[..., None], decay, 1.0)
        drive = torch.where(live[..., None], drive, 0.0)
    return decay, drive


class MinGRU(CarryingLayer):
    """GRU whose gate and candidate see the input alone (minGRU), so that all steps run at once.

    ``h_t = (1 - z_t) h_{t-1} + z_t n_t`` with ``z_t = sigmoid(W_z x_t + b_z)`` and ``n_t = W_n x_t + b_n``: the first
    form of Feng et al. 2024, "Were RNNs all we needed?". It is no cell of :class:`RecurrentLayer`, because without a
    matrix from state to state nothing that it reads from a memory could reach its gates.

    Args:
        input_size: features of the input.
        hidden_size: features of the state, n.
        batch_first: input and output are ``(B, T, ...)``.
        device: of the parameters.
        dtype: of the parameters.

    Example:
        >>> output, state = MinGRU(3, 8)(torch.randn(20, 5, 3))
        >>> output.shape, torch.equal(output[-1], state.value[0])
        (torch.Size([20, 5, 8]), True)
    """

    gates = ("z", "n")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        batch_first: bool = False,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        rows = len(self.gates) * hidden_size
        self.weight_ih_l0 = self._uniform(rows, input_size, device=device, dtype=dtype)
        self.bias_ih_l0 = self._uniform(rows, device=device, dtype=dtype)

    def _coefficients(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z, n = F.linear(x, self.weight_ih_l0, self.bias_ih_l0).chunk(2, dim=-1)
        # The first is 1 - sigmoid(z), without the difference.
        return (-z).sigmoid(), z.sigmoid() * n

    def _run(self, x: Tensor, value: Tensor, starts: Tensor | None, live: Tensor | None) -> tuple[Tensor, Tensor]:
        decay, drive = _with_events(*self._coefficients(x), starts, live)
        output = linear_scan(decay, drive, value)
        return output, output[-1]


class MinLSTM(MinGRU):
    """LSTM whose gates see the input alone and share one unit (minLSTM), so that all steps run at once.

    ``h_t = f_t / (f_t + i_t) h_{t-1} + i_t / (f_t + i_t) n_t`` with sigmoid gates ``f`` and ``i`` and ``n_t = W_n x_t +
    b_n``: the first form, independent of the length, of Feng et al. 2024, "Were RNNs all we needed?".

    Args:
        input_size: features of the input.
        hidden_size: features of the state, n.
        batch_first: input and output are ``(B, T, ...)``.
        device: of the parameters.
        dtype: of the parameters.

    Example:
        >>> MinLSTM(3, 8)(torch.randn(20, 5, 3))[0].shape
        torch.Size([20, 5, 8])
    """

    gates = ("i", "f", "n")

    def _coefficients(self, x: Tensor) -> tuple[Tensor, Tensor]:
        i, f, n = F.linear(x, self.weight_ih_l0, self.bias_ih_l0).chunk(3, dim=-1)
        # f / (f + i) is a sigmoid of the difference of logarithms, which no underflow can make 0 / 0.
        share = F.logsigmoid(f) - F.logsigmoid(i)
        return share.sigmoid(), (-share).sigmoid() * n


class LRU(CarryingLayer):
    """Diagonal linear recurrence of complex states (linear recurrent unit), all steps at once.

    ``z_t = lambda z_{t-1} + gamma (B x_t)`` and ``y_t = Re(C z_t) + D x_t``. Here ``lambda`` is
    ``exp(-exp(weight_nu) + i exp(weight_theta))`` and ``gamma`` is ``exp(weight_gamma)``, at first
    ``sqrt(1 - |lambda|^2)``: Orvieto et al. 2023, "Resurrecting recurrent neural networks for long sequences". There is
    no nonlinearity: put one after it.

    Args:
        input_size: features of the input.
        hidden_size: features of the state and of the output, n.
        batch_first: input and output are ``(B, T, ...)``.
        least_radius: the eigenvalues lie in a ring at first; this is its inner radius.
        greatest_radius: its outer radius, below 1.
        device: of the parameters.
        dtype: of the parameters.

    Example:
        >>> output, state = LRU(3, 8)(torch.randn(20, 5, 3))
        >>> output.shape, state.value.shape  # real parts, then imaginary ones
        (torch.Size([20, 5, 8]), torch.Size([1, 5, 16]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        batch_first: bool = False,
        least_radius: float = 0.9,
        greatest_radius: float = 0.999,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        if not 0 <= least_radius < greatest_radius < 1:
            expected = "be at least 0 and below `greatest_radius`, which is below 1"
            raise ValueError(message("least_radius", expected, f"{least_radius} and {greatest_radius}"))
        n = hidden_size
        factory = Factory(device=device, dtype=dtype)
        # Uniform over the area of the ring, so the squares of the radii are uniform (Orvieto et al. 2023).
        squares = torch.rand(n, **factory) * (greatest_radius**2 - least_radius**2) + least_radius**2
        self.weight_nu = nn.Parameter((-0.5 * squares.log()).log())
        self.weight_theta = nn.Parameter((2 * math.pi * (1 - torch.rand(n, **factory))).log())
        # gamma = sqrt(1 - |lambda|^2) starts the state with the variance of what drives it, however long it lasts.
        self.weight_gamma = nn.Parameter(0.5 * (1 - squares).log())
        self.weight_in = nn.Parameter(torch.randn(2, n, input_size, **factory) / math.sqrt(2 * input_size))
        self.weight_out = nn.Parameter(torch.randn(2, n, n, **factory) / math.sqrt(n))
        self.weight_skip = nn.Parameter(torch.randn(n, input_size, **factory) / math.sqrt(input_size))

    @property
    def eigenvalues(self) -> Tensor:
        """``(n,)`` complex, all inside the unit circle."""
        return torch.polar((-self.weight_nu.exp()).exp(), self.weight_theta.exp())

    def _value_shape(self) -> tuple[int, ...]:
        return (2 * self.hidden_size,)

    def _run(self, x: Tensor, value: Tensor, starts: Tensor | None, live: Tensor | None) -> tuple[Tensor, Tensor]:
        gamma = self.weight_gamma.exp()
        drive = torch.complex(F.linear(x, self.weight_in[0]) * gamma, F.linear(x, self.weight_in[1]) * gamma)
        decay, drive = _with_events(self.eigenvalues.expand_as(drive), drive, starts, live)
        z = linear_scan(decay, drive, torch.complex(*value.chunk(2, dim=-1)))
        output = F.linear(z.real, self.weight_out[0]) - F.linear(z.imag, self.weight_out[1])
        return output + F.linear(x, self.weight_skip), torch.cat([z[-1].real, z[-1].imag], dim=-1)


class DeltaRule(CarryingLayer):
    """Matrix memory written by the delta rule: what a key holds is replaced by a share of the new value.

    ``S_t = S_{t-1} - beta_t (S_{t-1} k_t - v_t) k_t^T``, ``o_t = S_t q_t``, keys and queries of length 1, ``beta`` a
    sigmoid: Schlag, Irie and Schmidhuber 2021, "Linear transformers are secretly fast weight programmers", with the
    normalisation of Yang et al. 2024. The steps run one after the other.

    Args:
        input_size: features of the input.
        hidden_size: features of values and of the output, n.
        key_size: features of keys and queries; ``None`` is ``hidden_size``.
        batch_first: input and output are ``(B, T, ...)``.
        device: of the parameters.
        dtype: of the parameters.

    Example:
        >>> output, state = DeltaRule(3, 8, key_size=4)(torch.randn(20, 5, 3))
        >>> output.shape, state.value.shape
        (torch.Size([20, 5, 8]), torch.Size([1, 5, 8, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        key_size: int | None = None,
        *,
        batch_first: bool = False,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, batch_first)
        self.key_size = optional_size("key_size", key_size, hidden_size)
        factory = Factory(device=device, dtype=dtype)
        self.weight_query = self._uniform(self.key_size, input_size, **factory)
        self.weight_key = self._uniform(self.key_size, input_size, **factory)
        self.weight_value = self._uniform(hidden_size, input_size, **factory)
        self.weight_beta = self._uniform(1, input_size, **factory)
        self.bias_beta = self._uniform(1, **factory)

    def _value_shape(self) -> tuple[int, ...]:
        return (self.hidden_size, self.key_size)

    def _associations(self, x: Tensor, live: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys, values and shares of all steps, ``(T, B, ...)``; an ended row writes nothing."""
        queries = F.normalize(F.linear(x, self.weight_query), dim=-1)
        keys = F.normalize(F.linear(x, self.weight_key), dim=-1)
        values = F.linear(x, self.weight_value)
        beta = F.linear(x, self.weight_beta, self.bias_beta).sigmoid()
        if live is not None:
            beta = torch.where(live[..., None], beta, 0.0)
        return queries, keys, values, beta

    def _run(self, x: Tensor, value: Tensor, starts: Tensor | None, live: Tensor | None) -> tuple[Tensor, Tensor]:
        outputs = []
        for t, (q, k, v, b) in enumerate(zip(*self._associations(x, live), strict=True)):
            if starts is not None:
                value = torch.where(starts[t][:, None, None], 0.0, value)
            held = torch.einsum("bvk,bk->bv", value, k)
            value = value + torch.einsum("bv,bk->bvk", b * (v - held), k)
            outputs.append(torch.einsum("bvk,bk->bv", value, q))
        return torch.stack(outputs), value
