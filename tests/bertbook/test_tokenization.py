"""The tokenizer: training gives one vocabulary, files go out and in, bad files are named."""

import hashlib
import json

import pytest

from bertbook.corpus import hold_out, load_addresses
from bertbook.tokenization import (
    bert_tokenizer,
    encode_sentences,
    load_tokenizer,
    save_tokenizer,
    train_tokenizer,
)
from bertbook.wordpiece import BERT_SPECIAL_TOKENS

# Of the 8,192 pieces, a line each. With another version of the library it may become another vocabulary,
# and every id of the trained model with it.
VOCABULARY_SHA256 = "dde763de8e7c54c00e6f4f211bc892f81743316f9ba61a631745799404201c87"


def pieces_of(tokenizer) -> list[str]:
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.get)


@pytest.fixture(scope="module")
def texts():
    return hold_out([address.text for address in load_addresses()])[0]


def test_training_twice_gives_one_vocabulary(texts):
    """The library alone numbers the characters differently each time."""
    first, second = (pieces_of(train_tokenizer(texts[::20], vocab_size=1000)) for _ in range(2))
    assert first == second
    assert first[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(first) == len(set(first)) == 1000


def test_the_vocabulary_of_the_book(texts):
    pieces = pieces_of(train_tokenizer(texts))
    assert len(pieces) == 8192
    assert hashlib.sha256("\n".join(pieces).encode()).hexdigest() == VOCABULARY_SHA256


def test_characters_are_no_special_tokens(texts):
    """They are handed to the trainer as such; they must not stay it, or they would be cut out of any word."""
    tokenizer = train_tokenizer(texts[:2], vocab_size=300)
    added = {str(token.content) for token in tokenizer.get_added_tokens_decoder().values()}
    assert added == set(BERT_SPECIAL_TOKENS)


@pytest.mark.parametrize(
    ("vocab_size", "message"),
    [
        (6, "vocab_size must be at least 8, the special tokens and the characters of these texts, got 6"),
        (500, r"vocab_size must be at most \d+, the pieces that occur twice in these texts, got 500"),
    ],
)
def test_a_vocabulary_that_cannot_be(vocab_size, message):
    with pytest.raises(ValueError, match=message):
        train_tokenizer(["ab ab ab"], vocab_size=vocab_size)


def test_pairs_get_marks_and_token_types():
    encoded = bert_tokenizer([*BERT_SPECIAL_TOKENS, "rain", "##s"]).encode("rain[SEP]", "RAINS")
    assert encoded.tokens == ["[CLS]", "rain", "[SEP]", "[SEP]", "rain", "##s", "[SEP]"]
    assert encoded.type_ids == [0, 0, 0, 0, 1, 1, 1]


def test_what_is_saved_loads_again(texts, tmp_path):
    tokenizer = train_tokenizer(texts[:3], vocab_size=400)
    save_tokenizer(tokenizer, tmp_path / "new" / "folder")
    text = "Naïve fellow-citizens, in 1790: 50% of $5!"
    for path in ("", "vocab.txt", "tokenizer.json"):
        loaded = load_tokenizer(tmp_path / "new" / "folder" / path)
        assert loaded.get_vocab() == tokenizer.get_vocab()
        assert loaded.encode(text, "Second.").ids == tokenizer.encode(text, "Second.").ids
        assert loaded.decode(loaded.encode("fellow citizens").ids) == "fellow citizens"


def test_ids_are_lines_as_in_the_public_vocabulary(tmp_path):
    """There [PAD] is 0, but [UNK] is 100: places are what counts."""
    pieces = ["[PAD]", *(f"[unused{i}]" for i in range(3)), "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    assert load_tokenizer(tmp_path).encode("The [MASK] x").ids == [5, 8, 7, 4, 6]


def test_padding_and_truncation_of_a_file_are_off(tmp_path):
    tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, "the"])
    tokenizer.enable_padding(length=9)
    tokenizer.enable_truncation(4)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert len(load_tokenizer(tmp_path).encode("the the the the").ids) == 6


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe", r"the vocabulary lacks \[MASK\]"),
        ("vocab.txt", "\n".join([*BERT_SPECIAL_TOKENS, "a", "a"]), "pieces holds 'a' more than once"),
        ("tokenizer.json", "{}", "tokenizer.json is not a tokenizer.json"),
        ("tokenizer.json", "not json", "tokenizer.json is not a tokenizer.json"),
    ],
)
def test_files_that_are_no_tokenizer(tmp_path, name, content, message):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path / name)


def test_a_tokenizer_of_another_family(tmp_path):
    tokenizer = bert_tokenizer(BERT_SPECIAL_TOKENS)
    content = json.loads(tokenizer.to_str().replace("[MASK]", "<mask>"))
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=r"the vocabulary lacks \[MASK\]"):
        load_tokenizer(tmp_path)


def test_an_empty_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no tokenizer.json and no vocab.txt"):
        load_tokenizer(tmp_path)


def test_ids_with_gaps_cannot_be_saved(tmp_path):
    tokenizer = bert_tokenizer(BERT_SPECIAL_TOKENS)
    content = json.loads(tokenizer.to_str())
    content["model"]["vocab"]["far"] = 9
    gapped = type(tokenizer).from_str(json.dumps(content))
    with pytest.raises(ValueError, match="must use every id from 0 to V - 1"):
        save_tokenizer(gapped, tmp_path)


def test_sentences_keep_their_documents():
    tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, "a", "b"])
    assert encode_sentences([["a b", "\x02"], [], ["b"]], tokenizer) == [[[5, 6]], [], [[6]]]
