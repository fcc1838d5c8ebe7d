"""A film of a policy: the environment, and next to it what the memory holds and attends to."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy
import torch
from torch import Tensor

from remanence._validate import message, positive_int
from remanence.nn import Full, RecurrentLayer, Screened, evaluating
from remanence.rl._core import CoreState, entering, memory_of
from remanence.rl._environment import Episode, make_environment, observed
from remanence.rl._observations import Observation, each_field
from remanence.rl._policy import MemoryPolicy
from remanence.rl._run import load_policy
from remanence.runs import Settings, replace_file
from remanence.tasks import stream

if TYPE_CHECKING:  # both are extras
    from gymnasium import Env
    from numpy.typing import NDArray
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

FILM = "film.gif"
"""Name of the film that lies in a run's folder, for its report."""
WIDTH = 360
HEIGHT = 240
MARGIN = 24
INK = (40, 40, 40)
PAPER = (255, 255, 255)
RECENT = (86, 140, 200)
RELEVANT = (214, 96, 64)


class Attended(NamedTuple):
    """What the memory of one row holds at a step, and the attention that each slot gets."""

    steps: list[int]
    """The step that a slot holds, -1 if it is empty."""
    weights: list[float]
    recent: int
    """How many slots, the first ones, are the buffer of recent states."""


NOTHING = Attended([], [], 0)


@torch.no_grad()
def film_policy(
    policy: MemoryPolicy,
    environment: str,
    path: str | Path,
    *,
    options: Settings | None = None,
    seed: int = 0,
    steps: int = 200,
    likeliest: bool = False,
    milliseconds: int = 150,
) -> int:
    """Plays one episode and writes it as an animated GIF.

    Beside the environment's own picture is a time line: a bar at every step that the memory holds, as high as the
    attention it gets now; recent states are blue, relevant ones red.

    Args:
        policy: who plays.
        environment: id of where it plays.
        path: of the GIF.
        options: options of the environment.
        seed: seed for the episode and the actions.
        steps: most steps to film.
        likeliest: take the likeliest action instead of drawing.
        milliseconds: duration of each frame.

    Returns:
        Frames that were written.

    Raises:
        ImportError: Pillow is missing.
        ValueError: `path` does not end in .gif, or its folder does not exist.

    Example:
        >>> import tempfile
        >>> policy = MemoryPolicy((7, 7, 3), 7, hidden_size=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     film_policy(policy, "MiniGrid-MemoryS7-v0", Path(folder) / "play.gif", steps=3)
        4
    """
    _require_pillow()
    _check_path(Path(path))
    positive_int("steps", steps)
    there = _visible(environment, options)
    names = tuple(field.name for field in policy.fields if field.name)
    episode = Episode(there, seed, split="test", fields=observed(there, policy.words, names))
    generator = stream("test", seed, salt="film")
    state = policy.core.initial_state(1)
    begins = torch.ones(1, 1, dtype=torch.bool)
    frames = []
    with evaluating(policy):
        for step in range(steps + 1):
            seen = each_field(lambda part: part[None, None], episode.observation)
            attended = _attended(policy, seen, state, begins)
            frames.append(_frame(_picture(there), attended, step))
            given, _, state = policy(seen, state, reset=begins)
            action = policy.actions.choose(given[0], likeliest, generator)
            if step == steps or episode.act(policy.actions.for_environment(action[0]))[1]:
                break
            begins = torch.zeros(1, 1, dtype=torch.bool)
    first, *others = frames
    first.save(path, save_all=True, append_images=others, duration=milliseconds, loop=0)
    return len(frames)


def keep_film(folder: str | Path, *, seed: int = 0, likeliest: bool = False) -> Path:
    """Films one episode of a policy's run and keeps it in the run's folder, where ``remanence report`` finds it.

    Args:
        folder: the run's folder.
        seed: seed for the episode and the actions.
        likeliest: take the likeliest action instead of drawing.

    Returns:
        The film.

    Raises:
        ImportError: Pillow is missing.
        ValueError: there is no run.

    Example:
        >>> keep_film("no such folder")
        Traceback (most recent call last):
        ValueError: `folder` must be the folder of a policy's run, with a policy.toml; got 'no such folder', which ...
    """
    policy, config = load_policy(folder)
    film = Path(folder) / FILM
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / FILM
        film_policy(
            policy, config.environment, made, options=config.environment_options, seed=seed, likeliest=likeliest
        )
        replace_file(film, made.read_bytes())
    return film


def _require_pillow() -> None:
    try:
        import PIL  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ImportError("a film needs Pillow: pip install 'remanence[rl]'") from error


def _check_path(path: Path) -> None:
    if path.suffix.lower() != ".gif":
        raise ValueError(message("path", "end in .gif", str(path)))
    if not path.parent.is_dir():
        raise ValueError(message("path", "lie in a folder that exists", str(path)))


def _visible(environment: str, options: Settings | None) -> Env:
    """The environment with its own pictures, if it has any."""
    found = make_environment(environment, options)
    if "rgb_array" not in found.metadata.get("render_modes", ()):
        return found
    found.close()
    return make_environment(environment, {**(options or {}), "render_mode": "rgb_array"})


def _picture(environment: Env) -> NDArray[numpy.uint8] | None:
    if environment.render_mode != "rgb_array":
        return None
    return numpy.asarray(environment.render())


def _attended(policy: MemoryPolicy, seen: Observation, state: CoreState, begins: Tensor) -> Attended:
    core = policy.core
    if not isinstance(core, RecurrentLayer) or memory_of(core) is None:
        return NOTHING
    features = policy.encoder(each_field(lambda part: part.flatten(0, 1), seen)).unflatten(0, (1, 1))
    trace = core.trace(features, entering(core, state, policy.memory_use), reset=begins)[-1]
    steps = trace.steps[0, 0].tolist()
    return Attended(steps, trace.weights[0, 0].tolist(), _recent_slots(core, len(steps)))


def _recent_slots(core: RecurrentLayer, slots: int) -> int:
    """How many of the slots hold the newest states, whatever they are worth."""
    memory = memory_of(core)
    if isinstance(memory, Screened):
        return memory.recent
    if isinstance(memory, Full):
        return slots
    return 0


def _frame(picture: NDArray[numpy.uint8] | None, attended: Attended, step: int) -> Image:
    from PIL import Image

    memory = _memory_panel(attended, step)
    if picture is None:
        return memory
    shown = Image.fromarray(picture).resize((HEIGHT, HEIGHT))
    frame = Image.new("RGB", (HEIGHT + WIDTH, HEIGHT), PAPER)
    frame.paste(shown, (0, 0))
    frame.paste(memory, (HEIGHT, 0))
    return frame


def _memory_panel(attended: Attended, step: int) -> Image:
    from PIL import Image, ImageDraw

    panel = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    draw = ImageDraw.Draw(panel)
    bottom = HEIGHT - MARGIN
    draw.line((MARGIN, bottom, WIDTH - MARGIN, bottom), fill=INK)
    last = max([step, *attended.steps, 1])
    wide = (WIDTH - 2 * MARGIN) / (last + 1)
    for slot, (place, weight) in enumerate(zip(attended.steps, attended.weights, strict=True)):
        if place < 0:
            continue
        left = MARGIN + round(wide * place)
        right = max(left + 1, MARGIN + round(wide * (place + 1)) - 2)  # a gap to the next, as long as there is room
        top = bottom - 2 - round((bottom - 2 * MARGIN) * max(0.0, min(1.0, weight)))
        colour = RELEVANT
        if slot < attended.recent:
            colour = RECENT
        draw.rectangle((left, top, right, bottom - 1), fill=colour)
    draw.text((MARGIN, 4), _told(attended, step), fill=INK)
    if attended.steps:
        _draw_legend(draw)
    draw.text((MARGIN, bottom + 4), "0", fill=INK)
    draw.text((WIDTH - 2 * MARGIN, bottom + 4), str(last), fill=INK)
    return panel


def _told(attended: Attended, step: int) -> str:
    present = [place for place in attended.steps if place >= 0]
    told = f"step {step}. States in memory: {len(present)}"
    if present:
        told += f", oldest from step {min(present)}"
    return told


def _draw_legend(draw: ImageDraw) -> None:
    """What the colours and the heights mean, for those who see the film without its page."""
    draw.text((MARGIN, 18), "attention to", fill=INK)
    for left, name, colour in ((100, "recent states", RECENT), (196, "relevant states", RELEVANT)):
        draw.rectangle((left, 20, left + 8, 28), fill=colour)
        draw.text((left + 14, 18), name, fill=INK)
