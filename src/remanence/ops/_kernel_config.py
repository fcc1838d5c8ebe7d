"""A specification as the numbers that the kernel takes, and which specifications it can run."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch

from ._buffer import Full, Screened
from ._cells import IN_KERNEL, NONLINEARITIES
from ._half import HALF
from ._memory import MemoryRule, NoMemory
from ._reads import SoftmaxRead, ThresholdRead
from ._screens import SCREENS, UINT32
from ._spec import ScanSpec
from ._stride import Strided

MEMORY_TYPES = (NoMemory, Full, Screened, Strided)
READ_TYPES = (SoftmaxRead, ThresholdRead)
NO_MEMORY, BUFFER, STRIDE = range(3)
SCREEN_TYPES = tuple(type(screen) for screen in SCREENS.values())
SCORES = {"additive": 0, "dot": 1, "affine": 2, "tanh": 3}
OUTPUTS = ("macro", "hidden", "summary")
SAVE_NOTHING, SAVE_ALL, SAVE_LEAN = range(3)
MOST_STORED = 64
DTYPES = (torch.float32, torch.float64, *HALF)


class Config(NamedTuple):
    """A specification as the whole numbers that the kernel reads; in C++ see ``csrc/torch/tensors.h``."""

    cell: int
    nonlinearity: int
    memory: int = NO_MEMORY
    score: int = 0
    output: int = 0
    recent: int = 0
    """Size of the ring; -1 for one without a limit."""
    relevant: int = 0
    half: int = 0
    cut_reads: int = 0
    every: int = 1
    top_k: int = 0
    normalise: int = 0
    raw_underfull: int = 0
    start_zero: int = 0
    screens: int = 0
    screen: int = 0
    seed: int = 0
    """Of a screen that draws."""
    save: int = SAVE_NOTHING

    @property
    def grows(self) -> bool:
        """Whether the ring has no limit."""
        return self.memory == BUFFER and self.recent < 0

    @property
    def output_parts(self) -> int:
        """Blocks of hidden size in the output: ``[s; r]`` has two."""
        return 1 + (self.memory != NO_MEMORY and OUTPUTS[self.output] == "summary")


def unsupported(spec: ScanSpec, dtype: torch.dtype, device: torch.device) -> str | None:
    """Why the kernel cannot run a scan, or ``None`` if it can.

    Example:
        >>> unsupported(ScanSpec("rnn", combine="concat", memory=Screened(2, 2)), torch.float32, torch.device("cpu"))
        "combine='concat' is not in the fused kernel"
    """
    memory = spec.rule
    if device.type != "cpu":
        return f"the fused kernel runs on the CPU, not on {device.type!r}"
    if dtype not in DTYPES:
        return f"the fused kernel takes float32, float64, bfloat16 and float16, not {dtype}"
    if type(spec.cell) not in IN_KERNEL:
        return f"the cell {spec.cell} is not in the fused kernel"
    if type(memory) not in MEMORY_TYPES:
        return f"the memory {memory} is not in the fused kernel"
    if isinstance(memory, Screened) and type(memory.screening) not in SCREEN_TYPES:
        return f"the screen {memory.screen} is not in the fused kernel"
    if spec.has_memory and type(spec.read) not in READ_TYPES:
        return f"the read {spec.read} is not in the fused kernel"
    if spec.combine == "concat":
        return "combine='concat' is not in the fused kernel"
    if spec.has_memory and spec.output == "weights":
        return "output='weights' is not in the fused kernel"
    if isinstance(spec.read, ThresholdRead):
        return _unsupported_stride(spec.read, memory)
    return None


def _unsupported_stride(read: ThresholdRead, memory: MemoryRule) -> str | None:
    if not isinstance(memory, Strided):
        return "a threshold on the scores of a buffer is not in the fused kernel"
    if read.score == "mlp":
        return "the score 'mlp' depends on the query and is not in the fused kernel"
    if read.sparse != "forward" or memory.hops != "many":
        return "only sparse='forward' with hops='many' is in the fused kernel"
    if read.rank > MOST_STORED:
        return f"the fused kernel stores at most {MOST_STORED} states; top_k={read.top_k} needs {read.rank}"
    return None


def _config(spec: ScanSpec) -> Config:
    config = Config(
        cell=IN_KERNEL.index(type(spec.cell)),
        nonlinearity=NONLINEARITIES.index(spec.nonlinearity),
        cut_reads=int(spec.cut_reads),
    )
    memory = spec.memory
    read = spec.read
    if not isinstance(read, SoftmaxRead | ThresholdRead):
        return config
    config = config._replace(
        output=OUTPUTS.index(spec.output), score=SCORES[read.score], half=int(read.combine == "half")
    )
    if isinstance(read, ThresholdRead):
        assert isinstance(memory, Strided)
        return config._replace(
            memory=STRIDE,
            relevant=read.rank,
            every=memory.every,
            top_k=read.top_k,
            normalise=int(read.normalise),
            raw_underfull=int(read.underfull == "raw"),
            start_zero=int(memory.start == "zero"),
        )
    assert isinstance(memory, Full | Screened)
    recent = memory.recent
    if recent is None:
        recent = -1
    config = config._replace(memory=BUFFER, recent=recent, relevant=memory.relevant, screens=int(spec.screens))
    if not isinstance(memory, Screened) or not memory.relevant:
        return config
    screen = memory.screening
    seed = getattr(screen, "seed", 0) & UINT32
    return config._replace(screen=SCREEN_TYPES.index(type(screen)), seed=seed)


def encode(spec: ScanSpec, save: int) -> list[int]:
    """A specification as the numbers that the kernel reads, in the order of :class:`Config`, and what it is to save."""
    make = _kept_config
    if torch.compiler.is_compiling():  # it cannot follow a cache
        make = _config
    return [*make(spec)[:-1], save]


_kept_config = cache(_config)
