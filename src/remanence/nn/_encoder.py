"""What stands between a task's inputs and a core: tokens or vectors in, the core's features out."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from remanence._validate import dimension, message, one_of, optional_size

EncoderName = Literal["one-hot", "embedding", "dense"]


class Encoder(nn.Module):
    """Tokens as one-hot vectors or embeddings, or vectors as they are or through a linear map.

    Args:
        kind: ``"one-hot"``, ``"embedding"`` or ``"dense"``.
        input_size: number of different tokens, or features of a vector.
        embedding_size: features of the embedding or of the linear map.

    Example:
        >>> Encoder("one-hot", 3, None)(torch.tensor([2, 0]))
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """

    like: Tensor

    def __init__(self, kind: EncoderName, input_size: int, embedding_size: int | None) -> None:
        super().__init__()
        self.kind: EncoderName = one_of("encoder", kind, ("one-hot", "embedding", "dense"))
        self.input_size = dimension("input_size", input_size)
        if (kind == "embedding" and embedding_size is None) or (kind == "one-hot" and embedding_size is not None):
            expected = "be given with encoder='embedding', and absent with 'one-hot'"
            raise ValueError(message("embedding_size", expected, f"{embedding_size} with {kind!r}"))
        self.output_size = optional_size("embedding_size", embedding_size, input_size)
        self.embedding: nn.Module = nn.Identity()
        if kind == "embedding":
            self.embedding = nn.Embedding(input_size, self.output_size)
        elif embedding_size is not None:
            self.embedding = nn.Linear(input_size, self.output_size)
        # Without parameters a one-hot encoder would not know the dtype that it was moved to.
        self.register_buffer("like", torch.zeros(()), persistent=False)

    @property
    def learned(self) -> bool:
        """Whether there is anything to train."""
        return not isinstance(self.embedding, nn.Identity)

    def tie(self, head: nn.Linear) -> None:
        """Makes the embedding and a head's weight one parameter.

        It takes the head's initial values: with an embedding's, which are larger, the first logits would be huge.
        """
        if self.kind != "embedding":
            raise ValueError(message("tied", "be False without an embedding", f"True with encoder={self.kind!r}"))
        if head.weight.shape != (self.input_size, self.output_size):
            expected = "be False unless output_size is input_size and the core's output has embedding_size features"
            sizes = f"a head {tuple(head.weight.shape)} and an embedding {(self.input_size, self.output_size)}"
            raise ValueError(message("tied", expected, f"True with {sizes}"))
        self.embedding.weight = head.weight

    def forward(self, inputs: Tensor) -> Tensor:
        """Encodes tokens ``(...)`` int64, or vectors ``(..., input_size)``, as ``(..., output_size)``."""
        if self.kind == "dense":
            self._check_vectors(inputs)
            return self.embedding(inputs)
        self._check_tokens(inputs)
        if self.kind == "embedding":
            return self.embedding(inputs)
        return functional.one_hot(inputs, self.input_size).to(self.like.dtype)

    def _check_vectors(self, inputs: Tensor) -> None:
        if not inputs.is_floating_point():
            hint = "Tokens need encoder='one-hot' or 'embedding'"
            raise TypeError(message("inputs", "be a float tensor for encoder='dense'", str(inputs.dtype), hint))
        if not inputs.dim() or inputs.shape[-1] != self.input_size:
            expected = f"have {self.input_size} features (input_size) in its last dimension"
            raise ValueError(message("inputs", expected, str(tuple(inputs.shape))))

    def _check_tokens(self, inputs: Tensor) -> None:
        if inputs.dtype != torch.int64:
            hint = "Vectors need encoder='dense'"
            raise TypeError(message("inputs", f"be an int64 tensor for encoder={self.kind!r}", str(inputs.dtype), hint))
        # Values are read only where that costs nothing and can be done: elsewhere torch's own check has to do.
        if inputs.device.type != "cpu" or torch.compiler.is_compiling() or not inputs.numel():
            return
        low, high = inputs.aminmax()
        if low < 0 or high >= self.input_size:
            expected = f"hold tokens from 0 to {self.input_size - 1}"
            raise ValueError(message("inputs", expected, f"tokens from {int(low)} to {int(high)}"))

    def extra_repr(self) -> str:
        """Kind and sizes."""
        return f"{self.kind!r}, {self.input_size}, {self.output_size}"
