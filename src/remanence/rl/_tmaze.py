"""The T-maze: a sign at the start, a corridor of any length, and a junction where the sign decides."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import gymnasium
import numpy
from numpy.typing import NDArray

from remanence._validate import positive_int
from remanence.runs import Values

ID = "remanence/TMaze-v0"
Sight: TypeAlias = NDArray[numpy.float32]

PICTURE = 330
"""Height and width of a picture in pixels; of a very long corridor it is wider."""
HALL = 110
EDGE = 22
WALL, FLOOR, SIGN, AGENT = (60, 60, 60), (220, 220, 220), (40, 150, 80), (200, 60, 50)


class TMaze(gymnasium.Env[Sight, numpy.int64]):
    """A corridor with a junction at its end; which way is right was shown at its start, and nowhere else.

    Bakker 2002, "Reinforcement learning with long short-term memory", with a simpler walk along the corridor: the
    actions are ahead, left and right. Ahead moves one step. At the junction a turn ends the episode and pays 1 if it is
    the right one; before it a turn does nothing and costs 0.01. Guessing earns 1/2, whatever the length.

    Args:
        length: steps from the sign to the junction.
        render_mode: ``"rgb_array"`` for pictures, or None.

    Example:
        >>> maze = TMaze(length=3)
        >>> maze.reset(seed=0)[0].tolist()
        [0.0, 1.0, 0.0]
    """

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (3,), numpy.float32)
    """Sign for left, sign for right, junction."""
    action_space = gymnasium.spaces.Discrete(3)
    metadata: ClassVar[Values] = {"render_modes": ["rgb_array"]}

    def __init__(self, length: int = 10, render_mode: str | None = None) -> None:
        self.length = positive_int("length", length)
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Values | None = None) -> tuple[Sight, Values]:
        """Begins an episode: at the start, in front of the sign."""
        super().reset(seed=seed)
        self.right_turn = int(self.np_random.integers(2))
        self.place = 0
        return self._seen(), {}

    def step(self, action: int | numpy.int64) -> tuple[Sight, float, bool, bool, Values]:
        """Goes ahead (0), or turns left (1) or right (2)."""
        at_junction = self.place == self.length
        if action == 0:
            self.place = min(self.place + 1, self.length)
            return self._seen(), 0.0, False, False, {}
        if not at_junction:
            return self._seen(), -0.01, False, False, {}
        return self._seen(), float(action - 1 == self.right_turn), True, False, {}

    def render(self) -> NDArray[numpy.uint8] | None:  # type: ignore[override]
        """The maze from above: the corridor from left to right, the sign on its left or right side, and the agent."""
        if self.render_mode != "rgb_array":
            return None
        width = max(2, PICTURE // (self.length + 1))
        picture = numpy.full((3 * HALL, width * (self.length + 1), 3), WALL, numpy.uint8)
        picture[HALL : 2 * HALL] = FLOOR
        picture[:, -width:] = FLOOR
        side = (HALL, 2 * HALL - EDGE)[self.right_turn]
        picture[side : side + EDGE, :width] = SIGN
        agent = slice(self.place * width, (self.place + 1) * width)
        picture[HALL + EDGE : 2 * HALL - EDGE, agent] = AGENT
        return picture

    def _seen(self) -> Sight:
        seen = numpy.zeros(3, dtype=numpy.float32)
        if self.place == 0:
            seen[self.right_turn] = 1.0
        if self.place == self.length:
            seen[2] = 1.0
        return seen


def register() -> None:
    """Registers it with Gymnasium; an episode may take twice the steps that it needs, and four more."""
    if ID not in gymnasium.registry:
        gymnasium.register(ID, entry_point=f"{__name__}:make_tmaze", disable_env_checker=True)


def make_tmaze(length: int = 10, render_mode: str | None = None) -> gymnasium.Env:
    """A maze with its limit of steps.

    Args:
        length: steps from the sign to the junction.
        render_mode: ``"rgb_array"`` for pictures, or None.
    """
    return gymnasium.wrappers.TimeLimit(TMaze(length, render_mode), max_episode_steps=2 * length + 4)
