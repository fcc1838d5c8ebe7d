"""Kerg et al. 2020, Lemmas 3 and 4 and Eq. 42: Proposition 1's recursion, solved by sums over chains of steps."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise

import torch
from torch import Tensor

from remanence import theory
from remanence.claims._framework import relative_gap
from remanence.claims._types import Evidence
from remanence.probes import closed_forms as closed

from ._gradient_paths import ROUNDING, N, exact_claim, random_recording, total_derivatives


def _solved(printed: bool) -> tuple[float, float]:
    """Greatest errors of Lemma 3 and of Lemma 4 on random matrices, k = 5."""
    k = 5
    size = (3, 3)
    factors = {(i, j): torch.randn(size).double() for i in range(1, k + 1) for j in range(i)}
    direct = [torch.randn(size).double() for _ in range(k + 1)]
    start = torch.randn(size).double()
    errors = []
    for first in (start, direct[0]):
        values = [first]
        for m in range(1, k + 1):
            values.append(direct[m] + sum((factors[m, j] @ values[j] for j in range(m)), torch.zeros(size).double()))
        solution = direct[k].clone()
        for r, value in enumerate([first, *direct[1:k]]):
            for s in range(1, k - r + 1):
                solution += theory.chain_sum(lambda *pair: factors[pair], r, k, s, printed=printed) @ value
        errors.append(relative_gap(solution, values[k]))
    return errors[0], errors[1]


@exact_claim(
    "kerg2020/lemma03",
    place="Lemma 3, Eqs 20 to 23",
    printed=(
        "C_k = xi_{0:k} C_0 + sum_r xi_{r:k} E_r, with xi(s) = sum F_{i_{s+1},i_s} F_{i_{s-1},i_{s-2}} .. F_{i_2,i_1}"
    ),
    corrected="the products run over all consecutive pairs; Eq. 23 leaves out F_{i_s,i_{s-1}}",
    measures="relative error of the solution on random matrices, k = 5, with and without the missing factor",
)
def recursion_is_solved_by_chains(quick: bool) -> Evidence:
    printed = _solved(True)[0]
    corrected = _solved(False)[0]
    return Evidence(printed <= ROUNDING, corrected <= ROUNDING, {"error as printed": printed, "corrected": corrected})


@exact_claim(
    "kerg2020/lemma04",
    place="Lemma 4",
    printed="if C_0 = E_0, then C_k is E_k and the sum of xi_{k-q:k}(s) E_{k-q} over s and q",
    measures="relative error on random matrices, k = 5, xi with all its factors",
    assumptions="xi as corrected in Lemma 3",
)
def recursion_regrouped(quick: bool) -> Evidence:
    error = _solved(False)[1]
    return Evidence(error <= ROUNDING, numbers={"error": error})


@exact_claim(
    "kerg2020/eq42",
    place="Proposition 1, Eq. 42",
    printed="the sum runs over 0 <= i_1 <= .. <= i_s <= k",
    corrected=(
        "over 0 <= i_1 < .. < i_s < k, as section 3 has it: Eq. 44 defines no F_{i,i}; as zero it would do no harm, as "
        "the identity it would"
    ),
    measures=(
        "chains of the printed sum with a factor F_{i,i}, k = 4; relative gap from autograd of the strict sum and of "
        "the printed one with F_{i,i} = 0 and = I"
    ),
)
def chains_rise_strictly(quick: bool) -> Evidence:
    recording = random_recording()
    t = 2
    k = 4
    exact = total_derivatives(recording, t)[0][k]
    loose = [i for s in range(1, k + 1) for i in combinations_with_replacement(range(k + 1), s)]
    undefined = [chain for chain in loose if any(a == b for a, b in pairwise((*chain, k)))]

    def direct(j: int) -> Tensor:
        return closed.partial_by_state(recording, t, t + j)

    def loose_sum(stay: Tensor) -> Tensor:
        total = direct(k)
        for chain in loose:
            product = direct(chain[0])
            for earlier, later in pairwise((*chain, k)):
                if earlier == later:
                    product = stay @ product
                else:
                    product = closed.factor(recording, t + earlier, t + later) @ product
            total = total + product
        return total

    def factor(later: int, earlier: int) -> Tensor:
        return closed.factor(recording, t + earlier, t + later)

    eye = torch.eye(N, dtype=torch.float64)
    rising = direct(k) + sum(
        theory.chain_sum(factor, i, k, s) @ direct(i) for i in range(k) for s in range(1, k - i + 1)
    )
    sums = {"strict": rising, "F_{i,i} = 0": loose_sum(0 * eye), "F_{i,i} = I": loose_sum(eye)}
    gaps = {name: relative_gap(value, exact) for name, value in sums.items()}
    numbers = {"chains": len(loose), "not defined": len(undefined)} | {f"gap, {name}": g for name, g in gaps.items()}
    corrected = gaps["strict"] <= ROUNDING and gaps["F_{i,i} = 0"] <= ROUNDING < gaps["F_{i,i} = I"]
    return Evidence(not undefined, corrected, numbers)
