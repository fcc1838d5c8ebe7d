"""What an installed wheel must do, run in an environment that has nothing but the wheel and its dependencies."""

import torch

import remanence
from remanence.nn import RelLSTM

layer = RelLSTM(3, 8, recent=4, relevant=2)
output, state = layer(torch.randn(20, 2, 3))
output.sum().backward()
h, c = state.hx
if (output.shape, h.shape, c.shape) != ((20, 2, 8), (1, 2, 8), (1, 2, 8)):
    raise SystemExit(f"wrong shapes: {output.shape}, {h.shape}, {c.shape}")
print(f"remanence {remanence.__version__} from {remanence.__file__}: forward and backward run")
