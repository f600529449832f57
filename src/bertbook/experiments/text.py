"""What the text to pretrain on is made of: counted once, since it takes a minute.

No model is trained. Tokenizer, split and examples are those that ``pretrain`` reads.
"""

from collections import Counter
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from bertbook.baselines import copying_baseline, unigram_baseline
from bertbook.batches import LengthBuckets, evaluation_batches, padding_share
from bertbook.corpus import Address, hold_out, load_addresses
from bertbook.experiments.distributed import Batch
from bertbook.experiments.pretraining_text import (
    EVALUATION_BATCH_SIZE,
    MAX_LENGTH,
    PretrainingText,
    encode_addresses,
    held_out_batches,
    whole_text,
)
from bertbook.experiments.recording import Experiment, Numbers
from bertbook.pairs import class_balance
from bertbook.pretraining_data import fill_sequences
from bertbook.wordpiece import BERT_SPECIAL_TOKENS

SEED = 0
BATCH_SIZE = 64  # of the batches whose padding is counted
BIN = 10  # tokens: the width of a bar of the histogram
LAST_BIN = 12  # of the histogram; it also holds everything longer
ROOM = MAX_LENGTH - 3  # tokens of a pair, without its marks
SHORT_EACH = 10  # of the sequences that are read first: enough for their baselines
SHOWN = 8  # most frequent tokens, and first pieces
CUT_WORDS = ("constitutional", "internet", "unaffordable", "Tuscarora", "embeddings")


def count_part(
    addresses: Sequence[Address], documents: Sequence[Sequence[list[int]]]
) -> dict[str, int]:
    """How many addresses, sentences, words (between spaces), tokens and unknown ones.

    Args:
        addresses: one part of them.
        documents: the same, as encode_addresses gives them; [UNK] has the id 1.

    >>> count_part([Address(1790, "A", "It rains.")], [[[7, 8, 9]]])
    {'addresses': 1, 'sentences': 1, 'words': 2, 'tokens': 3, 'unknown': 0}
    """
    sentences = [ids for document in documents for ids in document]
    return {
        "addresses": len(addresses),
        "sentences": len(sentences),
        "words": sum(len(address.text.split()) for address in addresses),
        "tokens": sum(map(len, sentences)),
        "unknown": sum(
            ids.count(BERT_SPECIAL_TOKENS.index("[UNK]")) for ids in sentences
        ),
    }


def count_words(addresses: Sequence[Address], tokenizer: Tokenizer) -> Counter[str]:
    """How often each of BERT's words occurs, punctuation marks among them.

    >>> from bertbook.tokenization import bert_tokenizer
    >>> tokenizer = bert_tokenizer(BERT_SPECIAL_TOKENS)
    >>> count_words([Address(1790, "A", "Rain? Rain!")], tokenizer)
    Counter({'rain': 2, '?': 1, '!': 1})
    """
    counts: Counter[str] = Counter()
    for address in addresses:
        text = tokenizer.normalizer.normalize_str(address.text)
        counts.update(w for w, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))
    return counts


def unknown_percent(counts: Counter[str], known: Container[str]) -> float:
    """How many in a hundred of what was counted are not known.

    >>> unknown_percent(Counter(["rain", "rain", "sun", "snow"]), {"rain"})
    50.0
    """
    unknown = sum(count for unit, count in counts.items() if unit not in known)
    return round(100 * unknown / counts.total(), 2)


def compare_units(
    seen: Counter[str], held_out: Counter[str], *, vocab_size: int
) -> dict[str, dict[str, float]]:
    """What held-out text costs if its units are characters, or whole words.

    Args:
        seen: the words to take units from.
        held_out: the words to write in these units.
        vocab_size: the most frequent so many words are units; or all words are.

    >>> seen, held_out = Counter(["rain", "rain", "sun"]), Counter(["sun", "us"])
    >>> compare_units(seen, held_out, vocab_size=1)["characters"]
    {'vocabulary': 6, 'per_word': 2.5, 'unknown_percent': 0.0}
    """
    alphabet = set("".join(seen))
    letters: Counter[str] = Counter()
    for word, count in held_out.items():
        for letter in word:
            letters[letter] += count
    frequent = {word for word, _ in seen.most_common(vocab_size)}
    words = {
        name: {
            "vocabulary": len(known),
            "per_word": 1.0,
            "unknown_percent": unknown_percent(held_out, known),
        }
        for name, known in (("frequent words", frequent), ("all words", seen.keys()))
    }
    return {
        "characters": {
            "vocabulary": len(alphabet),
            "per_word": round(letters.total() / held_out.total(), 2),
            "unknown_percent": unknown_percent(letters, alphabet),
        },
        **words,
    }


def describe_lengths(lengths: Sequence[int]) -> dict[str, Any]:
    """Median, the length that 95 of 100 do not exceed, the longest; and a histogram.

    Between them: how many in a hundred would fill a pair alone. The histogram's first
    bar counts the lengths below BIN, the second those below 2 BIN, and so on;
    the last one all that are left.

    >>> found = describe_lengths([*range(1, 101), 900])
    >>> found["median"], found["percentile_95"], found["longest"]
    (51, 96, 900)
    >>> found["filling_percent"]  # 61 to 100, and 900
    40.59
    >>> found["histogram"]
    [9, 10, 10, 10, 10, 10, 10, 10, 10, 10, 1, 0, 1]
    """
    in_order = sorted(lengths)
    bars = Counter(min(length // BIN, LAST_BIN) for length in lengths)
    return {
        "median": in_order[len(lengths) // 2],
        "percentile_95": in_order[int(0.95 * len(lengths))],
        "longest": in_order[-1],
        "filling_percent": round(
            100 * sum(length >= ROOM for length in lengths) / len(lengths), 2
        ),
        "histogram": [bars[i] for i in range(LAST_BIN + 1)],
    }


def padding_percent(lengths: Sequence[int]) -> dict[str, float]:
    """How many in a hundred positions are padding, in random batches and in buckets.

    >>> padding_percent([5] * 100)
    {'random': 0.0, 'buckets': 0.0}
    """
    percent = {}
    for name, pool_batches in (("random", 1), ("buckets", 50)):
        batches = LengthBuckets(
            lengths,
            batch_size=BATCH_SIZE,
            generator=torch.Generator().manual_seed(SEED),
            pool_batches=pool_batches,
        )
        percent[name] = round(100 * padding_share(lengths, list(batches)), 2)
    return percent


def packings(
    documents: Sequence[Sequence[list[int]]], text: PretrainingText
) -> dict[str, list[int]]:
    """The lengths of BERT's inputs, marks included, for four ways to pack the text.

    >>> packings([[[5, 6], [7]]], PretrainingText(None, [], [], []))["one sentence"]
    [4, 3]
    """
    filled, whole = (
        fill_sequences(documents, max_length=MAX_LENGTH, whole_sentences=whole)
        for whole in (False, True)
    )
    sentences = [ids for document in documents for ids in document]
    return {
        "one sentence": [len(ids) + 2 for ids in sentences],
        "whole sentences": [len(ids) + 2 for ids in whole],
        "filled": [len(ids) + 2 for ids in filled],
        "pairs": [len(example.input_ids) for example in text.training],
    }


def describe_vocabulary(tokenizer: Tokenizer, counts: Counter[int]) -> dict[str, Any]:
    """What pieces there are, which occur most, and how some words are cut.

    Args:
        tokenizer: its pieces are in the order in which they were learned.
        counts: how often each id occurs.

    >>> from bertbook.tokenization import bert_tokenizer
    >>> tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, "r", "##a", "ra"])
    >>> found = describe_vocabulary(tokenizer, Counter({7: 3, 5: 1}))
    >>> found["continuing"], found["learned_first"], found["frequent_percent"]
    (1, ['ra'], {'ra': 75.0, 'r': 25.0})
    """
    ids = tokenizer.get_vocab()
    pieces = sorted(ids, key=ids.get)[len(BERT_SPECIAL_TOKENS) :]
    return {
        "continuing": sum(piece.startswith("##") for piece in pieces),
        "beginning": sum(not piece.startswith("##") for piece in pieces),
        "learned_first": [p for p in pieces if len(p.removeprefix("##")) > 1][:SHOWN],
        "frequent_percent": {
            tokenizer.id_to_token(i): round(100 * count / counts.total(), 2)
            for i, count in counts.most_common(SHOWN)
        },
        "cuts": {
            word: " ".join(tokenizer.encode(word, add_special_tokens=False).tokens)
            for word in CUT_WORDS
        },
    }


def measure_baselines(text: PretrainingText, batches: Sequence[Batch]) -> Numbers:
    """Loss and accuracy of the two guesses that know the shares of the training text.

    Args:
        text: the shares are those of what it has to train on.
        batches: masked; of any text.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> text = rain_text()
    >>> found = measure_baselines(text, held_out_batches(text))
    >>> found["copying_loss"] < found["unigram_loss"]
    True
    """
    training_ids = torch.cat([example.input_ids for example in text.training])
    labels = torch.cat([batch["labels"].flatten() for batch in batches])
    baselines = {
        "unigram": unigram_baseline(training_ids, labels, special=text.special),
        "copying": copying_baseline(
            training_ids,
            masked_ids=torch.cat([batch["input_ids"].flatten() for batch in batches]),
            labels=labels,
            special=text.special,
        ),
    }
    return {
        f"{name}_{what}": round(number, 6)
        for name, found in baselines.items()
        for what, number in zip(("loss", "accuracy"), found, strict=True)
    }


def measure_again(text: PretrainingText) -> Numbers:
    """What is quickly counted anew once the text is prepared.

    Returns:
        also the baselines of the sequences that training reads first (short_...): its
        losses are to be compared with these, and not with those of held-out text.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> found = measure_again(rain_text())
    >>> found["copying_loss"] < found["unigram_loss"]
    True
    """
    first = evaluation_batches(
        text.short[::SHORT_EACH],
        special=text.special,
        batch_size=EVALUATION_BATCH_SIZE,
        seed=SEED,
    )
    of_first = measure_baselines(text, first)
    next_labels = [example.next_sentence_label for example in text.training]
    return {
        **measure_baselines(text, held_out_batches(text)),
        **{f"short_{name}": number for name, number in of_first.items()},
        "pieces": text.special.vocab_size,
        "held_out_examples": len(text.held_out),
        **class_balance(next_labels),
    }


def describe_text(
    addresses: Sequence[Address], text: PretrainingText
) -> dict[str, Any]:
    """Everything that the chapter on text says of the whole corpus.

    Args:
        addresses: all, in order.
        text: what prepare_text makes of them.

    >>> from bertbook.experiments.pretraining_text import prepare_text
    >>> texts = [f"Rain fell in {year}. " * 30 for year in range(1800, 1940, 7)]
    >>> addresses = [Address(1800, "A", text) for text in texts]
    >>> found = describe_text(addresses, prepare_text(addresses, vocab_size=50))
    >>> found["parts"]["held_out"]["words"], found["sentences"]["median"]
    (240, 7)
    """
    tokenizer = text.tokenizer
    training, held_out = hold_out(addresses)
    documents = encode_addresses(training, tokenizer)
    parts = {
        "training": count_part(training, documents),
        "held_out": count_part(held_out, encode_addresses(held_out, tokenizer)),
    }
    held_out_words = count_words(held_out, tokenizer)
    units = compare_units(
        count_words(training, tokenizer),
        held_out_words,
        vocab_size=text.special.vocab_size - len(BERT_SPECIAL_TOKENS),
    )
    tokens = parts["held_out"]["tokens"]
    units["pieces"] = {
        "vocabulary": text.special.vocab_size - len(BERT_SPECIAL_TOKENS),
        "per_word": round(tokens / held_out_words.total(), 2),
        "unknown_percent": round(100 * parts["held_out"]["unknown"] / tokens, 2),
    }
    sentences = [ids for document in documents for ids in document]
    lengths = packings(documents, text)
    return {
        "max_length": MAX_LENGTH,
        "batch_size": BATCH_SIZE,
        "years": {
            "first": addresses[0].year,
            "last": addresses[-1].year,
            "held_out": [address.year for address in held_out],
        },
        "parts": parts,
        "units": units,
        "vocabulary": describe_vocabulary(
            tokenizer, Counter(i for ids in sentences for i in ids)
        ),
        "sentences": describe_lengths([len(ids) for ids in sentences]),
        "examples": {name: len(found) for name, found in lengths.items()},
        "padding_percent": {
            name: padding_percent(found) for name, found in lengths.items()
        },
    }


def measure_whole_text(folder: Path) -> Numbers:
    """measure_again of all addresses; nothing was kept in the folder.

    >>> whole_text.cache_info().maxsize is None  # importing prepares nothing
    True
    """
    return measure_again(whole_text())


EXPERIMENT = Experiment(
    "text",
    seeds=[SEED],
    runs={},
    summarize=lambda logs: describe_text(load_addresses(), whole_text()),
    recompute=measure_whole_text,
)
