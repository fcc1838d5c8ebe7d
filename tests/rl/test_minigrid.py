"""The quick view is MiniGrid's own, byte for byte."""

from __future__ import annotations

import gymnasium
import minigrid
import numpy
import pytest
from minigrid.minigrid_env import MiniGridEnv

from remanence.rl._minigrid import QuickView, see_quickly

SOME = (
    "MemoryS7 MemoryS13Random DoorKey-5x5 DoorKey-16x16 RedBlueDoors-8x8 GoToDoor-8x8 Fetch-8x8-N3 GoToObject-6x6-N2 "
    "Dynamic-Obstacles-6x6 LavaGapS7 KeyCorridorS3R1 PutNear-6x6-N2 ObstructedMaze-2Dl FourRooms BlockedUnlockPickup"
)


@pytest.mark.parametrize(
    "name", [*(f"MiniGrid-{name}-v0" for name in SOME.split()), "BabyAI-GoToLocal-v0", "BabyAI-UnlockPickup-v0"]
)
def test_the_quick_view_is_minigrids(name):
    environment = gymnasium.make(name).unwrapped
    quick = QuickView(environment)
    random = numpy.random.default_rng(0)
    for seed in range(3):
        seen = environment.reset(seed=seed)[0]
        for _ in range(40):
            again = quick()
            assert numpy.array_equal(seen["image"], again["image"])
            assert seen["image"].dtype == again["image"].dtype
            assert (seen["direction"], seen["mission"]) == (again["direction"], again["mission"])
            seen, _, terminated, truncated, _ = environment.step(int(random.integers(7)))
            if terminated or truncated:
                break


def test_who_sees_otherwise_is_left_alone():
    class Blind(MiniGridEnv):
        def gen_obs(self):
            return {**super().gen_obs(), "image": numpy.zeros((7, 7, 3), numpy.uint8)}

        def _gen_grid(self, width, height):
            self.grid, self.mission = minigrid.core.grid.Grid(width, height), ""
            self.place_agent()

    blind = Blind(minigrid.core.mission.MissionSpace(lambda: ""), grid_size=5, max_steps=9)
    see_quickly(blind)
    assert not isinstance(blind.gen_obs, QuickView)
    usual = gymnasium.make("MiniGrid-Empty-5x5-v0")
    see_quickly(usual)
    assert isinstance(usual.unwrapped.gen_obs, QuickView)


@pytest.mark.parametrize("change", ["moved", "opened", "painted"])
def test_a_change_in_the_grid_is_seen_at_once(change):
    """The grid is encoded once: whoever moves or changes an object must not see the old one."""
    environment = gymnasium.make("MiniGrid-DoorKey-8x8-v0").unwrapped
    environment.reset(seed=0)
    quick = QuickView(environment)
    quick()
    grid = environment.grid
    place, door = next((place, cell) for place, cell in enumerate(grid.grid) if cell and cell.type == "door")
    environment.agent_pos, environment.agent_dir = (place % grid.width - 1, place // grid.width), 0
    before = quick()["image"]
    if change == "moved":
        grid.grid[place] = None
    elif change == "opened":
        door.is_locked, door.is_open = False, True
    else:
        door.color = "grey" if door.color != "grey" else "red"
    after = quick()["image"]
    assert not numpy.array_equal(before, after)
    assert numpy.array_equal(after, MiniGridEnv.gen_obs(environment)["image"])
