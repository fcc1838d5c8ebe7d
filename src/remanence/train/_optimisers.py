"""Optimisers, parameter groups, schedules."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from remanence.nn import orthogonal_parameter_groups
from remanence.runs import Values
from remanence.train._optimiser_config import OptimiserConfig, ScheduleConfig


class AveragingSGD(torch.optim.Optimizer):
    """Gradient descent along a running average of the gradients, ``v = momentum v + (1 - momentum) g``.

    The usual momentum sums instead, ``v = momentum v + g``; with ``lr`` divided by ``1 - momentum`` both make the same
    steps. An average that starts at zero is too small at first: its mean is ``1 - momentum ** t`` times the gradient's,
    which `bias_correction` divides by.

    Args:
        parameters: parameters or groups of them.
        lr: learning rate.
        momentum: share of the old average that stays.
        bias_correction: whether to divide by ``1 - momentum ** t``.
        weight_decay: L2 penalty, added to the gradient.

    Example:
        >>> weight = nn.Parameter(torch.tensor([1.0]))
        >>> optimiser = AveragingSGD([weight], lr=0.5, momentum=0.9, bias_correction=True)
        >>> weight.grad = torch.tensor([1.0])
        >>> optimiser.step()
        >>> weight.data
        tensor([0.5000])
    """

    def __init__(
        self, parameters: Any, lr: float, momentum: float, bias_correction: bool = False, weight_decay: float = 0.0
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "bias_correction": bias_correction, "weight_decay": weight_decay}
        super().__init__(parameters, defaults)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Moves every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)

    def _move(self, parameter: Tensor, gradient: Tensor, group: Values) -> None:
        if group["weight_decay"]:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float64)
            state["average"] = torch.zeros_like(parameter)
        state["step"] += 1
        state["average"].lerp_(gradient, 1 - group["momentum"])
        share = 1.0
        if group["bias_correction"]:
            share -= group["momentum"] ** float(state["step"])
        parameter.add_(state["average"], alpha=-group["lr"] / share)


def load_optimiser(optimiser: torch.optim.Optimizer, saved: Values) -> None:
    """Gives an optimiser a saved state; a state of other parameters is refused.

    Torch takes tensors of any size, and fails only later, when it makes a step with them.

    Raises:
        ValueError: If a tensor of the state is neither one number nor of the size of its parameter.

    Example:
        >>> weight = nn.Parameter(torch.ones(2))
        >>> adam = torch.optim.Adam([weight])
        >>> saved = {**adam.state_dict(), "state": {0: {"step": torch.ones(()), "exp_avg": torch.ones(3)}}}
        >>> load_optimiser(adam, saved)
        Traceback (most recent call last):
        ValueError: `exp_avg` of the optimiser must have the size of its parameter, (2,); got (3,)
    """
    optimiser.load_state_dict(saved)
    for parameter, state in optimiser.state.items():
        for name, value in state.items():
            if isinstance(value, Tensor) and value.dim() and value.shape != parameter.shape:
                expected = f"have the size of its parameter, {tuple(parameter.shape)}"
                raise ValueError(f"`{name}` of the optimiser must {expected}; got {tuple(value.shape)}")


def parameter_groups(model: nn.Module, config: OptimiserConfig) -> list[Values]:
    """Sorts parameters by how they are treated: orthogonal parts, embeddings, and all others.

    Returns:
        Groups with ``name``, ``names`` of the parameters, ``lr`` and ``weight_decay``, which is the L2 penalty.

    Example:
        >>> from remanence.nn import SequenceModel
        >>> model = SequenceModel(5, "ExpRNN", 5, encoder="embedding", embedding_size=4, hidden_size=8)
        >>> groups = parameter_groups(model, OptimiserConfig(learning_rate=0.1, embedding_l2=0.01))
        >>> [(group["name"], group["lr"], group["weight_decay"]) for group in groups]
        [('orthogonal', 0.01, 0.0), ('embedding', 0.1, 0.01), ('other', 0.1, 0.0)]
    """
    plain, orthogonal = orthogonal_parameter_groups(model, config.learning_rate, config.orthogonal_learning_rate)
    embeddings = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    embedding_l2 = config.embedding_l2
    if embedding_l2 is None:
        embedding_l2 = config.l2
    by_identity = {id(parameter): name for name, parameter in model.named_parameters()}
    sorted_out = [
        ("orthogonal", orthogonal["params"], orthogonal["lr"], config.l2),
        ("embedding", [p for p in plain["params"] if id(p) in embeddings], plain["lr"], embedding_l2),
        ("other", [p for p in plain["params"] if id(p) not in embeddings], plain["lr"], config.l2),
    ]
    return [
        {"name": name, "names": [by_identity[id(p)] for p in members], "params": members, "lr": lr, "weight_decay": l2}
        for name, members, lr, l2 in sorted_out
        if members
    ]


def make_optimiser(model: nn.Module, config: OptimiserConfig) -> torch.optim.Optimizer:
    """Makes the optimiser of a configuration; `decoupled_decay` is applied by :func:`decay_`, not by it.

    Example:
        >>> type(make_optimiser(nn.Linear(2, 2), OptimiserConfig("rmsprop"))).__name__
        'RMSprop'
    """
    groups = parameter_groups(model, config)
    lr = config.learning_rate
    if config.name == "rmsprop":
        return torch.optim.RMSprop(groups, lr=lr, alpha=config.smoothing, eps=config.epsilon)
    if config.name in ("adam", "adamw"):
        return torch.optim.Adam(groups, lr=lr, betas=config.betas, eps=config.epsilon)
    if config.momentum_form == "average":
        return AveragingSGD(groups, lr, config.momentum, config.bias_correction)
    return torch.optim.SGD(groups, lr=lr, momentum=config.momentum)


@torch.no_grad()
def decay_(optimiser: torch.optim.Optimizer, decoupled_decay: float) -> None:
    """Shrinks every parameter that has a gradient by its learning rate times `decoupled_decay`, as AdamW does.

    Example:
        >>> weight = nn.Parameter(torch.tensor([1.0]))
        >>> weight.grad = torch.zeros(1)
        >>> decay_(torch.optim.SGD([weight], lr=0.5), 0.5)
        >>> weight.data
        tensor([0.7500])
    """
    if decoupled_decay:
        for group in optimiser.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * decoupled_decay)


def rate_factor(config: ScheduleConfig, update: int, budget: int, plateau_drops: int) -> float:
    """What learning rates are multiplied by.

    Example:
        >>> [rate_factor(ScheduleConfig("inverse"), t, 10, 0) for t in range(3)]
        [1.0, 0.5, 0.3333333333333333]
        >>> rate_factor(ScheduleConfig("cosine", fraction=0.5), 10, 10, 0)
        0.5
    """
    if config.name == "inverse":
        return 1 / (1 + update / (config.period or 1))
    if config.name == "cosine":
        share = min(update / (config.period or budget), 1.0)
        return config.fraction + (1 - config.fraction) * (1 + math.cos(math.pi * share)) / 2
    if config.name == "plateau":
        return config.factor**plateau_drops
    return 1.0
