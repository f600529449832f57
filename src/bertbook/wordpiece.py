"""WordPiece by hand: from raw text to words, from words to pieces, pieces to ids.

The same steps as the released uncased BERT takes, in plain Python, to be read. For real
work ``tokenization`` has a library do them; both give the same ids.
"""

import unicodedata
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

# In this order they are the first five ids of a vocabulary that the book trains.
BERT_SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST_WORD = 100  # characters; a longer word is unknown


def basic_tokenize(text: str) -> list[str]:
    """Lower case, without accents, and every punctuation mark a word of its own.

    The released code also parts Chinese characters from each other; this does not.

    Source: google-research/bert, tokenization.py (BasicTokenizer).

    >>> basic_tokenize("The café's door, at 5.")
    ['the', 'cafe', "'", 's', 'door', ',', 'at', '5', '.']
    """
    letters = []
    for character in unicodedata.normalize("NFD", text):
        kind = unicodedata.category(character)
        if character in "\t\n\r" or kind == "Zs":  # white space
            letters.append(" ")
        elif kind.startswith("C") or character == "\N{REPLACEMENT CHARACTER}":
            continue  # control characters, and what could not be decoded
        elif kind == "Mn":
            continue  # an accent, which NFD has parted from its letter
        elif is_punctuation(character):
            letters += [" ", character, " "]
        else:
            letters.append(character.lower())
    return "".join(letters).split()


def is_punctuation(character: str) -> bool:
    """Whether BERT takes it for punctuation: also $, +, <, =, > and other ASCII signs.

    >>> [is_punctuation(character) for character in "a$—5"]
    [False, True, True, False]
    """
    is_ascii_mark = character.isascii() and character.isprintable()
    is_ascii_mark = is_ascii_mark and not character.isalnum() and character != " "
    return is_ascii_mark or unicodedata.category(character).startswith("P")


def wordpiece_tokenize(
    word: str, vocab: Container[str], *, unknown: str = "[UNK]"
) -> list[str]:
    """Cut a word into pieces: always the longest one that the vocabulary has.

    A piece that continues a word is written with ## in front. There is no way back: if
    the longest first piece leaves a rest that cannot be cut, the whole word is unknown,
    even where a shorter first piece would have worked.

    Args:
        word: without white space, at least one character.
        vocab: the pieces.

    Returns:
        the pieces, or [unknown].

    Raises:
        ValueError: if word is empty or holds white space.

    Source: Devlin et al. 2019, section 3; google-research/bert, tokenization.py.

    >>> vocab = {"un", "able", "##aff", "##able", "##abl", "##e"}
    >>> wordpiece_tokenize("unaffable", vocab)
    ['un', '##aff', '##able']
    >>> wordpiece_tokenize("unaffably", vocab)
    ['[UNK]']
    """
    if not word or len(word.split()) != 1 or word != word.strip():
        raise ValueError(f"word must be one word without white space, got {word!r}")
    if len(word) > LONGEST_WORD:
        return [unknown]
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):  # the longest first
            piece = word[start:end] if start == 0 else f"##{word[start:end]}"
            if piece in vocab:
                break
        else:  # not even a single character
            return [unknown]
        pieces.append(piece)
        start = end
    return pieces


def text_to_ids(text: str, vocab: Mapping[str, int]) -> list[int]:
    """The ids of a text, without [CLS] and [SEP]: words, pieces, ids.

    Args:
        vocab: the id of each piece; [UNK] among them.

    Raises:
        ValueError: if vocab has no [UNK].

    Source: google-research/bert, tokenization.py (FullTokenizer).

    >>> vocab = {"[UNK]": 0, "it": 1, "##s": 2, "rain": 3, ".": 4}
    >>> text_to_ids("It rains?", vocab), text_to_ids("Its.", vocab)
    ([1, 3, 2, 0], [1, 2, 4])
    """
    if "[UNK]" not in vocab:
        raise ValueError("vocab must hold [UNK], the piece of unknown words")
    words = basic_tokenize(text)
    return [vocab[piece] for word in words for piece in wordpiece_tokenize(word, vocab)]


class SpecialIds(NamedTuple):
    """The ids of the five special tokens, and what other functions take of them.

    >>> special = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=9)
    >>> special.for_packing
    {'cls_token_id': 2, 'sep_token_id': 3}
    """

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int
    vocab_size: int  # V

    @property
    def for_packing(self) -> dict[str, int]:
        """The arguments of pack_pair."""
        return {"cls_token_id": self.cls, "sep_token_id": self.sep}

    @property
    def for_masking(self) -> dict:
        """The arguments of mask_tokens. [UNK] is no candidate: it names no piece."""
        return {
            "mask_token_id": self.mask,
            "vocab_size": self.vocab_size,
            "special_token_ids": [self.pad, self.unk, self.cls, self.sep, self.mask],
        }


def special_ids(vocab: Mapping[str, int]) -> SpecialIds:
    """Look the special ids up in a vocabulary.

    Raises:
        ValueError: if it lacks one.

    >>> special_ids({"[PAD]": 0, "[UNK]": 5, "[CLS]": 6, "[SEP]": 7, "[MASK]": 8})
    SpecialIds(pad=0, unk=5, cls=6, sep=7, mask=8, vocab_size=9)
    """
    check_special_tokens(vocab)
    ids = [vocab[token] for token in BERT_SPECIAL_TOKENS]
    return SpecialIds(*ids, vocab_size=max(vocab.values()) + 1)


def check_special_tokens(pieces: Iterable[str]) -> None:
    """Raise an error that names the special tokens which a vocabulary lacks.

    >>> check_special_tokens(["[PAD]", "[UNK]", "[MASK]", "rain"])
    Traceback (most recent call last):
    ValueError: the vocabulary lacks [CLS], [SEP]: it is not BERT's
    """
    present = set(pieces)
    missing = [token for token in BERT_SPECIAL_TOKENS if token not in present]
    if missing:
        raise ValueError(f"the vocabulary lacks {', '.join(missing)}: it is not BERT's")
