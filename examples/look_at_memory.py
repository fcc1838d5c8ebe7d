"""Look into the memory of a Rel layer: which past steps it attends to, and which it kept as relevant.

Prints a heat map, one line per step, one column per attended step, and the list of who entered when. The weights are
sharpened because a fresh layer attends to everything alike and never replaces what it kept first.
Run it: python examples/look_at_memory.py
"""

import argparse

import torch

from remanence.nn import RelRNN

SHADES = " .:-=+*#%@"


def heat_map(trace, steps: int) -> list[str]:
    """Attention of row 0 as text: line t, column i is the weight that step t gave to step i, the strongest black."""
    lines = []
    for weights, held in zip(trace.weights[:, 0], trace.steps[:, 0], strict=True):
        line = torch.zeros(steps)
        valid = held >= 0
        line[held[valid]] = weights[valid]
        shades = (line / line.max() * (len(SHADES) - 1)).round().int()
        lines.append("".join(SHADES[shade] for shade in shades))
    return lines


def main(steps: int = 40) -> list[str]:
    torch.manual_seed(0)
    layer = RelRNN(2, 16, recent=6, relevant=3, recurrent_init="random")
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name.startswith(("weight_query", "weight_key", "weight_score")):
                parameter.mul_(3)
    x = torch.randn(steps, 1, 2)
    (trace,) = layer.trace(x)  # one per layer and direction
    lines = heat_map(trace, steps)
    print("step  attended steps, from 0 on the left; darker is more")
    for step, line in enumerate(lines):
        entered, displaced = int(trace.entered[step, 0]), int(trace.displaced[step, 0])
        event = "" if entered < 0 else f"  {entered} kept" + ("" if displaced < 0 else f" in place of {displaced}")
        print(f"{step:4d}  |{line}|{event}")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    main(parser.parse_args().steps)
