"""Slide 40, run: pretraining on pairs with next-sentence prediction, and without.

Both arms read the same pairs under the same masks, and begin with the same weights.
Both are measured on held-out pairs, and at the end on the sequences without pairs, on
which the baseline ("bidirectional" of the experiment "directions") is measured.
"""

import torch

from bertbook.experiments.arm_summary import summarize_arms
from bertbook.experiments.distributed import Batch
from bertbook.experiments.recording import Experiment
from bertbook.experiments.small import (
    MAX_LENGTH,
    TWO_SEEDS,
    Arm,
    Documents,
    SmallText,
    masked_lm_arm,
    measure_ways,
    runs_of,
    small_text,
)
from bertbook.experiments.training_loop import BOTH_TASKS
from bertbook.heads import BertForPreTraining
from bertbook.pretraining_data import (
    PretrainingExample,
    pair_examples,
    sample_segments,
)
from bertbook.wordpiece import SpecialIds

SAMPLING_SEED = 0


def paired_examples(
    documents: Documents, special: SpecialIds
) -> list[PretrainingExample]:
    """Pairs of segments, half of them with a random second part; one pass.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=50)
    >>> documents = [[[i], [i + 1]] * 9 for i in (10, 20)]
    >>> pairs = paired_examples(documents, special)
    >>> sorted({example.next_sentence_label for example in pairs})
    [0, 1]
    """
    generator = torch.Generator().manual_seed(SAMPLING_SEED)
    pairs = sample_segments(documents, max_length=MAX_LENGTH, generator=generator)
    return pair_examples(pairs, special=special, max_length=MAX_LENGTH)


def with_nsp_arm(pairs: SmallText, sequences: SmallText) -> Arm:
    """Masked tokens, and whether the second part of a pair is the next.

    Args:
        pairs: what is read, and the curve's.
        sequences: without pairs, measured at the end.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> text = one_sentence_text("It rains.")
    >>> list(with_nsp_arm(text, text).parts)
    ['mlm', 'nsp']
    """
    ways = {"sequences": sequences.held_out_batches()}
    return masked_lm_arm(pairs)._replace(
        finish=lambda model: measure_ways(model, ways),
        kind=BertForPreTraining,
        parts=BOTH_TASKS,
    )


def without_nsp_arm(pairs: SmallText, sequences: SmallText) -> Arm:
    """The same pairs, for masked tokens only.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> text = one_sentence_text("It rains.")
    >>> list(without_nsp_arm(text, text).parts)
    ['loss']
    """
    masked_lm, both = masked_lm_arm(pairs), with_nsp_arm(pairs, sequences)
    return masked_lm._replace(
        held_out=[without_pair_labels(batch) for batch in both.held_out],
        change=without_pair_labels,
        finish=both.finish,
    )


def without_pair_labels(batch: Batch) -> Batch:
    """The same batch, which nobody asks whether the second part is the next.

    >>> list(without_pair_labels({"input_ids": 0, "next_sentence_label": 1}))
    ['input_ids']
    """
    return {k: v for k, v in batch.items() if k != "next_sentence_label"}


ARMS = {
    "with-nsp": lambda pairs: with_nsp_arm(pairs, small_text()),
    "without-nsp": lambda pairs: without_nsp_arm(pairs, small_text()),
}

EXPERIMENT = Experiment(
    "next_sentence",
    seeds=[*TWO_SEEDS],
    runs=runs_of(ARMS, seeds=TWO_SEEDS, make_examples=paired_examples),
    summarize=lambda logs: {"arms": summarize_arms(logs)},
)
