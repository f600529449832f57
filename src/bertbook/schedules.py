"""How the learning rate changes during a run: up for a while, then down to nothing."""

import math


def linear_warmup_decay(step: int, *, warmup_steps: int, total_steps: int) -> float:
    """The factor on the peak rate at a step: a line up to 1, then a line down to 0.

    Steps count from 0, as `LambdaLR` counts them. The first step already moves, and
    after the last the factor stays at 0.

    Args:
        step: which optimiser step, at least 0.
        warmup_steps: how many steps the rise takes, from 0 to total_steps.
        total_steps: how many steps the run has, at least 1.

    Returns:
        a factor between 0 and 1.

    Raises:
        TypeError: if one of the three is not an int.
        ValueError: if one of them is outside its range.

    Source: the fine-tuning text; google-research/bert, optimization.py.

    >>> [linear_warmup_decay(s, warmup_steps=2, total_steps=6) for s in range(7)]
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
    """
    counts = {"step": step, "warmup_steps": warmup_steps, "total_steps": total_steps}
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool):
            raise TypeError(f"{name} must be an int, got {count!r}")
    if total_steps < 1:
        raise ValueError(f"total_steps must be at least 1, got {total_steps}")
    if not 0 <= warmup_steps <= total_steps:
        raise ValueError(
            f"warmup_steps must be from 0 to total_steps = {total_steps}, "
            f"got {warmup_steps}"
        )
    if step < 0:
        raise ValueError(f"step must be at least 0, got {step}")
    if step >= total_steps:
        return 0.0  # a loop that runs on must not climb the gradient
    if step < warmup_steps:
        return (step + 1) / warmup_steps  # + 1: a first step of 0 would be wasted
    return (total_steps - step) / (total_steps - warmup_steps)


def count_steps(num_examples: int, *, batch_size: int, epochs: int) -> int:
    """How many optimiser steps a run has; the last batch of an epoch may be smaller.

    Raises:
        TypeError: if one of the three is not an int.
        ValueError: if one of the three is not positive.

    Source: the fine-tuning text.

    >>> count_steps(100, batch_size=32, epochs=3)  # 32 + 32 + 32 + 4, three times
    12
    """
    sizes = {"num_examples": num_examples, "batch_size": batch_size, "epochs": epochs}
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool):
            raise TypeError(f"{name} must be an int, got {size!r}")
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
    return math.ceil(num_examples / batch_size) * epochs
