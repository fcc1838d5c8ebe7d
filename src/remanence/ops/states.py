"""States are trees of tensors: what can be done to any of them, whatever layer it comes from.

A state is a NamedTuple whose fields are ``(depth, B, ...)``, or a nesting of tuples, lists and dictionaries of tensors.
The functions here serve the layers, the streams and the checkpoints alike; the state classes carry them as methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils import _pytree

Tree = TypeVar("Tree")
Fields = TypeVar("Fields", bound=tuple[Tensor, ...])


def register_state(kind: type, name: str) -> None:
    """Make a NamedTuple known to torch's trees under a lasting public name, and to ``torch.load(weights_only=True)``.

    The first lets exported programs be saved; the second is safe because to make a tuple runs no code.
    """
    _pytree._register_namedtuple(kind, serialized_type_name=name)
    torch.serialization.add_safe_globals([kind])


def map_tensors(function: Callable[[Tensor], Tensor], state: Tree) -> Tree:
    """Applies a function to every tensor of a state, any nesting of tuples, lists and dictionaries; all else stays.

    Example:
        >>> map_tensors(lambda tensor: tensor + 1, (torch.zeros(1), None))
        (tensor([1.]), None)
    """
    return _pytree.tree_map_only(Tensor, function, state)


def detach(state: Tree) -> Tree:
    """The same values cut off from the graph, memory included: the only cut between calls.

    Example:
        >>> detach((torch.ones(1, requires_grad=True) * 2,))[0].requires_grad
        False
    """
    return map_tensors(Tensor.detach, state)


def to(state: Tree, *args: Any, **kwargs: Any) -> Tree:
    """Move or cast like :meth:`torch.Tensor.to`; counters stay int64.

    Example:
        >>> [field.dtype for field in to((torch.zeros(1), torch.zeros(1, dtype=torch.int64)), torch.float64)]
        [torch.float64, torch.int64]
    """

    def move(field: Tensor) -> Tensor:
        if field.is_floating_point():
            return field.to(*args, **kwargs)
        # Only moved: on the way through bfloat16 a count of 1,001 would become 1,000.
        return field.to(torch.empty(0, device=field.device).to(*args, **kwargs).device)

    return map_tensors(move, state)


def select(state: Tree, rows: Tensor | Sequence[int] | slice) -> Tree:
    """The state of some rows of the batch, fields ``(depth, B, ...)``: ``(K,)`` indices, a ``(B,)`` mask, or a slice.

    Example:
        >>> select((torch.arange(6).reshape(1, 3, 2),), [2, 0])[0].tolist()
        [[[4, 5], [0, 1]]]
    """
    if not isinstance(rows, slice | Tensor):
        rows = torch.tensor(rows)
        if not len(rows):
            rows = rows.long()  # torch takes an empty list for floats
    return map_tensors(lambda field: field[:, rows], state)


def nbytes(state: object) -> int:
    """Bytes of all fields together."""
    return sum(leaf.nbytes for leaf in _pytree.tree_leaves(state) if isinstance(leaf, Tensor))


def cat(states: Sequence[Fields], empty: Mapping[str, int] | None = None) -> Fields:
    """The rows of several states of one class in one batch.

    Args:
        states: NamedTuples of fields ``(depth, B, ...)``.
        empty: fields whose slots, in dimension 2, may differ in number, and what an empty slot holds there.
    """
    kind: Any = type(states[0])
    joined = []
    for name, tensors in zip(kind._fields, zip(*states, strict=True), strict=True):
        if empty is not None and name in empty:
            most = max(tensor.shape[2] for tensor in tensors)
            tensors = [fill_slots(tensor, most, empty[name]) for tensor in tensors]
        joined.append(torch.cat(list(tensors), dim=1))
    return kind(*joined)


def fill_slots(tensor: Tensor, size: int, value: int) -> Tensor:
    """Lengthen dimension 2 (slots) to ``size`` with ``value``."""
    missing = size - tensor.shape[2]
    if not missing:
        return tensor
    filling = tensor.new_full((*tensor.shape[:2], missing, *tensor.shape[3:]), value)
    return torch.cat([tensor, filling], dim=2)


def where_rows(rows: Tensor, chosen: Tensor | float, other: Tensor) -> Tensor:
    """``chosen`` in some rows ``(B,)``, ``other`` ``(B, ...)`` elsewhere."""
    return torch.where(rows.reshape(rows.shape + (1,) * (other.dim() - 1)), chosen, other)


def empty_rows(rows: Tensor, tensor: Tensor, value: float = 0.0) -> Tensor:
    """``tensor`` ``(B, ...)`` with some rows ``(B,)`` set to ``value`` by selection, so that a NaN does not survive.

    Example:
        >>> empty_rows(torch.tensor([True, False]), torch.tensor([[torch.nan], [2.0]])).tolist()
        [[0.0], [2.0]]
    """
    return where_rows(rows, value, tensor)


def add_row(state: Tree) -> Tree:
    """The state of an unbatched sequence as that of a batch of one."""
    return map_tensors(lambda field: field.unsqueeze(1), state)


def drop_row(state: Tree) -> Tree:
    """The state of a batch of one as that of an unbatched sequence."""
    return map_tensors(lambda field: field.squeeze(1), state)
