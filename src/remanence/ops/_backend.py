"""Which implementation of the scan runs, and why."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from remanence._require import is_required
from remanence._validate import one_of

from . import fused, reference
from ._around import wrappers
from ._library import library
from ._saving import present, scan_in_segments
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
    run = _scan
    for wrapper in wrappers():
        run = partial(wrapper, run)
    return run(
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
        backend=backend,
    )


def _scan(
    x: Tensor,
    weights: Weights,
    state: State | None = None,
    *,
    spec: ScanSpec,
    lengths: Tensor | None = None,
    forced_log: Log | None = None,
    backend: Backend = "auto",
    **by_time: Any,
) -> tuple[Tensor, State, Log]:
    """The scan itself, on the backend that was asked for."""
    kept = present()
    run = reference.scan
    if choose_backend(backend, spec, x) == "fused":
        run = partial(fused.scan, lean=kept.lean)
    segment = kept.segment
    if segment is not None and lengths is None and torch.is_grad_enabled() and len(x) > segment:
        start = reference.initial_state(spec, weights, x.shape[1]) if state is None else state
        return scan_in_segments(run, segment, x, weights, start, spec, by_time, forced_log)
    return run(x, weights, state, spec=spec, lengths=lengths, forced_log=forced_log, **by_time)


def choose_backend(backend: Backend, spec: ScanSpec, x: Tensor) -> str:
    """The implementation that a request comes down to: ``"fused"`` or ``"reference"``.

    Raises:
        RuntimeError: if the kernel is not there but asked for by name or required, or if it is out of date.
        ValueError: if the kernel is asked for by name and cannot run this scan.

    Example:
        >>> choose_backend("reference", ScanSpec("rnn"), torch.zeros(1, 1, 1))
        'reference'
    """
    one_of("backend", backend, BACKENDS)
    if backend == "reference":
        return "reference"
    found = library()
    if found.problem is not None and (backend == "fused" or found.stale or is_required("kernel")):
        raise RuntimeError(f"the fused kernel is not available: {found.problem}. {found.remedy}")
    why_not = found.problem or fused.unsupported(spec, x.dtype, x.device)
    if why_not is None and fused.transform_active():
        why_not = "the fused kernel knows no functorch transform and no forward-mode AD"
    if why_not is None:
        return "fused"
    if backend == "fused":
        raise ValueError(f"`backend='fused'` cannot run this scan: {why_not}. Use 'auto' or 'reference'.")
    return "reference"


def backend_report() -> dict[str, str]:
    """Which path ``backend="auto"`` takes where both can run, why, and how to change that.

    Example:
        >>> backend_report()["active"] in ("fused", "reference")
        True
    """
    found = library()
    report = {
        "active": "fused" if found.problem is None else "reference",
        "reason": found.problem or "the compiled kernel is loaded and matches its sources",
        "how_to_fix": found.remedy or "nothing to fix",
        "library": "" if found.path is None else str(found.path),
        "compiler": str(found.build.get("compiler", "")),
        "threads": str(torch.get_num_threads()),
    }
    if found.problem is None:
        report["instruction_set"] = torch.ops.remanence.instruction_set()
    return report
