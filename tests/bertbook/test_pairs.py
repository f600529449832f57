"""Pairs for next-sentence prediction: packing, truncation, sampling, losses; and the errors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from bertbook.masking import masked_lm_loss
from bertbook.outputs import PretrainingOutput
from bertbook.pairs import (
    IS_NEXT,
    NOT_NEXT,
    class_balance,
    next_sentence_loss,
    pack_pair,
    pair_parts,
    pretraining_loss,
    sample_pairs,
)

property_test = settings(max_examples=30, deadline=None, derandomize=True)
PAD, CLS, SEP = range(3)
MARKS = {"cls_token_id": CLS, "sep_token_id": SEP}
lengths = st.integers(1, 30)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@property_test
@given(n=lengths, m=lengths)
def test_layout_for_all_lengths(n, m):
    packed = pack_pair([5] * n, [6] * m, max_length=n + m + 3, **MARKS)
    assert packed.input_ids.tolist() == [CLS] + [5] * n + [SEP] + [6] * m + [SEP]
    assert packed.token_type_ids.tolist() == [0] * (n + 2) + [1] * (m + 1)
    assert packed.attention_mask.tolist() == [1] * (n + m + 3)
    assert pair_parts(packed, sep_token_id=SEP) == [
        (0, 0, 0),
        (1, n, 0),
        (n + 1, n + 1, 0),
        (n + 2, n + m + 1, 1),
        (n + m + 2, n + m + 2, 1),
    ]


@property_test
@given(n=lengths, m=lengths, max_length=st.integers(5, 40))
def test_truncation_takes_from_the_longer_and_keeps_every_separator(n, m, max_length):
    ids_a, ids_b = list(range(100, 100 + n)), list(range(200, 200 + m))
    before = ids_a.copy(), ids_b.copy()
    packed = pack_pair(ids_a, ids_b, max_length=max_length, **MARKS)
    ids = packed.input_ids.tolist()
    assert (ids_a, ids_b) == before
    assert len(ids) == min(n + m + 3, max_length)
    assert (ids[0], ids[-1], ids.count(SEP)) == (CLS, SEP, 2)
    border = ids.index(SEP)
    kept_a, kept_b = ids[1:border], ids[border + 1 : -1]
    assert kept_a == ids_a[: len(kept_a)]
    assert kept_b == ids_b[: len(kept_b)]
    assert kept_a
    assert kept_b
    if len(kept_a) < n:  # only what was longer has lost tokens
        assert len(kept_a) >= len(kept_b) - 1
    if len(kept_b) < m:
        assert len(kept_b) >= len(kept_a)


@property_test
@given(n=lengths, max_length=st.integers(3, 40))
def test_a_single_sentence(n, max_length):
    packed = pack_pair([5] * n, max_length=max_length, **MARKS)
    assert packed.input_ids.tolist() == [CLS] + [5] * min(n, max_length - 2) + [SEP]
    assert not packed.token_type_ids.any()


@property_test
@given(n=lengths, m=lengths)
def test_padding_fills_up_and_is_marked(n, m):
    packed = pack_pair([5] * n, [6] * m, max_length=70, pad_token_id=PAD, **MARKS)
    real = n + m + 3
    assert [len(part) for part in packed] == [70, 70, 70]
    assert packed.attention_mask.tolist() == [1] * real + [0] * (70 - real)
    assert not packed.input_ids[real:].any()
    assert not packed.token_type_ids[real:].any()


@pytest.mark.parametrize(
    ("ids_a", "ids_b", "max_length", "message"),
    [
        ([], [5], 9, r"ids_a must hold at least one id, got \[\]"),
        ([5], [], 9, r"ids_b must hold at least one id, got \[\]"),
        ([5, SEP], [6], 9, r"ids_a must hold neither \[CLS\] \(1\) nor \[SEP\] \(2\)"),
        ([5], [CLS, 6], 9, "ids_b must hold neither"),
        ([5], [6], 4, r"max_length must be at least 5 for 2 sentence\(s\), got 4"),
        ([5], None, 2, r"max_length must be at least 3 for 1 sentence\(s\), got 2"),
    ],
)
def test_pairs_that_cannot_be_packed(ids_a, ids_b, max_length, message):
    with pytest.raises(ValueError, match=message):
        pack_pair(ids_a, ids_b, max_length=max_length, **MARKS)


def test_parts_want_two_separators():
    with pytest.raises(ValueError, match=r"packed must hold two \[SEP\] \(2\), got \[2\]"):
        pair_parts(pack_pair([5], max_length=9, **MARKS), sep_token_id=SEP)


# Sampling

documents_of_few_words = st.lists(
    st.lists(st.lists(st.integers(5, 7), min_size=1, max_size=2), max_size=4), min_size=2, max_size=5
)


@property_test
@given(documents=documents_of_few_words, seed=st.integers(0, 10**6))
def test_pairs_are_balanced_and_true_to_their_labels(documents, seed):
    refusal = ""
    try:
        pairs = sample_pairs(documents, generator=seeded(seed))
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith(("documents must hold", "every other document"))
        return
    places = [(d, s) for d, document in enumerate(documents) for s in range(len(document) - 1)]
    assert len(pairs) == len(places)
    for pair, (d, s) in zip(pairs, places, strict=True):
        true_next = documents[d][s + 1]
        assert pair.ids_a == documents[d][s]
        if pair.label == IS_NEXT:
            assert pair.ids_b == true_next
        else:
            assert pair.ids_b != true_next
            assert any(pair.ids_b in other for e, other in enumerate(documents) if e != d)
    difference = sum(1 if pair.label == IS_NEXT else -1 for pair in pairs)
    assert difference in (0, 1)


def test_a_seed_decides_the_pairs():
    documents = [[[10 * d + s] for s in range(8)] for d in range(1, 5)]
    assert sample_pairs(documents, generator=seeded(1)) == sample_pairs(documents, generator=seeded(1))
    assert sample_pairs(documents, generator=seeded(1)) != sample_pairs(documents, generator=seeded(2))


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "at least two documents with sentences, got 0"),
        ([[[5], [6]], []], "at least two documents with sentences, got 1"),
        ([[[5]], [[6]]], "must hold a document of two sentences or more"),
        ([[[5], [6], [6], [6]], [[6]]], r"holds only true next sentences, \[\[6\], \[6\]\]"),
    ],
)
def test_documents_without_pairs(documents, message):
    with pytest.raises(ValueError, match=message):
        sample_pairs(documents, generator=seeded())


def test_balance_counts_and_refuses():
    assert class_balance([IS_NEXT, NOT_NEXT, NOT_NEXT]) == {"IsNext": 1, "NotNext": 2}
    for one_class in ([], [IS_NEXT], [NOT_NEXT] * 3):
        with pytest.raises(ValueError, match=r"a classifier can only learn what it sees both classes of"):
            class_balance(one_class)
    with pytest.raises(ValueError, match=r"labels must hold only 0 \(IsNext\) and 1 \(NotNext\), got 2"):
        class_balance([0, 1, 2])


# Losses


@property_test
@given(seed=st.integers(0, 10**6), B=st.integers(1, 6))
def test_pretraining_loss_is_the_sum_of_both_means(seed, B):
    output = PretrainingOutput(
        torch.randn(B, 4, 9, generator=seeded(seed)), torch.randn(B, 2, generator=seeded(seed + 1))
    )
    labels = torch.randint(0, 9, (B, 4), generator=seeded(seed))
    labels[:, 1:] = -100
    is_next = torch.randint(0, 2, (B,), generator=seeded(seed))
    both = pretraining_loss(output, labels=labels, next_sentence_labels=is_next)
    expected = F.cross_entropy(output.seq_relationship_logits, is_next)
    assert torch.allclose(both, masked_lm_loss(output.prediction_logits, labels) + expected)


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (torch.zeros(2, 2), torch.tensor([0, 2]), "labels must hold only 0"),
        (torch.zeros(2, 2), torch.tensor([0, -100]), "labels must hold only 0"),
        (torch.zeros(2, 3), torch.tensor([0, 1]), r"logits must have shape \(B, 2\).*got \(2, 3\)"),
        (torch.zeros(0, 2), torch.zeros(0).long(), "at least one pair"),
    ],
)
def test_unusable_pair_logits_and_labels_are_named(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        next_sentence_loss(logits, labels)


@pytest.mark.parametrize("seed", range(20))
def test_no_negative_follows_an_equal_sentence_anywhere(seed):
    for a, b, label in sample_pairs([[[1], [2]], [[1], [3]], [[4]]], generator=seeded(seed)):
        assert (b in ([2], [3])) == (label == IS_NEXT), a
    document = [[1], [2], [3], [4]]
    pairs = sample_pairs([document, document, [[9]]], generator=seeded(seed))
    assert all(b == [9] for _, b, label in pairs if label == NOT_NEXT)


def test_no_negative_left_is_an_error():
    documents = [[[1], [2], [3]]] * 2  # nothing but a copy
    with pytest.raises(ValueError, match="there is no NotNext sentence to draw; give more documents"):
        sample_pairs(documents, generator=seeded())


def test_sampling_wants_a_generator_and_words():
    with pytest.raises(TypeError, match=r"generator must be a torch.Generator.*got NoneType"):
        sample_pairs([[[1], [2]], [[3]]], generator=None)
    with pytest.raises(ValueError, match=r"documents\[1\]\[0\] must hold at least one id, got \[\]"):
        sample_pairs([[[1], [2]], [[]]], generator=seeded())


def test_balance_counts_a_tensor():
    assert class_balance(torch.tensor([0, 1, 1])) == {"IsNext": 1, "NotNext": 2}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"ids_a": [5.0]}, TypeError, "ids_a must hold ints, got 5.0"),
        ({"ids_b": [-5]}, ValueError, "ids_b must not be negative, got -5"),
        ({"cls_token_id": SEP}, ValueError, "cls_token_id, sep_token_id must differ"),
        ({"pad_token_id": SEP}, ValueError, "pad_token_id must differ"),
        ({"max_length": 6.5}, TypeError, "max_length must hold ints, got 6.5"),
        ({"max_length": True}, TypeError, "max_length must hold ints, got True"),
    ],
)
def test_packing_refuses_what_is_no_id(change, error, message):
    with pytest.raises(error, match=message):
        pack_pair(**{"ids_a": [5], "ids_b": [6], "max_length": 9, **MARKS, **change})


@pytest.mark.parametrize("labels", [torch.tensor([0, 1], dtype=torch.int32), torch.tensor([0.0, 1.0])])
def test_pair_labels_are_int64(labels):
    with pytest.raises(TypeError, match="labels must be int64, got"):
        next_sentence_loss(torch.zeros(2, 2), labels)
