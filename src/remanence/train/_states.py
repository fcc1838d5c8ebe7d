"""The states that a run's checkpoint may hold: those that layers carry from one batch to the next."""

from __future__ import annotations

from remanence import nn
from remanence.runs import register_state

register_state(nn.State, nn.CarriedState, nn.CacheState, nn.RunningState, nn.ConvolutionState, nn.TruncatedState)
