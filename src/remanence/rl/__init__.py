"""Reinforcement learning: policies with a memory, for MiniGrid and any other Gymnasium environment.

Start with :func:`train_policy`: it plays and learns by PPO what a :class:`PolicyConfig` says, in a run folder.
"""

from remanence._renamed import renamed
from remanence.rl._actions import Actions, Choice, Choices, Gaussian, actions_of
from remanence.rl._building import build_policy
from remanence.rl._comparison import COMPARED, COMPARISON, NO_MEMORY, Gain, PolicyComparison
from remanence.rl._config import PolicyConfig, PPOConfig
from remanence.rl._copies import EpisodeCopies, Happened, VectorCopies
from remanence.rl._demand import memory_demand
from remanence.rl._environment import register_tmaze
from remanence.rl._film import FILM, film_policy, keep_film
from remanence.rl._folder import PolicyRun
from remanence.rl._learning import PolicyOutcome
from remanence.rl._observations import Field, fields_of
from remanence.rl._play import EpisodeResults, evaluate_policy
from remanence.rl._policy import Judgement, MemoryPolicy
from remanence.rl._ppo import Losses, Pieces, learn, ppo_losses
from remanence.rl._rollout import Player, Rollout, advantages
from remanence.rl._run import load_policy, resume_policy, train_policy

__all__ = [
    "MemoryPolicy",
    "Judgement",
    "train_policy",
    "resume_policy",
    "load_policy",
    "PolicyRun",
    "PolicyOutcome",
    "PolicyConfig",
    "PPOConfig",
    "build_policy",
    "memory_demand",
    "PolicyComparison",
    "Gain",
    "NO_MEMORY",
    "COMPARED",
    "COMPARISON",
    "evaluate_policy",
    "EpisodeResults",
    "film_policy",
    "keep_film",
    "FILM",
    "Player",
    "Rollout",
    "advantages",
    "Pieces",
    "Losses",
    "ppo_losses",
    "learn",
    "Field",
    "fields_of",
    "Actions",
    "actions_of",
    "Choice",
    "Choices",
    "Gaussian",
    "EpisodeCopies",
    "VectorCopies",
    "Happened",
    "register_tmaze",
]

__getattr__ = renamed(__name__, {"Score": "EpisodeResults"})
