"""TorchRL's own PPO with a memory of ours in the place of its LSTMModule: a T-maze that cannot be solved without one.

Run it: python examples/torchrl_memory.py (needs pip install torchrl)
"""

import argparse

import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.envs import Compose, GymEnv, InitTracker, RewardSum, StepCounter, TransformedEnv
from torchrl.modules import MLP, OneHotCategorical, ProbabilisticActor, ValueOperator, set_recurrent_mode
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from remanence.nn import RelLSTM
from remanence.rl import register_tmaze
from remanence.rl.torchrl import RecurrentModule


def main(length: int = 5, frames: int = 40_000, steps: int = 1024) -> float:
    torch.manual_seed(0)
    register_tmaze()
    memory = RecurrentModule(RelLSTM(3, 32, recent=5, relevant=5), "observation", "embed")
    # InitTracker says where episodes begin, and the primer puts the empty state into the first tensordict.
    transforms = Compose(InitTracker(), StepCounter(), RewardSum(), memory.make_tensordict_primer())
    maze = TransformedEnv(GymEnv("remanence/TMaze-v0", length=length), transforms)
    head = TensorDictModule(MLP(in_features=32, out_features=3, num_cells=[32]), ["embed"], ["logits"])
    actor = ProbabilisticActor(
        TensorDictSequential(memory, head), ["logits"], distribution_class=OneHotCategorical, return_log_prob=True
    )
    value = ValueOperator(MLP(in_features=32, out_features=1, num_cells=[32]), in_keys=["embed"])
    critic = TensorDictSequential(memory, value)
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic, shifted=True)
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01)
    optimiser = torch.optim.Adam(loss.parameters(), lr=3e-3)
    mean = 0.0
    for data in Collector(maze, actor, frames_per_batch=steps, total_frames=frames):
        with set_recurrent_mode(True):
            for _ in range(4):
                with torch.no_grad():
                    advantage(data)
                losses = loss(data)
                optimiser.zero_grad()
                sum(losses[name] for name in ("loss_objective", "loss_critic", "loss_entropy")).backward()
                torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimiser.step()
        ended = data["next", "done"]
        if ended.any():
            mean = data["next", "episode_reward"][ended].mean().item()
        print(f"mean return {mean:.2f}; guessing gives 0.5")
    return mean


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=5, help="steps from the sign to the junction")
    parser.add_argument("--frames", type=int, default=40_000, help="steps to play")
    arguments = parser.parse_args()
    main(arguments.length, arguments.frames)
