"""WordPiece by hand: the longest match, unknown words, and the library's ids on real text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.corpus import hold_out, load_addresses
from bertbook.tokenization import bert_tokenizer, train_tokenizer
from bertbook.wordpiece import (
    BERT_SPECIAL_TOKENS,
    LONGEST_WORD,
    basic_tokenize,
    special_ids,
    text_to_ids,
    wordpiece_tokenize,
)

property_test = settings(max_examples=200, deadline=None, derandomize=True)
VOCAB = ["a", "b", "ab", "aba", "##a", "##b", "##ba", "##bab", "c", "##cc"]


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("abab", ["aba", "##b"]),  # the longest first piece, not the fewest pieces
        ("ababab", ["aba", "##bab"]),
        ("b", ["b"]),
        ("ccc", ["c", "##cc"]),
        ("cc", ["[UNK]"]),  # no way back: ##c is missing
        ("abx", ["[UNK]"]),  # one unknown character, and the whole word is unknown
        ("é", ["[UNK]"]),
        ("a" * LONGEST_WORD, ["a", *["##a"] * (LONGEST_WORD - 1)]),
        ("a" * (LONGEST_WORD + 1), ["[UNK]"]),
    ],
)
def test_greedy(word, pieces):
    assert wordpiece_tokenize(word, VOCAB) == pieces


def test_the_unknown_piece_has_the_name_that_it_is_given():
    assert wordpiece_tokenize("x", VOCAB, unknown="?") == ["?"]


@property_test
@given(st.text(alphabet="abcx", min_size=1, max_size=8))
def test_pieces_spell_the_word_and_the_library_agrees(word):
    pieces = wordpiece_tokenize(word, VOCAB)
    if pieces != ["[UNK]"]:
        assert "".join(piece.removeprefix("##") for piece in pieces) == word
    tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, *VOCAB])
    assert tokenizer.encode(word, add_special_tokens=False).tokens == pieces


@pytest.mark.parametrize("word", ["", " ", "a b", "a\n"])
def test_what_is_no_word(word):
    with pytest.raises(ValueError, match="word must be one word without white space"):
        wordpiece_tokenize(word, VOCAB)


latin = st.text(alphabet=st.characters(max_codepoint=0x24F), max_size=40)


@property_test
@given(latin)
def test_words_are_the_librarys(text):
    tokenizer = bert_tokenizer(BERT_SPECIAL_TOKENS)
    normal = tokenizer.normalizer.normalize_str(text)
    assert basic_tokenize(text) == [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal)]


def test_ids_of_the_addresses_are_the_librarys():
    training, held_out = hold_out([address.text for address in load_addresses()])
    tokenizer = train_tokenizer(training[::20], vocab_size=2000)
    vocab = tokenizer.get_vocab()
    for text in [*held_out, *training[::20]]:
        assert text_to_ids(text, vocab) == tokenizer.encode(text, add_special_tokens=False).ids


def test_a_vocabulary_without_unknown():
    with pytest.raises(ValueError, match=r"vocab must hold \[UNK\]"):
        text_to_ids("a", {"a": 0})


def test_special_ids_are_looked_up_and_never_candidates():
    special = special_ids({**{token: 10 + i for i, token in enumerate(BERT_SPECIAL_TOKENS)}, "a": 0})
    assert special == (10, 11, 12, 13, 14, 15)
    assert special.for_masking == {
        "mask_token_id": 14,
        "vocab_size": 15,
        "special_token_ids": [10, 11, 12, 13, 14],
    }
    with pytest.raises(ValueError, match=r"the vocabulary lacks \[PAD\], \[UNK\], \[CLS\], \[SEP\], \[MASK\]"):
        special_ids({"a": 0})
