"""A layer with a memory in a Lightning module: nothing special, the state is not carried between batches."""

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

from remanence.nn import SequenceModel


class Repeater(lightning.LightningModule):
    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.model = SequenceModel(8, "RelLSTM", 8, hidden_size=hidden_size, recent=5, relevant=5, batch_first=True)

    def training_step(self, batch, index):
        (tokens,) = batch
        logits, _ = self.model(tokens[:, 1:])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, :-1].flatten())
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)


def main(steps: int = 200, hidden_size: int = 32, **options) -> float:
    """Trains a model to say the token before the present one, and returns the last loss."""
    lightning.seed_everything(0, verbose=False)
    data = DataLoader(TensorDataset(torch.randint(8, (256, 20))), batch_size=32, shuffle=True)
    trainer = lightning.Trainer(max_steps=steps, accelerator="cpu", logger=False, enable_checkpointing=False, **options)
    trainer.fit(Repeater(hidden_size), data)
    return float(trainer.callback_metrics["loss"])


if __name__ == "__main__":
    print(f"loss {main():.3f}")
