"""Run folders made by hand: what the report reads, without any training."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remanence.runs import tag

MANIFEST = {
    "remanence": "0.1.0",
    "torch": "2.13.0",
    "python": "3.11.7",
    "platform": "Linux",
    "cores": 2,
    "command": ["remanence", "train", "denoise"],
}


def learning_curve(updates: int, every: int, best: float) -> list[dict[str, Any]]:
    """Lines of a metrics file; accuracy rises evenly to its best."""
    lines = []
    for update in range(every, updates + 1, every):
        share = best * update / updates
        pace = {"seconds": update / 50, "updates_per_second": 50.0}
        lines.append({"kind": "train", "update": update, "loss": 2 - share, "accuracy": share, **pace})
        lines.append({"kind": "validation", "update": update, "loss": 2 - share, "accuracy": share, "best": True})
    return lines


def probe_table(steps: int = 12, update: int = 1000) -> dict[str, Any]:
    """What `probes.json` holds, with a relevant set of one state."""
    recent = 3
    weights = [[1.0 if t - recent < i <= t or i == 0 else 0.0 for i in range(steps)] for t in range(steps)]
    lengths = [200, 400, 800, 1600]
    growth = {"constant": 0.0, "linear": 1.0, "quadratic": 0.0, "exponent": 1.0, "order": "linear"}
    flat = {"constant": 512.0, "linear": 0.0, "quadratic": 0.0, "exponent": 0.0, "order": "constant"}
    return {
        **tag("measured_weights"),
        "update": update,
        "parameters": 12345,
        "steps": steps,
        "rows": 8,
        "chance": 0.125,
        "errors": {},
        "gradient_reach": {
            **tag("gradient_reach"),
            "distance": list(range(steps)),
            "log_norm": [-0.1 * t for t in range(steps - 1)] + [-math.inf],
            "source": "states",
            "horizon": steps - 2,
            "decay": None,
            "verdict": "dL/dh is stable",
        },
        "cost": {
            **tag("cost"),
            "lengths": lengths,
            "seconds": lengths,
            "peak_bytes": lengths,
            "state_bytes": [512] * 4,
            "operations": lengths,
            "declared_state_bytes": 512,
            "declared_operations": None,
            "growth": {"seconds": growth, "peak_bytes": growth, "state_bytes": flat, "operations": growth},
            "verdict": "time linear in T",
        },
        "attention_map": {
            **tag("attention_map"),
            "names": ["0: rnn"],
            "maps": [weights],
            "occupancy": [[1.0] * steps],
            "replacements": [0],
            "kappa": recent + 1,
            "recent": recent,
            "verdict": "1 attention(s)",
        },
    }


def write_run(
    folder: Path,
    *,
    model: str = "LSTM",
    task: str = "denoise",
    length: int = 100,
    seed: int = 0,
    best: float = 0.5,
    updates: int = 1000,
    every: int = 100,
    status: str = "done",
    probes: bool = True,
    options: dict[str, Any] | None = None,
    manifest: dict[str, Any] | None = None,
    steps: int = 12,
    aims: bool = True,
    **state: Any,
) -> Path:
    """Writes a run's folder."""
    folder.mkdir(parents=True)
    inside = ", ".join(f"{key} = {json.dumps(value)}" for key, value in (options or {}).items())
    config = f"seed = {seed}\n[task]\nname = {json.dumps(task)}\noptions = {{length = {length}}}\nbatch_size = 10\n"
    config += f"[model]\nname = {json.dumps(model)}\noptions = {{{inside}}}\n[budget]\nupdates = {updates}\n"
    config += "accuracy = 0.995\n" if aims else ""
    (folder / "config.toml").write_text(config, encoding="utf-8")
    lines = learning_curve(updates, every, best)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    told = {"status": status, "update": updates, "budget": updates, **state}
    (folder / "status.json").write_text(json.dumps(told), encoding="utf-8")
    (folder / "manifest.json").write_text(json.dumps({**MANIFEST, **(manifest or {})}), encoding="utf-8")
    if probes:
        (folder / "probes.json").write_text(json.dumps(probe_table(steps, updates)), encoding="utf-8")
    return folder


def write_comparison(folder: Path) -> Path:
    """RelRNN solves Denoise at T = 100 twice, LSTM does not; both were measured at other lengths."""
    for seed in (0, 1):
        write_run(folder / f"lstm-{seed}", model="LSTM", seed=seed, best=0.2 + seed / 100)
        write_run(folder / f"rel-{seed}", model="RelRNN", seed=seed, best=1.0)
    rows = [
        {"model": model, "run": f"runs/{name}", "measured_at": length, "sequences": 20, "accuracy": accuracy}
        for model, name, length, accuracy in (
            ("LSTM", "lstm-1", 400, 0.14),
            ("RelRNN", "rel-0", 400, 1.0),
            ("RelRNN", "rel-0", 5000, 0.995),
        )
    ]
    table = {**tag("comparison"), "command": ["remanence", "compare", "denoise"], "runs": [], "transfer": rows}
    (folder / "comparison.json").write_text(json.dumps(table), encoding="utf-8")
    return folder


def write_claims(path: Path) -> Path:
    """Two claims of two documents, with different verdicts."""
    claims = [
        {
            **tag("verdict"),
            "id": f"{paper}/1",
            "place": "Lemma 1",
            "paper": paper,
            "printed": f"statement of {paper}",
            "corrected": corrected,
            "measures": "the gap",
            "tolerance": "",
            "seconds": 1.0,
            "expected": verdict,
            "verdict": verdict,
            "numbers": {"gap": gap},
            "agrees": True,
        }
        for paper, verdict, corrected, gap in (
            ("kerg2020", "holds", "", 0.125),
            ("miller2018", "holds with correction", "with a factor 2", float("inf")),
        )
    ]
    path.write_text(json.dumps(claims), encoding="utf-8")
    return path


def write_curves(path: Path) -> Path:
    """A mutual-information curve with a fit, as `remanence mi --json` writes it."""
    lags = [1, 2, 4, 8, 16]
    curve = {
        **tag("mutual_information"),
        "file": "book.txt",
        "lags": lags,
        "values": [1 / lag for lag in lags],
        "low": [0.9 / lag for lag in lags],
        "high": [1.1 / lag for lag in lags],
        "error": [0.05 / lag for lag in lags],
        "bias": [0.0] * 5,
        "floor": [0.1] * 5,
        "pairs": [1000] * 5,
        "alphabet": 26,
        "sequences": 1,
        "estimator": "grassberger",
        "warnings": [],
        "verdict": "power law, gamma = 1",
        "fit": {
            "law": "power",
            "amplitude": 1.0,
            "slope": -1.0,
            "interval": [-1.1, -0.9],
            "points": 5,
            "scatter": 0.0,
            "aic": {"power": 0.0},
            "bic": {"power": 0.0},
            "verdict": "power law, gamma = 1",
        },
    }
    path.write_text(json.dumps([curve]), encoding="utf-8")
    return path


HOSTILE = "</script><img src=x onerror='window.hurt = 1'><b>%{x}</b> نموذج " + "W" * 200


@pytest.fixture(scope="session")
def everything(tmp_path_factory) -> Path:
    """A folder with results of every kind, and a failed run whose model has a hostile name."""
    folder = tmp_path_factory.mktemp("everything")
    write_comparison(folder / "runs")
    write_run(folder / "runs" / "bad", model=HOSTILE, best=0.1, status="failed", reason=HOSTILE)
    write_claims(folder / "verify.json")
    write_curves(folder / "mi.json")
    found = "found so much"
    probes = {
        "gradient_reach": {
            "distance": [0, 1, 2], "log_norm": [0.0, -1.0, -math.inf], "source": "states", "horizon": 1, "decay": None,
            "verdict": found,
        },
        "memory_demand": {"chance": 0.1, "memory_free": 0.2, "model": 0.9, "measured": True, "verdict": found},
        "stability": {
            "lyapunov": -0.1, "contraction": 0.5, "method": "jacobians", "epsilon": 0.1, "window_by_lemma": 9,
            "window_measured": 5, "verdict": found,
        },
        "truncation_gap": {
            "ks": [1, 2], "output": [1, 0.5], "loss": [2, 1], "full_loss": 1, "gradient": [1, 0.1], "verdict": found,
        },
        "dependency_depth": {"depth": [2, 1, 0], "weight": [1, 1, 1], "threshold": 1e-3, "kappa": 2, "verdict": found},
        "gradient_paths": {"t": 0, "k": 1, "parts": [[[1.0]], [[0.5]]], "total": [[1.5]], "verdict": found},
        "tradeoff": {"lengths": [1, 2], "points": {"LSTM": [[10, -1.0], [20, -2.0]]}, "verdict": found},
    }  # fmt: skip
    named = {name: {**tag(name), **values} for name, values in probes.items()}
    (folder / "probe.json").write_text(json.dumps(named), encoding="utf-8")
    return folder


@pytest.fixture
def make_run(tmp_path) -> Callable[..., Path]:
    """Gives ``make_run(name, **what)``, which writes a run's folder below the test's own."""
    return lambda name, **what: write_run(tmp_path / "runs" / name, **what)


@pytest.fixture
def make_comparison(tmp_path) -> Callable[[], Path]:
    """Gives ``make_comparison()``, which writes a comparison below the test's own folder."""
    return lambda: write_comparison(tmp_path / "runs")


@pytest.fixture
def claims_file(tmp_path) -> Path:
    """A file of `remanence verify --json`."""
    return write_claims(tmp_path / "verify.json")


@pytest.fixture
def curves_file(tmp_path) -> Path:
    """A file of `remanence mi --json`."""
    return write_curves(tmp_path / "mi.json")


@pytest.fixture(scope="session")
def hostile_name() -> str:
    """The name of the failed run's model in `everything`."""
    return HOSTILE
