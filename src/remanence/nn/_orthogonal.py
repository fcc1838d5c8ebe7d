"""Recurrent layers whose recurrent matrix starts, or stays, orthogonal."""

# Torch's arguments may come by position (`*shape`) or by name, which pyright cannot tell apart in a call of `super`.
# pyright: reportCallIssue=false

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, Unpack

import torch
from torch import Tensor, nn

from remanence._validate import dimension, message, one_of, optional_size
from remanence.ops import GORUCell, Memory, Nonlinearity, Weights

from ._exponential import matrix_exponential
from ._layer import RecurrentLayer
from ._options import CommonOptions, Factory, TorchArgument
from ._recurrent import RNN
from .cuts import Cuts
from .init import initial_skew

ORTHOGONAL_INITS = ("henaff", "cayley", "random")


class OrthRNN(RNN):
    """RNN whose recurrent matrix starts orthogonal and is then trained freely.

    Args:
        recurrent_init: ``"henaff"``, ``"cayley"`` or ``"random"``.

    Example:
        >>> layer = OrthRNN(3, 8)
        >>> torch.dist(layer.weight_hh_l0 @ layer.weight_hh_l0.T, torch.eye(8)) < 1e-5
        tensor(True)
    """

    document = "kerg2020"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Nonlinearity = "modrelu",
        *shape: TorchArgument,
        recurrent_init: Literal["henaff", "cayley", "random"] = "henaff",
        memory: Memory = None,
        cuts: Cuts = None,
        **options: Unpack[CommonOptions],
    ) -> None:
        one_of("recurrent_init", recurrent_init, ORTHOGONAL_INITS)
        shape = (input_size, hidden_size, num_layers, nonlinearity, *shape)
        super().__init__(*shape, recurrent_init=recurrent_init, memory=memory, cuts=cuts, **options)


class ExpRNN(RNN):
    """RNN whose recurrent matrix is ``base @ exp(skew)`` and therefore orthogonal after any number of updates.

    The matrix is computed once per call; without gradients it is kept until the parameter changes, so that a stream of
    single steps pays for it once. Train the skew part at a smaller rate: :func:`orthogonal_parameter_groups`.

    Args:
        recurrent_init: ``"henaff"``, ``"cayley"`` or ``"random"``.
        base_every: change the base (dtriv) on every ``base_every``-th call of :meth:`project_`; ``None`` never does.

    Example:
        >>> layer = ExpRNN(3, 8)
        >>> weight = layer.recurrent_weight("_l0")
        >>> torch.dist(weight @ weight.T, torch.eye(8)) < 1e-5
        tensor(True)
    """

    document = "kerg2020"
    updates: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: Nonlinearity = "modrelu",
        *shape: TorchArgument,
        recurrent_init: Literal["henaff", "cayley", "random"] = "henaff",
        base_every: int | None = None,
        memory: Memory = None,
        cuts: Cuts = None,
        **options: Unpack[CommonOptions],
    ) -> None:
        one_of("recurrent_init", recurrent_init, ORTHOGONAL_INITS)
        self.base_every = optional_size("base_every", base_every, None)
        self._kept: dict[str, tuple[tuple[int, int, int], Tensor]] = {}
        shape = (input_size, hidden_size, num_layers, nonlinearity, *shape)
        super().__init__(*shape, recurrent_init=recurrent_init, memory=memory, cuts=cuts, **options)

    def parameter_shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """As in :class:`RNN`, with ``weight_hh_skew`` in place of ``weight_hh``; its upper triangle counts."""
        shapes = super().parameter_shapes(layer)
        return {name.replace("weight_hh", "weight_hh_skew"): shape for name, shape in shapes.items()}

    def _create_parameters(self, factory: Factory) -> None:
        if self.spec.macro_size(self.hidden_size) != self.hidden_size:
            raise ValueError(message("combine", "be 'sum' or 'half': the recurrent matrix is square", "'concat'"))
        super()._create_parameters(factory)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64, device=factory["device"]))
        for _, suffix in self._suffixes():
            self.register_buffer(f"weight_hh_base{suffix}", torch.eye(self.hidden_size, **factory))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise all parameters again, the skew part so that the recurrent matrix is an orthogonal start."""
        kind = self.recurrent_init
        self.recurrent_init = None  # there is no `weight_hh` for the base class to fill
        super().reset_parameters()
        self.recurrent_init = kind
        self.updates.zero_()
        for _, suffix in self._suffixes():
            skew = self._parameter("weight_hh_skew", suffix)
            if not skew.is_meta:
                skew.copy_(initial_skew(self.hidden_size, str(kind)))
                self._parameter("weight_hh_base", suffix).copy_(torch.eye(self.hidden_size))

    def recurrent_weight(self, suffix: str) -> Tensor:
        """``base @ exp(skew)``, ``(n, n)``."""
        skew = self._parameter("weight_hh_skew", suffix)
        if torch.compiler.is_compiling() or torch.is_grad_enabled():
            return self._exponential(suffix)
        kept = self._kept.get(suffix)
        # An optimiser raises the version of what it changes in place; a parameter that was replaced has another id.
        version = (id(skew), skew._version, self._parameter("weight_hh_base", suffix)._version)
        if kept is None or kept[0] != version:
            self._kept[suffix] = kept = (version, self._exponential(suffix))
        return kept[1]

    def _exponential(self, suffix: str) -> Tensor:
        """In float64: the error of a float32 exponential grows with the angles, and every step would pass it on."""
        skew = self._parameter("weight_hh_skew", suffix)
        upper = skew.double().triu(1)
        base = self._parameter("weight_hh_base", suffix).double()
        return (base @ matrix_exponential(upper - upper.T)).to(skew.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": {}}

    @torch.no_grad()
    def project_(self) -> None:
        """Call after every optimiser step: changes the base when it is due (dtriv), else does nothing."""
        self.updates += 1
        if self.base_every is not None and int(self.updates) % self.base_every == 0:
            self.change_base_()

    @torch.no_grad()
    def change_base_(self) -> None:
        """Take the present matrix, made exactly orthogonal again, as the base, and set the skew part to zero."""
        for _, suffix in self._suffixes():
            u, _, v = torch.linalg.svd(self._exponential(suffix).double())
            self._parameter("weight_hh_base", suffix).copy_(u @ v)
            self._parameter("weight_hh_skew", suffix).zero_()


def orthogonal_parameter_groups(
    module: nn.Module, lr: float, orthogonal_lr: float | None = None
) -> list[dict[str, Any]]:
    """Parameter groups for an optimiser: the orthogonal parts (skew, angles) with a learning rate of their own.

    Args:
        module: any module that holds :class:`ExpRNN` or :class:`GORU` layers.
        lr: learning rate of everything else.
        orthogonal_lr: that of the orthogonal parts; ``None`` is ``lr / 10``, as their authors recommend.

    Example:
        >>> groups = orthogonal_parameter_groups(ExpRNN(3, 8), lr=1e-3)
        >>> optimiser = torch.optim.RMSprop(groups)
        >>> [group["lr"] for group in groups]
        [0.001, 0.0001]
    """
    special: dict[int, nn.Parameter] = {}
    for name, parameter in module.named_parameters():
        if "weight_hh_skew" in name or "rotation" in name:
            special[id(parameter)] = parameter
    plain = [parameter for parameter in module.parameters() if id(parameter) not in special]
    if orthogonal_lr is None:
        orthogonal_lr = lr / 10
    return [{"params": plain, "lr": lr}, {"params": list(special.values()), "lr": orthogonal_lr}]


class GORU(RecurrentLayer):
    """Gated orthogonal recurrent unit: a gated cell whose state is turned by a product of plane rotations.

    ``r = sigmoid(U_r x + W_r h + b_r)``, ``g`` likewise, ``c = modrelu(r (Q h) + U_c x)``, ``h' = g h + (1 - g) c``.

    Args:
        rotations: ``"fft"``, a butterfly of ``log2(n)`` layers (n a power of two), or ``"tunable"``, ``capacity``
            layers of neighbouring pairs.
        capacity: layers of the tunable style, even.

    Example:
        >>> layer = GORU(3, 8)
        >>> q = layer.rotation("_l0")
        >>> torch.dist(q @ q.T, torch.eye(8)) < 1e-5
        tensor(True)
    """

    cell = GORUCell()
    document = "kerg2020"
    fixed = ("recurrent_init",)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *shape: TorchArgument,
        rotations: Literal["fft", "tunable"] = "fft",
        capacity: int = 4,
        memory: Memory = None,
        cuts: Cuts = None,
        **options: Unpack[CommonOptions],
    ) -> None:
        self.rotations = one_of("rotations", rotations, ("fft", "tunable"))
        self.capacity = dimension("capacity", capacity)
        size = dimension("hidden_size", hidden_size)
        if rotations == "fft" and size & (size - 1):
            hint = "Use rotations='tunable'"
            raise ValueError(message("hidden_size", "be a power of two with rotations='fft'", size, hint))
        if rotations == "tunable" and (capacity % 2 or size % 2):
            expected = "be even with rotations='tunable', as must `hidden_size`"
            raise ValueError(message("capacity", expected, f"{capacity}, hidden_size {size}"))
        super().__init__(input_size, hidden_size, num_layers, *shape, memory=memory, cuts=cuts, **options)

    def parameter_shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Input matrix for both gates and the candidate, recurrent matrix and bias for the gates, angles."""
        n = self.hidden_size
        shapes = super().parameter_shapes(layer)
        shapes["weight_hh"] = (2 * n, self.spec.macro_size(n))
        shapes.pop("bias_hh", None)
        if "bias_ih" in shapes:
            shapes["bias_ih"] = (2 * n,)
        depth = {"fft": n.bit_length() - 1, "tunable": self.capacity}[self.rotations]
        return shapes | {"rotation": (depth, n // 2)}

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """As in the authors' code: small weights, reset gate open, random angles."""
        super().reset_parameters()
        for _, suffix in self._suffixes():
            for name in ("weight_ih", "weight_hh"):
                nn.init.uniform_(self._parameter(name, suffix), -0.01, 0.01)
            nn.init.uniform_(self._parameter("rotation", suffix), -math.pi, math.pi)
            nn.init.constant_(self._parameter("bias_modrelu", suffix), 0.01)
            if self.bias:
                nn.init.constant_(self._parameter("bias_ih", suffix)[: self.hidden_size], 2.0)

    def rotation(self, suffix: str) -> Tensor:
        """The orthogonal matrix Q, ``(n, n)``."""
        angles = self._parameter("rotation", suffix)
        matrix = torch.eye(self.hidden_size, dtype=angles.dtype, device=angles.device)
        for layer, (first, second) in zip(angles, self._pairs(), strict=True):
            matrix = rotate_pairs(matrix, layer, first.to(angles.device), second.to(angles.device))
        return matrix

    def _pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Which coordinates each layer of rotations turns: ``(n/2,)`` firsts and seconds."""
        index = torch.arange(self.hidden_size)
        if self.rotations == "tunable":
            for layer in range(self.capacity):
                turned = index.roll(-(layer % 2))
                yield turned[0::2], turned[1::2]
            return
        # The butterfly of a fast Fourier transform: layer b turns the pairs whose indices differ in bit b alone.
        for bit in range(self.hidden_size.bit_length() - 1):
            first = index[(index >> bit) % 2 == 0]
            yield first, first + (1 << bit)

    def weights(self, suffix: str = "_l0") -> Weights:
        """All parameters of one layer and direction; the candidate's block of ``hh`` is Q, its bias is zero."""
        weights = super().weights(suffix)
        if weights.bias_ih is None:
            return weights
        return weights._replace(bias_ih=nn.functional.pad(weights.bias_ih, (0, self.hidden_size)))

    def recurrent_weight(self, suffix: str) -> Tensor:
        """``[W_r; W_g; Q]``, ``(3n, n)``."""
        return torch.cat([self._parameter("weight_hh", suffix), self.rotation(suffix)])


def rotate_pairs(matrix: Tensor, angles: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Turn pairs of rows of ``matrix`` by ``angles``: row ``a`` becomes ``cos a - sin b``, row ``b`` ``sin a + cos b``.

    The matrix is ``(n, k)``; ``first`` and ``second`` ``(n/2,)`` are the indices of the rows ``a`` and ``b``.

    Example:
        >>> quarter = torch.tensor([math.pi / 2])
        >>> rotate_pairs(torch.eye(2), quarter, torch.tensor([0]), torch.tensor([1])).round().int().tolist()
        [[0, -1], [1, 0]]
    """
    a = matrix[first]
    b = matrix[second]
    cos = angles.cos()[:, None]
    sin = angles.sin()[:, None]
    # Put together and sorted, not written in place, which autograd would have to undo.
    turned = torch.cat([cos * a - sin * b, sin * a + cos * b])
    return turned[torch.cat([first, second]).argsort()]
