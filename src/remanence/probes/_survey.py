"""All probes that fit a model, in one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import ClassVar

import torch

from remanence._wording import number_of
from remanence.figures import Figure
from remanence.ops import ScanSpec

from ._attention import AttentionMap, attention_map
from ._context import NoTokensError, context_use
from ._cost import cost, timed, training_step
from ._depth import dependency_depth
from ._observe import modules
from ._perturbation import perturbation_reach
from ._reach import Loss, NoGradientError, gradient_reach
from ._result import ProbeResult
from ._stability import stability
from ._subject import Model, Subject, subject_of
from ._truncation import truncation_gap

LENGTHS = (256, 512, 1024)
"""Steps that the cost is measured up to, as long as a model is quick."""
LONG_ENOUGH = 0.005
"""Seconds of a forward and a backward pass that a clock measures well."""
NO_GRADIENT = "does not apply: nothing of the output has a gradient (perturbation_reach needs none)"
PROBES = (
    "gradient_reach",
    "perturbation_reach",
    "context_use",
    "attention_map",
    "dependency_depth",
    "stability",
    "truncation_gap",
    "cost",
)
"""In the order in which one reads them."""


@dataclasses.dataclass(frozen=True)
class NotMeasured(ProbeResult):
    """A probe that does not apply to a model, or failed on it.

    Example:
        >>> NotMeasured("context_use", "does not apply: inputs are numbers").verdict
        'does not apply: inputs are numbers'
    """

    kind: ClassVar[str] = "not_measured"

    probe: str
    reason: str

    @property
    def verdict(self) -> str:
        """Why there is no result."""
        return self.reason

    def figures(self) -> list[Figure]:
        """None: there is nothing to draw."""
        return []


def probe_model(
    model: Model,
    batch: object,
    loss: Loss | None = None,
    *,
    batch_first: bool | None = None,
    training: bool = False,
    skip: Mapping[str, str] | None = None,
    tell: Callable[[str], None] = lambda name: None,
) -> dict[str, ProbeResult]:
    """Runs all probes that fit a model; one that fails does not stop the others.

    Args:
        model: any callable on sequences.
        batch: a typical input: a tensor ``(T, B, ...)``, a dictionary of tensors, a tuple that starts with either, or
            anything with ``inputs``. A model that needs several arguments gets them from the tuple.
        loss: of :func:`gradient_reach`; ``None`` takes the sum of the last step's outputs.
        batch_first: whether time is the second dimension; ``None`` asks the model, or measures it.
        training: whether to keep training mode, with its dropout; by default the model is probed in evaluation mode.
        skip: probes to leave out, each with the reason to show.
        tell: called with the name of each probe before it runs.

    Returns:
        By name: first ``"layout"``, how the batch was read; then the results. A probe that does not apply or failed has
        a :class:`NotMeasured`, whose verdict says why.

    Raises:
        ValueError: If the layout cannot be told.

    Example:
        >>> found = probe_model(torch.nn.LSTM(3, 4), torch.randn(20, 2, 3))
        >>> found["layout"].verdict
        "read as T = 20 steps, B = 2 rows (as the model's layers say)"
        >>> found["context_use"].verdict
        'does not apply: inputs are numbers, not tokens'
    """
    subject = subject_of(model, batch, batch_first=batch_first, training=training)
    survey = _Survey(subject, loss)
    for name, probe in survey.probes.items():
        tell(name)
        reason = (skip or {}).get(name) or survey.refusal(name)
        if reason:
            survey.results[name] = NotMeasured(name, f"does not apply: {reason}")
        else:
            survey.results[name] = _measured(name, probe)
    return survey.results


class _Survey:
    """One model and what was found on it so far."""

    def __init__(self, subject: Subject, loss: Loss | None) -> None:
        self.subject = subject
        self.loss = loss
        self.results: dict[str, ProbeResult] = {"layout": subject.layout}

    @property
    def probes(self) -> dict[str, Callable[[], ProbeResult]]:
        """What measures each of :data:`PROBES`, in their order."""
        subject = self.subject
        model = subject.model
        calls = (
            lambda: gradient_reach(model, subject, self.loss),
            lambda: perturbation_reach(model, subject),
            lambda: context_use(model, subject),
            lambda: attention_map(model, subject),
            # Of one row: a mean over rows has ways that lead through several of them.
            lambda: dependency_depth(attention_map(model, subject.last_row())),
            lambda: stability(model, subject),
            lambda: truncation_gap(model, subject, _windows(subject)),
            lambda: cost(model, _cost_lengths(subject), subject),
        )
        return dict(zip(PROBES, calls, strict=True))

    def refusal(self, name: str) -> str:
        """Why a probe does not apply; empty if it does."""
        if name == "context_use" and not self.subject.is_tokens:
            return "inputs are numbers, not tokens"
        if name in ("context_use", "truncation_gap", "cost") and not self.subject.layout.any_length:
            return f"the model runs on {number_of(self.subject.layout.steps, 'step')} only"
        if name == "dependency_depth":
            return self._no_depth()
        return ""

    def _no_depth(self) -> str:
        maps = getattr(self.results["attention_map"], "maps", ())
        if not maps:
            return "no attention was found"
        if any(isinstance(getattr(part, "spec", None), ScanSpec) for part in modules(self.subject.model)):
            return ""
        return "the attention found is not that of a recurrent layer"


def _measured(name: str, probe: Callable[[], ProbeResult]) -> ProbeResult:
    """The result of a probe, or what went wrong."""
    try:
        result = probe()
    except NoGradientError:
        return NotMeasured(name, NO_GRADIENT)
    except NoTokensError as error:
        return NotMeasured(name, f"does not apply: {error}")
    except Exception as error:  # whatever a foreign model throws, the other probes go on
        first = (str(error).splitlines() or [""])[0]
        return NotMeasured(name, f"failed: {type(error).__name__}: {first}")
    if isinstance(result, AttentionMap) and not result.maps:
        return NotMeasured(name, "does not apply: no attention was found")
    return result


def _windows(subject: Subject) -> list[int]:
    """Parts of the run, from a sixteenth on, that the model runs on."""
    windows = sorted({max(1, subject.layout.steps // part) for part in (16, 8, 4, 2, 1)})
    with subject.untouched(), torch.no_grad():
        return [k for k in windows if subject.runs_on(k)]


def _cost_lengths(subject: Subject) -> list[int]:
    """Three lengths, up to one at which a step takes long enough for a clock, if the model bears it.

    On a few steps the buffers of a layer's weights, and the calls themselves, outweigh what grows with T.
    """
    longest = subject.layout.steps
    for length in LENGTHS:
        if length > longest:
            seconds = _seconds(subject, longest)
            if seconds is None or seconds > LONG_ENOUGH or _seconds(subject, length) is None:
                break
            longest = length
    lengths = sorted({max(1, longest // 4), max(2, longest // 2), max(3, longest)})
    enough = [length for length in lengths if _seconds(subject, length) is not None]
    if len(enough) < 2:
        return lengths  # the error of the model itself says more
    return enough


def _seconds(subject: Subject, length: int) -> float | None:
    """Of a forward and a backward pass on so many steps; ``None`` if the model does not run on them."""
    try:
        with subject.untouched(), torch.enable_grad():
            return timed(training_step(subject, subject.at_length(length).inputs), subject.inputs.device)
    except Exception:  # whatever a foreign model throws: it does not run on so many steps
        return None
