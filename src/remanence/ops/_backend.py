"""Which implementation of the scan runs, and why."""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from remanence._require import is_required
from remanence._validate import one_of

from . import fused
from ._kernel_config import unsupported
from ._library import library
from ._slow_path import warn_of_device_and_dtype
from ._spec import ScanSpec

Backend: TypeAlias = Literal["auto", "reference", "fused"]
BACKENDS = ("auto", "reference", "fused")


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
    why_not = found.problem or unsupported(spec, x.dtype, x.device)
    if why_not is None and fused.transform_active():
        why_not = "the fused kernel knows no functorch transform and no forward-mode AD"
    if why_not is None:
        return "fused"
    if backend == "fused":
        raise ValueError(f"`backend='fused'` cannot run this scan: {why_not}. Use 'auto' or 'reference'.")
    if not fused.transform_active() and unsupported(spec, torch.float32, torch.device("cpu")) is None:
        warn_of_device_and_dtype(x.dtype, x.device)
    return "reference"


def backend_report() -> dict[str, str]:
    """Which path ``backend="auto"`` takes where both can run, why, and how to change that.

    Example:
        >>> backend_report()["active"] in ("fused", "reference")
        True
    """
    found = library()
    report = {
        "active": "reference",
        "reason": found.problem or "the compiled kernel is loaded and matches its sources",
        "how_to_fix": found.remedy or "nothing to fix",
        "library": str(found.path or ""),
        "compiler": str(found.build.get("compiler", "")),
        "threads": str(torch.get_num_threads()),
    }
    if found.problem is None:
        report["active"] = "fused"
        report["instruction_set"] = torch.ops.remanence.instruction_set()
    return report
