"""The delta rule with a few exact associations in addition to its matrix: those that the matrix predicted worst."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from remanence._validate import dimension
from remanence.ops.states import empty_rows

from ._baselines import DeltaRule
from ._options import Device


class _Held(NamedTuple):
    """What a row carries; a slot of score 0 is free."""

    matrix: Tensor  # (B, n, key_size)
    keys: Tensor  # (B, relevant, key_size)
    values: Tensor  # (B, relevant, n)
    score: Tensor  # (B, relevant)


class ScreenedDeltaRule(DeltaRule):
    """Delta rule with a screened memory that holds the associations with the largest errors.

    The matrix ``S`` is that of :class:`DeltaRule`. An association is worth what it changed in it: ``beta_t |e_t|`` with
    ``e_t = v_t - S_{t-1} k_t``. It takes a free slot, or that of the least worth if it is strictly beaten. What is held
    is read by a softmax of ``sqrt(key_size) q . (gamma * k)``, ``gamma`` a trained gain, and added:
    ``o_t = S_t q_t + r_t``. This is the form of HOLA (Cui 2026, arXiv 2607.02303: the worth, the bounded memory, the
    normalised read with a gain); one head, no decay of the matrix and the plain sum are ours. The choice carries no
    gradient; the associations held do.

    Args:
        input_size: features of the input.
        hidden_size: features of values and of the output, n.
        key_size: features of keys and queries; ``None`` is ``hidden_size``.
        relevant: associations held.
        batch_first: input and output are ``(B, T, ...)``.
        device: of the parameters.
        dtype: of the parameters.

    Example:
        >>> output, state = ScreenedDeltaRule(3, 8, key_size=4, relevant=2)(torch.randn(20, 5, 3))
        >>> output.shape, state.value.shape  # matrix, keys, values and worths in one row
        (torch.Size([20, 5, 8]), torch.Size([1, 5, 58]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        key_size: int | None = None,
        *,
        relevant: int = 10,
        batch_first: bool = False,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, key_size, batch_first=batch_first, device=device, dtype=dtype)
        self.relevant = dimension("relevant", relevant)
        self.weight_gamma = nn.Parameter(torch.ones(self.key_size, device=device, dtype=dtype))

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{super().extra_repr()}, relevant={self.relevant}"

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        n = self.hidden_size
        slots = self.relevant
        size = self.key_size
        return (n, size), (slots, size), (slots, n), (slots,)

    def _value_shape(self) -> tuple[int, ...]:
        return (sum(map(math.prod, self._shapes())),)

    def _unpack(self, value: Tensor) -> _Held:
        shapes = self._shapes()
        parts = value.split([math.prod(shape) for shape in shapes], dim=-1)
        return _Held._make(part.unflatten(-1, shape) for part, shape in zip(parts, shapes, strict=True))

    def _run(self, x: Tensor, value: Tensor, starts: Tensor | None, live: Tensor | None) -> tuple[Tensor, Tensor]:
        associations = self._associations(x, live)
        outputs = []
        held = self._unpack(value)
        for t, (query, key, new, beta) in enumerate(zip(*associations, strict=True)):
            if starts is not None:
                held = _Held._make(empty_rows(starts[t], part) for part in held)
            error = new - torch.einsum("bvk,bk->bv", held.matrix, key)
            matrix = held.matrix + torch.einsum("bv,bk->bvk", beta * error, key)
            held = _screen(held._replace(matrix=matrix), key, new, (beta * error).detach().norm(dim=-1))
            outputs.append(torch.einsum("bvk,bk->bv", matrix, query) + self._read(held, query))
        return torch.stack(outputs), torch.cat([part.flatten(1) for part in held], dim=-1)

    def _read(self, held: _Held, query: Tensor) -> Tensor:
        scores = math.sqrt(self.key_size) * torch.einsum("bk,bsk->bs", query * self.weight_gamma, held.keys)
        free = held.score == 0
        lowest = torch.finfo(scores.dtype).min  # a row of free slots alone has weights too, and reads values of 0
        weights = F.softmax(scores.masked_fill(free, lowest), dim=-1)
        return torch.einsum("bs,bsv->bv", weights, held.values)


def _screen(held: _Held, key: Tensor, value: Tensor, worth: Tensor) -> _Held:
    """The association takes the slot of the least worth if it is strictly beaten; free ones are worth 0."""
    least, slot = held.score.min(dim=1)
    place = F.one_hot(slot, held.score.shape[1]).bool() & (worth > least)[:, None]
    return held._replace(
        keys=torch.where(place[..., None], key[:, None], held.keys),
        values=torch.where(place[..., None], value[:, None], held.values),
        score=torch.where(place, worth[:, None], held.score),
    )
