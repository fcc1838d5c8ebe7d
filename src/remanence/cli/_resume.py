"""``remanence resume``: a run goes on, of a model that learns a task or of a policy that plays."""

from __future__ import annotations

from pathlib import Path

from remanence import runs
from remanence.cli._errors import exit_codes
from remanence.cli._progress import watch
from remanence.cli._train import finish
from remanence.runs import remember_code, require_trust, settings_table, trusting
from remanence.train import Processes, Run, joined_processes, resume, with_settings


def resume_run(folder: Path, settings: list[str], *, trust: bool, quiet: bool, as_json: bool) -> None:
    """Does what ``remanence resume`` says."""
    with exit_codes(), trusting(trust):
        if runs.Run.open(folder).kind == "policy":
            from remanence.cli._policies import continue_policy

            continue_policy(folder, settings, quiet=quiet, as_json=as_json)
            return
        run = Run.open(folder)
        config = with_settings(run.config, settings) if settings else None
        if config is not None and "imports" in settings_table(settings):
            remember_code(config.imports)
        require_trust(run.config.imports if config is None else config.imports)
        with (
            joined_processes(run.config.loop.device),
            watch(folder, quiet or as_json or not Processes().writes) as observer,
        ):
            outcome = resume(folder, observer, config)
            speaks = Processes().writes
        finish(outcome, as_json, speaks)
