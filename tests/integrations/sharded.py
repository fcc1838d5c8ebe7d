"""One process of two: the same update under DDP and FSDP2 as alone with the whole batch. Arguments: rank, store."""

import copy
import sys
import warnings

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from remanence.nn import RelLSTM
from remanence.testing import assert_matches


def updated(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    (model(x)[0] - y).square().mean().backward()
    torch.optim.SGD(model.parameters(), 0.5).step()
    whole = (p.full_tensor() if hasattr(p, "full_tensor") else p for p in model.parameters())
    return {str(place): p.detach() for place, p in enumerate(whole)}


def main(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(0)
    layer = RelLSTM(3, 8, recent=3, relevant=2, dtype=torch.float64)
    x, y = torch.randn(10, 4, 3).double(), torch.randn(10, 4, 8).double()
    rows = slice(2 * rank, 2 * rank + 2)
    alone = updated(copy.deepcopy(layer), x, y)
    assert_matches(updated(DistributedDataParallel(copy.deepcopy(layer)), x[:, rows], y[:, rows]), alone)
    with warnings.catch_warnings():  # FSDP2 warns of in-place changes to the state, whose fields are views
        warnings.simplefilter("ignore", UserWarning)
        sharded = fully_shard(copy.deepcopy(layer), mesh=init_device_mesh("cpu", (2,)))
        assert sharded.weight_hh_l0.to_local().shape[0] == layer.weight_hh_l0.shape[0] // 2
        assert_matches(updated(sharded, x[:, rows], y[:, rows]), alone)
        start = sharded.initial_state(2)  # weights are shards again; a state is this process's own
        first, _ = sharded.step(x[0, rows], start)
        with torch.no_grad():
            whole = sharded(x[:2, rows])[0]
            _, state = sharded.step(x[0, rows])
            assert_matches({"output": sharded.step(x[1, rows], state)[0]}, {"output": whole[1]})
            assert_matches({"output": first}, {"output": whole[0]})
    dist.destroy_process_group()
    print("same")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
