"""The unigram and the copying baseline, against counting."""

import math
from collections import Counter

import pytest
import torch

from bertbook.baselines import copying_baseline, unigram_baseline
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


def counted_cases() -> Counter[tuple[int, int]]:
    """How often each (shown, label) comes about: forty outcomes a token, eight in ten [MASK], one in ten random."""
    cases = Counter()
    for label, count in {5: 30, 6: 20, 7: 4, 8: 1}.items():
        cases[SPECIAL.mask, label] += 32 * count
        for drawn in (5, 6, 7, 8):
            cases[drawn, label] += count
        cases[label, label] += 4 * count
    return cases


TRAINING = torch.tensor([2] + [5] * 29 + [6] * 19 + [7] * 3 + [3, 1, 0])  # and one more each


@pytest.mark.parametrize("shown", [4, 5, 6, 7, 8])
def test_copying_is_what_counting_every_outcome_finds(shown):
    cases = {label: count for (seen, label), count in counted_cases().items() if seen == shown}
    best = max(cases, key=cases.get)
    for label, count in cases.items():
        loss, accuracy = copying_baseline(
            TRAINING, masked_ids=torch.tensor([shown]), labels=torch.tensor([label]), special=SPECIAL
        )
        assert loss == pytest.approx(-math.log(count / sum(cases.values())))
        assert accuracy == (label == best)


def test_what_is_shown_may_be_too_rare_to_be_believed():
    """The rarest piece is more often a random replacement of the most frequent one than itself."""
    cases = counted_cases()
    assert cases[8, 5] > cases[8, 8]
    assert cases[6, 6] > cases[6, 5]


def test_copying_takes_means_over_what_is_asked_for():
    masked_ids = torch.tensor([[2, 4, 6], [6, 5, 3]])
    labels = torch.tensor([[IGNORE_INDEX, 5, 6], [5, IGNORE_INDEX, IGNORE_INDEX]])
    loss, accuracy = copying_baseline(TRAINING, masked_ids=masked_ids, labels=labels, special=SPECIAL)
    cases = counted_cases()
    totals = {shown: sum(count for (seen, _), count in cases.items() if seen == shown) for shown in (4, 6)}
    shares = [cases[place] / totals[place[0]] for place in ((4, 5), (6, 6), (6, 5))]
    assert loss == pytest.approx(-sum(map(math.log, shares)) / 3)
    assert accuracy == pytest.approx(2 / 3)


def test_nothing_that_sees_only_its_own_place_is_better_at_masked_text():
    """A table fitted to the very text that mask_tokens made knows nothing more."""
    shares = torch.tensor([0.6, 0.3, 0.08, 0.02])
    text = 5 + torch.multinomial(shares, 500_000, replacement=True, generator=torch.Generator().manual_seed(0))
    masked_ids, labels = mask_tokens(text, generator=torch.Generator().manual_seed(1), **SPECIAL.for_masking)
    loss, accuracy = copying_baseline(text, masked_ids=masked_ids, labels=labels, special=SPECIAL)
    asked = labels != IGNORE_INDEX
    table = torch.bincount(masked_ids[asked] * 9 + labels[asked], minlength=81).view(9, 9).double()
    fitted = -torch.special.xlogy(table, table / table.sum(dim=1, keepdim=True).clamp(min=1)).sum() / table.sum()
    assert fitted <= loss < fitted + 2e-4
    assert accuracy == pytest.approx((table.amax(dim=1).sum() / table.sum()).item(), abs=2e-4)
    unigram = unigram_baseline(text, labels, special=SPECIAL)
    assert loss < unigram[0] - 0.03
    assert accuracy > unigram[1]


@pytest.mark.parametrize(
    ("masked_ids", "labels", "smoothing", "message"),
    [
        ([5], [IGNORE_INDEX], 1.0, "labels must ask for at least one token, got none"),
        ([5, 4], [5, 3], 1.0, "labels must not ask for special tokens"),
        ([5, 3], [5, 5], 1.0, r"masked_ids must show \[MASK\] or an ordinary piece"),
        ([5, 3], [5], 1.0, r"the same shape, got \(2,\) and \(1,\)"),
        ([5], [5], 0.0, "smoothing must be greater than 0, got 0.0"),
    ],
)
def test_what_cannot_be_copied(masked_ids, labels, smoothing, message):
    masked_ids, labels = torch.tensor(masked_ids), torch.tensor(labels)
    with pytest.raises(ValueError, match=message):
        copying_baseline(TRAINING, masked_ids=masked_ids, labels=labels, special=SPECIAL, smoothing=smoothing)
