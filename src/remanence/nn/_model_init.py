"""Initial weights of a whole model, as the code of Kerg et al. draws them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from remanence._validate import message, one_of

from ._layer import RecurrentLayer

ModelInit: TypeAlias = Literal["torch", "xavier", "kaiming"]
MODEL_INITS = ("torch", "xavier", "kaiming")


def check_model_init(init: str, core: nn.Module) -> ModelInit:
    """The name of an initialisation that a core can have; refused if it has no layer of this package to fill."""
    one_of("init", init, MODEL_INITS)
    ours = any(isinstance(layer, RecurrentLayer) for layer in core.modules())
    if init != "torch" and not ours:
        core_name = type(core).__name__
        raise ValueError(
            message("init", f"be 'torch' for {core_name}, which is not a recurrent layer of this package", init)
        )
    return init  # pyright: ignore[reportReturnType]


@torch.no_grad()
def fill_model_(core: nn.Module, head: nn.Linear, init: ModelInit) -> None:
    """Draw a model's weights: ``"torch"`` leaves what its layers drew themselves.

    What reads the input is Xavier or Kaiming normal, as ``init`` says; the head is always Xavier.

    Example:
        >>> from remanence.nn import LSTM
        >>> core, head = LSTM(10, 64), nn.Linear(64, 9)
        >>> fill_model_(core, head, "xavier")
        >>> bool(core.weight_hh_l0.std() > 0.1)  # sqrt(2 / (64 + 74)); torch's uniform has 0.07
        True
    """
    if init == "torch":
        return
    for layer in core.modules():
        if isinstance(layer, RecurrentLayer):
            _fill_layer_(layer, init)
    nn.init.xavier_normal_(head.weight)


def _fill_layer_(layer: RecurrentLayer, init: ModelInit) -> None:
    for index in range(layer.num_layers * layer.directions):
        suffix = layer.suffix(index)
        own = {name.removesuffix(suffix): value for name, value in layer.named_parameters() if name.endswith(suffix)}
        columns = _fill_matrices_(layer, own, init)
        for name in own.keys() & {"bias_ih", "bias_hh"}:
            nn.init.uniform_(own[name], -1 / math.sqrt(columns), 1 / math.sqrt(columns))
        if "weight_score" in own:
            nn.init.xavier_normal_(own["weight_score"][None])


def _fill_matrices_(layer: RecurrentLayer, own: Mapping[str, Tensor], init: ModelInit) -> int:
    """Fills what reads the input, and returns how many numbers each unit reads there.

    The authors' gates are linear maps of input and state together, their RNN has a map for each of them.
    """
    inputs = own["weight_ih"]
    n = layer.hidden_size
    joint = len(layer.spec.cell.gates) > 1 and layer.recurrent_init is None and "weight_hh" in own
    fill = {"xavier": nn.init.xavier_normal_, "kaiming": nn.init.kaiming_normal_}[init]
    if not joint:
        for block in inputs.split(n):
            fill(block)
        return inputs.shape[1]
    for reads_input, reads_state in zip(inputs.split(n), own["weight_hh"].split(n), strict=True):
        both = fill(torch.cat([reads_input, reads_state], 1))
        reads_input.copy_(both[:, : reads_input.shape[1]])
        reads_state.copy_(both[:, reads_input.shape[1] :])
    return inputs.shape[1] + own["weight_hh"].shape[1]
