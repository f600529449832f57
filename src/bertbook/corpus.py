"""The text to pretrain on: the State of the Union addresses, documents and sentences.

The file comes with the package; `data/README.md` beside it says where it is from.
"""

import hashlib
import json
import lzma
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

ADDRESSES_FILE = "data/sotu.jsonl.xz"
ADDRESSES_SHA256 = "f134a9048149953ae5b68f9a66bc4e034d4f398b9d0e124bb7ffd0fc4c2dff50"

# Words with a full stop of their own, as they are capitalised: "No. 5", but "said no."
ABBREVIATIONS = (
    *("Mr", "Mrs", "Ms", "Messrs", "Dr", "Hon", "Rev", "Prof", "Sen", "Rep", "Gov"),
    *("Gen", "Col", "Maj", "Capt", "Lieut", "Lt", "Sgt", "Brig", "Adm"),
    *("Jan", "Feb", "Mar", "Apr", "Aug", "Sept", "Oct", "Nov", "Dec"),
    *("St", "Ste", "Ft", "Mt", "No", "Nos", "Art", "Sec", "Stat", "Vol"),
    *("vs", "viz", "i.e", "e.g"),
)
SENTENCE_BREAK = re.compile(
    r"""(?<=[.?!])(?P<closing>["”’')\]]*)\s+(?=["“‘'(\[$]*[A-Z0-9])"""
)
LAST_WORD = re.compile(r"""([^\s"“‘'(\[—-]*)\.$""")


class Address(NamedTuple):
    """One address, as a document.

    >>> Address(1790, "George Washington", "Fellow-Citizens").year
    1790
    """

    year: int
    president: str
    text: str


def load_addresses() -> list[Address]:
    """All 233 addresses, from the oldest to the newest.

    Raises:
        ValueError: if the file is not the one that the book was written with.

    Source: the State of the Union addresses, 1790 to 2021 (public domain).

    >>> addresses = load_addresses()
    >>> len(addresses), addresses[0].president
    (233, 'George Washington')
    """
    packed = files("bertbook").joinpath(ADDRESSES_FILE).read_bytes()
    return read_addresses(packed, sha256=ADDRESSES_SHA256)


def read_addresses(packed: bytes, *, sha256: str) -> list[Address]:
    """Unpack an xz file with one JSON object a line, if it has the right hash.

    Raises:
        ValueError: if the sha256 of the bytes is another one.

    >>> read_addresses(b"", sha256=ADDRESSES_SHA256)
    Traceback (most recent call last):
    ValueError: data/sotu.jsonl.xz has sha256 e3b0c44298fc..., not f134a9048149...: \
it is damaged or another file; take it from the project again
    """
    found = hashlib.sha256(packed).hexdigest()
    if found != sha256:
        raise ValueError(
            f"{ADDRESSES_FILE} has sha256 {found[:12]}..., not {sha256[:12]}...: "
            "it is damaged or another file; take it from the project again"
        )
    lines = lzma.decompress(packed).decode("utf-8").splitlines()
    return [Address(**json.loads(line)) for line in lines]


def hold_out(documents: Sequence, *, every: int = 10) -> tuple[list, list]:
    """Part documents into those to train on and those to evaluate on.

    Whole documents are held out, never single sentences: what a model has read of a
    document would tell it about the rest. The last of every ten goes out, so that
    documents in order of time are held out evenly.

    Args:
        documents: in a fixed order, which decides everything.
        every: one document of so many is held out, at least 2.

    Returns:
        (training documents, held-out documents), each in the given order.

    Raises:
        ValueError: if every is below 2, or there are fewer documents than that.

    >>> hold_out(["a", "b", "c", "d", "e"], every=2)
    (['a', 'c', 'e'], ['b', 'd'])
    """
    if every < 2:
        raise ValueError(f"every must be at least 2, got {every}: nothing to train on")
    if len(documents) < every:
        raise ValueError(
            f"documents must hold at least {every} (every) to hold one out, "
            f"got {len(documents)}"
        )
    training = [doc for i, doc in enumerate(documents) if i % every != every - 1]
    return training, list(documents[every - 1 :: every])


def split_sentences(text: str) -> list[str]:
    """Cut a text after each full stop, question mark or exclamation mark that ends one.

    A mark ends a sentence if white space follows, and then a capital letter or a digit
    (quotation marks and brackets may stand between). A full stop does not if it belongs
    to one of ABBREVIATIONS, to an initial ("U.S.", "J."), or to a number that opens the
    sentence ("1. The army").

    Nothing is lost: the sentences, joined by single spaces, are the text with its
    white space made single.

    It is a rule for English prose, and has limits. A sentence that *ends* with an
    abbreviation or an initial is joined with the next ("in the U.S. We"); so is one
    whose next sentence begins in lower case. An abbreviation that is not in the list
    ends a sentence. Headings without a full stop stay with what follows.

    >>> split_sentences("Mr. Root came. He wrote: \\"It rains.\\" Did it? 3 days!")
    ['Mr. Root came.', 'He wrote: "It rains."', 'Did it?', '3 days!']
    """
    text = " ".join(text.split())
    sentences, start = [], 0
    for found in SENTENCE_BREAK.finditer(text):
        upto = text[start : found.start("closing")]
        if not stop_within_sentence(upto):
            sentences.append(text[start : found.end("closing")])
            start = found.end()
    return [*sentences, text[start:]] if text[start:] else sentences


def stop_within_sentence(upto: str) -> bool:
    """Whether the full stop at the end of `upto` belongs to its last word.

    >>> [stop_within_sentence(s) for s in ("by Mr.", "the U.S.", "2.", "and I.", "it.")]
    [True, True, True, False, False]
    """
    found = LAST_WORD.search(upto)
    if found is None:  # it ends with another mark, or with a quotation mark
        return False
    word = found[1]
    opens = found.start() == 0
    initial = re.fullmatch(r"(?:[A-Z]\.)*[A-Z]", word) and word != "I"
    return word in ABBREVIATIONS or bool(initial) or (opens and word.isdigit())
