"""100/0/0 for a model that can read already: the recipe first, then nothing but gaps.

With nothing but gaps from the start ("always_mask"), a small model stays on the plateau
for so long that its end says nothing of what random and kept tokens are for. So this
arm is the baseline ("bidirectional" of the experiment "directions") until it is off the
plateau. From then on, [MASK] stands at every selected place.
"""

from collections.abc import Callable
from functools import partial

from bertbook.experiments.always_mask import always_mask_arm
from bertbook.experiments.arm_summary import summarize_arms
from bertbook.experiments.distributed import Batch, World
from bertbook.experiments.recording import Experiment, Run
from bertbook.experiments.small import (
    TWO_SEEDS,
    SmallText,
    masked_lm_arm,
    small_run,
    small_text,
)
from bertbook.experiments.training_loop import Batches

CHANGED_FROM = 2500  # steps: the baseline is off the plateau by then


class ChangedBatches:
    """Other batches, of which those of the later steps are changed.

    >>> batches = ChangedBatches([{"a": 1}, {"a": 2}], lambda batch: {}, first=1)
    >>> batches[0], batches[1]
    ({'a': 1}, {})
    """

    def __init__(
        self, batches: Batches, change: Callable[[Batch], Batch], *, first: int
    ):
        self.batches, self.change, self.first = batches, change, first

    def __getitem__(self, step: int) -> Batch:
        """The batch of a step."""
        batch = self.batches[step]
        return batch if step < self.first else self.change(batch)


def mask_later_run(text: SmallText, *, seed: int, world: World) -> Run:
    """The baseline's run, with the same sequences and gaps in every step.

    >>> from bertbook.experiments.small import one_sentence_text
    >>> run = mask_later_run(one_sentence_text("It rains."), seed=0, world=World())
    >>> run.trainer.batches.first
    2500
    """
    run = small_run(masked_lm_arm(text), seed=seed, world=world)
    run.trainer.batches = ChangedBatches(
        run.trainer.batches, always_mask_arm(text).change, first=CHANGED_FROM
    )
    return run


def prepare(seed: int, world: World) -> Run:
    """A run on the whole text, which is prepared when the run begins.

    >>> callable(partial(prepare, 0))
    True
    """
    return mask_later_run(small_text(), seed=seed, world=world)


EXPERIMENT = Experiment(
    "mask_later",
    seeds=[*TWO_SEEDS],
    runs={f"mask-later-{seed}": partial(prepare, seed) for seed in TWO_SEEDS},
    summarize=lambda logs: {
        "arms": summarize_arms(logs),
        "changed_from": CHANGED_FROM,
    },
)
