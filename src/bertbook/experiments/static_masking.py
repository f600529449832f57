"""Masked once and for all (static), or anew at each step (dynamic).

On the whole text, the dynamic arm is the baseline: "bidirectional" of the experiment
"directions". A run reads the whole text only a few times, so a static mask is seldom
seen again. Hence both, too, on every tenth sequence, which is read ten times as often.
"""

from functools import partial

import torch

from bertbook.batches import mask_once
from bertbook.experiments.arm_summary import summarize_arms
from bertbook.experiments.recording import Experiment
from bertbook.experiments.small import (
    TWO_SEEDS,
    Arm,
    SmallText,
    masked_lm_arm,
    runs_of,
)

STATIC_SEED = 0


def dynamic_arm(text: SmallText, *, every: int) -> Arm:
    """The baseline, on every so-many-th training sequence.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> text = one_sentence_text("It rains.")
    >>> len(text.training), len(dynamic_arm(text, every=2).training)
    (4, 2)
    """
    arm = masked_lm_arm(text)
    return arm._replace(training=arm.training[::every])


def static_arm(text: SmallText, *, every: int = 1) -> Arm:
    """The same, with examples that are masked before the first step.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> arm = static_arm(one_sentence_text("It rains."))
    >>> all(example.labels is not None for example in arm.training)
    True
    """
    arm = dynamic_arm(text, every=every)
    generator = torch.Generator().manual_seed(STATIC_SEED)
    training = mask_once(arm.training, special=arm.special, generator=generator)
    return arm._replace(training=training)


ARMS = {
    "static": static_arm,
    "static-tenth": partial(static_arm, every=10),
    "dynamic-tenth": partial(dynamic_arm, every=10),
}

EXPERIMENT = Experiment(
    "static_masking",
    seeds=[*TWO_SEEDS],
    runs=runs_of(ARMS, seeds=TWO_SEEDS),
    summarize=lambda logs: {"arms": summarize_arms(logs)},
)
