"""Which sequences make up the batch of a step, as a function of the step's number."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from bertbook.experiments.distributed import Batch
from bertbook.experiments.training_loop import Batches, mixed_seed

Collate = Callable[..., Batch]  # called as collate(examples, generator=generator)


class ShuffledBatches:
    """Batches of a data set without an end; each epoch is in an order of its own.

    Nothing is left out: a batch at the end of an epoch is filled up with the first
    examples of the next. Since batch number `step` depends on nothing but `step`, a
    run that was stopped goes on with the very batch that it would have seen.

    Args:
        examples: a data set, at least one example.
        collate: makes a batch of some examples, called as
            collate(examples, generator=generator). What it draws (masks) is new for
            each step.
        batch_size: sequences a batch.
        seed: of the order and of the generator.

    Raises:
        ValueError: if there is no example, or batch_size or a step is out of range.

    >>> def collate(examples, *, generator):
    ...     return {"input_ids": torch.tensor(examples)}
    >>> batches = ShuffledBatches([5, 6, 7], collate, batch_size=2, seed=0)
    >>> [batches[step]["input_ids"].tolist() for step in range(3)]
    [[7, 5], [6, 5], [6, 7]]
    """

    def __init__(
        self, examples: Sequence[Any], collate: Collate, *, batch_size: int, seed: int
    ):
        if len(examples) == 0:
            raise ValueError("examples is empty: there is nothing to make a batch of")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.examples, self.collate = examples, collate
        self.batch_size, self.seed = batch_size, seed
        self.epoch: tuple[int, list[int]] = (-1, [])  # its number, and its order

    def __getitem__(self, step: int) -> Batch:
        """The batch of a step."""
        if step < 0:
            raise ValueError(f"step must be at least 0, got {step}")
        first = step * self.batch_size
        chosen = [self.example(i) for i in range(first, first + self.batch_size)]
        generator = torch.Generator().manual_seed(mixed_seed(self.seed, "step", step))
        return self.collate(chosen, generator=generator)

    def example(self, i: int) -> Any:
        """The i-th example that a run sees, counted through all epochs."""
        number, place = divmod(i, len(self.examples))
        if self.epoch[0] != number:
            generator = torch.Generator()
            generator.manual_seed(mixed_seed(self.seed, "epoch", number))
            order = torch.randperm(len(self.examples), generator=generator)
            self.epoch = (number, order.tolist())
        return self.examples[self.epoch[1][place]]


class ConsecutiveBatches:
    """The batches of one source for some steps, then those of the next.

    Args:
        parts: of each source, for how many steps, at least 1, and its batches.

    Raises:
        ValueError: if there is no part, or one has no step.
        IndexError: if a step is beyond the last part's.

    >>> batches = ConsecutiveBatches([(2, ["a", "b"]), (1, ["c"])])
    >>> [batches[step] for step in range(3)]
    ['a', 'b', 'c']
    """

    def __init__(self, parts: Sequence[tuple[int, Batches]]):
        if not parts or any(steps < 1 for steps, _ in parts):
            raise ValueError(
                "parts must have at least one step each, "
                f"got {[steps for steps, _ in parts]}"
            )
        self.parts = parts

    def __getitem__(self, step: int) -> Batch:
        """The batch of a step."""
        for steps, batches in self.parts:
            if 0 <= step < steps:
                return batches[step]
            step -= steps
        raise IndexError(
            f"step must be from 0 to {sum(steps for steps, _ in self.parts) - 1}"
        )
