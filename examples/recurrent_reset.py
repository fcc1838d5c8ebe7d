"""Episodes of different length in one batch, as reinforcement learning collects them: one call, no loop over time.

Every environment runs on its own clock, so episodes end in the middle of a rollout. `reset` is True where a new one
begins: state, memory and step count of that row are reset there, inside the one call.
Run it: python examples/recurrent_reset.py
"""

import argparse

import torch

from remanence.nn import RelGRU


def collect(steps: int, environments: int, generator: torch.Generator):
    """Made-up observations (steps, environments, 4), and where an episode begins: (steps, environments) bool."""
    observations = torch.randn(steps, environments, 4, generator=generator)
    begins = torch.rand(steps, environments, generator=generator) < 0.1
    return observations, begins


def main(rollouts: int = 3, steps: int = 20, environments: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    layer = RelGRU(4, 16, recent=4, relevant=4)
    state = layer.initial_state(environments)
    for rollout in range(rollouts):
        observations, begins = collect(steps, environments, generator)
        before = state
        output, state = layer(observations, state, reset=begins)
        state = state.detach()  # the next rollout goes on from here; its gradient stops here
        print(f"rollout {rollout}: {int(begins.sum())} episodes began, rows now at step {state.step[0].tolist()}")

    # The same by hand, one environment: a fresh start at every True. This is what `reset` saves.
    row, now, outputs = 0, before.select([0]), []
    for observation, begin in zip(observations[:, [row]], begins[:, row], strict=True):
        output_t, now = layer.step(observation, layer.initial_state(1) if begin else now)
        outputs.append(output_t)
    by_loop, by_reset = torch.cat(outputs), output[:, row]
    print(f"greatest difference to a loop over time with fresh states: {(by_loop - by_reset).abs().max():.1e}")
    return by_loop, by_reset


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=3)
    main(parser.parse_args().rollouts)
