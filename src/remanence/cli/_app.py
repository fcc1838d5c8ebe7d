"""The commands and their options. Each imports what it runs when it runs, so that ``--help`` does not load torch."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import remanence
from remanence.cli._experiments import reproduce
from remanence.cli._help import use_plain_help
from remanence.cli._rl import rl
from remanence.cli._training import Trust, add_training_commands

app = typer.Typer(
    name="remanence",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # locals are tensors: pages of numbers around one line of message
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"remanence {remanence.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train sequence models with a bounded long memory, and measure how far back any model sees."""


@app.command()
def models(json: Json = False) -> None:
    """List the layers, their parts, and the paper that each comes from."""
    from remanence.cli._listing import show_models

    show_models(as_json=json)


@app.command()
def doctor(json: Json = False) -> None:
    """Show versions, the active backend and why, threads, and data sets."""
    from remanence.cli._doctor import show_report

    show_report(as_json=json)


@app.command()
def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Tiny models and few updates, to check that it runs.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed for weights and data.")] = 0,
    folder: Annotated[Path | None, typer.Option(help="Folder for the runs (default: runs/demo).")] = None,
) -> None:
    """Train cells with and without a memory on the same recall task and compare them."""
    from remanence.cli._demo import run_demo

    run_demo(quick=quick, seed=seed, folder=folder)


@app.command()
def verify(
    paper: Annotated[
        str | None,
        typer.Option("--paper", "--document", help="Only this paper: kerg2020, ke2017, miller2018, shen2019 or notes."),
    ] = None,
    only: Annotated[str | None, typer.Option(help="Only the claim with this id.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller instances; under a minute.")] = False,
    page: Annotated[Path | None, typer.Option(help="Also write the results to this Markdown file.")] = None,
    json: Json = False,
) -> None:
    """Measure the claims of the papers. The exit code is 1 if a verdict is not the expected one."""
    from remanence.cli._errors import exit_codes
    from remanence.cli._verify import run_verify

    with exit_codes():
        as_expected = run_verify(paper, only, quick, json, page)
    if not as_expected:
        raise typer.Exit(1)


@app.command()
def mi(
    files: Annotated[
        list[str] | None, typer.Argument(help="Files, - for standard input, or run folders.", metavar="FILE")
    ] = None,
    hf: Annotated[
        list[str] | None, typer.Option(help="A Hugging Face causal language model: folder, .gguf file or name.")
    ] = None,
    download: Annotated[bool, typer.Option("--download", help="Let --hf download models.")] = False,
    kind: Annotated[str, typer.Option(help="Kind of symbols: auto, bytes, characters, words, dna or npy.")] = "auto",
    longest: Annotated[int | None, typer.Option(help="Largest lag (default: a tenth of the longest sequence).")] = None,
    count: Annotated[int, typer.Option(help="Number of lags, logarithmically spaced.")] = 40,
    estimator: Annotated[
        str, typer.Option(help="grassberger, grassberger-g, plug-in or miller-madow.")
    ] = "grassberger",
    threshold: Annotated[
        float | None, typer.Option(help="Fit only estimates above this (default: the noise floor).")
    ] = None,
    rows: Annotated[int | None, typer.Option(min=1, help="Number of sequences to sample from a model.")] = None,
    length: Annotated[int | None, typer.Option(min=2, help="Length of each sampled sequence.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed for sampling.")] = 0,
    output: Annotated[Path | None, typer.Option(help="Plot the curves in this HTML file (needs plotly).")] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Measure how mutual information falls with distance, in files or in samples of a model, and fit its law."""
    from remanence.cli._errors import exit_codes
    from remanence.cli._information import CurveOptions, Sampling, run_information
    from remanence.runs import trusting

    with exit_codes(), trusting(trust):
        asked = CurveOptions(kind, longest, count, estimator, threshold)
        sampling = Sampling(rows, length, seed)
        run_information(files or [], hf or [], asked, sampling, download=download, as_json=json, output=output)


@app.command()
def probe(
    target: Annotated[
        str,
        typer.Argument(
            help="A run's folder, model.py:factory, package.module:factory, or hf:FOLDER (Hugging Face). A factory "
            "returns a model, or (model, inputs).",
            metavar="TARGET",
        ),
    ],
    shape: Annotated[
        str | None,
        typer.Option(help="Shape of a random input, such as 100,2,3 for (T, B, features); rows,steps with hf:."),
    ] = None,
    tokens: Annotated[int | None, typer.Option(help="Draw random tokens below this instead of random numbers.")] = None,
    text: Annotated[
        Path | None, typer.Option(help="With hf:, a UTF-8 text to read (default: text that the model generates).")
    ] = None,
    batch_first: Annotated[
        bool | None,
        typer.Option(
            "--batch-first/--time-first", help="Layout of the input (default: as the model declares, or measured)."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write the results to this HTML page (needs plotly).")] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Measure how far back a model sees and what it costs."""
    from remanence.cli._errors import exit_codes
    from remanence.cli._probe import Request, run_probe

    with exit_codes():
        run_probe(Request(target, shape, tokens, text, batch_first, trust), output, as_json=json)


@app.command()
def kv(
    model: Annotated[str, typer.Argument(help="A Hugging Face decoder: folder, .gguf file or name.", metavar="MODEL")],
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Text to read.", metavar="FILE")],
    budget: Annotated[str, typer.Option(help="Keys kept per layer and head.")] = "128,256,512,1024",
    screen: Annotated[
        str,
        typer.Option(
            help="Eviction policies to compare (default: window, h2o, tova, attention, value, mean).",
            show_default=False,  # with it, a terminal of 80 columns cuts the list
        ),
    ] = "window,h2o,tova,attention,value,mean",
    tokens: Annotated[int, typer.Option(min=2, help="Tokens of the text, at most the model's positions.")] = 8000,
    dtype: Annotated[str | None, typer.Option(help="float32 or bfloat16 (default: as the model is stored).")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch a model that is not on this machine.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page to write (default: kv.html; none with --json).")
    ] = None,
    json: Json = False,
) -> None:
    """Compare a decoder's loss on a text with bounded key-value caches and with the full one."""
    from remanence.cli._errors import exit_codes

    with exit_codes():
        from remanence.cli._kv import run_kv  # inside: without transformers it is an error that a user can mend

        run_kv(model, file, budget, screen, tokens, dtype, download=download, as_json=json, page=output)


@app.command()
def report(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Run folders, comparisons, or JSON files of probe, mi or verify.", metavar="PATH"),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    probes: Annotated[bool, typer.Option(help="Probe the trained models that have not been probed.")] = True,
) -> None:
    """Write results as one self-contained HTML page."""
    from remanence.cli._errors import exit_codes, say
    from remanence.report import write_report

    with exit_codes():
        page = write_report(paths, output, measure=probes, say=say)
    typer.echo(str(page))


add_training_commands(app)
app.command()(reproduce)
use_plain_help(app, rl)
app.add_typer(rl, name="rl")


def main() -> None:
    """Runs the command line; the entry point of the installed command.

    Example:
        >>> import sys
        >>> sys.argv = ["remanence", "--version"]
        >>> try:
        ...     main()
        ... except SystemExit as stop:
        ...     print("exit code", stop.code)
        remanence 0.1.0
        exit code 0
    """
    try:
        app()
    except OSError as error:  # such as an output that is full
        from remanence.cli._errors import BAD_INPUT, say

        say(f"error: {error}")
        with open(os.devnull, "w") as nowhere:  # for what Python still holds back: it would fail once more at the end
            os.dup2(nowhere.fileno(), 1)
        sys.exit(BAD_INPUT)
