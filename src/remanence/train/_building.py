"""From a configuration to a task and a model."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path

import torch

from remanence._validate import message, one_of
from remanence.nn import HDetach, SequenceModel, TruncatedBPTT, get_model
from remanence.runs import Values, absolute_imports, import_all
from remanence.tasks import Task, make_task
from remanence.train._config import RunConfig

_CUTS = {"truncate": TruncatedBPTT, "h_detach": HDetach}


def resolved(config: RunConfig) -> RunConfig:
    """The configuration with every size that its model needs: 128 hidden units by default.

    Example:
        >>> resolved(RunConfig()).model.options
        {'hidden_size': 128}
    """
    needed = inspect.signature(get_model(config.model.name)).parameters
    if "hidden_size" not in needed or "hidden_size" in config.model.options:
        return config
    options = {"hidden_size": 128, **config.model.options}
    return dataclasses.replace(config, model=dataclasses.replace(config.model, options=options))


def refuse_none(section: str, options: Values, kind: Callable[..., object]) -> None:
    """Refuses "none" for an option that cannot be None; TOML has no other word for it.

    Example:
        >>> refuse_none("model.options", {"hidden_size": None}, get_model("LSTM"))
        Traceback (most recent call last):
        ValueError: `model.options.hidden_size` must be given a value; got 'none', which stands for no value
    """
    parameters = inspect.signature(kind).parameters
    for name, value in options.items():
        if value is not None or name not in parameters:
            continue
        known = parameters[name]
        if known.default is not None and "None" not in str(known.annotation):
            raise ValueError(message(f"{section}.{name}", "be given a value", "'none', which stands for no value"))


def found_from_anywhere(config: RunConfig) -> RunConfig:
    """The configuration with the code that it imports named in full, so that a run works from any folder.

    Example:
        >>> found_from_anywhere(RunConfig(imports=("math",))).imports
        ('math',)
    """
    return dataclasses.replace(config, imports=absolute_imports(config.imports))


def build_task(config: RunConfig) -> Task:
    """Makes the task of a configuration, after importing what registers it.

    Example:
        >>> build_task(RunConfig()).name
        'copy'
    """
    import_all(config.imports)
    made = make_task(config.task.name, **config.task.options)
    refuse_none("task.options", config.task.options, type(made))
    return made


def build(config: RunConfig) -> tuple[Task, SequenceModel]:
    """Makes the task and the model of a configuration; a bad option is an error here, before anything is written.

    Example:
        >>> from remanence.train import ModelConfig
        >>> build(RunConfig(model=ModelConfig("LSTN")))
        Traceback (most recent call last):
        ValueError: `model` must be one of ...; got 'LSTN'. Did you mean 'LSTM'?
    """
    check_device(config.loop.device)
    task = build_task(config)
    return task, build_model(config, task)


def build_model(config: RunConfig, task: Task) -> SequenceModel:
    """Makes the model of a configuration; its weights come from torch's global generator.

    Example:
        >>> config = RunConfig()
        >>> build_model(config, build_task(config)).core.hidden_size
        128
    """
    options = dict(resolved(config).model.options)
    if isinstance(options.get("cuts"), dict):
        options["cuts"] = _cuts(options["cuts"])
    refuse_none("model.options", options, get_model(config.model.name))
    model = SequenceModel.for_task(task, config.model.name, **options)
    if config.loop.precision == "float64":
        model = model.to(torch.float64)
    return model


def _cuts(table: Values) -> TruncatedBPTT | HDetach:
    if len(table) != 1:
        raise ValueError(message("model.options.cuts", "have one key, `truncate` or `h_detach`", repr(table)))
    ((kind, value),) = table.items()
    return _CUTS[one_of("key of model.options.cuts", kind, _CUTS)](value)


def check_device(name: str) -> None:
    """Refuses a device that torch does not know or that this machine has not.

    Example:
        >>> check_device("cpu")
        >>> check_device("nonsense")
        Traceback (most recent call last):
        ValueError: `loop.device` must be one that torch knows, such as 'cpu' or 'cuda'; got 'nonsense'
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        expected = "be one that torch knows, such as 'cpu' or 'cuda'"
        raise ValueError(message("loop.device", expected, repr(name))) from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        expected = f"be one that this machine has; it has {torch.cuda.device_count()} CUDA devices"
        raise ValueError(message("loop.device", expected, repr(name), "Use 'cpu'"))
    if device.type == "meta":
        expected = "be one that computes numbers; it computes nothing"
        raise ValueError(message("loop.device", expected, repr(name), "Use 'cpu'"))
    try:
        torch.empty(0, device=device)
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        expected = "be one that this machine has; this torch has nothing for it"
        raise ValueError(message("loop.device", expected, repr(name), "Use 'cpu'")) from error


def check_precision(precision: str, device: torch.device) -> None:
    """Refuses mixed precision where the device has none."""
    if precision == "bfloat16" and not _has_bfloat16(device):
        expected = f"be one that the device has; {device} has no bfloat16 arithmetic"
        raise ValueError(message("loop.precision", expected, "'bfloat16'", "Use 'float32'"))


def _has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and "bf16" in _cpu_flags()


def _cpu_flags() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
