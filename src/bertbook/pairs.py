"""Next-sentence prediction: pairs of sentences, packed into one input.

A "sentence" here is any run of tokens from one document. Shapes: B pairs, T tokens.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from bertbook.masking import masked_lm_loss
from bertbook.outputs import PretrainingOutput

IS_NEXT = 0  # B follows A in its document
NOT_NEXT = 1  # B comes from another document


class PackedPair(NamedTuple):
    """One input of BERT, as three int64 tensors of shape (T,).

    >>> PackedPair(*torch.zeros(3, 5, dtype=torch.int64)).input_ids.shape
    torch.Size([5])
    """

    input_ids: Tensor
    token_type_ids: Tensor  # 0 = [CLS], A and its [SEP]; 1 = B and its [SEP]
    attention_mask: Tensor  # 1 = real token, 0 = padding


class SentencePair(NamedTuple):
    """Two sentences as lists of ids, and whether the second follows the first.

    >>> SentencePair([5], [6, 7], IS_NEXT).label
    0
    """

    ids_a: list[int]
    ids_b: list[int]
    label: int  # IS_NEXT or NOT_NEXT


def pack_pair(
    ids_a: Sequence[int],
    ids_b: Sequence[int] | None = None,
    *,
    cls_token_id: int,
    sep_token_id: int,
    max_length: int,
    pad_token_id: int | None = None,
) -> PackedPair:
    """[CLS] A [SEP] B [SEP], or [CLS] A [SEP] for a single sentence.

    What is too long loses tokens at the end of its longer sentence (of A, at a tie)
    until it fits. Both sentences keep at least one token, and every [SEP] stays.

    Args:
        ids_a: the ids of sentence A, at least one, none of them [CLS] or [SEP].
        ids_b: the ids of sentence B, likewise; None for a single sentence.
        max_length: the most tokens the result may have; at least 5 for a pair, 3
            for a single sentence.
        pad_token_id: None, or what the result is filled up with to max_length.

    Returns:
        PackedPair(input_ids, token_type_ids, attention_mask).

    Raises:
        TypeError: if an id or max_length is not an int.
        ValueError: if a sentence is empty or holds [CLS] or [SEP], an id is negative,
            two of the marks are the same, or max_length leaves no room for a token of
            each sentence.

    Source: slide 27; Devlin et al. 2019, section 3.

    >>> pack_pair([7, 8], [9], cls_token_id=1, sep_token_id=2, max_length=8)[:2]
    (tensor([1, 7, 8, 2, 9, 2]), tensor([0, 0, 0, 0, 1, 1]))
    """
    marks = {"cls_token_id": cls_token_id, "sep_token_id": sep_token_id}
    if pad_token_id is not None:
        marks["pad_token_id"] = pad_token_id
    for name, number in {**marks, "max_length": max_length}.items():
        check_id(name, number)
    if len(set(marks.values())) < len(marks):
        raise ValueError(f"{', '.join(marks)} must differ, got {[*marks.values()]}")
    sentences = {"ids_a": ids_a} if ids_b is None else {"ids_a": ids_a, "ids_b": ids_b}
    for name, ids in sentences.items():
        if len(ids) == 0:
            raise ValueError(f"{name} must hold at least one id, got {ids!r}")
        for token_id in ids:
            check_id(name, token_id)
        if cls_token_id in ids or sep_token_id in ids:
            raise ValueError(
                f"{name} must hold neither [CLS] ({cls_token_id}) nor [SEP] "
                f"({sep_token_id}): they are added here; got {list(ids)}"
            )
    room = max_length - 1 - len(sentences)  # without [CLS] and one [SEP] a sentence
    if room < len(sentences):
        raise ValueError(
            f"max_length must be at least {1 + 2 * len(sentences)} "
            f"for {len(sentences)} sentence(s), got {max_length}"
        )
    input_ids, token_type_ids = [cls_token_id], [0]
    lengths = truncated_lengths(*(len(ids) for ids in sentences.values()), room=room)
    for segment, (ids, length) in enumerate(
        zip(sentences.values(), lengths, strict=True)
    ):
        input_ids += [*ids[:length], sep_token_id]
        token_type_ids += [segment] * (length + 1)
    attention_mask = [1] * len(input_ids)
    if pad_token_id is not None:
        padding = max_length - len(input_ids)
        input_ids += [pad_token_id] * padding
        token_type_ids += [0] * padding
        attention_mask += [0] * padding
    return PackedPair(
        torch.tensor(input_ids),
        torch.tensor(token_type_ids),
        torch.tensor(attention_mask),
    )


def check_id(name: str, number: int) -> None:
    """Raise a clear error for what is not an int, or is negative.

    >>> check_id("ids_a", 5.0)
    Traceback (most recent call last):
    TypeError: ids_a must hold ints, got 5.0
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{name} must hold ints, got {number!r}")
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {number}")


def truncated_lengths(*lengths: int, room: int) -> list[int]:
    """How many tokens each sentence keeps: the longest loses one until all fit.

    >>> truncated_lengths(9, 3, room=8)
    [5, 3]
    >>> truncated_lengths(9, 3, room=4)
    [2, 2]
    """
    kept = list(lengths)
    while sum(kept) > room:
        kept[kept.index(max(kept))] -= 1
    return kept


def pair_parts(packed: PackedPair, *, sep_token_id: int) -> list[tuple[int, int, int]]:
    """Where [CLS], A, [SEP], B and [SEP] stand in a packed pair.

    Returns:
        (first position, last position, segment id) of each of the five.

    Raises:
        ValueError: if there are not exactly two [SEP].

    Source: slide 27.

    >>> packed = pack_pair([7, 8], [9], cls_token_id=1, sep_token_id=2, max_length=8)
    >>> pair_parts(packed, sep_token_id=2)
    [(0, 0, 0), (1, 2, 0), (3, 3, 0), (4, 4, 1), (5, 5, 1)]
    """
    found = (packed.input_ids == sep_token_id).nonzero().flatten().tolist()
    if len(found) != 2:
        raise ValueError(f"packed must hold two [SEP] ({sep_token_id}), got {found}")
    first, second = found
    spans = [
        (0, 0),
        (1, first - 1),
        (first, first),
        (first + 1, second - 1),
        (second, second),
    ]
    segments = packed.token_type_ids.tolist()
    return [(start, end, segments[start]) for start, end in spans]


def sample_pairs(
    documents: Sequence[Sequence[list[int]]], *, generator: torch.Generator
) -> list[SentencePair]:
    """One pair for every sentence that has a next one: half true, half random.

    The labels are dealt, not tossed: their numbers differ by at most one. The random
    B comes from *another* document that is not a copy of this one, and never reads like
    a sentence that follows the same A anywhere.

    Args:
        documents: each a list of sentences, each a list of ids.
        generator: where the random numbers come from.

    Returns:
        the pairs, in the order of the documents.

    Raises:
        TypeError: if generator is not a torch.Generator.
        ValueError: if a sentence is empty, there are fewer than two documents with
            sentences, no document has two sentences, or no other document holds a
            sentence that does not follow A.

    Source: slide 27; Devlin et al. 2019, section 3.1.

    >>> documents = [[[5], [6], [7]], [[8], [9]]]
    >>> pairs = sample_pairs(documents, generator=torch.Generator().manual_seed(0))
    >>> [pair.ids_a for pair in pairs]
    [[5], [6], [8]]
    >>> sorted(pair.label for pair in pairs)
    [0, 0, 1]
    """
    documents = documents_for_pairs(documents, generator)
    places = [
        (d, s) for d, document in enumerate(documents) for s in range(len(document) - 1)
    ]
    if not places:
        raise ValueError(
            "documents must hold a document of two sentences or more: "
            "without one there is no true next sentence, and every label is the same"
        )
    labels = (torch.randperm(len(places), generator=generator) % 2).tolist()
    followers = followers_of(documents)
    pairs = []
    for (d, s), label in zip(places, labels, strict=True):
        ids_a, ids_b = documents[d][s : s + 2]
        if label == NOT_NEXT:
            unlike = followers[tuple(ids_a)]
            ids_b = random_continuation(
                documents, d, unlike=unlike, generator=generator
            )[0]
        pairs.append(SentencePair(ids_a, ids_b, label))
    return pairs


def documents_for_pairs(
    documents: Sequence[Sequence[list[int]]], generator: torch.Generator
) -> list[Sequence[list[int]]]:
    """The documents that have sentences, or a clear error (see sample_pairs).

    >>> documents_for_pairs([[[5], [6]], []], torch.Generator())
    Traceback (most recent call last):
    ValueError: documents must hold at least two documents with sentences, got 1: \
a NotNext sentence comes from another document
    """
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            "generator must be a torch.Generator, such as "
            f"torch.Generator().manual_seed(0), got {type(generator).__name__}"
        )
    for d, document in enumerate(documents):
        for s, sentence in enumerate(document):
            if len(sentence) == 0:
                raise ValueError(
                    f"documents[{d}][{s}] must hold at least one id, got {sentence!r}: "
                    "leave empty sentences out"
                )
    documents = [document for document in documents if document]
    if len(documents) < 2:
        raise ValueError(
            "documents must hold at least two documents with sentences, got "
            f"{len(documents)}: a NotNext sentence comes from another document"
        )
    return documents


def followers_of(
    documents: Sequence[Sequence[list[int]]],
) -> defaultdict[tuple[int, ...], list[list[int]]]:
    """What follows each sentence, wherever it stands; a last one has no follower.

    >>> followers_of([[[5], [6]], [[5], [7]]])[(5,)]
    [[6], [7]]
    """
    followers = defaultdict(list)
    for document in documents:
        for sentence, following in pairwise(document):
            followers[tuple(sentence)].append(following)
    return followers


def random_continuation(
    documents: Sequence[Sequence[list[int]]],
    outside: int,
    *,
    unlike: Sequence[list[int]],
    generator: torch.Generator,
) -> Sequence[list[int]]:
    """The rest of a document from a random sentence on, which is none of `unlike`.

    The document is any but number `outside` and its copies.

    >>> random_continuation([[[5], [6]], [[6], [7], [8]]], 0, unlike=[[6], [8]],
    ...                     generator=torch.Generator().manual_seed(0))
    [[7], [8]]
    """
    others = [document for document in documents if document != documents[outside]]
    if all(ids in unlike for document in others for ids in document):
        raise ValueError(
            "every other document is a copy of this one or holds only true next "
            f"sentences, {unlike}: there is no NotNext sentence to draw; "
            "give more documents"
        )
    while True:
        document = others[torch.randint(len(others), (), generator=generator)]
        start = int(torch.randint(len(document), (), generator=generator))
        if document[start] not in unlike:
            return document[start:]


def class_balance(labels: Sequence[int] | Tensor) -> dict[str, int]:
    """How many pairs of each class: look before you train.

    Raises:
        ValueError: if a class is missing, or a label is neither 0 nor 1.

    Source: slide 27.

    >>> class_balance([IS_NEXT, NOT_NEXT, IS_NEXT])
    {'IsNext': 2, 'NotNext': 1}
    >>> class_balance([NOT_NEXT, NOT_NEXT])
    Traceback (most recent call last):
    ValueError: labels holds 0 IsNext and 2 NotNext: a classifier can only learn \
what it sees both classes of
    """
    if isinstance(labels, Tensor):
        labels = labels.flatten().tolist()
    check_pair_labels(labels)
    counts = Counter(labels)
    if not (counts[IS_NEXT] and counts[NOT_NEXT]):
        raise ValueError(
            f"labels holds {counts[IS_NEXT]} IsNext and {counts[NOT_NEXT]} NotNext: "
            "a classifier can only learn what it sees both classes of"
        )
    return {"IsNext": counts[IS_NEXT], "NotNext": counts[NOT_NEXT]}


def check_pair_labels(labels: Sequence[int]) -> None:
    """Raise an error for a label that is neither IS_NEXT nor NOT_NEXT.

    >>> check_pair_labels([0, 2])
    Traceback (most recent call last):
    ValueError: labels must hold only 0 (IsNext) and 1 (NotNext), got 2
    """
    for label in labels:
        if label not in (IS_NEXT, NOT_NEXT):
            raise ValueError(
                f"labels must hold only {IS_NEXT} (IsNext) and {NOT_NEXT} (NotNext), "
                f"got {label}"
            )


def next_sentence_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy over all pairs. No class is ever ignored.

    Args:
        logits: floating point, shape (B, 2).
        labels: int64, shape (B,): IS_NEXT or NOT_NEXT.

    Returns:
        the loss in nats, a scalar.

    Raises:
        TypeError: if logits are not floating point, or labels not int64.
        ValueError: if the batch is empty, a shape does not fit, or a label is
            neither of the two.

    Source: slide 27; Devlin et al. 2019, section 3.1.

    >>> next_sentence_loss(torch.zeros(2, 2), torch.tensor([IS_NEXT, NOT_NEXT]))
    tensor(0.6931)
    """
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating point, got {logits.dtype}")
    if labels.dtype != torch.int64:
        raise TypeError(f"labels must be int64, got {labels.dtype}: use labels.long()")
    if labels.dim() != 1 or logits.shape != (len(labels), 2) or len(labels) == 0:
        raise ValueError(
            "logits must have shape (B, 2) and labels (B,) with at least one pair, "
            f"got {tuple(logits.shape)} and {tuple(labels.shape)}"
        )
    check_pair_labels(labels.tolist())
    return F.cross_entropy(logits, labels)


def pretraining_loss(
    output: PretrainingOutput, *, labels: Tensor, next_sentence_labels: Tensor
) -> Tensor:
    """BERT's loss: the mean over selected tokens plus the mean over pairs.

    Args:
        output: the logits of BertForPreTraining.
        labels: int64, shape (B, T), from mask_tokens.
        next_sentence_labels: int64, shape (B,).

    Returns:
        the loss in nats, a scalar.

    Source: slides 24 and 27; Devlin et al. 2019, appendix A.2.

    >>> output = PretrainingOutput(torch.zeros(1, 3, 4), torch.zeros(1, 2))
    >>> pretraining_loss(  # log of four, plus log of two
    ...     output, labels=torch.tensor([[-100, 1, -100]]),
    ...     next_sentence_labels=torch.tensor([IS_NEXT]))
    tensor(2.0794)
    """
    masked_lm = masked_lm_loss(output.prediction_logits, labels)
    next_sentence = next_sentence_loss(
        output.seq_relationship_logits, next_sentence_labels
    )
    return masked_lm + next_sentence
