"""Swap `nn.LSTM` for `RelLSTM` in a training loop: one import, one line for the layer, one for the state.

Run it: python examples/swap_lstm.py
"""

import argparse

import torch
from torch import nn
from torch.nn import functional

from remanence.nn import RelLSTM


class Classifier(nn.Module):
    """Says which class was shown in the first step, after many steps of noise."""

    def __init__(self, layer: nn.Module, hidden_size: int, classes: int):
        super().__init__()
        self.layer = layer
        self.head = nn.Linear(hidden_size, classes)

    def forward(self, x):
        _, state = self.layer(x)
        h, _ = state.hx  # with nn.LSTM: h, _ = state
        return self.head(h[-1])


def noisy_sequences(length, batch_size, classes, generator):
    """A one-hot class in the first step, noise afterwards: (length, batch_size, classes), and the classes."""
    target = torch.randint(classes, (batch_size,), generator=generator)
    x = 0.5 * torch.randn(length, batch_size, classes, generator=generator)
    x[0] = functional.one_hot(target, classes).float()
    return x, target


def main(steps: int = 200, length: int = 40, classes: int = 4, hidden_size: int = 32) -> float:
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    # before: layer = nn.LSTM(classes, hidden_size)
    layer = RelLSTM(classes, hidden_size, recent=5, relevant=5)
    model = Classifier(layer, hidden_size, classes)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(1, steps + 1):
        x, target = noisy_sequences(length, 16, classes, generator)
        logits = model(x)
        loss = functional.cross_entropy(logits, target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % max(steps // 10, 1) == 0:
            right = (logits.argmax(-1) == target).float().mean()
            print(f"step {step:4d}  loss {loss.item():.3f}  right {right:.0%}")
    return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    main(parser.parse_args().steps)
