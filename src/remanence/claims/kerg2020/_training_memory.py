"""Kerg et al. 2020, section 6, figure 2 centre: memory of training against the length, on stored measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from remanence.claims._framework import stored_claim
from remanence.claims._types import Evidence, Number

_MEASURES = "order of a + b T + c T^2 fitted to the peak of live bytes from T = 200 to 2000, plain torch and our kernel"
_ORDER = "an order is the highest whose term makes up a fifth at T = 2000"


def order(results: Mapping[str, Any], model: str) -> str:
    """How the memory of a model grows."""
    return results["models"][model]["growth"]["order"]


def _numbers(results: Mapping[str, Any], *models: str) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for model in models:
        numbers[f"MB at T = 2000, {model}"] = results["models"][model]["peak_bytes"][-1] / 1e6
        numbers[f"order, {model}"] = order(results, model)
    return numbers


@stored_claim(
    "kerg2020/figure2-memory-full",
    stored="memory",
    place="section 6, figure 2 centre",
    printed="the memory of full attention (MemRNN) grows quadratically with T",
    measures=_MEASURES,
    tolerance=_ORDER,
    assumptions="as it is written down; a kernel that makes the scores anew going back needs linear memory",
)
def full_attention_is_quadratic(results: Mapping[str, Any]) -> Evidence:
    models = ("MemRNN (plain)", "MemRNN (kernel)")
    holds = [order(results, model) for model in models] == ["quadratic", "linear"]
    return Evidence(holds, numbers=_numbers(results, *models))


@stored_claim(
    "kerg2020/figure2-memory-sab",
    stored="memory",
    place="sections 4 and 6, figure 2 centre",
    printed="SAB's memory is quadratic in T too: storing one state in ten gains a constant factor over MemRNN",
    measures=_MEASURES,
    tolerance=f"{_ORDER}; the quadratic terms between 2 and 20 apart",
    assumptions="all stored states scored at every step; the printed score ignores the query, and linear is exact",
)
def sparse_attention_gains_a_constant(results: Mapping[str, Any]) -> Evidence:
    full = "MemRNN (plain)"
    sparse = "SABLSTM (plain)"
    gain = results["models"][full]["growth"]["quadratic"] / (results["models"][sparse]["growth"]["quadratic"] or 1e-9)
    holds = order(results, sparse) == "quadratic" and 2 < gain < 20 and order(results, "SABLSTM (kernel)") == "linear"
    return Evidence(holds, numbers={**_numbers(results, full, sparse, "SABLSTM (kernel)"), "gain": gain})


@stored_claim(
    "kerg2020/figure2-memory-screened",
    stored="memory",
    place="section 6, figure 2 centre",
    printed="the memory of RelLSTM grows linearly with T, as that of RNN and LSTM does",
    measures=_MEASURES,
    tolerance=_ORDER,
)
def screened_memory_is_linear(results: Mapping[str, Any]) -> Evidence:
    models = ("RNN (plain)", "LSTM (plain)", "RelRNN (plain)", "RelLSTM (plain)", "RelLSTM (kernel)")
    holds = all(order(results, model) == "linear" for model in models)
    return Evidence(holds, numbers=_numbers(results, *models))
