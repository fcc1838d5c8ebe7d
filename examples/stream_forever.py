"""Follow a stream that never ends, step by step, with a state that never grows.

The state of a Rel layer after a million steps has as many bytes as after one, and the numbers are those of a whole run.
(This layer is untrained: it attends to all alike, and so its first steps stay the most relevant.)
Run it: python examples/stream_forever.py
"""

import argparse

import torch

from remanence.nn import RelLSTM


def sensor(step: int) -> torch.Tensor:
    """One reading, (1, 3): two slow waves and a rare event every 97 steps."""
    time = torch.tensor(step / 20)
    return torch.stack([time.sin(), (time / 3).cos(), torch.tensor(float(step % 97 == 0))])[None]


@torch.no_grad()
def main(steps: int = 5000) -> list[int]:
    torch.manual_seed(0)
    layer = RelLSTM(3, 16, recent=8, relevant=8)
    state = layer.initial_state(batch_size=1)
    sizes = []
    for step in range(1, steps + 1):
        output, state = layer.step(sensor(step - 1), state)
        if step == 1 or step % max(steps // 5, 1) == 0:
            kept = [held for held in state.relevant_step.flatten().tolist() if held >= 0]
            print(f"after {step:5d} steps: {state.nbytes} bytes, output {output[0, 0]:+.3f}, relevant steps {kept}")
            sizes.append(state.nbytes)
    return sizes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=5000)
    main(parser.parse_args().steps)
