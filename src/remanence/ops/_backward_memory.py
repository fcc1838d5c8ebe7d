"""How much a scan keeps for its backward pass: less memory for some time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from operator import itemgetter

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from remanence._validate import positive_int

from ._log import Log
from ._spec import ScanSpec
from ._state import State
from ._weights import Weights
from .states import map_tensors


@dataclass(frozen=True)
class Saving:
    """What scans save: ``lean`` leaves gates and queries out, ``segment`` keeps only states at every so many steps."""

    lean: bool = False
    segment: int | None = None


_NOTHING = Saving()
# Of this thread. Autograd's own threads, in which a segment is run again, see nothing of it: hence the list.
_here: ContextVar[Saving | None] = ContextVar("what scans save", default=None)
_open: list[Saving] = []
"""The choices of all blocks that threads are in, the latest last."""


def present() -> Saving:
    """The choice that holds now, in this thread.

    What ``torch.utils.checkpoint`` runs again in a backward pass may run in a thread of autograd's own, which is in no
    block: there the latest block that anybody is in decides, as it did in the forward pass.
    """
    if torch.compiler.is_compiling():  # it cannot read context variables
        return [_NOTHING, *_open][-1]
    chosen = _here.get()
    if chosen is None and _open and _in_thread_of_autograd():
        chosen = _open[-1]
    return chosen or _NOTHING


def _in_thread_of_autograd() -> bool:
    """Whether a backward pass runs here, in a thread that Python did not start."""
    foreign = isinstance(threading.current_thread(), threading._DummyThread)
    return foreign and torch._C._current_graph_task_id() >= 0


@contextmanager
def saving(*, lean: bool = False, segment: int | None = None) -> Iterator[None]:
    """Let the scans inside save less for the backward pass; outputs and gradients stay the same.

    The choice is made when the forward pass runs, for the scans of this thread. Inside ``torch.utils.checkpoint`` the
    backward pass must be inside the block too.

    Args:
        lean: the fused kernel saves neither gates nor queries nor the keys of a bounded memory and computes them again:
            less than half the memory for some 20 % more time. The reference ignores it.
        segment: keep the state at every ``segment``-th step only and run each segment forward again in the backward
            pass. For sequences of very many steps: memory grows with ``T / segment`` and ``segment``, time by a third.
            Scans over rows of unequal length are not cut into segments.

    Example:
        >>> import torch, remanence
        >>> layer = remanence.nn.RelLSTM(3, 4, recent=2, relevant=1)
        >>> with remanence.ops.saving(lean=True, segment=50):
        ...     output, _ = layer(torch.randn(200, 2, 3))
        >>> output.sum().backward()
    """
    if segment is not None:
        positive_int("segment", segment)
    chosen = Saving(lean, segment)
    token = _here.set(chosen)
    _open.append(chosen)
    try:
        yield
    finally:
        _open.remove(chosen)
        _here.reset(token)


def scan_in_segments(
    run: Callable[..., tuple[Tensor, State, Log]],
    segment: int,
    x: Tensor,
    weights: Weights,
    state: State,
    spec: ScanSpec,
    by_time: dict[str, Tensor | None],
    forced_log: Log | None,
) -> tuple[Tensor, State, Log]:
    """Runs a scan by segments of so many steps; each one is run again in the backward pass.

    ``by_time`` holds the options of the scan that are ``(T, ...)``, or ``None``; other arguments as in ``scan``.
    """
    outputs: list[Tensor] = []
    logs: list[Log] = []
    for start in range(0, len(x), segment):
        here = slice(start, start + segment)
        options, log = map_tensors(itemgetter(here), (by_time, forced_log))
        part = partial(run, spec=spec, forced_log=log, **options)
        # A scan draws nothing, since random cuts come as masks: no random state need be put back.
        output, state, made = checkpoint(part, x[here], weights, state, use_reentrant=False, preserve_rng_state=False)
        outputs.append(output)
        logs.append(made)
    slots, displaced = zip(*logs, strict=True)
    return torch.cat(outputs), state, Log(torch.cat(slots), torch.cat(displaced))
