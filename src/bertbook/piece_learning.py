"""How pieces are learned, in plain Python: count pairs, merge the most frequent, again.

The library that ``tokenization`` uses does the same, and fast. A word is a tuple of
pieces here; a piece that continues a word begins with ##.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple


class Merge(NamedTuple):
    """A step of learning: two neighbours become one piece.

    >>> Merge(("t", "##h"), 7, "th").piece
    'th'
    """

    pair: tuple[str, str]
    count: int  # how often the two stood side by side
    piece: str


def split_word(word: str) -> tuple[str, ...]:
    """A word as pieces of one character.

    Raises:
        ValueError: if it is empty.

    >>> split_word("then")
    ('t', '##h', '##e', '##n')
    """
    if not word:
        raise ValueError("word must have at least one character, got ''")
    return word[0], *(f"##{character}" for character in word[1:])


def count_pairs(words: Mapping[tuple[str, ...], int]) -> Counter[tuple[str, str]]:
    """How often each two pieces stand side by side in a word.

    Args:
        words: how often each word, as pieces, occurs.

    >>> count_pairs({("t", "##h", "##e"): 2, ("t", "##h", "##y"): 1})
    Counter({('t', '##h'): 3, ('##h', '##e'): 2, ('##h', '##y'): 1})
    """
    counts: Counter[tuple[str, str]] = Counter()
    for pieces, count in words.items():
        for pair in pairwise(pieces):
            counts[pair] += count
    return counts


def join_pair(pair: tuple[str, str]) -> str:
    """The piece that two neighbours become.

    >>> join_pair(("t", "##h")), join_pair(("##e", "##n"))
    ('th', '##en')
    """
    left, right = pair
    return left + right.removeprefix("##")


def merge_pair(
    words: Mapping[tuple[str, ...], int], pair: tuple[str, str]
) -> dict[tuple[str, ...], int]:
    """The words with a pair made one piece, wherever it stands, from left to right.

    Args:
        words: how often each word, as pieces, occurs.

    >>> merge_pair({("t", "##h", "##e"): 2, ("h", "##e"): 1}, ("t", "##h"))
    {('th', '##e'): 2, ('h', '##e'): 1}
    """
    merged = {}
    for pieces, count in words.items():
        new: list[str] = []
        for piece in pieces:
            if new and (new[-1], piece) == pair:
                new[-1] = join_pair(pair)
            else:
                new.append(piece)
        merged[tuple(new)] = count
    return merged


def learn_merges(word_counts: Mapping[str, int], *, merges: int) -> list[Merge]:
    """Merge the most frequent pair, so many times, or until every word is one piece.

    At a tie the pair counts whose first piece, then whose second piece, was there
    earlier; the single characters are there in sorted order.

    Args:
        word_counts: how often each word occurs.
        merges: how many new pieces to learn, at least 0.

    Raises:
        ValueError: if merges is negative, or a word is empty.

    Source: Sennrich et al. 2016, section 3.2; Wu et al. 2016, section 4.1.

    >>> for merge in learn_merges({"the": 2, "then": 1, "hen": 1}, merges=2):
    ...     print(merge)
    Merge(pair=('##h', '##e'), count=3, piece='##he')
    Merge(pair=('t', '##he'), count=3, piece='the')
    """
    if merges < 0:
        raise ValueError(f"merges must not be negative, got {merges}")
    words = {split_word(word): count for word, count in word_counts.items()}
    characters = sorted({piece for pieces in words for piece in pieces})
    age = {piece: i for i, piece in enumerate(characters)}
    done: list[Merge] = []
    while len(done) < merges and (counts := count_pairs(words)):
        best = min(counts, key=lambda p: (-counts[p], age[p[0]], age[p[1]]))
        done.append(Merge(best, counts[best], join_pair(best)))
        age.setdefault(done[-1].piece, len(age))
        words = merge_pair(words, best)
    return done
