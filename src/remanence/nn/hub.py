"""A :class:`SequenceModel` that saves itself as a folder of the Hugging Face Hub, and loads from one.

Needs ``huggingface_hub``, which ``pip install "remanence[hf]"`` brings along.
"""

from __future__ import annotations

import json
from typing import Any

from remanence._validate import message

from ._model import SequenceModel

try:
    from huggingface_hub import PyTorchModelHubMixin
except ImportError as error:
    raise ImportError("remanence.nn.hub needs huggingface_hub: pip install 'remanence[hf]'") from error

__all__ = ["HubModel"]


class HubModel(SequenceModel, PyTorchModelHubMixin, library_name="remanence", license="apache-2.0"):
    """A :class:`SequenceModel` with ``save_pretrained``, ``from_pretrained`` and ``push_to_hub``.

    A folder holds the weights (``model.safetensors``) and the arguments below (``config.json``), so the core must be
    given by name, and every option must be something that JSON can hold.

    Args:
        input_size: number of different tokens, or features of a vector.
        core: a name in :func:`list_models`.
        output_size: numbers that the head gives at every step.
        options: as in :class:`SequenceModel`.

    Example:
        >>> import tempfile
        >>> model = HubModel(10, "RelLSTM", 9, hidden_size=8, recent=3, relevant=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = model.save_pretrained(folder)
        ...     same = HubModel.from_pretrained(folder)
        Loading weights from local directory
        >>> same.core.spec.memory
        Screened(recent=3, relevant=2, screen='attention', score='additive')
    """

    def __init__(self, input_size: int, core: str, output_size: int, **options: Any) -> None:
        if not isinstance(core, str):
            hint = "SequenceModel takes a module, but a folder could not say how to build it again"
            raise TypeError(message("core", "be the name of a model", type(core).__name__, hint))
        for name, value in options.items():
            _check_json(name, value)
        super().__init__(input_size, core, output_size, **options)


def _check_json(name: str, value: object) -> None:
    try:
        json.dumps(value)
    except TypeError:
        hint = "Set it on the model after loading, such as model.double()"
        raise TypeError(message(name, "be something that JSON can hold", type(value).__name__, hint)) from None
