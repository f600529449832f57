"""The unigram baseline: its formula, and what it gets on held-out addresses."""

import math

import pytest
import torch

from bertbook.baselines import unigram_baseline
from bertbook.masking import IGNORE_INDEX, mask_tokens
from bertbook.wordpiece import SpecialIds

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=9)  # ordinary: 5, 6, 7, 8


def test_by_hand():
    training = torch.tensor([[2, 5, 5, 5, 6, 3], [2, 6, 7, 1, 3, 0]])
    labels = torch.tensor([[5, IGNORE_INDEX, 8], [IGNORE_INDEX, 5, 7]])
    loss, accuracy = unigram_baseline(training, labels, special=SPECIAL)
    # Counts 3, 2, 1, 0 and one more each: of ten, 4, 3, 2 and 1.
    assert loss == pytest.approx(-(2 * math.log(0.4) + math.log(0.1) + math.log(0.2)) / 4)
    assert accuracy == 0.5


def test_no_other_guess_without_context_is_better_on_average():
    """On text that is distributed like the training text, the loss is the entropy: nothing can be below."""
    shares = torch.tensor([0.5, 0.25, 0.125, 0.125])
    text = 5 + torch.multinomial(shares, 200_000, replacement=True, generator=torch.Generator().manual_seed(0))
    _, labels = mask_tokens(text, generator=torch.Generator().manual_seed(1), **SPECIAL.for_masking)
    loss, accuracy = unigram_baseline(text, labels, special=SPECIAL)
    assert loss == pytest.approx(1.75 * math.log(2), abs=0.02)
    assert accuracy == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("labels", "smoothing", "message"),
    [
        ([IGNORE_INDEX], 1.0, "labels must ask for at least one token, got none"),
        ([5, 3], 1.0, "labels must not ask for special tokens"),
        ([5], 0.0, "smoothing must be greater than 0, got 0.0"),
    ],
)
def test_what_has_no_baseline(labels, smoothing, message):
    with pytest.raises(ValueError, match=message):
        unigram_baseline(torch.tensor([5]), torch.tensor(labels), special=SPECIAL, smoothing=smoothing)
