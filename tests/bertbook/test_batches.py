"""Batches: the collator's fields, dynamic and static masking, fixed evaluation, buckets; and the errors."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from bertbook.batches import (
    LengthBuckets,
    PretrainingCollator,
    evaluation_batches,
    mask_once,
    padding_share,
)
from bertbook.config import BertConfig
from bertbook.heads import BertForPreTraining
from bertbook.masking import IGNORE_INDEX
from bertbook.pairs import IS_NEXT, NOT_NEXT, SentencePair
from bertbook.pretraining_data import pair_examples, sequence_examples
from bertbook.wordpiece import SpecialIds

property_test = settings(max_examples=60, deadline=None, derandomize=True)
SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=60)
lengths_lists = st.lists(st.integers(1, 40), min_size=1, max_size=60)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sequences(lengths: list[int], seed: int = 0) -> list:
    ids = [torch.randint(5, 60, (length,), generator=seeded(seed + i)).tolist() for i, length in enumerate(lengths)]
    return sequence_examples(ids, special=SPECIAL, max_length=50)


def pairs(number: int) -> list:
    found = [SentencePair([5 + i] * (i + 1), [30 + i] * 2, i % 2) for i in range(number)]
    return pair_examples(found, special=SPECIAL, max_length=30)


def original_ids(batch: dict) -> torch.Tensor:
    """What stood there before the masking."""
    return torch.where(batch["labels"] == IGNORE_INDEX, batch["input_ids"], batch["labels"])


@property_test
@given(lengths=lengths_lists, seed=st.integers(0, 10**6), static=st.booleans())
def test_a_batch_holds_its_examples_and_padding(lengths, seed, static):
    examples = sequences(lengths, seed)
    given_ = mask_once(examples, special=SPECIAL, generator=seeded(seed)) if static else examples
    batch = PretrainingCollator(SPECIAL, generator=seeded(seed))(given_)
    T = max(lengths) + 2
    assert list(batch) == ["input_ids", "token_type_ids", "attention_mask", "labels"]
    assert all(field.shape == (len(lengths), T) and field.dtype == torch.int64 for field in batch.values())
    assert batch["attention_mask"].sum(dim=1).tolist() == [length + 2 for length in lengths]
    padding = batch["attention_mask"] == 0
    assert (batch["input_ids"][padding] == SPECIAL.pad).all()
    assert (batch["labels"][padding] == IGNORE_INDEX).all()
    for row, example in zip(original_ids(batch), examples, strict=True):
        assert torch.equal(row[: len(example.input_ids)], example.input_ids)


def test_pairs_bring_their_label_and_their_segments():
    batch = PretrainingCollator(SPECIAL, generator=seeded())(pairs(3))
    assert batch["next_sentence_label"].tolist() == [IS_NEXT, NOT_NEXT, IS_NEXT]
    assert batch["token_type_ids"].tolist() == [
        [0, 0, 0, 1, 1, 1, 0, 0],
        [0, 0, 0, 0, 1, 1, 1, 0],
        [0, 0, 0, 0, 0, 1, 1, 1],
    ]


def test_a_batch_is_what_the_model_takes():
    batch = PretrainingCollator(SPECIAL, generator=seeded())(pairs(3))
    sizes = {"vocab_size": 60, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = BertForPreTraining(BertConfig(**sizes, intermediate_size=16, max_position_embeddings=40))
    inputs = {name: batch[name] for name in ("input_ids", "token_type_ids", "attention_mask")}
    assert model(**inputs).prediction_logits.shape == (3, 8, 60)


def test_dynamic_masking_is_fresh_and_static_masking_stays():
    examples = sequences([40] * 20)
    dynamic = PretrainingCollator(SPECIAL, generator=seeded())
    first, second = dynamic(examples), dynamic(examples)
    assert not torch.equal(first["labels"], second["labels"])
    again = PretrainingCollator(SPECIAL, generator=seeded())(examples)
    assert all(torch.equal(first[name], again[name]) for name in first)

    masked = mask_once(examples, special=SPECIAL, generator=seeded())
    static = PretrainingCollator(SPECIAL, generator=seeded())
    first, second = static(masked), static(masked[::-1])
    assert torch.equal(first["labels"], second["labels"].flip(0))
    assert torch.equal(first["input_ids"], second["input_ids"].flip(0))
    assert torch.equal(static.generator.get_state(), seeded().get_state())  # nothing was drawn


def test_masking_once_leaves_the_examples():
    examples = pairs(4)
    before = [example.input_ids.clone() for example in examples]
    masked = mask_once(examples, special=SPECIAL, generator=seeded(), probability=0.9)
    assert all(map(torch.equal, before, (example.input_ids for example in examples)))
    assert all(example.labels is None for example in examples)
    assert [example.next_sentence_label for example in masked] == [0, 1, 0, 1]
    with pytest.raises(ValueError, match="examples must not be masked yet"):
        mask_once(masked, special=SPECIAL, generator=seeded())


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_evaluation_asks_the_same_whatever_the_batch_size(batch_size):
    examples = sequences([30, 5, 17, 30, 9, 22, 1])

    def asked(size: int, seed: int) -> list:
        batches = evaluation_batches(examples, special=SPECIAL, batch_size=size, seed=seed)
        return [
            (ids[real == 1].tolist(), labels[real == 1].tolist())
            for batch in batches
            for ids, labels, real in zip(batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True)
        ]

    assert asked(batch_size, 0) == asked(2, 0)
    assert asked(batch_size, 0) != asked(2, 1)
    assert sorted(len(ids) for ids, _ in asked(batch_size, 0)) == sorted(len(e.input_ids) for e in examples)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PretrainingCollator(SPECIAL, generator=seeded())([]), "examples must hold at least one example"),
        (
            lambda: PretrainingCollator(SPECIAL, generator=seeded())(pairs(2) + sequences([3])),
            "examples must all have next_sentence_label, or none: 1 of 3 have not",
        ),
        (
            lambda: PretrainingCollator(SPECIAL, generator=seeded())(
                sequences([3, 4]) + mask_once(sequences([3]), special=SPECIAL, generator=seeded())
            ),
            "examples must all have labels, or none: 2 of 3 have not",
        ),
        (
            lambda: evaluation_batches(sequences([3]), special=SPECIAL, batch_size=0, seed=0),
            "batch_size must be at least 1, got 0",
        ),
        (lambda: LengthBuckets([], batch_size=2, generator=seeded()), "lengths must hold the length of at least one"),
        (lambda: LengthBuckets([3], batch_size=0, generator=seeded()), "batch_size must be at least 1, got 0"),
        (
            lambda: LengthBuckets([3], batch_size=1, pool_batches=0, generator=seeded()),
            "pool_batches must be at least 1, got 0",
        ),
        (lambda: padding_share([3], []), "batches must hold at least one batch"),
    ],
)
def test_what_makes_no_batch(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@property_test
@given(lengths=lengths_lists, batch_size=st.integers(1, 20), pool=st.integers(1, 9), seed=st.integers(0, 10**6))
def test_every_example_comes_exactly_once_an_epoch(lengths, batch_size, pool, seed):
    buckets = LengthBuckets(lengths, batch_size=batch_size, pool_batches=pool, generator=seeded(seed))
    again = LengthBuckets(lengths, batch_size=batch_size, pool_batches=pool, generator=seeded(seed))
    epochs = [list(buckets), list(buckets)]
    assert epochs == [list(again), list(again)]
    for batches in epochs:
        assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
        assert len(batches) == len(buckets)
        assert sorted(map(len, batches))[1:] == [batch_size] * (len(batches) - 1)


def test_two_epochs_differ():
    buckets = LengthBuckets(range(1, 200), batch_size=4, generator=seeded())
    assert list(buckets) != list(buckets)


def test_lengths_within_a_pool_do_not_overlap():
    """With one pool, no batch has a length strictly between two lengths of another."""
    lengths = torch.randint(1, 99, (200,), generator=seeded()).tolist()
    batches = list(LengthBuckets(lengths, batch_size=8, pool_batches=100, generator=seeded()))
    ranges = sorted((min(lengths[i] for i in batch), max(lengths[i] for i in batch)) for batch in batches)
    assert all(first[1] <= second[0] for first, second in pairwise(ranges))
    assert ranges != [(min(lengths[i] for i in b), max(lengths[i] for i in b)) for b in batches]  # in random order


def test_buckets_save_padding():
    lengths = torch.randint(1, 99, (2000,), generator=seeded()).tolist()
    shares = {
        pool: padding_share(lengths, list(LengthBuckets(lengths, batch_size=16, pool_batches=pool, generator=seeded())))
        for pool in (1, 10, 100)
    }
    assert shares[1] > 0.4
    assert shares[10] < 0.1
    assert shares[100] < 0.02


def test_padding_share_counts_what_the_collator_pads():
    lengths = [7, 3, 9, 1]
    batch = PretrainingCollator(SPECIAL, generator=seeded())(sequences([length - 2 for length in lengths[:1]] + [7]))
    counted = 1 - batch["attention_mask"].double().mean().item()
    assert padding_share([7, 9], [[0, 1]]) == pytest.approx(counted)
    assert padding_share(lengths, [[0], [1], [2], [3]]) == 0


def test_a_data_loader_takes_them():
    examples = sequences([3, 9, 4, 8, 2])
    lengths = [len(example.input_ids) for example in examples]
    loader = DataLoader(
        examples,
        batch_sampler=LengthBuckets(lengths, batch_size=2, generator=seeded()),
        collate_fn=PretrainingCollator(SPECIAL, generator=seeded(1)),
    )
    batches = list(loader)
    assert sum(batch["attention_mask"].sum().item() for batch in batches) == sum(lengths)
