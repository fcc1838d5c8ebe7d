"""What MiniGrid's agents see, computed in a fraction of the time.

MiniGrid builds, turns and copies a grid of Python objects for every observation: most of the time that playing takes.
Here the whole grid is encoded once, and again when something in it has changed; the cells in view are cut out of it and
turned by an index, and visibility is looked up by which of them are opaque. The result is the same to the last byte.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy
from numpy.typing import NDArray

from remanence.runs import Values

if TYPE_CHECKING:  # both are extras
    from gymnasium import Env
    from minigrid.core.grid import Grid
    from minigrid.core.world_object import WorldObj
    from minigrid.minigrid_env import MiniGridEnv

EMPTY = (1, 0, 0)
WALL = (2, 5, 0)

Code: TypeAlias = tuple[tuple[int, int, int], bool]


def see_quickly(environment: Env) -> None:
    """Lets a MiniGrid environment compute its observations in the quick way, if it sees as MiniGrid usually does.

    Example:
        >>> import gymnasium, minigrid
        >>> environment = gymnasium.make("MiniGrid-Empty-5x5-v0")
        >>> see_quickly(environment)
        >>> environment.reset(seed=0)[0]["image"].shape
        (7, 7, 3)
    """
    from minigrid.minigrid_env import MiniGridEnv

    inner = environment.unwrapped
    if isinstance(inner, MiniGridEnv):
        own = type(inner)
        usual = ("gen_obs", "gen_obs_grid", "get_view_exts")
        if all(getattr(own, name) is getattr(MiniGridEnv, name) for name in usual):
            inner.gen_obs = QuickView(inner)


class QuickView:
    """Stands in for an environment's `gen_obs`."""

    def __init__(self, environment: MiniGridEnv) -> None:
        self.environment = environment
        self._encoded = _EncodedGrid(environment.agent_view_size)

    def __call__(self) -> Values:
        """The observation: image, direction and mission."""
        environment = self.environment
        size = environment.agent_view_size
        left, top, _, _ = environment.get_view_exts()
        codes, opaque = self._encoded.window(environment.grid, left, top)
        turned = _turns(size)[environment.agent_dir]
        image = codes[turned]
        if not environment.see_through_walls:
            image[_hidden(opaque[turned].tobytes(), size)] = 0
        own_place = size // 2 * size + size - 1
        image[own_place] = EMPTY
        if environment.carrying:
            image[own_place] = environment.carrying.encode()
        image = image.reshape(size, size, 3)
        return {"image": image, "direction": environment.agent_dir, "mission": environment.mission}


class _EncodedGrid:
    """A grid's cells as numbers, with walls all around as far as an agent can see."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._cells: list[WorldObj | None] = []
        self._changeable: list[tuple[WorldObj, Code]] = []

    def window(self, grid: Grid, left: int, top: int) -> tuple[NDArray[numpy.uint8], NDArray[numpy.bool_]]:
        """Codes of the cells in view, column by column, and whether each hides what is behind it."""
        if not self._is_current(grid):
            self._encode(grid)
        across = slice(left + self.size, left + 2 * self.size)
        down = slice(top + self.size, top + 2 * self.size)
        return self._codes[across, down].reshape(-1, 3), self._opaque[across, down].reshape(-1)

    def _is_current(self, grid: Grid) -> bool:
        """Whether the same objects stand at the same places, and none looks otherwise than before: doors may."""
        if self._cells != grid.grid:  # objects have no equality of their own: this compares who they are
            return False
        return all(_code(cell) == code for cell, code in self._changeable)

    def _encode(self, grid: Grid) -> None:
        self._cells = list(grid.grid)
        found = [_code(cell) for cell in self._cells]
        pairs = zip(self._cells, found, strict=True)
        self._changeable = [(cell, code) for cell, code in pairs if cell is not None and cell.type != "wall"]
        border = ((self.size, self.size), (self.size, self.size))
        codes = numpy.array([code for code, _ in found], dtype=numpy.uint8).reshape(grid.height, grid.width, 3)
        opaque = numpy.array([hides for _, hides in found]).reshape(grid.height, grid.width)
        outside = [numpy.pad(codes[..., part].T, border, constant_values=WALL[part]) for part in range(3)]
        self._codes = numpy.stack(outside, axis=-1)
        self._opaque = numpy.pad(opaque.T, border, constant_values=True)


def _code(cell: WorldObj | None) -> Code:
    """What an object, or nothing, looks like, and whether it hides what is behind it."""
    if cell is None:
        return EMPTY, False
    return cell.encode(), not cell.see_behind()


@lru_cache
def _turns(size: int) -> list[NDArray[numpy.int64]]:
    """For each direction, which cell of the unturned view stands at each place of the agent's own."""
    places = numpy.arange(size * size).reshape(size, size)
    return [numpy.rot90(places, -(direction + 1)).flatten() for direction in range(4)]


@lru_cache(maxsize=100_000)
def _hidden(opaque: bytes, size: int) -> NDArray[numpy.bool_]:
    """Which cells an agent at the bottom of its view does not see: light spreads row by row, upwards and sideways."""
    hides = numpy.frombuffer(opaque, dtype=bool).reshape(size, size)
    seen = numpy.zeros((size, size), dtype=bool)
    seen[size // 2, size - 1] = True
    for y in reversed(range(size)):
        for places, side in ((range(size - 1), 1), (range(size - 1, 0, -1), -1)):
            for x in places:
                if seen[x, y] and not hides[x, y]:
                    seen[x + side, y] = True
                    if y:
                        seen[x + side, y - 1] = True
                        seen[x, y - 1] = True
    return ~seen.flatten()
