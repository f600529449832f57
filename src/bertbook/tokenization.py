"""WordPiece with the `tokenizers` library: train a vocabulary, load and save one."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer

from bertbook.wordpiece import BERT_SPECIAL_TOKENS, check_special_tokens


def train_tokenizer(texts: Sequence[str], *, vocab_size: int = 8192) -> Tokenizer:
    """Learn an uncased WordPiece vocabulary from texts: the same one at every run.

    It starts from single characters, and adds the most frequent pair of neighbours as
    a new piece, again and again. The library numbers the continuing characters in the
    order of a hash table, which differs from run to run, and breaks ties of frequency
    by these numbers. So the characters are given to it in sorted order, beforehand.

    Args:
        texts: such as whole documents.
        vocab_size: V, special tokens included. It is reached exactly, or an error.

    Returns:
        a tokenizer as bert_tokenizer makes it.

    Raises:
        ValueError: if the texts have more characters than fit into vocab_size, or not
            enough pairs to fill it.

    Source: Devlin et al. 2019, section 3; Wu et al. 2016, section 4.1.

    >>> texts = ["the thin then", "then the thinner"]
    >>> tokenizer = train_tokenizer(texts, vocab_size=21)
    >>> tokenizer.encode("The thin").tokens
    ['[CLS]', 'the', 'thin', '[SEP]']
    """
    texts = list(texts)
    first = [*BERT_SPECIAL_TOKENS, *sorted(pieces_of_one_character(texts))]
    if len(first) > vocab_size:
        raise ValueError(
            f"vocab_size must be at least {len(first)}, the special tokens and the "
            f"characters of these texts, got {vocab_size}"
        )
    pieces = learned_pieces(texts, first, vocab_size=vocab_size)
    if len(pieces) < vocab_size:
        raise ValueError(
            f"vocab_size must be at most {len(pieces)}, the pieces that occur twice "
            f"in these texts, got {vocab_size}: give more text or a smaller vocab_size"
        )
    return bert_tokenizer(pieces)


def pieces_of_one_character(texts: Iterable[str]) -> set[str]:
    """Every character of words, and with ## every one that continues a word.

    >>> sorted(pieces_of_one_character(["Ab, b"]))
    ['##b', ',', 'a', 'b']
    """
    return set(learned_pieces(texts, [], vocab_size=0))


def learned_pieces(
    texts: Iterable[str], first: Sequence[str], *, vocab_size: int
) -> list[str]:
    """Pieces in the order in which the library learns them, those in `first` first.

    >>> learned_pieces(["aa aa"], ["##a", "a"], vocab_size=3)
    ['##a', 'a', 'aa']
    """
    tokenizer = uncased(models.WordPiece(unk_token="[UNK]"))
    # "Special" to the trainer alone: it means that they get the first ids.
    trainer = WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=list(first), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = tokenizer.get_vocab(with_added_tokens=False)
    return sorted(ids, key=ids.get)


def uncased(model: models.Model) -> Tokenizer:
    """A tokenizer that cuts a text into BERT's uncased words, for a model of words.

    >>> words = uncased(models.WordPiece()).pre_tokenizer.pre_tokenize_str("it's")
    >>> [word for word, place in words]
    ['it', "'", 's']
    """
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def bert_tokenizer(pieces: Sequence[str]) -> Tokenizer:
    """BERT's uncased tokenizer with this vocabulary; a piece's place in it is its id.

    It writes [CLS] A [SEP], or [CLS] A [SEP] B [SEP] with token types 0 and 1.

    Args:
        pieces: without repetition; the five special tokens among them, anywhere.

    Raises:
        ValueError: if a special token is missing, or a piece stands there twice.

    Source: Devlin et al. 2019, section 3; google-research/bert, tokenization.py.

    >>> tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, "rain", "##s"])
    >>> tokenizer.encode("Rains", "rain").ids
    [2, 5, 6, 3, 5, 3]
    """
    check_special_tokens(pieces)
    twice = [piece for piece, count in Counter(pieces).items() if count > 1]
    if twice:
        raise ValueError(
            f"pieces holds {twice[0]!r} more than once: ids must be unique"
        )
    ids = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = uncased(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.add_special_tokens(list(BERT_SPECIAL_TOKENS))  # never cut, in any text
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(mark, ids[mark]) for mark in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def load_tokenizer(path: str | os.PathLike) -> Tokenizer:
    """Read tokenizer.json, or an uncased vocab.txt, or either of them in a folder.

    A folder's tokenizer.json is preferred: it also says how words are made. Padding and
    truncation, which some such files switch on, are off: nothing is cut unasked.

    Raises:
        FileNotFoundError: if the path, or both files of the folder, do not exist.
        ValueError: if the file is neither of the two, or no vocabulary of BERT's.

    Source: the files that the public checkpoints come with.

    >>> load_tokenizer("nowhere")
    Traceback (most recent call last):
    FileNotFoundError: there is no nowhere: give vocab.txt, tokenizer.json or their \
folder
    """
    path = Path(path)
    if path.is_dir():
        found = [path / name for name in ("tokenizer.json", "vocab.txt")]
        found = [file for file in found if file.exists()]
        if not found:
            raise FileNotFoundError(f"{path} holds no tokenizer.json and no vocab.txt")
        path = found[0]
    if not path.exists():
        raise FileNotFoundError(
            f"there is no {path}: give vocab.txt, tokenizer.json or their folder"
        )
    if path.suffix == ".txt":
        return bert_tokenizer(path.read_text("utf-8").splitlines())
    try:
        tokenizer = Tokenizer.from_str(path.read_text("utf-8"))
    except Exception as error:  # what the library raises has no class of its own
        raise ValueError(f"{path} is not a tokenizer.json: {error}") from error
    check_special_tokens(tokenizer.get_vocab())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: str | os.PathLike) -> None:
    """Write vocab.txt (a piece a line, in the order of ids) and tokenizer.json.

    Raises:
        ValueError: if the ids have gaps, which vocab.txt cannot express.

    Source: the files that the public checkpoints come with.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_tokenizer(bert_tokenizer(BERT_SPECIAL_TOKENS), folder)
    ...     load_tokenizer(folder).token_to_id("[MASK]")
    4
    """
    ids = tokenizer.get_vocab()
    if sorted(ids.values()) != list(range(len(ids))):
        raise ValueError("tokenizer must use every id from 0 to V - 1, and has gaps")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{piece}\n" for piece in sorted(ids, key=ids.get))
    (folder / "vocab.txt").write_text(lines, encoding="utf-8")
    tokenizer.save(str(folder / "tokenizer.json"))


def encode_sentences(
    documents: Sequence[Sequence[str]], tokenizer: Tokenizer
) -> list[list[list[int]]]:
    """The ids of every sentence of every document, without [CLS] and [SEP].

    A sentence without any token (white space, control characters) is left out.

    >>> tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, "rain", "##s"])
    >>> encode_sentences([["Rain", " "], ["Rains", "Rain rain"]], tokenizer)
    [[[5]], [[5, 6], [5, 5]]]
    """
    encoded = []
    for document in documents:
        found = tokenizer.encode_batch_fast(list(document), add_special_tokens=False)
        encoded.append([sentence.ids for sentence in found if sentence.ids])
    return encoded
