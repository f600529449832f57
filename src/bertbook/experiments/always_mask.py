"""100/0/0 instead of 80/10/10: every selected token becomes [MASK], and none else.

The other arm is the baseline: "bidirectional" of the experiment "directions". Both are
asked for the same tokens three times, with [MASK], the token itself, or a random piece
at their places; only with [MASK] was this one ever asked.
"""

from functools import partial

from bertbook.experiments.arm_summary import summarize_arms
from bertbook.experiments.distributed import Batch
from bertbook.experiments.recording import Experiment
from bertbook.experiments.small import (
    TWO_SEEDS,
    Arm,
    SmallText,
    masked_lm_arm,
    runs_of,
)
from bertbook.masking import IGNORE_INDEX


def always_masked(batch: Batch, *, mask_token_id: int) -> Batch:
    """The same tokens are asked for, and [MASK] stands at all their places.

    >>> import torch
    >>> batch = {"input_ids": torch.tensor([[2, 7, 8, 3]]),
    ...          "labels": torch.tensor([[-100, 5, -100, -100]])}
    >>> always_masked(batch, mask_token_id=4)["input_ids"]
    tensor([[2, 4, 8, 3]])
    """
    selected = batch["labels"] != IGNORE_INDEX
    masked_ids = batch["input_ids"].masked_fill(selected, mask_token_id)
    return {**batch, "input_ids": masked_ids}


def always_mask_arm(text: SmallText) -> Arm:
    """The baseline, but for what stands at the selected places in training.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> always_mask_arm(one_sentence_text("It rains.")).probability
    0.15
    """
    change = partial(always_masked, mask_token_id=text.special.mask)
    return masked_lm_arm(text)._replace(change=change)


EXPERIMENT = Experiment(
    "always_mask",
    seeds=[*TWO_SEEDS],
    runs=runs_of({"always-mask": always_mask_arm}, seeds=TWO_SEEDS),
    summarize=lambda logs: {"arms": summarize_arms(logs)},
)
