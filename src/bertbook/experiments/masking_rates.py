"""Slide 30, run: 40 % and 80 % of the tokens masked in training, where BERT masks 15 %.

All are measured at the same masks, of 15 %. The arm of 15 % is the baseline: the arm
"bidirectional" of the experiment "directions".
"""

from functools import partial

from bertbook.experiments.arm_summary import summarize_arms
from bertbook.experiments.recording import Experiment
from bertbook.experiments.small import (
    TWO_SEEDS,
    Arm,
    SmallText,
    masked_lm_arm,
    runs_of,
)


def rate_arm(text: SmallText, *, probability: float) -> Arm:
    """The baseline, but for the share of tokens that are masked in training.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> rate_arm(one_sentence_text("It rains."), probability=0.4).probability
    0.4
    """
    return masked_lm_arm(text)._replace(probability=probability)


ARMS = {
    "rate-40": partial(rate_arm, probability=0.4),
    "rate-80": partial(rate_arm, probability=0.8),
}

EXPERIMENT = Experiment(
    "masking_rates",
    seeds=[*TWO_SEEDS],
    runs=runs_of(ARMS, seeds=TWO_SEEDS),
    summarize=lambda logs: {"arms": summarize_arms(logs)},
)
