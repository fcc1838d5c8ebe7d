"""A layer with a memory under accelerate, which places, wraps and scales what it is given."""

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

from remanence.nn import SequenceModel


def main(epochs: int = 10, hidden_size: int = 32) -> float:
    """Trains a model to say the token before the present one, and returns the last loss."""
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    model = SequenceModel(8, "RelLSTM", 8, hidden_size=hidden_size, recent=5, relevant=5, batch_first=True)
    data = DataLoader(TensorDataset(torch.randint(8, (256, 20))), batch_size=32, shuffle=True)
    model, optimiser, data = accelerator.prepare(model, torch.optim.Adam(model.parameters(), 1e-2), data)
    loss = torch.zeros(())
    for _ in range(epochs):
        for (tokens,) in data:
            logits, _ = model(tokens[:, 1:])
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, :-1].flatten())
            accelerator.backward(loss)
            optimiser.step()
            optimiser.zero_grad()
    return loss.item()


if __name__ == "__main__":
    print(f"loss {main():.3f}")
