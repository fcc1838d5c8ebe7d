"""Malformed calls of random layers, each refused or answered right: ``python -m tests.csrc.malformed --cases 300``.

Meant for a kernel built with the sanitizers, which end the process at the first byte out of bounds; see
``test_sanitizers.py``. An answer is right if it is the reference's answer to the same call.
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from tests.ops.test_fuzz import build, draw_plan
from torch import Tensor

from remanence import ops
from remanence.nn import RecurrentLayer
from remanence.ops import Backend, Log, State, Weights
from remanence.testing import assert_matches

REFUSALS = (ValueError, TypeError, RuntimeError, IndexError, OverflowError)
NUMBERS = (-1, 0, 1, 5, 2**31, 2**32, 2**32 + 2, 2**40, -(2**40), 2**62, 2**63 - 3, -(2**63))
SIZES = (0, 0, 1, 2**31, 2**32, 2**32 + 2, 2**62, 2**63 - 1, 2**64, -1)
DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.bool, torch.complex64, torch.uint8)
Call = Callable[[Backend], Tensor]


def spoil(value: Tensor, rng: random.Random) -> Tensor:
    """The tensor with another size, dtype, layout or device, or full of a number that means nothing."""
    dimension = rng.randrange(max(value.dim(), 1))
    size = value.shape[dimension] if value.dim() else 1
    changes: list[Callable[[], Tensor]] = [
        lambda: value.narrow(dimension, 0, 0),
        lambda: value.narrow(dimension, 0, max(size - 1, 0)),
        lambda: torch.cat([value, value], dimension),
        lambda: value.unsqueeze(dimension),
        lambda: value.flatten(),
        lambda: value.transpose(0, dimension),
        lambda: value.select(dimension, 0),
        lambda: value[:0].expand(0, *value.shape[1:]) if value.dim() else value,
        lambda: value[:1].expand(value.shape),
        lambda: value.to(rng.choice(DTYPES)),
        lambda: value.to("meta"),
        lambda: value.to_sparse(),
        lambda: torch.full_like(value, rng.choice(NUMBERS)),
        lambda: torch.full_like(value, rng.choice([float("nan"), float("inf"), -1e308])),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a complex number may lose its imaginary part here
        try:
            return rng.choice(changes)()
        except (RuntimeError, IndexError, OverflowError):  # not every change fits every tensor
            return value.flatten()[:0]


def spoil_one(values: Any, rng: random.Random) -> Any:
    """A named tuple with one of its tensors spoilt, or missing."""
    names = [name for name, value in values._asdict().items() if isinstance(value, Tensor)]
    name = rng.choice(names)
    spoilt: Tensor | None = spoil(getattr(values, name), rng)
    if random.Random(str(rng.getstate())).random() < 0.1:  # `rng` goes on as before
        spoilt = None
    return values._replace(**{name: spoilt})


class Calls:
    """One random layer, and malformed calls of it.

    Args:
        seed: of the layer and of the calls.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        plan = draw_plan(seed)
        plan.options |= {"bidirectional": False, "batch_first": False, "cuts": None}
        self.rows, self.steps = plan.batch, plan.steps
        self.layer: RecurrentLayer = build(plan)
        self.layer.backend = "reference"
        self.x = self.draw(self.steps, self.rows, self.layer.input_size)
        self.state = self.layer(self.x)[1].detach()
        self.weights = [self.layer.weights(f"_l{number}") for number in range(self.layer.num_layers)]

    def draw(self, *shape: int) -> Tensor:
        """Normal numbers."""
        return torch.randn(*shape, dtype=torch.float64)

    def layer_step(self) -> Call:
        """`layer.step` with a spoilt state, input, or both."""
        x, state = self.draw(self.rows, self.layer.input_size), self.state
        if self.rng.random() < 0.8:
            state = spoil_one(state, self.rng)
        else:
            x = spoil(x, self.rng)
        return lambda backend: self._step(x, state, backend)

    def _step(self, x: Tensor, state: State, backend: Backend) -> Tensor:
        self.layer.backend = backend
        return self.layer.step(x, state)[0]

    def scan(self) -> Call:
        """`ops.scan` of the first layer with one argument spoilt; its gradient is asked for, too."""
        arguments = self._scan_arguments()
        victim = self.rng.choice(sorted(arguments))
        spec = self._spec()
        arguments[victim] = self._spoilt(arguments[victim])
        x, weights, state = arguments.pop("x"), arguments.pop("weights"), arguments.pop("state")
        return lambda backend: _scanned(x, weights, state, {**arguments, "spec": spec, "backend": backend})

    def _spoilt(self, value: Any) -> Any:
        return spoil(value, self.rng) if isinstance(value, Tensor) else spoil_one(value, self.rng)

    def _scan_arguments(self) -> dict[str, Any]:
        state = State(*(field[0] for field in self.state))
        log = Log(torch.full((self.steps, self.rows), -1), torch.full((self.steps, self.rows), -1))
        optional = {
            "reset": torch.rand(self.steps, self.rows) < 0.2,
            "lengths": torch.randint(1, self.steps + 1, (self.rows,)),
            "cut_h": torch.rand(self.steps, self.rows) < 0.2,
            "cut_c": torch.rand(self.steps, self.rows) < 0.2,
            "forced_log": log,
        }
        chosen = {name: value for name, value in optional.items() if self.rng.random() < 0.4}
        return {"x": self.x, "weights": self.weights[0], "state": state, **chosen}

    def _spec(self) -> ops.ScanSpec:
        """The layer's own, or one of other sizes, some of them absurd."""
        spec, rng = self.layer.spec, self.rng
        if rng.random() < 0.7:
            return spec
        memories: list[Callable[[], Any]] = [
            lambda: ops.Screened(rng.choice(SIZES), rng.choice(SIZES)),
            lambda: ops.Strided(rng.choice(SIZES), rng.choice(SIZES)),
            lambda: ops.Full(rng.choice(SIZES)),
        ]
        try:
            return replace(spec, memory=rng.choice(memories)())
        except REFUSALS:
            return spec

    def generate(self) -> Call:
        """`ops.generate` with one argument spoilt."""
        rng, tokens = self.rng, self.layer.input_size
        hidden = self.layer(self.x)[0].shape[-1]
        arguments: dict[str, Any] = {
            "tokens": torch.randint(0, tokens, (self.rows,)),
            "state": self.state,
            "head": self.draw(tokens, hidden),
            "head_bias": self.draw(tokens),
            "uniforms": torch.rand(4, self.rows, dtype=torch.float64),
        }
        victim = rng.choice([*sorted(arguments), "layers", "steps"])
        layers, steps = list(self.weights), 4
        if victim == "layers":
            layers[0] = spoil_one(layers[0], rng)
        elif victim == "steps":
            steps = rng.choice([0, -1, 2**62, 2**63, 5])
        else:
            arguments[victim] = self._spoilt(arguments[victim])
        first, state = arguments.pop("tokens"), arguments.pop("state")
        common = {**arguments, "spec": self.layer.spec, "steps": steps}
        return lambda backend: ops.generate(first, layers, state, **common, backend=backend)[0]

    def draw_call(self) -> Call:
        """The next malformed call; it is given the backend."""
        return self.rng.choice([self.layer_step, self.scan, self.generate])()


def _scanned(x: Tensor, weights: Weights, state: State, options: dict[str, Any]) -> Tensor:
    output = ops.scan(x, weights, state, **options)[0]
    assert isinstance(output, Tensor)
    return output


def answer(call: Call, backend: Backend) -> Tensor | None:
    """What a call gives; None if it is refused."""
    try:
        with torch.no_grad():
            return call(backend)
    except REFUSALS:
        return None


def check(seed: int, calls: int) -> tuple[int, int]:
    """Makes calls of one layer; how many were answered and how many refused."""
    torch.manual_seed(seed)
    made, answered = Calls(seed), 0
    for _ in range(calls):
        call = made.draw_call()
        found = answer(call, "fused")
        if found is None:
            continue
        answered += 1
        exact = answer(call, "reference")
        if exact is not None and not exact.is_meta and not found.is_meta:
            assert_matches({"answer": found}, {"answer": exact})
    return answered, calls - answered


def main() -> None:
    """Prints how many calls were answered and refused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    torch.set_num_threads(1)
    answered = refused = 0
    for seed in range(given.seed, given.seed + given.cases):
        try:
            counts = check(seed, given.calls)
        except AssertionError as error:
            raise SystemExit(f"seed {seed}: {error}") from error
        answered, refused = answered + counts[0], refused + counts[1]
    print(f"{answered} answered as the reference does, {refused} refused")


if __name__ == "__main__":
    main()
