"""Scans with random weights, states and cotangents, run on either backend and compared by name."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from remanence.ops import Log, ScanSpec, State, Strided, Weights, fused, reference
from remanence.testing import assert_matches, relative_error

NO_GRADIENT = ("recent_score", "relevant_score")


@pytest.fixture(scope="session", autouse=True)
def _kernel(require_or_skip) -> None:
    from remanence.ops._library import library

    if library().problem is not None:
        require_or_skip("kernel", str(library().problem))


def random_weights(spec: ScanSpec, hidden: int, inputs: int, sharp: float = 20.0) -> Weights:
    """Scaled normal weights; additive scores are sharpened so that states are replaced in the relevant set."""
    gates, memory = len(spec.cell.gates) * hidden, spec.memory if spec.has_memory else None

    def draw(*shape: int, scale: float = 1.0) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64) * scale / hidden**0.5

    weights = Weights(draw(gates, inputs), draw(gates, hidden, scale=0.5), draw(gates), draw(gates))
    if isinstance(memory, Strided):
        weights = weights._replace(query=draw(hidden), key=draw(hidden))
        if memory.score == "affine":
            weights = weights._replace(score=draw(1))
    elif memory is not None:
        weights = weights._replace(query=draw(hidden, hidden), key=draw(hidden, hidden))
        if memory.score == "additive":
            weights = weights._replace(score=draw(hidden, scale=sharp))
        if "weight_gate" in memory.own_parameters(hidden):
            weights = weights._replace(gate=draw(hidden, scale=3.0), gate_bias=draw(1))
    if spec.cell == "goru" or spec.nonlinearity == "modrelu":
        weights = weights._replace(modrelu=draw(hidden) - 0.1)
    return weights


@dataclass
class Case:
    """One scan and everything that goes into it, in float64."""

    spec: ScanSpec
    weights: Weights
    x: Tensor
    state: State | None = None
    options: dict[str, Tensor | None] = field(default_factory=dict)

    def run(self, backend, dtype=torch.float64, log: Log | None = None, **extra) -> dict[str, Tensor]:
        """Output, final state, log and all gradients, by name, for the same random cotangents whatever the dtype."""
        named = self._inputs(dtype)
        state = None
        if self.state is not None:
            state = State._make(named.get(f"state.{name}", getattr(self.state, name)) for name in State._fields)
            state = state.to(dtype)
        weights = Weights._make(named.get(f"weights.{name}") for name in Weights._fields)
        options = {**self.options, **({"h_offset": named["h_offset"]} if "h_offset" in named else {})}
        output, final, made = backend.scan(
            named["x"], weights, state, spec=self.spec, forced_log=log, **options, **extra
        )
        result = {"output": output, **{f"final.{k}": v for k, v in final._asdict().items()}}
        result |= {"log.slot": made.slot, "log.displaced": made.displaced}
        learning = [v for k, v in result.items() if v.requires_grad and v.numel()]
        generator = torch.Generator().manual_seed(5)
        cotangents = [torch.randn(v.shape, generator=generator, dtype=torch.float64).to(dtype) for v in learning]
        wanted = {k: v for k, v in named.items() if v.requires_grad}
        gradients = torch.autograd.grad(
            learning, list(wanted.values()), cotangents, allow_unused=True, materialize_grads=True
        )
        result = {k: v.detach() for k, v in result.items()}
        return result | {f"d.{k}": g for k, g in zip(wanted, gradients, strict=True)}

    def _inputs(self, dtype: torch.dtype) -> dict[str, Tensor]:
        named = {"x": self.x, **{f"weights.{k}": v for k, v in self.weights._asdict().items() if v is not None}}
        if self.state is not None:
            named |= {f"state.{k}": v for k, v in self.state._asdict().items() if v.is_floating_point()}
        if self.options.get("h_offset") is not None:
            named["h_offset"] = self.options["h_offset"]
        leaves = {k: v.detach().to(dtype).clone() for k, v in named.items()}
        for name, leaf in leaves.items():
            leaf.requires_grad_(name.rpartition(".")[2] not in NO_GRADIENT)
        return leaves


def make_case(
    spec: ScanSpec, steps=40, batch=7, hidden=19, inputs=5, started=False, events=False, ragged=False, sharp=20.0
) -> Case:
    """A random case; ``started`` begins in a state that other steps made, ``events`` adds resets, cuts and offsets."""
    weights = random_weights(spec, hidden, inputs, sharp)
    x = torch.randn(steps, batch, inputs, dtype=torch.float64)
    state = None
    if started:
        before = torch.randn(23, batch, inputs, dtype=torch.float64)
        state = reference.scan(before, weights, None, spec=spec)[1]
    options: dict[str, Tensor | None] = {}
    lengths = torch.randint(1, steps + 1, (batch,)) if ragged else torch.full((batch,), steps)
    if ragged:
        options["lengths"] = lengths
    if events:
        alive = torch.arange(steps)[:, None] < lengths
        for name, rate in (("reset", 0.04), ("cut_h", 0.1), ("cut_c", 0.1)):
            options[name] = (torch.rand(steps, batch) < rate) & alive
        options["h_offset"] = torch.randn(steps, batch, hidden, dtype=torch.float64) * 0.1
    return Case(spec, weights, x, state, options)


def compare(case: Case, dtype=torch.float64, **extra) -> dict[str, Tensor]:
    """Fused against the reference by the one rule; in float32 both replay the choices of the float64 run."""
    exact = case.run(reference)
    if dtype == torch.float64:
        assert_matches(_comparable(case, case.run(fused, **extra), exact), exact)
        return exact
    plain, actual = in_lower_precision(case, dtype, exact, **extra)
    assert_matches(_comparable(case, actual, exact), exact, plain)
    return exact


def in_lower_precision(case: Case, dtype, exact, **extra) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The reference and the kernel, both with the choices of the exact run."""
    log = Log(exact["log.slot"], exact["log.displaced"])
    return case.run(reference, dtype, log), case.run(fused, dtype, log, **extra)


def gradient_errors(case: Case, dtype=torch.float32) -> dict[str, tuple[float, float]]:
    """Relative error of every gradient of the kernel, and of the reference in the same precision."""
    exact = case.run(reference)
    plain, actual = in_lower_precision(case, dtype, exact)
    wanted = {name: value for name, value in exact.items() if name.startswith("d.") and bool(value.any())}
    return {name: (relative_error(actual[name], g), relative_error(plain[name], g)) for name, g in wanted.items()}


def _comparable(case: Case, actual: dict[str, Tensor], exact: dict[str, Tensor]) -> dict[str, Tensor]:
    """The query of a static score cancels: the kernel's gradient is exactly 0, the reference's 0 up to rounding."""
    memory = case.spec.memory
    if isinstance(memory, Strided) and memory.underfull == "threshold":
        for name in ("d.weights.query", "d.weights.score"):
            if name in actual:
                assert not actual.pop(name).any()
                exact.pop(name)
    return actual


def buffer_replacements(result: dict[str, Tensor]) -> Tensor:
    """Replacements of each row."""
    return (result["log.displaced"] >= 0).sum(dim=0)


@dataclass(frozen=True)
class Scans:
    """The helpers above, for test modules."""

    make_case = staticmethod(make_case)
    compare = staticmethod(compare)
    gradient_errors = staticmethod(gradient_errors)
    replacements = staticmethod(buffer_replacements)
    weights = staticmethod(random_weights)


@pytest.fixture
def scans() -> Scans:
    return Scans()
