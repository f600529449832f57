"""Segments for next-sentence prediction, and full sequences: what they promise for any documents; the errors."""

from itertools import chain, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.masking import mask_tokens
from bertbook.pairs import IS_NEXT, NOT_NEXT, SentencePair, class_balance, pack_pair
from bertbook.pretraining_data import (
    fill_sequences,
    pair_examples,
    sample_segments,
    sequence_examples,
)
from bertbook.wordpiece import SpecialIds

property_test = settings(max_examples=60, deadline=None, derandomize=True)
SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=10_000)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def numbered(*lengths_of_sentences: list[int]) -> list[list[list[int]]]:
    """Documents in which every token is a number of its own, in reading order."""
    documents, number = [], 5
    for lengths in lengths_of_sentences:
        document = []
        for length in lengths:
            document.append(list(range(number, number + length)))
            number += length
        documents.append(document)
    return documents


sentence_lengths = st.lists(st.integers(1, 12), min_size=1, max_size=12)
some_documents = st.lists(sentence_lengths, min_size=2, max_size=5).map(lambda found: [*found, [3] * 100])


def document_of(documents: list, token: int) -> int:
    return next(d for d, document in enumerate(documents) if token in chain(*document))


@property_test
@given(lengths=some_documents, max_length=st.integers(5, 40), seed=st.integers(0, 10**6), short=st.floats(0, 1))
def test_segments_are_what_their_labels_say(lengths, max_length, seed, short):
    documents = numbered(*lengths)
    pairs = sample_segments(documents, max_length=max_length, generator=seeded(seed), short_probability=short)
    following = {(a[-1], b[0]) for document in documents for a, b in pairwise(document)}
    first_of_a = []
    for ids_a, ids_b, label in pairs:
        assert ids_a
        assert ids_b
        assert len(ids_a) + len(ids_b) <= max_length - 3
        for ids in (ids_a, ids_b):  # consecutive: nothing is missing within a segment
            assert ids == list(range(ids[0], ids[0] + len(ids)))
        from_one = document_of(documents, ids_a[0]) == document_of(documents, ids_b[0])
        assert from_one == (label == IS_NEXT)
        assert (ids_a[-1] < ids_b[0] and from_one) or label == NOT_NEXT
        assert label == IS_NEXT or (ids_a[-1], ids_b[0]) not in following
        first_of_a.append(ids_a[0])
    assert first_of_a == sorted(first_of_a)


@property_test
@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    max_length=st.integers(5, 20),
    seed=st.integers(0, 10**6),
    short=st.floats(0, 1),
)
def test_each_sentence_is_read_once_and_what_is_not_used_goes_back(sizes, max_length, seed, short):
    """Sentences of one token are never cut: A of every pair, and B of an IsNext, are the documents."""
    documents = numbered(*([1] * size for size in [*sizes, 100]))
    pairs = sample_segments(documents, max_length=max_length, generator=seeded(seed), short_probability=short)
    read = [ids for ids_a, ids_b, label in pairs for ids in (ids_a, ids_b if label == IS_NEXT else [])]
    assert list(chain(*read)) == list(chain(*chain(*documents)))


def test_labels_are_balanced_where_documents_are_long():
    documents = numbered(*[[7, 3, 9, 20, 4] * 40 for _ in range(10)])
    pairs = sample_segments(documents, max_length=24, generator=seeded())
    balance = class_balance([pair.label for pair in pairs])
    assert abs(balance["IsNext"] / len(pairs) - 0.5) < 4 * 0.5 / len(pairs) ** 0.5


def test_short_pairs_come_as_often_as_asked_for():
    documents = numbered(*[[2] * 2000 for _ in range(2)])

    def share_of_short(probability: float) -> float:
        pairs = sample_segments(documents, max_length=83, generator=seeded(), short_probability=probability)
        return sum(len(pair.ids_a) + len(pair.ids_b) < 80 for pair in pairs[:-3]) / len(pairs)

    full, some, short = (share_of_short(probability) for probability in (0, 0.1, 1))
    assert full < 0.05
    assert 0.03 < some < 0.3
    assert short > 0.9


def test_a_next_sentence_is_not_drawn_from_a_document_that_says_the_same():
    """ "Thank you." follows many sentences: another document's is no negative."""
    thanks = [9]
    documents = [[[20 + d], thanks, [40 + d], thanks] for d in range(9)]
    for seed in range(30):
        pairs = sample_segments(documents, max_length=8, generator=seeded(seed), short_probability=0)
        assert not any(pair.ids_b[0] == 9 for pair in pairs if pair.label == NOT_NEXT and pair.ids_a[-1] >= 20)


def test_a_seed_decides_the_segments_and_documents_stay():
    documents = numbered([3, 4, 5, 6], [7, 8, 9], [2, 2, 2])
    before = numbered([3, 4, 5, 6], [7, 8, 9], [2, 2, 2])
    first, again, other = (sample_segments(documents, max_length=12, generator=seeded(seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert documents == before


@pytest.mark.parametrize(
    ("documents", "change", "error", "message"),
    [
        (numbered([2, 2, 2]), {}, ValueError, "at least two documents with sentences, got 1"),
        ([], {}, ValueError, "at least two documents with sentences, got 0"),
        (numbered([2], [3], [4]), {}, ValueError, "labels holds 0 IsNext and 3 NotNext"),
        ([[[5], []], [[6]]], {}, ValueError, r"documents\[0\]\[1\] must hold at least one id"),
        (numbered([2, 2], [2, 2]), {"max_length": 4}, ValueError, "max_length must be at least 5, .* got 4"),
        (numbered([2, 2], [2, 2]), {"short_probability": 1.5}, ValueError, "short_probability must be .* got 1.5"),
        (numbered([2, 2], [2, 2]), {"generator": 7}, TypeError, "generator must be a torch.Generator"),
        ([[[5], [6]], [[5], [6]]], {}, ValueError, "every other document is a copy"),
    ],
)
def test_what_cannot_be_sampled(documents, change, error, message):
    arguments = {"max_length": 16, "generator": seeded(3), "short_probability": 0.0} | change
    with pytest.raises(error, match=message):
        sample_segments(documents, **arguments)


@property_test
@given(lengths=some_documents, max_length=st.integers(3, 30), whole=st.booleans())
def test_sequences_hold_every_token_once_and_in_order(lengths, max_length, whole):
    documents = numbered(*lengths)
    sequences = fill_sequences(documents, max_length=max_length, whole_sentences=whole)
    assert list(chain(*sequences)) == list(chain(*chain(*documents)))
    assert all(1 <= len(sequence) <= max_length - 2 for sequence in sequences)
    for ids in sequences:
        assert document_of(documents, ids[0]) == document_of(documents, ids[-1])


@property_test
@given(lengths=some_documents, max_length=st.integers(3, 30))
def test_sequences_are_full_or_whole(lengths, max_length):
    documents, room = numbered(*lengths), max_length - 2
    last_tokens = {document[-1][-1] for document in documents}
    cut = fill_sequences(documents, max_length=max_length)
    assert all(len(ids) == room or ids[-1] in last_tokens for ids in cut)
    sentences = [sentence for document in documents for sentence in document]
    whole = fill_sequences(documents, max_length=max_length, whole_sentences=True)
    for sentence in sentences:
        if len(sentence) <= room and not any(len(other) > room for other in sentences):
            assert any(set(sentence) <= set(ids) for ids in whole)


def test_no_room_in_a_sequence():
    with pytest.raises(ValueError, match=r"max_length must be at least 3, .* got 2"):
        fill_sequences(numbered([1]), max_length=2)


def test_examples_are_packed_pairs_with_labels():
    pairs = [SentencePair([5, 6], [7], IS_NEXT), SentencePair([8], [9] * 30, NOT_NEXT)]
    examples = pair_examples(pairs, special=SPECIAL, max_length=12)
    for pair, example in zip(pairs, examples, strict=True):
        packed = pack_pair(pair.ids_a, pair.ids_b, max_length=12, cls_token_id=2, sep_token_id=3)
        assert torch.equal(example.input_ids, packed.input_ids)
        assert torch.equal(example.token_type_ids, packed.token_type_ids)
        assert (example.next_sentence_label, example.labels) == (pair.label, None)


def test_packing_loses_nothing_of_what_was_sampled():
    documents = numbered([9, 9, 9, 30], [40, 2, 8, 8])
    pairs = sample_segments(documents, max_length=14, generator=seeded(1))
    for pair, example in zip(pairs, pair_examples(pairs, special=SPECIAL, max_length=14), strict=True):
        assert len(example.input_ids) == len(pair.ids_a) + len(pair.ids_b) + 3


def test_sequences_become_examples_without_a_second_segment():
    [example] = sequence_examples([[5, 6, 7]], special=SPECIAL, max_length=5)
    assert example.input_ids.tolist() == [2, 5, 6, 7, 3]
    assert not example.token_type_ids.any()
    assert example.next_sentence_label is None


def test_special_ids_fit_mask_tokens():
    masked_ids, _ = mask_tokens(torch.full((500,), 9), generator=seeded(), **SPECIAL.for_masking)
    assert (masked_ids == SPECIAL.mask).any()
