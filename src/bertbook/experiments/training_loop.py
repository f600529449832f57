"""The loop that pretrains: any model, one process or many, resumable to the last bit.

Nothing in it depends on how often it was stopped. The batch, the learning rate and
the random numbers of a step are functions of its number.
"""

import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from bertbook.experiments.distributed import ALONE, Batch, World, rows_of, unsynced
from bertbook.masking import IGNORE_INDEX
from bertbook.optimizers import parameter_groups
from bertbook.schedules import linear_warmup_decay


class LossPart(NamedTuple):
    """One mean that the loss is made of, and over how many things it is taken.

    Means of parts of a batch cannot be averaged: their numbers of things differ. With
    the number, a part is weighed so that the whole batch's mean comes out.

    >>> LossPart(lambda output: output.loss, count_labelled).count(
    ...     {"labels": torch.tensor([[IGNORE_INDEX, 7]])})
    1
    """

    mean: Callable[[Any], Tensor]  # of the model's output
    count: Callable[[Batch], int]


def count_labelled(batch: Batch) -> int:
    """How many tokens have a label.

    >>> count_labelled({"labels": torch.tensor([[IGNORE_INDEX, 7, 8]])})
    2
    """
    return int((batch["labels"] != IGNORE_INDEX).sum())


def count_sequences(batch: Batch) -> int:
    """How many sequences there are.

    >>> count_sequences({"input_ids": torch.zeros(3, 8)})
    3
    """
    return len(batch["input_ids"])


LABELLED = {"loss": LossPart(lambda output: output.loss, count_labelled)}
BOTH_TASKS = {
    "mlm": LossPart(lambda output: output.masked_lm_loss, count_labelled),
    "nsp": LossPart(lambda output: output.next_sentence_loss, count_sequences),
}


@dataclass(frozen=True)
class TrainingSettings:
    """How a model is trained.

    Args:
        steps: of the whole run, at least 1; a step sees one batch.
        learning_rate: the peak's, greater than 0.
        warmup_steps: how many steps lead up to it, from 0 to steps.
        weight_decay: AdamW's, of matrices only; at least 0.
        max_norm: the gradient is made no longer than this; greater than 0.
        accumulation: in how many parts a process computes its rows; at least 1.
        precision: "float32", or "bfloat16" for autocast.
        seed: of the dropout.

    Raises:
        ValueError: if one of them is not as described.

    Source: Devlin et al. 2019, appendix A.2; google-research/bert, optimization.py.

    >>> TrainingSettings(steps=10, learning_rate=1e-3, warmup_steps=20)
    Traceback (most recent call last):
    ValueError: warmup_steps must be from 0 to steps = 10, got 20
    """

    steps: int
    learning_rate: float
    warmup_steps: int = 0
    weight_decay: float = 0.01
    max_norm: float = 1.0
    accumulation: int = 1
    precision: str = "float32"
    seed: int = 0

    def __post_init__(self):
        for name in ("steps", "accumulation"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 1, got {getattr(self, name)}"
                )
        for name in ("learning_rate", "max_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"{name} must be greater than 0, got {getattr(self, name)}"
                )
        if not self.weight_decay >= 0:
            raise ValueError(
                f"weight_decay must be at least 0, got {self.weight_decay}"
            )
        if not 0 <= self.warmup_steps <= self.steps:
            raise ValueError(
                f"warmup_steps must be from 0 to steps = {self.steps}, "
                f"got {self.warmup_steps}"
            )
        if self.precision not in ("float32", "bfloat16"):
            raise ValueError(
                f"precision must be 'float32' or 'bfloat16', got {self.precision!r}"
            )


class Batches(Protocol):
    """What a Trainer reads: a list of batches will do.

    >>> batches: Batches = [{"input_ids": torch.zeros(2, 3)}]
    """

    def __getitem__(self, step: int) -> Batch:
        """The batch of a step, the same however often it is asked for."""


class Trainer:
    """A model, its optimiser, and how far they are.

    Args:
        model: called with a batch's tensors by name.
        batches: batches[step] is the whole batch of a step, the same in every process;
            each process computes its rows of it.
        settings: how to train.
        parts: what of the model's output is made smaller, by name; the loss is their
            sum. By default the output's `loss`, a mean over the labelled tokens.
        world: the processes that train together.

    Source: slide 38 (the five steps); Devlin et al. 2019, appendix A.2.

    >>> from types import SimpleNamespace
    >>> class Zeros(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.guess = nn.Parameter(torch.ones(1))
    ...     def forward(self, labels):
    ...         return SimpleNamespace(loss=(self.guess**2).sum())
    >>> settings = TrainingSettings(steps=3, learning_rate=0.5)
    >>> trainer = Trainer(Zeros(), [{"labels": torch.ones(2, 1)}] * 3, settings)
    >>> [round(losses["loss"], 2) for losses in trainer.steps(upto=3)]
    [1.0, 0.25, 0.03]
    """

    def __init__(
        self,
        model: nn.Module,
        batches: Batches,
        settings: TrainingSettings,
        *,
        parts: dict[str, LossPart] = LABELLED,
        world: World = ALONE,
    ):
        self.model, self.batches, self.settings = model, batches, settings
        self.parts, self.world = parts, world
        self.replica = world.wrap(model)
        self.optimizer = torch.optim.AdamW(
            parameter_groups(model, weight_decay=settings.weight_decay),
            lr=settings.learning_rate,
            eps=1e-6,
            fused=True,
        )
        self.steps_done = 0

    def steps(self, *, upto: int) -> Iterator[dict[str, float]]:
        """Train until so many steps are done, and yield the losses of each.

        The caller's random numbers are left as they were.

        Yields:
            the whole batch's mean of each part, in nats, before its step.

        Raises:
            ValueError: if upto is beyond the settings' steps.
            FloatingPointError: if a loss is not finite.
        """
        if upto > self.settings.steps:
            raise ValueError(
                f"upto must be at most the run's {self.settings.steps} steps, "
                f"got {upto}"
            )
        while self.steps_done < upto:
            with forked_random(self.world.device):
                losses = self.step()
            yield losses

    def step(self) -> dict[str, float]:
        """One step; see `steps`."""
        settings, step = self.settings, self.steps_done
        torch.manual_seed(mixed_seed(settings.seed, step, self.world.rank))
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate * linear_warmup_decay(
                step, warmup_steps=settings.warmup_steps, total_steps=settings.steps
            )
        self.model.train()  # an evaluation may have been in between
        self.optimizer.zero_grad()
        losses = self.accumulate_gradients(self.batches[step])
        for name, loss in losses.items():
            if not math.isfinite(loss):
                raise FloatingPointError(
                    f"the {name} of step {step} is {loss}: lower the learning rate "
                    f"({settings.learning_rate}), or warm up for longer"
                )
        nn.utils.clip_grad_norm_(self.model.parameters(), settings.max_norm)
        self.optimizer.step()
        self.steps_done += 1
        return losses

    def accumulate_gradients(self, batch: Batch) -> dict[str, float]:
        """The gradient of the whole batch's loss, and its parts."""
        counts = {name: max(part.count(batch), 1) for name, part in self.parts.items()}
        own = rows_of(batch, self.world.rank, parts=self.world.size)
        accumulation = self.settings.accumulation
        sums = dict.fromkeys(self.parts, 0.0)
        for i in range(accumulation):
            rows = rows_of(own, i, parts=accumulation)
            losses = self.weighed_losses(rows, counts, last=i == accumulation - 1)
            sums = {name: sums[name] + losses[name] for name in sums}
        return dict(zip(sums, self.world.sum([*sums.values()]), strict=True))

    def weighed_losses(
        self, rows: Batch, counts: dict[str, int], *, last: bool
    ) -> dict[str, float]:
        """Add the gradient of some rows; their share of the whole batch's means."""
        shares = {
            name: part.count(rows) / counts[name] for name, part in self.parts.items()
        }
        device = self.world.device
        rows = {name: tensor.to(device) for name, tensor in rows.items()}
        low = self.settings.precision == "bfloat16"
        with nullcontext() if last else unsynced(self.replica):
            with torch.autocast(device.type, torch.bfloat16, enabled=low):
                output = self.replica(**rows)
            losses = {
                name: part.mean(output).float() * shares[name]
                for name, part in self.parts.items()
            }
            # The processes' gradients are averaged; their shares must be summed.
            (sum(losses.values()) * self.world.size).backward()
        return {name: loss.item() for name, loss in losses.items()}

    def state_dict(self) -> dict[str, Any]:
        """All that the next step depends on, besides the batches and the settings."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "steps_done": self.steps_done,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where another trainer was."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.steps_done = state["steps_done"]


def forked_random(device: torch.device) -> AbstractContextManager:
    """Inside, torch's global random numbers are one's own; Apple's GPU has no such way.

    >>> with forked_random(torch.device("cpu")):
    ...     drawn = torch.rand(1)
    >>> bool(torch.rand(1) == drawn)
    True
    """
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


def mixed_seed(*parts: int | str) -> int:
    """One seed made of several numbers or words; different ones do not meet.

    >>> mixed_seed(0, 1) != mixed_seed(1, 0)
    True
    """
    digest = hashlib.sha256(" ".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
