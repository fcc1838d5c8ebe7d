"""``remanence kv``: what a bounded key-value cache costs a model on a text, screen by screen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor

from remanence import report
from remanence._validate import one_of
from remanence.cli._evaluate import numbers
from remanence.cli._progress import transient_progress
from remanence.kv import SCREENS, CacheComparison, CacheScore, compare_caches
from remanence.probes import load_language_model

LONGEST_TOKEN = 40
"""Characters: a file may be far longer than what is measured, and only its beginning is read."""

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def run_kv(
    place: str,
    file: Path,
    budgets: str,
    screens: str,
    length: int,
    dtype: str | None,
    *,
    download: bool,
    as_json: bool,
    page: Path | None,
) -> None:
    """Does what ``remanence kv`` says."""
    wanted = numbers("--budget", budgets)
    named = [one_of("--screen", name, SCREENS) for name in screens.split(",")]
    if dtype is not None:
        one_of("--dtype", dtype, DTYPES)
    model, tokenizer = load_language_model(place, download=download)
    if dtype is not None:
        model.to(DTYPES[dtype])
    tokens = _tokens(model, tokenizer, file, length)
    with transient_progress() as progress:
        job = progress.add_task("full cache and screens", total=1 + len(wanted) * len(named))
        tell = lambda _: progress.advance(job)  # noqa: E731
        found = compare_caches(model, tokens, wanted, named, names=(Path(place).name, file.name), tell=tell)
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2))
    else:
        _show(found)
        page = page or Path("kv.html")
    if page is not None:
        report.Page([section_of(found)]).write(page)
        typer.echo(f"wrote {page}", err=True)


def _tokens(model: Any, tokenizer: Any, file: Path, length: int) -> Tensor:
    """The first tokens of a file, at most as many as the model has positions for."""
    most = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None) or length
    wanted = min(length, most)
    with file.open(encoding="utf-8", errors="replace") as text:
        found = tokenizer(text.read(LONGEST_TOKEN * wanted), verbose=False).input_ids
    return torch.tensor([found[:wanted]], device=model.device)


def _rows(found: CacheComparison) -> list[tuple[CacheScore, float]]:
    return [(score, score.loss - found.full.loss) for score in (found.full, *found.screened)]


def _words(found: CacheComparison) -> str:
    counted = found.tokens - found.first
    return f"{found.model} on {found.text}: {found.tokens:,} tokens, the last {counted:,} counted."


def _show(found: CacheComparison) -> None:
    table = Table(title=_words(found), box=None)
    table.add_column("screen")
    for name in ("keys held", "nats per token", "above full", "cache, MB"):
        table.add_column(name, justify="right")
    for score, extra in _rows(found):
        cells = (f"{score.budget:,}", f"{score.loss:.3f}", f"{extra:+.3f}", f"{score.cache_bytes / 1e6:.1f}")
        table.add_row(score.policy, *cells)
    Console().print(table)


def section_of(found: CacheComparison) -> report.Section:
    """The comparison as a section of a page."""
    columns = (
        report.Column("screen", numeric=False),
        report.Column("keys held"),
        report.Column("loss", "nats per token"),
        report.Column("above full", "nats per token"),
        report.Column("cache", "MB"),
    )
    rows = [_entries(score, extra) for score, extra in _rows(found)]
    blocks: Sequence[report.Block] = [
        report.Text(_words(found)),
        report.Figures(found.figures()),
        report.Table(columns, rows, "Loss and size of every cache"),
        report.Text(
            "An evicted key is lost: a screen keeps what received attention, not what will be asked for.", "note"
        ),
    ]
    least = min(found.screened, key=lambda score: score.loss)
    extra = least.loss - found.full.loss
    size = least.cache_bytes / 1e6
    full_size = found.full.cache_bytes / 1e6
    cost = f"{extra:+.3f} nats per token in {size:.1f} instead of {full_size:.1f} MB"
    headline = f"{least.policy} with {least.budget:,} keys comes closest to the full cache: {cost}"
    return report.Section("kv", f"A bounded cache: {found.model}", blocks, headline=headline)


def _entries(score: CacheScore, extra: float) -> list[report.Entry]:
    return [
        report.Entry(score.policy),
        report.Entry(f"{score.budget:,}", score.budget),
        report.Entry(f"{score.loss:.3f}", score.loss),
        report.Entry(f"{extra:+.3f}", extra),
        report.Entry(f"{score.cache_bytes / 1e6:.1f}", score.cache_bytes),
    ]
