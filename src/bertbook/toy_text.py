"""Generated sentences whose rules are known: two scenes, and names of three kinds.

No real text: a seed and a few lists of words. So it is known what there is to learn.
Shapes: B sentences, T tokens.
"""

from typing import NamedTuple

import torch
from torch import Tensor

SPECIAL_TOKENS = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")

# Scene by scene: adjectives, subjects, verbs, objects. In each list the first half are
# the words that labelled sentences may use. Among the subjects, every other one, from
# the first, gives orders.
SCENES = {
    "sea": (
        ("salty", "deep", "calm", "stormy", "blue", "wet"),
        ("captain", "sailor", "pilot", "diver", "skipper", "fisher"),
        ("steers", "moors", "paints", "floats", "anchors", "hauls"),
        ("boat", "net", "raft", "sail", "buoy", "ship"),
    ),
    "kitchen": (
        ("sweet", "warm", "fresh", "sour", "ripe", "hot"),
        ("chef", "waiter", "owner", "baker", "host", "washer"),
        ("stirs", "fries", "tastes", "serves", "peels", "bakes"),
        ("soup", "bread", "onion", "cake", "dough", "apple"),
    ),
}
SCENE_WORDS = (
    *SPECIAL_TOKENS,
    "the",
    *(word for lists in SCENES.values() for words in lists for word in words),
)


class SceneSentences(NamedTuple):
    """Sentences with two labels each.

    >>> SceneSentences(torch.zeros(2, 9), torch.zeros(2), torch.zeros(2)).scene.shape
    torch.Size([2])
    """

    input_ids: Tensor  # int64, (B, 9)
    scene: Tensor  # int64, (B,): 0 = sea, 1 = kitchen
    rank: Tensor  # int64, (B,): 1 = the subject gives orders


def scene_sentences(
    count: int, *, generator: torch.Generator, words: str = "all"
) -> SceneSentences:
    """Draw sentences like "[CLS] the deep sailor moors the blue net [SEP]".

    All words of a sentence come from one scene. Everything else is independent: which
    adjective, subject, verb and object, and so the subject's rank.

    Args:
        count: B, at least 1.
        generator: what the words are drawn with.
        words: "all", or the "first" or "second" half of every list.

    Raises:
        ValueError: if count is not positive, or words is none of the three.

    Source: the fine-tuning text (two stages on one data set).

    >>> sentences = scene_sentences(2, generator=torch.Generator().manual_seed(0))
    >>> sentences.input_ids.shape
    torch.Size([2, 9])
    >>> spell(sentences.input_ids[0], SCENE_WORDS)
    '[CLS] the wet captain moors the stormy net [SEP]'
    """
    halves = {"all": (0, 6), "first": (0, 3), "second": (3, 6)}
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    if words not in halves:
        raise ValueError(f"words must be all, first or second, got {words!r}")
    scene = torch.randint(2, (count,), generator=generator)
    # Which word of its list: adjective, subject, verb, adjective, object.
    chosen = torch.randint(*halves[words], (count, 5), generator=generator)
    which_list = torch.tensor([0, 1, 2, 0, 3])
    content = len(SPECIAL_TOKENS) + 1 + 24 * scene[:, None] + 6 * which_list + chosen
    column = torch.ones(count, 1, dtype=torch.long)
    the = len(SPECIAL_TOKENS) * column
    input_ids = torch.cat(
        [1 * column, the, content[:, :3], the, content[:, 3:], 2 * column], dim=1
    )
    return SceneSentences(input_ids, scene, (chosen[:, 1] + 1) % 2)


SYLLABLES = ("ka", "lo", "mi", "ren", "sa", "tu", "vel", "dor", "na", "pim")
SENTENCE_PLANS = (
    ("PER", "works", "at", "ORG"),
    ("PER", "lives", "in", "LOC"),
    ("PER", "met", "PER", "in", "LOC"),
    ("in", "LOC", "PER", "joined", "ORG"),
    ("ORG", "hired", "PER"),
)
NAME_PIECES = (
    *SPECIAL_TOKENS,
    *("works", "at", "lives", "in", "met", "joined", "hired"),
    *SYLLABLES,
    *(f"##{syllable}" for syllable in SYLLABLES),
)


class TaggedSentence(NamedTuple):
    """One sentence as words, the pieces of every word, and one BIO tag a word.

    >>> TaggedSentence(["kalo"], [["ka", "##lo"]], ["B-PER"]).tags
    ['B-PER']
    """

    words: list[str]
    pieces: list[list[str]]
    tags: list[str]


def tagged_sentences(count: int, *, generator: torch.Generator) -> list[TaggedSentence]:
    """Draw sentences with invented names of persons, organisations and places.

    Names of all kinds are built from the same syllables, one to three a word. So a
    name does not tell its kind: only the words around it do.

    Raises:
        ValueError: if count is not positive.

    Source: the fine-tuning text (a BIO-tagged training run).

    >>> sentence = tagged_sentences(1, generator=torch.Generator().manual_seed(3))[0]
    >>> list(zip(sentence.words, sentence.tags))
    [('Dorka', 'B-PER'), ('lives', 'O'), ('in', 'O'), ('Ka', 'B-LOC')]
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")

    def draw(below: int) -> int:
        return int(torch.randint(below, (), generator=generator))

    def sentence() -> TaggedSentence:
        words, pieces, tags = [], [], []
        for part in SENTENCE_PLANS[draw(len(SENTENCE_PLANS))]:
            if part not in ("PER", "ORG", "LOC"):
                words.append(part)
                pieces.append([part])
                tags.append("O")
                continue
            for i in range(1 if part == "LOC" else 1 + draw(2)):
                name = [SYLLABLES[draw(len(SYLLABLES))] for _ in range(1 + draw(3))]
                words.append("".join(name).capitalize())
                pieces.append([name[0], *(f"##{syllable}" for syllable in name[1:])])
                tags.append(f"{'I' if i else 'B'}-{part}")
        return TaggedSentence(words, pieces, tags)

    return [sentence() for _ in range(count)]


def spell(ids: Tensor, vocabulary: tuple[str, ...]) -> str:
    """The words of one sentence of ids (T,), as a line to print.

    >>> spell(torch.tensor([1, 4, 2]), SCENE_WORDS)
    '[CLS] the [SEP]'
    """
    return " ".join(vocabulary[i] for i in ids.tolist())
