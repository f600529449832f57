"""Faults that other code had on the way from text to batches: a check that ours passes and a mutant fails.

A check is called as holds(implementation, case). The mutant has to pass it on a harmless case too, so that
it cannot fail for another reason than its fault.
"""

from itertools import pairwise

import pytest
import torch

from bertbook.batches import LengthBuckets, PretrainingCollator, evaluation_batches, mask_once, padded
from bertbook.masking import IGNORE_INDEX, mask_tokens
from bertbook.pairs import IS_NEXT, NOT_NEXT, SentencePair, sample_pairs
from bertbook.pretraining_data import PretrainingExample, fill_sequences, pair_examples, sample_segments
from bertbook.wordpiece import SpecialIds
from fault_reports import check_report, report

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=40)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sequences(lengths) -> list[PretrainingExample]:
    """[CLS], so many random tokens, and [SEP]."""
    drawn = [torch.randint(5, 40, (length,), generator=seeded(length)) for length in lengths]
    ids = [torch.cat([torch.tensor([SPECIAL.cls]), words, torch.tensor([SPECIAL.sep])]) for words in drawn]
    return [PretrainingExample(row, torch.zeros_like(row)) for row in ids]


def collate(examples, seed: int = 0):
    return PretrainingCollator(SPECIAL, generator=seeded(seed))(examples)


# huggingface/transformers#11155, #1395


def asks_for_words_only(make_batch, lengths) -> bool:
    """In a batch of several lengths, every label stands on an ordinary token, at every seed."""
    examples = sequences(lengths)
    for seed in range(20):
        batch = make_batch(examples, seed)
        labels, real = batch["labels"], batch["attention_mask"]
        asked = labels != IGNORE_INDEX
        if asked[real == 0].any() or (labels[asked] < 5).any():
            return False
    return True


def padding_selected(examples, seed):
    """[PAD] is not among the special ids."""
    batch = collate(examples, seed)
    ids = padded([example.input_ids for example in examples], SPECIAL.pad)
    arguments = SPECIAL.for_masking | {"special_token_ids": [SPECIAL.unk, SPECIAL.cls, SPECIAL.sep, SPECIAL.mask]}
    return batch | {"labels": mask_tokens(ids, generator=seeded(seed), **arguments)[1]}


def labels_padded_with_zero(examples, seed):
    """The labels of static masking are padded like ids: [PAD] is asked for."""
    batch = collate(mask_once(examples, special=SPECIAL, generator=seeded(seed)), seed)
    return batch | {"labels": batch["labels"].masked_fill(batch["attention_mask"] == 0, SPECIAL.pad)}


# huggingface/course#291


def leaves_examples(make_batch, lengths) -> bool:
    """The examples are as they were, and the batch still holds their ids under the labels."""
    examples = sequences(lengths)
    before = [example.input_ids.clone() for example in examples]
    batch = make_batch(examples, 1)
    original = torch.where(batch["labels"] == IGNORE_INDEX, batch["input_ids"], batch["labels"])
    kept = all(torch.equal(ids, example.input_ids) for ids, example in zip(before, examples, strict=True))
    return kept and all(torch.equal(row[: len(ids)], ids) for row, ids in zip(original, before, strict=True))


def masked_in_place(examples, seed):
    batch = collate(examples, seed)
    for row, example in zip(batch["input_ids"], examples, strict=True):
        example.input_ids.copy_(row[: len(example.input_ids)])
    return batch


def labels_dropped(examples, seed):
    batch = collate(examples, seed)
    return batch | {"labels": torch.full_like(batch["labels"], IGNORE_INDEX)}


# huggingface/transformers PR #1633, #3927


def evaluates_the_same(evaluate, lengths) -> bool:
    """Two evaluations mask the same tokens, some are masked, and the batch size does not matter."""
    examples = sequences(lengths)
    first, second = evaluate(examples, 2), evaluate(examples, 3)
    if sum(lengths) and not any((batch["input_ids"] == SPECIAL.mask).any() for batch in first):
        return False
    return [counts(batch) for batch in merged(first)] == [counts(batch) for batch in merged(second)]


def merged(batches):
    """Each example by itself, without padding."""
    for batch in batches:
        for ids, labels, real in zip(batch["input_ids"], batch["labels"], batch["attention_mask"], strict=True):
            yield ids[real == 1], labels[real == 1]


def counts(pair):
    return [part.tolist() for part in pair]


def ours_evaluated(examples, batch_size):
    return evaluation_batches(examples, special=SPECIAL, batch_size=batch_size, seed=0)


def unmasked(examples, batch_size):
    batches = ours_evaluated(examples, batch_size)
    return [
        batch | {"input_ids": torch.where(batch["labels"] == IGNORE_INDEX, batch["input_ids"], batch["labels"])}
        for batch in batches
    ]


def masked_anew(examples, batch_size):
    masked = mask_once(examples, special=SPECIAL, generator=seeded(torch.seed()))
    return [collate([example]) for example in masked]


def masked_batch_by_batch(examples, batch_size):
    """A fixed seed, but the draws go along batches of padded ids: another batch size is another task."""
    collator = PretrainingCollator(SPECIAL, generator=seeded())
    return [collator(examples[i : i + batch_size]) for i in range(0, len(examples), batch_size)]


# codertimo/BERT-pytorch#86, #110


def numbered(sizes) -> list[list[list[int]]]:
    return [[[5 + 100 * d + s] for s in range(size)] for d, size in enumerate(sizes)]


def negatives_are_negative(sample, sizes) -> bool:
    """No NotNext begins with the true next sentence, or comes from A's document. With one document: an error."""
    documents = numbered(sizes)
    following = {(a[0], b[0]) for document in documents for a, b in pairwise(document)}
    for seed in range(20):
        try:
            pairs = sample(documents, seeded(seed))
        except ValueError as error:
            return len(sizes) == 1 and "at least two documents" in str(error)
        for ids_a, ids_b, label in pairs:
            from_one = ids_a[0] // 100 == ids_b[0] // 100
            if label == NOT_NEXT and (from_one or (ids_a[-1], ids_b[0]) in following):
                return False
    return len(sizes) > 1


def ours_sampled(documents, generator):
    return sample_segments(documents, max_length=11, generator=generator)


def from_any_document(documents, generator):
    everywhere = [sentence for document in documents for sentence in document]
    pairs = []
    for a, b, label in ours_sampled(documents, generator):
        other = everywhere[torch.randint(len(everywhere), (), generator=generator)]
        pairs.append(SentencePair(a, other if label == NOT_NEXT else b, label))
    return pairs


def one_document_is_enough(documents, generator):
    if len(documents) > 1:
        return ours_sampled(documents, generator)
    return [SentencePair(a, b, NOT_NEXT) for a, b in pairwise(documents[0])]


# google-research/bert#125


def both_classes_or_refused(sample, sizes) -> bool:
    """Documents of one segment each have no true pair: that is an error, and not a data set of one class."""
    try:
        labels = {pair.label for pair in sample(numbered(sizes), seeded())}
    except ValueError as error:
        return max(sizes) == 1 and "labels holds 0 IsNext" in str(error)
    return labels == {IS_NEXT, NOT_NEXT}


def one_class_unnoticed(documents, generator):
    if max(map(len, documents)) > 1:
        return ours_sampled(documents, generator)
    return [SentencePair(document[0], documents[d - 1][0], NOT_NEXT) for d, document in enumerate(documents)]


# huggingface/transformers#836


def zero_is_next(make_batch, number: int) -> bool:
    """In a batch, next_sentence_label 0 stands where B follows A, and only there."""
    pairs = sample_pairs(numbered([4] * number), generator=seeded())[: 3 * (number - 1)]
    examples = pair_examples(pairs, special=SPECIAL._replace(vocab_size=1000), max_length=9)
    found = make_batch(examples)["next_sentence_label"].tolist()
    return all((b[0] == a[0] + 1) == (label == 0) for (a, b, _), label in zip(pairs, found, strict=True))


def ours_collated(examples):
    return PretrainingCollator(SPECIAL._replace(vocab_size=1000), generator=seeded())(examples)


def labels_inverted(examples):
    batch = ours_collated(examples)
    return batch | {"next_sentence_label": 1 - batch["next_sentence_label"]}


# huggingface/transformers#12188


def fits_and_ends(pack, sizes: tuple[int, int]) -> bool:
    """From documents: at most 16 tokens, two [SEP], one at the end, and segments 0 and then 1."""
    length, number = sizes
    documents = [[[5 + d] * length for _ in range(number)] for d in range(9)]
    for example in pack(documents):
        ids, types = example.input_ids.tolist(), example.token_type_ids.tolist()
        if len(ids) > 16 or ids.count(SPECIAL.sep) != 2 or ids[-1] != SPECIAL.sep:
            return False
        first_end = ids.index(SPECIAL.sep)
        if types != [0] * (first_end + 1) + [1] * (len(ids) - first_end - 1):
            return False
    return True


def ours_packed(documents, *, room: int = 16):
    pairs = sample_segments(documents, max_length=room, generator=seeded())
    return pair_examples(pairs, special=SPECIAL, max_length=room)


def marks_not_counted(documents):
    """Segments that fill the whole length, and then the marks on top."""
    return ours_packed(documents, room=16 + 3)


def cut_at_the_end(documents):
    whole = ours_packed(documents, room=99)
    return [PretrainingExample(example.input_ids[:16], example.token_type_ids[:16]) for example in whole]


# Ours, without a report: no token and no example is lost or doubled.


def keeps_every_token(fill, lengths) -> bool:
    """Sequences hold each token of each document once."""
    document, number = [], 0
    for length in lengths:
        document.append(list(range(number, number + length)))
        number += length
    return [token for ids in fill([document]) for token in ids] == list(range(number))


def ours_filled(documents):
    return fill_sequences(documents, max_length=12)


def rest_dropped(documents):
    """The common "drop the remainder"."""
    return [ids for ids in ours_filled(documents) if len(ids) == 10]


def sentences_truncated(documents):
    return fill_sequences([[ids[:10] for ids in document] for document in documents], max_length=12)


def deals_all(batches_of, number: int) -> bool:
    """Each example is in exactly one batch of the epoch."""
    found = [i for batch in batches_of(list(range(1, number + 1))) for i in batch]
    return sorted(found) == list(range(number))


def ours_dealt(lengths):
    return LengthBuckets(lengths, batch_size=4, pool_batches=2, generator=seeded())


def last_batch_dropped(lengths):
    return [batch for batch in ours_dealt(lengths) if len(batch) == 4]


def drawn_with_replacement(lengths):
    drawn = torch.randint(len(lengths), (len(lengths),), generator=seeded())
    return drawn.split(4) if len(lengths) > 1 else ours_dealt(lengths)


REPORTS = [
    *report(
        "huggingface/transformers#11155, #1395",
        asks_for_words_only,
        collate,
        padding_selected,
        labels_padded_with_zero,
        harmless=[9, 9],
        harmful=[[30, 3, 17], [1, 60]],
    ),
    *report(
        "huggingface/course#291",
        leaves_examples,
        collate,
        masked_in_place,
        labels_dropped,
        harmless=[0],
        harmful=[[30, 3, 17], [60]],
    ),
    *report(
        "huggingface/transformers PR #1633, #3927",
        evaluates_the_same,
        ours_evaluated,
        unmasked,
        masked_anew,
        masked_batch_by_batch,
        harmless=[0, 0],
        harmful=[[30, 3, 17, 40, 25]],
    ),
    *report(
        "codertimo/BERT-pytorch#86, #110",
        negatives_are_negative,
        ours_sampled,
        from_any_document,
        harmless=(40,),
        harmful=[(40, 40), (9, 30, 20)],
    ),
    *report(
        "codertimo/BERT-pytorch#86, #110",
        negatives_are_negative,
        ours_sampled,
        one_document_is_enough,
        harmless=(40, 40),
        harmful=[(40,)],
    ),
    *report(
        "google-research/bert#125",
        both_classes_or_refused,
        ours_sampled,
        one_class_unnoticed,
        harmless=(40, 40),
        harmful=[(1, 1, 1), (1, 1)],
    ),
    *report(
        "huggingface/transformers#12188",
        fits_and_ends,
        ours_packed,
        marks_not_counted,
        cut_at_the_end,
        harmless=(1, 4),
        harmful=[(7, 20), (40, 9)],
    ),
    *report(
        "a remainder",
        keeps_every_token,
        ours_filled,
        rest_dropped,
        sentences_truncated,
        harmless=[5, 5],
        harmful=[[4, 17, 2], [11]],
    ),
    *report(
        "a last batch",
        deals_all,
        ours_dealt,
        last_batch_dropped,
        harmless=8,
        harmful=[9, 3],
    ),
    *report("sampling with replacement", deals_all, ours_dealt, drawn_with_replacement, harmless=1, harmful=[9, 40]),
]


@pytest.mark.parametrize(("holds", "implementation", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, implementation, mutant, harmless, harmful):
    check_report(holds, implementation, mutant, harmless, harmful)


def test_huggingface_transformers_836_labels_are_not_inverted():
    # No harmless case: an inverted label is wrong for every pair.
    assert zero_is_next(ours_collated, 3)
    assert not zero_is_next(labels_inverted, 3)
