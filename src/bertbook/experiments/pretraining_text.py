"""The text that the book's BERT is pretrained on: its vocabulary, and its examples."""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import NamedTuple

import torch
from tokenizers import Tokenizer

from bertbook.batches import evaluation_batches
from bertbook.corpus import Address, hold_out, load_addresses, split_sentences
from bertbook.experiments.distributed import Batch
from bertbook.pretraining_data import (
    PretrainingExample,
    pair_examples,
    sample_segments,
)
from bertbook.tokenization import encode_sentences, train_tokenizer
from bertbook.wordpiece import SpecialIds, special_ids

MASKING_SEED = 0  # of the held-out masks
VOCAB_SIZE = 8192
MAX_LENGTH = 64  # tokens of a sequence, marks included
SHORT_LENGTH = 16  # of those that are read first
PASSES = 4  # through the text, each with segments and random partners of its own
EVALUATION_BATCH_SIZE = 128

Documents = list[list[list[int]]]  # ids of sentences, without marks


class PretrainingText(NamedTuple):
    """What is read in training, and what is held out.

    >>> from bertbook.tokenization import bert_tokenizer
    >>> from bertbook.wordpiece import BERT_SPECIAL_TOKENS
    >>> PretrainingText(bert_tokenizer(BERT_SPECIAL_TOKENS), [], [], []).special.mask
    4
    """

    tokenizer: Tokenizer
    short: list[PretrainingExample]  # what is read in training first
    training: list[PretrainingExample]
    held_out: list[PretrainingExample]

    @property
    def special(self) -> SpecialIds:
        """The ids of the special tokens."""
        return special_ids(self.tokenizer.get_vocab())


def prepare_text(
    addresses: Sequence[Address], *, vocab_size: int, passes: int = 1
) -> PretrainingText:
    """Hold out every tenth address; learn the vocabulary and make pairs of the others.

    Args:
        addresses: in order, at least twenty.
        vocab_size: V.
        passes: see segment_examples; of what is read in training.

    >>> texts = [f"Rain fell in {year}. " * 30 for year in range(1800, 1940, 7)]
    >>> addresses = [Address(1800, "A", text) for text in texts]
    >>> text = prepare_text(addresses, vocab_size=50)
    >>> text.tokenizer.get_vocab_size(), len(text.training) > len(text.held_out)
    (50, True)
    """
    training, held_out = hold_out(addresses)
    tokenizer = train_tokenizer([a.text for a in training], vocab_size=vocab_size)
    read, unread = (encode_addresses(part, tokenizer) for part in (training, held_out))

    def examples(documents: Documents, **how) -> list[PretrainingExample]:
        return segment_examples(documents, special_ids(tokenizer.get_vocab()), **how)

    return PretrainingText(
        tokenizer,
        short=examples(read, max_length=SHORT_LENGTH, seed=2, passes=passes),
        training=examples(read, max_length=MAX_LENGTH, seed=0, passes=passes),
        held_out=examples(unread, max_length=MAX_LENGTH, seed=1),
    )


def encode_addresses(addresses: Sequence[Address], tokenizer: Tokenizer) -> Documents:
    """The ids of each sentence of each address, without marks.

    >>> from bertbook.tokenization import bert_tokenizer
    >>> from bertbook.wordpiece import BERT_SPECIAL_TOKENS
    >>> tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, "rain", "."])
    >>> encode_addresses([Address(1790, "A", "Rain. Rain.")], tokenizer)
    [[[5, 6], [5, 6]]]
    """
    sentences = [split_sentences(address.text) for address in addresses]
    return encode_sentences(sentences, tokenizer)


def segment_examples(
    documents: Documents,
    special: SpecialIds,
    *,
    max_length: int,
    seed: int,
    passes: int = 1,
) -> list[PretrainingExample]:
    """Pairs of segments of documents, sampled anew in each pass through them.

    Args:
        documents: at least two.
        special: the ids of the special tokens.
        max_length: tokens of an example, marks included.
        seed: of the sampling.
        passes: how often the text is read, at least 1.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> documents = [[[5, 6]] * 50, [[7, 8]] * 50]
    >>> examples = segment_examples(documents, special, max_length=16, seed=0, passes=2)
    >>> sorted({example.next_sentence_label for example in examples})
    [0, 1]
    """
    generator = torch.Generator().manual_seed(seed)
    pairs = chain.from_iterable(
        sample_segments(documents, max_length=max_length, generator=generator)
        for _ in range(passes)
    )
    return pair_examples(list(pairs), special=special, max_length=max_length)


def held_out_batches(text: PretrainingText) -> list[Batch]:
    """The held-out examples, each once, under masks that are always the same.

    >>> text = rain_text()
    >>> [batch] = held_out_batches(text)
    >>> len(batch["input_ids"]) == len(text.held_out)
    True
    """
    return evaluation_batches(
        text.held_out,
        special=text.special,
        batch_size=EVALUATION_BATCH_SIZE,
        seed=MASKING_SEED,
    )


def rain_text() -> PretrainingText:
    """A text of twenty addresses about rain: enough to try code on it.

    >>> rain_text().tokenizer.get_vocab_size()
    50
    """
    texts = [f"Rain fell in {year}. " * 30 for year in range(1800, 1940, 7)]
    addresses = [Address(1800, "A", text) for text in texts]
    return prepare_text(addresses, vocab_size=50)


@cache
def whole_text() -> PretrainingText:
    """All addresses, prepared once in a process, which takes a while.

    >>> whole_text.cache_info().maxsize is None  # importing prepares nothing
    True
    """
    return prepare_text(load_addresses(), vocab_size=VOCAB_SIZE, passes=PASSES)
