"""From documents of sentences to BERT's inputs: segments, sequences, examples.

Documents are lists of sentences, and sentences lists of ids, as encode_sentences makes
them. Shapes: T tokens.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from bertbook.pairs import (
    IS_NEXT,
    NOT_NEXT,
    SentencePair,
    class_balance,
    documents_for_pairs,
    followers_of,
    pack_pair,
    random_continuation,
    truncated_lengths,
)
from bertbook.wordpiece import SpecialIds


class PretrainingExample(NamedTuple):
    """One input of BERT with what it is asked; not padded, and perhaps not yet masked.

    >>> PretrainingExample(torch.tensor([2, 9, 3]), torch.zeros(3)).labels is None
    True
    """

    input_ids: Tensor  # int64, (T,)
    token_type_ids: Tensor  # int64, (T,)
    next_sentence_label: int | None = None  # IS_NEXT or NOT_NEXT; None: no pair
    labels: Tensor | None = None  # int64, (T,), if it is masked once and for all


def sample_segments(
    documents: Sequence[Sequence[list[int]]],
    *,
    max_length: int,
    generator: torch.Generator,
    short_probability: float = 0.1,
) -> list[SentencePair]:
    """Go through each document once, and make pairs that fill max_length tokens.

    Sentences are collected until they reach the length that is aimed at, but at least
    two. They are cut in two at a random border between sentences. With probability 1/2
    the second part is replaced: a random place of another document is read from
    instead, and the sentences that are not used then go back, to be collected again.
    Only a document's last sentence can be left alone; it gets a random second part.
    What is too long loses tokens, at random from the front or the back, of the longer
    segment first.

    The random segment comes from *another* document that is not a copy of this one, and
    never begins with a sentence that follows A's last one anywhere.

    The released code does two things differently. It also takes one long sentence
    alone, which then has to get a random second part: where sentences are long and
    max_length is small, there are clearly more NotNext than IsNext. And it draws
    whether to aim at a short length once a document, which makes it a matter of luck
    where documents are few and long.

    Args:
        max_length: of the packed pair, with [CLS] and two [SEP]; at least 5.
        generator: where the random numbers come from.
        short_probability: how often a shorter length is aimed at, drawn evenly from 2
            to max_length - 3; from 0 to 1.

    Returns:
        the pairs, in the order of the documents; pack_pair loses nothing of them.

    Raises:
        ValueError: if max_length or short_probability is out of its range, all pairs
            are of one class, and the errors of sample_pairs about documents.

    Source: slide 27; Devlin et al. 2019, appendix A.2; google-research/bert,
    create_pretraining_data.py.

    >>> documents = [[[5, 5], [6, 6], [7, 7], [8, 8]], [[15], [16], [17]]]
    >>> generator = torch.Generator().manual_seed(2)
    >>> for pair in sample_segments(documents, max_length=9, generator=generator):
    ...     print(pair)
    SentencePair(ids_a=[5, 5, 6, 6], ids_b=[7, 7], label=0)
    SentencePair(ids_a=[8, 8], ids_b=[15, 16, 17], label=1)
    SentencePair(ids_a=[15], ids_b=[16], label=0)
    SentencePair(ids_a=[17], ids_b=[6, 6, 7, 7, 8], label=1)
    """
    documents = documents_for_pairs(documents, generator)
    room = max_length - 3
    if room < 2:
        raise ValueError(
            "max_length must be at least 5, for a token of each segment and three "
            f"marks, got {max_length}"
        )
    if not 0 <= short_probability <= 1:
        raise ValueError(
            f"short_probability must be from 0 to 1, got {short_probability}"
        )

    def happens(probability: float) -> bool:
        return bool(torch.rand((), generator=generator) < probability)

    def drawn(lowest: int, highest: int) -> int:
        return int(torch.randint(lowest, highest + 1, (), generator=generator))

    followers = followers_of(documents)
    pairs = []
    for d, document in enumerate(documents):
        start = 0
        while start < len(document):
            aim = drawn(2, room) if happens(short_probability) else room
            end = start + max(2, sentences_to_reach(aim, document[start:]))
            end = min(end, len(document))
            border = start + drawn(1, max(1, end - start - 1))
            segment_a = document[start:border]
            if border == end or happens(0.5):
                label, start = NOT_NEXT, border
                rest = random_continuation(
                    documents,
                    d,
                    unlike=followers[tuple(segment_a[-1])],
                    generator=generator,
                )
                left = aim - sum(map(len, segment_a))
                segment_b = rest[: sentences_to_reach(left, rest)]
            else:
                label, start = IS_NEXT, end
                segment_b = document[border:end]
            ids_a, ids_b = [*chain(*segment_a)], [*chain(*segment_b)]
            kept_a, kept_b = truncated_lengths(len(ids_a), len(ids_b), room=room)
            ids_a = cut_ends(ids_a, kept_a, generator=generator)
            ids_b = cut_ends(ids_b, kept_b, generator=generator)
            pairs.append(SentencePair(ids_a, ids_b, label))
    class_balance([pair.label for pair in pairs])
    return pairs


def sentences_to_reach(length: int, sentences: Sequence[list[int]]) -> int:
    """How many sentences hold at least so many tokens: one or more, or all there are.

    >>> sentences_to_reach(3, [[5, 6], [7, 8], [9]])
    2
    """
    reached = 0
    for count, sentence in enumerate(sentences, start=1):
        reached += len(sentence)
        if reached >= length:
            return count
    return len(sentences)


def cut_ends(ids: list[int], length: int, *, generator: torch.Generator) -> list[int]:
    """Take tokens away until `length` are left, each from the front or from the back.

    >>> cut_ends([5, 6, 7, 8, 9], 2, generator=torch.Generator().manual_seed(2))
    [6, 7]
    """
    surplus = len(ids) - length
    front = int((torch.rand(surplus, generator=generator) < 0.5).sum())
    return ids[front : front + length]


def fill_sequences(
    documents: Sequence[Sequence[list[int]]],
    *,
    max_length: int,
    whole_sentences: bool = False,
) -> list[list[int]]:
    """Consecutive sentences of a document in one sequence, up to max_length tokens.

    For pretraining without next-sentence prediction. No sequence runs over the end of
    its document. No token is lost, and none stands in two sequences.

    Args:
        max_length: of the packed sequence, with [CLS] and [SEP]; at least 3.
        whole_sentences: begin a new sequence with a sentence that does not fit any
            more, so that lengths vary. Otherwise, and where a sentence alone is too
            long, sentences are cut where the sequence is full.

    Returns:
        the ids of each sequence, from 1 to max_length - 2, without [CLS] and [SEP].

    Raises:
        ValueError: if max_length leaves no room.

    Source: Liu et al. 2019, section 4.2 (DOC-SENTENCES).

    >>> documents = [[[5, 6], [7, 8, 9]], [[10]]]
    >>> fill_sequences(documents, max_length=6)
    [[5, 6, 7, 8], [9], [10]]
    >>> fill_sequences(documents, max_length=6, whole_sentences=True)
    [[5, 6], [7, 8, 9], [10]]
    """
    room = max_length - 2
    if room < 1:
        raise ValueError(
            "max_length must be at least 3, for a token and two marks, "
            f"got {max_length}"
        )
    sequences = []
    for document in documents:
        filling = []
        for sentence in document:
            if whole_sentences and filling and len(filling) + len(sentence) > room:
                sequences.append(filling)
                filling = []
            filling = filling + sentence
            while len(filling) >= room:
                sequences.append(filling[:room])
                filling = filling[room:]
        if filling:
            sequences.append(filling)
    return sequences


def pair_examples(
    pairs: Sequence[SentencePair], *, special: SpecialIds, max_length: int
) -> list[PretrainingExample]:
    """[CLS] A [SEP] B [SEP] of each pair, with its label. Too long pairs are cut.

    Raises:
        ValueError: if pack_pair refuses what it is given.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> pairs = [SentencePair([5], [6, 7], IS_NEXT)]
    >>> pair_examples(pairs, special=special, max_length=9)[0].input_ids
    tensor([2, 5, 3, 6, 7, 3])
    """
    examples = []
    for ids_a, ids_b, label in pairs:
        packed = pack_pair(ids_a, ids_b, max_length=max_length, **special.for_packing)
        examples.append(PretrainingExample(*packed[:2], next_sentence_label=label))
    return examples


def sequence_examples(
    sequences: Sequence[list[int]], *, special: SpecialIds, max_length: int
) -> list[PretrainingExample]:
    """[CLS] A [SEP] of each sequence, without a next-sentence label.

    Raises:
        ValueError: if pack_pair refuses what it is given.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> sequence_examples([[5, 6]], special=special, max_length=9)[0].input_ids
    tensor([2, 5, 6, 3])
    """
    examples = []
    for ids in sequences:
        packed = pack_pair(ids, max_length=max_length, **special.for_packing)
        examples.append(PretrainingExample(*packed[:2]))
    return examples
