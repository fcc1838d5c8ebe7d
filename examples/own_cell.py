"""Cells of your own, one of them with parameters of its own, with a memory, checked by the conformance suite."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor

from remanence.nn import RecurrentLayer, Screened
from remanence.ops import Cell, OwnParameter, Weights
from remanence.testing import check_recurrent_layer


class MinimalGatedCell(Cell):
    """One gate decides what to keep and what to see (Zhou et al., 2016)."""

    name = "mgu"
    gates = ("z", "n")  # two blocks of rows in the weights
    leaks = True  # the new h also takes the last h directly, not only through the gates

    def step(self, weights: Weights, projected: Tensor, s: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """``h' = (1 - z) h + z n``; gate and candidate see the macro-state ``s``, which is ``h`` without a memory."""
        x_z, x_n = projected.chunk(2, dim=-1)
        s_z, s_n = F.linear(s, weights.hh).chunk(2, dim=-1)
        z = torch.sigmoid(x_z + s_z)
        n = torch.tanh(x_n + z * s_n)
        return (1 - z) * h + z * n, c


class MGU(RecurrentLayer):
    """Minimal gated unit: stacking, directions, layouts, streams, memories and cuts come with the base class."""

    cell = MinimalGatedCell()


class FastGRNNCell(Cell):
    """Gate and candidate share their matrices; two trained numbers weigh old and new (Kusupati et al., 2018)."""

    name = "fast-grnn"
    leaks = True
    bounded = False  # where the gate stays open, nu adds up

    def own_parameters(self, hidden_size: int) -> dict[str, OwnParameter]:
        """Names, shapes and first values: the layer holds them as ``bias_update_l0``, ``zeta_l0``, ``nu_l0``, ..."""
        ones = torch.nn.init.ones_
        small = functools.partial(torch.nn.init.constant_, val=-4.0)
        return {
            "bias_update": OwnParameter((hidden_size,), ones),
            "zeta": OwnParameter((1,), ones),
            "nu": OwnParameter((1,), small),
        }

    def step(self, weights: Weights, projected: Tensor, s: Tensor, c: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """``h' = (zeta (1 - z) + nu) n + z h``; both numbers are kept between 0 and 1 by a sigmoid."""
        n = projected + F.linear(s, weights.hh)
        z = torch.sigmoid(n + weights.own("bias_update"))
        zeta = weights.own("zeta").sigmoid()
        nu = weights.own("nu").sigmoid()
        return (zeta * (1 - z) + nu) * n.tanh() + z * h, c


class FastGRNN(RecurrentLayer):
    """Fast gated recurrent network."""

    cell = FastGRNNCell()


def main(names: set[str] | None = None, kind: type[RecurrentLayer] = MGU) -> list[str]:
    """Runs the checks of these names, or all of them, without a memory and with a screened one."""
    passed = []
    for memory in (None, Screened(recent=4, relevant=6)):
        for check in check_recurrent_layer(functools.partial(kind, memory=memory)):
            if names is None or check.name in names:
                check()
                passed.append(check.name)
        print(f"{kind.__name__}, memory={memory}: {len(passed)} checks passed so far")
    return passed


if __name__ == "__main__":
    main()
    main(kind=FastGRNN)
