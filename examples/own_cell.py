"""A cell of your own, the minimal gated unit, with a memory of this library and checked by its conformance suite."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor

from remanence.nn import RecurrentLayer, Screened
from remanence.ops import Cell, Weights
from remanence.testing import check_recurrent_layer


class MinimalGatedCell(Cell):
    """One gate decides what to keep and what to see (Zhou et al., 2016)."""

    name = "mgu"
    gates = ("z", "n")  # two blocks of rows in the weights
    leaks = True  # the last h goes into the new one beside the gates

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


def main(names: set[str] | None = None) -> list[str]:
    """Runs the checks of these names, or all of them, without a memory and with a screened one."""
    passed = []
    for memory in (None, Screened(recent=4, relevant=6)):
        for check in check_recurrent_layer(functools.partial(MGU, memory=memory)):
            if names is None or check.name in names:
                check()
                passed.append(check.name)
        print(f"memory={memory}: {len(passed)} checks passed so far")
    return passed


if __name__ == "__main__":
    main()
