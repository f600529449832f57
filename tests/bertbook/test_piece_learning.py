"""Learning pieces by hand: the library learns the same, in the same order; nothing of a word is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.piece_learning import count_pairs, join_pair, learn_merges, merge_pair, split_word
from bertbook.tokenization import learned_pieces, pieces_of_one_character

property_test = settings(max_examples=100, deadline=None, derandomize=True)
word_counts = st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 5), min_size=1, max_size=5)


def spelled(pieces) -> str:
    return "".join(piece.removeprefix("##") for piece in pieces)


@property_test
@given(word_counts, st.integers(0, 6))
def test_the_library_learns_the_same_pieces_in_the_same_order(counts, merges):
    texts = [" ".join([word] * count) for word, count in counts.items()]
    characters = sorted(pieces_of_one_character(texts))
    by_hand = [merge.piece for merge in learn_merges(counts, merges=merges)]
    by_library = learned_pieces(texts, characters, vocab_size=len(characters) + merges)
    assert list(dict.fromkeys([*characters, *by_hand])) == by_library


@property_test
@given(word_counts)
def test_merging_loses_neither_a_letter_nor_a_word_and_makes_one_piece_of_each(counts):
    words = {split_word(word): count for word, count in counts.items()}
    for merge in learn_merges(counts, merges=100):
        before = sum(len(pieces) * count for pieces, count in words.items())
        assert count_pairs(words)[merge.pair] == max(count_pairs(words).values()) == merge.count
        words = merge_pair(words, merge.pair)
        assert {spelled(pieces): count for pieces, count in words.items()} == counts
        assert sum(len(pieces) * count for pieces, count in words.items()) < before
    assert all(len(pieces) == 1 for pieces in words)


def test_overlapping_pairs_are_merged_from_the_left():
    assert merge_pair({split_word("aaaa"): 1}, ("##a", "##a")) == {("a", "##aa", "##a"): 1}


def test_at_a_tie_the_older_pieces_go_first():
    first, second = learn_merges({"ca": 1, "ba": 1}, merges=2)
    assert (first.piece, second.piece) == ("ba", "ca")


def test_a_merged_piece_continues_a_word_only_if_its_left_part_does():
    assert join_pair(("a", "##b")) == "ab"
    assert join_pair(("##a", "##b")) == "##ab"


def test_errors():
    with pytest.raises(ValueError, match="merges must not be negative, got -1"):
        learn_merges({"a": 1}, merges=-1)
    with pytest.raises(ValueError, match="word must have at least one character, got ''"):
        learn_merges({"": 1}, merges=1)
