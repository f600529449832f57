"""One process or many, a CPU or GPUs: what differs, so that the training does not.

``torchrun --nproc-per-node 2 script.py`` starts a script twice and tells each process
which one it is. Alone, a process is the first of one.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

CPU = torch.device("cpu")
Batch = dict[str, Tensor]  # the model's arguments by name, one row a sequence


@dataclass(frozen=True)
class World:
    """Who trains: which process this is, of how many, and on what it computes.

    >>> World().leads
    True
    """

    rank: int = 0
    size: int = 1
    device: torch.device = CPU

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes files and reports."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """The model, on its device; with other processes, gradients are averaged."""
        model.to(self.device)
        if self.size == 1:
            return model
        ids = [self.device.index] if self.device.type == "cuda" else None
        return DistributedDataParallel(model, device_ids=ids)

    def sum(self, numbers: Sequence[float]) -> list[float]:
        """The sums over all processes, the same in each."""
        if self.size == 1:
            return list(numbers)
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        distributed.all_reduce(total)
        return total.tolist()

    def wait(self) -> None:
        """Go on when all processes are here."""
        if self.size > 1:
            distributed.barrier()


ALONE = World()


def choose_device(*, local_rank: int = 0, size: int = 1) -> torch.device:
    """A GPU of one's own where there is one, then Apple's GPU, then the CPU.

    Args:
        local_rank: which process of this machine asks.
        size: how many processes there are; Apple's GPU serves only one.

    Raises:
        ValueError: if this machine has GPUs, but fewer than processes.

    Source: PyTorch documentation, torch.distributed.

    >>> choose_device().type in ("cuda", "mps", "cpu")
    True
    """
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        if local_rank >= count:
            raise ValueError(
                f"process {local_rank} of this machine has no GPU: there are {count}; "
                f"start at most {count}, or hide them with CUDA_VISIBLE_DEVICES="
            )
        return torch.device("cuda", local_rank)
    if size == 1 and torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


def choose_precision(device: torch.device) -> str:
    """ "bfloat16" where the device has instructions for it, else "float32".

    Emulated, it would be slower than float32.

    >>> choose_precision(torch.device("cpu")) in ("bfloat16", "float32")
    True
    """
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    elif device.type == "cpu":
        has = torch.cpu.get_capabilities()
        fast = any(name.endswith("bf16") for name, there in has.items() if there)
    else:
        fast = False
    return "bfloat16" if fast else "float32"


@contextmanager
def joined_world(device: str | None = None) -> Iterator[World]:
    """The world that torchrun has made, or that of this process alone.

    Args:
        device: None: the best there is (see choose_device); or its name.

    >>> with joined_world("cpu") as world:
    ...     world.size, world.device
    (1, device(type='cpu'))
    """
    rank = int(os.environ.get("RANK", 0))
    size = int(os.environ.get("WORLD_SIZE", 1))
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    best = choose_device(local_rank=local_rank, size=size) if device is None else device
    device = torch.device(best)
    if device.type == "cuda":
        device = torch.device("cuda", local_rank)
        torch.cuda.set_device(device)
    if size == 1:
        yield World(device=device)
        return
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, rank=rank, world_size=size)
    try:
        yield World(rank, size, device)
    finally:
        distributed.destroy_process_group()


def rows_of(batch: Batch, part: int, *, parts: int) -> Batch:
    """Every parts-th row of a batch, from row `part` on.

    Raises:
        ValueError: if there are fewer rows than parts, or the tensors of the batch
            have different numbers of rows.

    >>> rows_of({"input_ids": torch.arange(5)}, 1, parts=2)
    {'input_ids': tensor([1, 3])}
    """
    rows = {name: len(tensor) for name, tensor in batch.items()}
    if len(set(rows.values())) != 1:
        raise ValueError(f"batch must have the same rows in each tensor, got {rows}")
    if min(rows.values()) < parts:
        raise ValueError(
            f"batch must have a row for each of the {parts} parts (processes times "
            f"accumulation), got {min(rows.values())}: give larger batches"
        )
    return {name: tensor[part::parts] for name, tensor in batch.items()}


def unsynced(model: nn.Module) -> AbstractContextManager:
    """Where gradients pile up in this process, and are not averaged yet.

    >>> with unsynced(nn.Linear(2, 1)):
    ...     print("one process has nothing to wait for")
    one process has nothing to wait for
    """
    if isinstance(model, DistributedDataParallel):
        return model.no_sync()
    return nullcontext()
