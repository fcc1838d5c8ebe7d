"""``remanence report``: results as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from remanence.cli._errors import exit_codes
from remanence.report import write_report


def run_report(paths: Sequence[Path], output: Path, *, measure: bool) -> None:
    """Does what ``remanence report`` says."""
    with exit_codes():
        try:
            page = write_report(paths, output, measure=measure, say=lambda text: typer.echo(text, err=True))
        except (OSError, ImportError) as error:
            raise ValueError(str(error)) from error
    typer.echo(str(page))
