"""Our layers in TorchRL: beside its own LSTM, and in its collector, replay buffer, GAE and PPO loss."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from remanence.nn import GRU, LRU, LSTM, SABLSTM, DeltaRule, MemLSTM, MinGRU, MinLSTM, RelGRU, RelLSTM
from remanence.testing import assert_matches

pytestmark = pytest.mark.filterwarnings("ignore")  # TorchRL's own: they are not ours to mend


@pytest.fixture(autouse=True)
def _needs_torchrl(require_or_skip):
    if importlib.util.find_spec("torchrl") is None:
        require_or_skip("torchrl", "TorchRL is not installed")


LAYERS = {
    "LSTM": lambda: LSTM(3, 5, num_layers=2),
    "GRU": lambda: GRU(3, 5),
    "RelLSTM": lambda: RelLSTM(3, 5, recent=2, relevant=2),
    "RelGRU": lambda: RelGRU(3, 5, recent=2, relevant=2, num_layers=2),
    "MemLSTM": lambda: MemLSTM(3, 5, limit=4),
    "SABLSTM": lambda: SABLSTM(3, 5, top_k=2, every=2, truncate=3),
    "MinGRU": lambda: MinGRU(3, 5),
    "MinLSTM": lambda: MinLSTM(3, 5),
    "LRU": lambda: LRU(3, 5),
    "DeltaRule": lambda: DeltaRule(3, 5),
}


def module_of(name):
    from remanence.rl.torchrl import RecurrentModule

    torch.manual_seed(0)
    return RecurrentModule(LAYERS[name]().double(), "observation", "embed")


def episodes(rows=4, steps=12):
    from tensordict import TensorDict

    torch.manual_seed(1)
    begins = torch.rand(rows, steps, 1) < 0.3
    begins[:, 0] = True
    data = {"observation": torch.randn(rows, steps, 3, dtype=torch.float64), "is_init": begins}
    return TensorDict(data, [rows, steps])


def step_by_step(module, data):
    """What a collector does: one step at a time, the next state handed on."""
    outputs: list[Any] = []
    carried: Any = None
    for step in range(data.shape[1]):
        now = data[:, step].clone()
        if carried is not None:
            now[module.state_key] = carried
        module(now)
        carried = now["next", module.state_key]
        outputs.append(now["embed"])
    return torch.stack(outputs, 1), carried


@pytest.mark.parametrize("name", LAYERS)
def test_a_sequence_with_resets_is_what_single_steps_give(name):
    from torchrl.modules import set_recurrent_mode

    module, data = module_of(name), episodes()
    outputs, carried = step_by_step(module, data)
    with set_recurrent_mode(True):
        whole = module(data.clone())
    assert_matches({"embed": whole["embed"]}, {"embed": outputs})
    for field in module.carried:
        last = whole["next", module.state_key, field][:, -1]
        assert_matches({field: last.double()}, {field: carried[field].double()})


@pytest.mark.parametrize("name", LAYERS)
def test_nothing_passes_the_first_step_of_an_episode(name):
    from torchrl.modules import set_recurrent_mode

    module, data = module_of(name), episodes()
    changed = data.clone()
    changed["observation"][:, 0] += 1
    with set_recurrent_mode(True):
        before, after = (module(one)["embed"] for one in (data, changed))
    first_of_second = data["is_init"][..., 0].int().cumsum(1) > 1
    assert torch.equal(before[first_of_second], after[first_of_second])
    assert not torch.equal(before, after)


def test_a_plain_lstm_is_torchrls_own():
    from torchrl.modules import LSTMModule, set_recurrent_mode

    from remanence.rl.torchrl import RecurrentModule

    theirs = LSTMModule(3, 5, in_key="observation", out_key="embed").double()
    ours = RecurrentModule(LSTM.from_torch(theirs.lstm), "observation", "embed")
    results = []
    for module in (theirs, ours):
        data = episodes()
        for key in module.in_keys[1:-1]:
            shape = (1, 5) if module is theirs else getattr(ours.layer.initial_state(1), str(key[1])).squeeze(1).shape
            kind = torch.int64 if key[-1] == "step" else torch.float64
            data[key] = torch.zeros(*data.shape, *shape, dtype=kind)
        with set_recurrent_mode(True):
            embed = module(data)["embed"]
        module.zero_grad()
        embed.square().sum().backward()
        layer = theirs.lstm if module is theirs else ours.layer
        results.append({"embed": embed.detach(), **{name: weight.grad for name, weight in layer.named_parameters()}})
    assert_matches(results[1], results[0])


def test_a_layer_that_does_not_fit_is_refused():
    from remanence.rl.torchrl import RecurrentModule

    with pytest.raises(ValueError, match="`layer` must have a state of fixed size"):
        RecurrentModule(MemLSTM(3, 5))
    with pytest.raises(ValueError, match="`layer` must run forward"):
        RecurrentModule(LSTM(3, 5, bidirectional=True))
    with pytest.raises(TypeError, match="`layer` must be a recurrent layer"):
        RecurrentModule(torch.nn.LSTM(3, 5))  # type: ignore[arg-type]


def parts(name="RelLSTM", size=4, copies=0):
    """An environment, an actor and a critic, all of TorchRL but for the layer."""
    from tensordict.nn import TensorDictModule, TensorDictSequential
    from torchrl.envs import Compose, GymEnv, InitTracker, SerialEnv, StepCounter, TransformedEnv
    from torchrl.modules import MLP, OneHotCategorical, ProbabilisticActor, ValueOperator

    from remanence.rl.torchrl import RecurrentModule

    torch.manual_seed(0)
    layer = {"RelLSTM": RelLSTM(size, 8, recent=2, relevant=2), "LSTM": LSTM(size, 8)}[name]
    memory = RecurrentModule(layer, "observation", "embed")
    primer = memory.make_tensordict_primer()
    transforms = Compose(InitTracker(), StepCounter(), primer)  # type: ignore[call-arg] # it declares only one
    inner = GymEnv("CartPole-v1")
    if copies:
        inner = SerialEnv(copies, lambda: GymEnv("CartPole-v1"))
    environment = TransformedEnv(inner, transforms)
    head = TensorDictModule(MLP(in_features=8, out_features=2, num_cells=[8]), ["embed"], ["logits"])
    actor = ProbabilisticActor(
        TensorDictSequential([memory, head]), ["logits"], distribution_class=OneHotCategorical, return_log_prob=True
    )
    value = ValueOperator(MLP(in_features=8, out_features=1, num_cells=[8]), in_keys=["embed"])
    critic = TensorDictSequential([memory, value])
    return environment, actor, critic


def test_the_primer_gives_the_empty_state():
    environment, *_ = parts()
    state = environment.reset()["recurrent_state"]
    assert state["relevant_step"].tolist() == [[-1, -1]]
    assert not state["s"].any()


@pytest.mark.parametrize("vectorised", [True, False])
def test_it_learns_in_torchrls_collector_replay_buffer_gae_and_ppo(vectorised):
    from torchrl.collectors import Collector
    from torchrl.data import LazyTensorStorage, ReplayBuffer, SamplerWithoutReplacement
    from torchrl.modules import set_recurrent_mode
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value import GAE

    environment, actor, critic = parts()
    collector = Collector(environment, actor, frames_per_batch=64, total_frames=128)
    gae = GAE(gamma=0.99, lmbda=0.95, value_network=critic, average_gae=False, shifted=not vectorised)
    loss = ClipPPOLoss(actor, critic)
    optimiser = torch.optim.Adam(loss.parameters(), lr=1e-3)
    buffer = ReplayBuffer(storage=LazyTensorStorage(4), sampler=SamplerWithoutReplacement(), batch_size=2)
    before = [weight.clone() for weight in actor.parameters()]
    for data in collector:
        with set_recurrent_mode(True), torch.no_grad():
            data = gae(data.unsqueeze(0)).squeeze(0)
        with set_recurrent_mode(True):
            acted = data["action_log_prob"]
            again = actor.get_dist(data.select(*actor.in_keys)).log_prob(data["action"])
        assert_matches({"chance": again}, {"chance": acted.double()}, {"chance": acted})
        buffer.extend(data.reshape(4, 16))
        for batch in buffer:
            with set_recurrent_mode(True):
                losses = loss(batch)
            total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
            optimiser.zero_grad()
            total.backward()
            optimiser.step()
        buffer.empty()
    assert any(not torch.equal(old, new) for old, new in zip(before, actor.parameters(), strict=True))


def test_several_environments_side_by_side_are_replayed_as_they_were_played():
    from torchrl.collectors import Collector
    from torchrl.modules import set_recurrent_mode

    environment, actor, _ = parts(copies=3)
    [data] = Collector(environment, actor, frames_per_batch=96, total_frames=96)
    assert data.shape == (3, 32)
    assert data["is_init"].sum() > 3  # some episodes have ended
    with set_recurrent_mode(True):
        again = actor.get_dist(data.select(*actor.in_keys)).log_prob(data["action"])
    acted = data["action_log_prob"]
    assert_matches({"chance": again}, {"chance": acted.double()}, {"chance": acted})


def test_the_port_in_the_documentation_runs():
    from tensordict import TensorDict

    page = Path(__file__).parents[2] / "docs" / "rl.md"
    [port] = re.findall(r"^```py\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    made = {}
    exec(port, made)
    data = TensorDict({"observation": torch.randn(4, 3), "is_init": torch.ones(4, 1).bool()}, [4])
    assert made["memory"](data)["embed"].shape == (4, 32)
    assert set(made["primer"].primers["recurrent_state"].keys()) == set(made["memory"].carried)
