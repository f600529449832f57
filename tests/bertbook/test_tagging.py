"""Labels on pieces, the loss over them, entities, and spans against a brute force."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from bertbook.masking import IGNORE_INDEX
from bertbook.tagging import (
    TAGS,
    best_span,
    entities_of,
    entity_f1,
    label_pieces,
    token_cross_entropy,
)

property_test = settings(max_examples=30, deadline=None, derandomize=True)
tag_lists = st.lists(st.sampled_from(TAGS), min_size=1, max_size=8)
seeds = st.integers(0, 2**31 - 1)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


# Labels


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(TAGS)), max_size=6))
@property_test
def test_the_labelled_tokens_are_the_first_pieces(words):
    pieces = [[f"w{i}", *["##p"] * (length - 1)] for i, (length, _) in enumerate(words)]
    tokens, labels = label_pieces(pieces, [tag for _, tag in words])
    assert len(tokens) == len(labels)
    assert (tokens[0], tokens[-1]) == ("[CLS]", "[SEP]")
    assert tokens[1:-1] == [piece for word in pieces for piece in word]
    labelled = [(token, label) for token, label in zip(tokens, labels, strict=True) if label != IGNORE_INDEX]
    assert labelled == [(f"w{i}", TAGS.index(tag)) for i, (_, tag) in enumerate(words)]


@pytest.mark.parametrize(
    ("pieces", "tags", "message"),
    [
        ([["ka"]], ["O", "O"], "tags must hold one tag a word, 1, got 2"),
        ([["ka"], []], ["O", "O"], "pieces holds a word without any piece"),
        ([["ka"]], ["PER"], "tags must be out of O, B-PER"),
    ],
)
def test_labels_that_do_not_fit_are_refused(pieces, tags, message):
    with pytest.raises(ValueError, match=message):
        label_pieces(pieces, tags)


# Loss


@given(seeds)
@property_test
def test_only_labelled_tokens_count(seed):
    logits, labels = normal(2, 5, 3, seed=seed), torch.full((2, 5), IGNORE_INDEX)
    labels[0, 1], labels[1, 3], labels[1, 4] = 0, 2, 1
    expected = -torch.stack([logits.log_softmax(-1)[0, 1, 0], logits.log_softmax(-1)[1, 3, 2],
                             logits.log_softmax(-1)[1, 4, 1]]).mean()  # fmt: skip
    assert torch.allclose(token_cross_entropy(logits, labels), expected, atol=1e-6)
    changed = logits.clone()
    changed[labels == IGNORE_INDEX] += 100 * normal(7, 3, seed=seed + 1)
    assert torch.equal(token_cross_entropy(changed, labels), token_cross_entropy(logits, labels))


def test_ignored_tokens_get_no_gradient():
    logits = normal(1, 3, 4).requires_grad_()
    token_cross_entropy(logits, torch.tensor([[IGNORE_INDEX, 2, IGNORE_INDEX]])).backward()
    assert (logits.grad != 0).any(dim=-1).tolist() == [[False, True, False]]


@pytest.mark.parametrize(
    ("logits", "labels", "options", "message"),
    [
        (torch.zeros(2, 3, 4), torch.zeros(2, 2).long(), {}, "labels must have shape (B, T)"),
        (torch.zeros(2, 4), torch.zeros(2, 3).long(), {}, "got (2, 3) and (2, 4)"),  # a [CLS] head on a token task
        (torch.zeros(1, 2, 4), torch.full((1, 2), IGNORE_INDEX), {}, "labels holds nothing but -100"),
        (torch.zeros(1, 2, 4), torch.zeros(1, 2).long(), {"num_labelled": 0}, "num_labelled must be at least 1, got 0"),
    ],
)
def test_a_loss_of_nothing_is_refused(logits, labels, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        token_cross_entropy(logits, labels, **options)


def test_the_constant_is_torchs():
    loss = F.cross_entropy(torch.zeros(2, 3), torch.tensor([IGNORE_INDEX, 1]))
    assert loss.item() == pytest.approx(torch.tensor(3.0).log().item())


# Entities


@given(tag_lists)
@property_test
def test_entities_cover_exactly_the_tagged_words(tags):
    entities = entities_of(tags)
    covered = [i for _, first, last in entities for i in range(first, last + 1)]
    assert sorted(covered) == [i for i, tag in enumerate(tags) if tag != "O"]
    for kind, first, last in entities:
        assert {tag[2:] for tag in tags[first : last + 1]} == {kind}
        assert all(tag[0] == "I" for tag in tags[first + 1 : last + 1])


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (["B-PER", "B-PER"], {("PER", 0, 0), ("PER", 1, 1)}),
        (["I-PER", "I-PER"], {("PER", 0, 1)}),
        (["B-PER", "I-ORG"], {("PER", 0, 0), ("ORG", 1, 1)}),
        (["O", "B-LOC"], {("LOC", 1, 1)}),
        ([], set()),
    ],
)
def test_entities_begin_and_end_where_the_scheme_says(tags, expected):
    assert entities_of(tags) == expected


@pytest.mark.parametrize("tag", ["PER", "B-", "X-PER", ""])
def test_a_tag_outside_the_scheme_is_refused(tag):
    with pytest.raises(ValueError, match="tags must be O, B-kind or I-kind"):
        entities_of([tag])


@given(tag_lists.filter(lambda tags: set(tags) != {"O"}))
@property_test
def test_f1_of_the_truth_is_one_and_of_nothing_zero(tags):
    assert entity_f1([tags], [tags]) == 1
    assert entity_f1([tags], [["O"] * len(tags)]) == 0


def test_f1_counts_over_all_sentences():
    gold = [["B-PER", "O"], ["B-LOC", "B-ORG"]]
    predicted = [["B-PER", "O"], ["B-LOC", "O"]]
    assert entity_f1(gold, predicted) == pytest.approx(2 * 2 / (3 + 2))


def test_f1_of_no_entity_or_of_other_sentences_is_refused():
    with pytest.raises(ValueError, match="hold no entity"):
        entity_f1([["O"]], [["O"]])
    with pytest.raises(ValueError, match="as many tags as gold"):
        entity_f1([["O"]], [["O", "O"]])


# Spans


def search_all(start, end, context, longest):
    """The best span by trying every pair, or (0, 0)."""
    spans = [
        (i, j) for i in range(len(start)) for j in range(i, min(i + longest, len(start))) if context[i] and context[j]
    ]
    best = max(spans, key=lambda span: start[span[0]] + end[span[1]])
    return best if start[best[0]] + end[best[1]] > start[0] + end[0] else (0, 0)


@given(seeds, st.integers(1, 8), st.integers(1, 8), st.integers(1, 10))
@property_test
def test_the_best_span_is_that_of_a_search_over_all(seed, first, length, longest):
    T = 12
    context = (torch.arange(T) >= first) & (torch.arange(T) < first + length)
    start, end = normal(T, seed=seed), normal(T, seed=seed + 1)
    found = best_span(start, end, context=context, max_tokens=longest)
    assert found == search_all(start, end, context, longest)


@pytest.mark.parametrize("answer", [(1, 1), (3, 3), (1, 3)])
def test_an_answer_at_the_edge_is_found(answer):
    start, end = torch.zeros(4), torch.zeros(4)
    start[answer[0]] = end[answer[1]] = 5.0
    assert best_span(start, end, context=torch.tensor([False, True, True, True])) == answer


def test_the_threshold_decides_for_no_answer():
    start, end = torch.tensor([1.0, 2, 0]), torch.tensor([1.0, 2, 0])
    context = torch.tensor([False, True, True])
    found = [best_span(start, end, context=context, threshold=t) for t in (1.9, 2.0)]
    assert found == [(1, 1), (0, 0)]  # four against two


LOGITS, CONTEXT = torch.zeros(4), torch.tensor([False, True, True, False])


@pytest.mark.parametrize(
    ("start", "end", "options", "message"),
    [
        (LOGITS, torch.zeros(3), {}, "must have the same shape (T,), got (4,), (3,) and (4,)"),
        (LOGITS[None], LOGITS[None], {"context": CONTEXT[None]}, "got (1, 4), (1, 4) and (1, 4)"),
        (LOGITS, LOGITS, {"context": ~CONTEXT}, "context must leave out position 0"),
        (LOGITS, LOGITS, {"context": torch.zeros(4).bool()}, "context is empty"),
        (LOGITS, LOGITS, {"context": torch.tensor([False, True, False, True])}, "context must be one piece"),
        (LOGITS * float("nan"), LOGITS, {}, "start_logits must be finite"),
        (LOGITS, LOGITS - float("inf"), {}, "end_logits must be finite"),
        (LOGITS[:0], LOGITS[:0], {"context": CONTEXT[:0]}, "start_logits is empty"),
        (LOGITS, LOGITS, {"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
    ],
)
def test_spans_that_cannot_be_chosen_are_refused(start, end, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        best_span(start, end, **{"context": CONTEXT, **options})


@pytest.mark.parametrize("label", [9, 4, -1])
def test_a_label_that_is_no_class_is_refused(label):
    with pytest.raises(ValueError, match=re.escape(f"labels holds {label}; a label is a class in [0, 4) or -100")):
        token_cross_entropy(torch.zeros(1, 1, 4), torch.tensor([[label]]))


def test_wrong_dtypes_are_refused():
    with pytest.raises(TypeError, match=r"labels must be int64, got torch.int32"):
        token_cross_entropy(torch.zeros(1, 1, 4), torch.tensor([[1]], dtype=torch.int32))
    with pytest.raises(TypeError, match="start_logits must be floating point"):
        best_span(LOGITS.long(), LOGITS, context=CONTEXT)
