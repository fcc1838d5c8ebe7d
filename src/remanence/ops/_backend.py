"""Which implementation of the scan runs, and why."""

from __future__ import annotations

from typing import Literal, TypeAlias

from torch import Tensor

from remanence._validate import one_of

from . import reference
from ._types import Log, ScanSpec, State, Weights

Backend: TypeAlias = Literal["auto", "reference", "fused"]
BACKENDS = ("auto", "reference", "fused")


def scan(
    x: Tensor,
    weights: Weights,
    state: State | None = None,
    *,
    spec: ScanSpec,
    reset: Tensor | None = None,
    lengths: Tensor | None = None,
    cut_h: Tensor | None = None,
    cut_c: Tensor | None = None,
    h_offset: Tensor | None = None,
    forced_log: Log | None = None,
    backend: Backend = "auto",
) -> tuple[Tensor, State, Log]:
    """One layer, one direction, over all steps: the one path under every recurrent layer.

    Args:
        x: ``(T, B, input_size)``.
        weights: parameters of the layer.
        state: fields ``(B, ...)``; ``None`` starts empty.
        spec: what kind of layer this is.
        reset: ``(T, B)`` bool: the row starts afresh before this step.
        lengths: ``(B,)`` int64, at least 1: steps of each row; later outputs are 0 and leave the state alone.
        cut_h: ``(T, B)`` bool: no gradient through ``s`` (cell input, query and leak) into the step before.
        cut_c: ``(T, B)`` bool: no gradient through ``c`` into the step before.
        h_offset: ``(T, B, n)`` added to ``h``; its gradient is dL/dh.
        forced_log: take these choices of who enters the memory instead of making them.
        backend: ``"reference"``, ``"fused"`` or ``"auto"``.

    Returns:
        Output ``(T, B, output_size)``, the final state and the log of who entered the memory.

    Example:
        >>> import torch
        >>> weights = Weights(ih=torch.randn(4, 3), hh=torch.randn(4, 4))
        >>> output, state, log = scan(torch.randn(6, 2, 3), weights, spec=ScanSpec("rnn"))
        >>> output.shape, torch.equal(output[-1], state.s)
        (torch.Size([6, 2, 4]), True)
    """
    choose_backend(backend)
    return reference.scan(
        x,
        weights,
        state,
        spec=spec,
        reset=reset,
        lengths=lengths,
        cut_h=cut_h,
        cut_c=cut_c,
        h_offset=h_offset,
        forced_log=forced_log,
    )


def choose_backend(backend: Backend) -> str:
    """The implementation that a request comes down to.

    Raises:
        RuntimeError: if the fused kernel is asked for by name and is not there.
    """
    one_of("backend", backend, BACKENDS)
    if backend == "fused":
        report = backend_report()
        raise RuntimeError(f"`backend='fused'` is not available: {report['reason']}. {report['how_to_fix']}")
    return "reference"


def backend_report() -> dict[str, str]:
    """Which path ``backend="auto"`` takes, why, and how to change that.

    Example:
        >>> backend_report()["active"]
        'reference'
    """
    return {
        "active": "reference",
        "reason": "this version has no fused kernel",
        "how_to_fix": "Use backend='auto' or backend='reference'.",
    }
