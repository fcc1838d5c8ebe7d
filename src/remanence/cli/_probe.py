"""``remanence probe``: how far back a model sees, on a run, on what a user's own code makes, or on a language model."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from remanence import probes
from remanence._validate import message, out_of_memory, positive_int
from remanence.probes import ProbeResult
from remanence.runs import Run, RunError, Values, trusting
from remanence.tasks import Batch, Task

RUN_ROWS = 8
"""Rows of the batch on which a run is probed."""
TEXT_ROWS = 8
TEXT_STEPS = 128
"""Rows and steps on which a language model is probed if no shape is given."""
LANGUAGE_MODEL = "hf:"
Results = dict[str, ProbeResult]
"""By the name of the probe."""
RANDOM_TOKENS = "random tokens have no structure that context could predict; give real ones"


@dataclass(frozen=True)
class Request:
    """What the command line asks for.

    Args:
        target: a run's folder, ``package.module:factory``, ``file.py:factory``, or ``hf:folder``.
        shape: of a random input, or ``rows,steps`` of a language model's text.
        tokens: draw random tokens below this instead of random numbers.
        text: a file that a language model reads.
        batch_first: the layout; ``None`` to ask the model.
        trust: whether code that a run's stored settings name may run.
    """

    target: str
    shape: str | None = None
    tokens: int | None = None
    text: Path | None = None
    batch_first: bool | None = None
    trust: bool = False


@dataclass(frozen=True)
class ProbedModel:
    """A model with what it is measured on."""

    model: Callable[..., object]
    batch: object
    loss: Callable[..., torch.Tensor] | None = None
    task: Task | None = None
    skip: Mapping[str, str] = field(default_factory=dict)


def run_probe(request: Request, output: Path | None = None, *, as_json: bool = False) -> None:
    """Runs the probes, prints one line for each, and writes the page.

    Example:
        >>> run_probe(Request("torch.nn:Identity", "6,1,2"))  # doctest: +ELLIPSIS
        read as T = 6 steps, B = 1 row (time first, the default where one of the two sizes is 1)
        gradient_reach: Sees the present step only. ...
    """
    with trusting(request.trust):
        subject = load_subject(request)
    try:
        results = measure(subject, request.batch_first)
    except (RuntimeError, LookupError, AttributeError, AssertionError) as error:
        if Path(request.target).is_dir() or out_of_memory(error):
            raise
        raise ValueError(_why_it_does_not_run(error)) from error  # a probe that fails later stops nothing
    if as_json:
        print(json.dumps({name: result.to_dict() for name, result in results.items()}, indent=2))
    else:
        _print_verdicts(results)
    if output is not None:
        write_page(request.target, results, output)


def _why_it_does_not_run(error: Exception) -> str:
    """What a user's model threw on its first input, and in which line of the user's code."""
    told = (str(error).splitlines() or [""])[0]
    others = (str(Path(probes.__file__).parents[1]), *map(sysconfig.get_path, ("purelib", "stdlib")))
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(others)]
    place = ""
    if own:
        place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})"
    hint = "Check --shape, and --tokens for a model that reads tokens"
    return message("target", "make a model that runs on the input", f"{type(error).__name__}: {told}{place}", hint)


def _print_verdicts(results: Results) -> None:
    console = Console(soft_wrap=True, highlight=False)
    for name, result in results.items():
        line = f"{name}: {result.verdict}"
        if name == "layout":
            line = result.verdict
        console.print(line, markup=False)


def load_subject(request: Request) -> ProbedModel:
    """The model that a target names, with an input for it."""
    if request.target.startswith(LANGUAGE_MODEL):
        return language_model(request)
    if Path(request.target).is_dir():
        return _run_subject(Path(request.target))
    return _made_subject(request)


def _made_subject(request: Request) -> ProbedModel:
    """A model of the user's code, on the inputs that come with it or on random ones."""
    made = load_model(request.target)
    if isinstance(made, WithInputs):
        if request.shape is not None or request.tokens is not None:
            got = "--shape or --tokens, and a factory that returns (model, inputs)"
            raise ValueError(message("shape", "be left out where the factory gives inputs", got))
        return ProbedModel(*made)
    if request.shape is None:
        hint = "For instance --shape 100,2,3; or let the factory return (model, inputs)"
        raise ValueError(message("shape", "be given for a factory", "nothing", hint))
    subject = ProbedModel(made, make_input(request.shape, request.tokens))
    if request.tokens is None:
        return subject
    return replace(subject, skip={"context_use": RANDOM_TOKENS})


def _run_subject(folder: Path) -> ProbedModel:
    if Run(folder).kind != "policy":
        return trained_run(folder)
    from remanence.cli._acting import policy_and_episodes

    return ProbedModel(*policy_and_episodes(folder))


def measure(subject: ProbedModel, batch_first: bool | None) -> Results:
    """All probes that fit, with a line of progress on a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        shown = progress.add_task("reading the layout")

        def tell(name: str) -> None:
            progress.update(shown, description=f"measuring {name}")

        options: Values = {"batch_first": batch_first, "skip": subject.skip, "tell": tell}
        results = probes.probe_model(subject.model, subject.batch, subject.loss, **options)
        if subject.task is not None:
            tell("memory_demand")
            results["memory_demand"] = probes.memory_demand(subject.task, subject.model)
    return results


def trained_run(folder: Path) -> ProbedModel:
    """A trained run on its task's test batch, with its task's loss.

    Example:
        >>> trained_run(Path("no such run"))
        Traceback (most recent call last):
        ...
        ValueError: ...
    """
    from remanence import train

    try:
        model, task = train.Run.open(folder).load()
    except RunError:
        raise  # says itself what is wrong with the run
    except (OSError, RuntimeError) as error:
        raise ValueError(message("target", "be the folder of a run", str(folder), str(error))) from error
    batch = task.batch(0, RUN_ROWS, split="test")
    subject = ProbedModel(model, batch, task.loss, task)
    if _predicts_next(batch):
        return subject
    return replace(subject, skip={"context_use": "the task does not predict the next token"})


def _predicts_next(batch: Batch) -> bool:
    """Whether targets are the inputs of the next step: ``(T, B)`` tokens."""
    if batch.inputs.is_floating_point() or batch.targets.shape != batch.inputs.shape:
        return False
    return torch.equal(batch.targets[:-1], batch.inputs[1:])


def language_model(request: Request) -> ProbedModel:
    """A Hugging Face model from a folder, on a text of the user or on one that it draws itself."""
    place = request.target.removeprefix(LANGUAGE_MODEL)
    model, tokenizer = probes.load_language_model(place, needs_tokenizer=request.text is not None)
    rows, steps = _text_shape(request.shape, getattr(model.config, "max_position_embeddings", None))
    if request.text is None:
        return ProbedModel(model, probes.sample_tokens(model, tokenizer, rows, steps))
    return ProbedModel(model, read_tokens(request.text, tokenizer, rows, steps))


def _text_shape(shape: str | None, context: int | None) -> tuple[int, int]:
    """Rows and steps of a language model's input, no longer than its context."""
    if shape is None:
        return TEXT_ROWS, min(TEXT_STEPS, context or TEXT_STEPS)
    sizes = _sizes(shape)
    if len(sizes) != 2:
        raise ValueError(message("shape", "be rows,steps for a language model, such as 8,128", repr(shape)))
    return sizes[0], sizes[1]


def read_tokens(path: Path, tokenizer: Any, rows: int, steps: int) -> torch.Tensor:
    """A text as tokens, cut into rows: ``(B, T)`` with as many rows as it fills, up to those asked for."""
    try:
        tokens = tokenizer(path.read_text(encoding="utf-8")).input_ids
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(message("text", "be a file of UTF-8 text", str(path), str(error))) from error
    filled = min(rows, len(tokens) // steps)
    if filled == 0:
        raise ValueError(message("text", f"have {steps} tokens at least", len(tokens), "Give a shorter --shape"))
    return torch.tensor(tokens[: filled * steps]).view(filled, steps)


class WithInputs(NamedTuple):
    """What a factory returned as ``(model, inputs)``."""

    model: Callable[..., object]
    inputs: object


def load_model(target: str) -> Callable[..., object] | WithInputs:
    """What ``package.module:factory`` or ``file.py:factory`` makes without arguments, or the module itself.

    A factory may also return a pair, the model and the inputs that it is probed on.

    Example:
        >>> load_model("torch.nn:Identity")
        Identity()
    """
    place, _, name = target.rpartition(":")
    if not place or not name:
        expected = "have the form package.module:factory, file.py:factory or hf:folder, or be a run's folder"
        raise ValueError(message("target", expected, repr(target)))
    try:
        made: Any = getattr(_import(place), name)
    except (ImportError, AttributeError, OSError) as error:
        raise ValueError(message("target", "name something that can be imported", repr(target), str(error))) from error
    if not callable(made):
        raise ValueError(message("target", "name a factory or a module", type(made).__name__))
    if isinstance(made, torch.nn.Module):
        return made
    try:
        found = made()
    except TypeError as error:
        raise ValueError(message("target", "be callable without arguments", repr(target), str(error))) from error
    if callable(found):
        return found
    if isinstance(found, tuple) and len(found) == 2 and callable(found[0]):
        return WithInputs(found[0], found[1])
    raise ValueError(message("target", "make a callable, or (model, inputs)", type(found).__name__))


def _import(place: str) -> Any:
    """A module by its name, or from its file; modules in its folder, and in the current one, can be imported too."""
    path = Path(place)
    folder = ""
    if path.suffix == ".py":
        folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if path.suffix != ".py":
        return importlib.import_module(place)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{place} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_input(shape: str, tokens: int | None) -> torch.Tensor:
    """A random input of a shape such as ``100,2,3``; int64 tokens below ``tokens`` if that is given.

    Example:
        >>> make_input("5,2", tokens=7).dtype
        torch.int64
    """
    sizes = _sizes(shape)
    generator = torch.Generator().manual_seed(0)
    if tokens is not None:
        return torch.randint(positive_int("tokens", tokens), sizes, generator=generator)
    return torch.randn(sizes, generator=generator)


def _sizes(shape: str) -> list[int]:
    try:
        return [positive_int("shape", int(size)) for size in shape.split(",")]
    except ValueError as error:
        raise ValueError(message("shape", "be sizes with commas, such as 100,2,3", repr(shape))) from error


def write_page(target: str, results: Results, output: Path) -> None:
    """The report's page about the results; needs plotly."""
    from remanence.report import Page, ProbeFinding, probes_section

    found = [ProbeFinding(target, name, result) for name, result in results.items()]
    Page([probes_section(found)]).write(output)
