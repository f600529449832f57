"""The generated sentences keep the rules that the book states of them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.tagging import TAGS
from bertbook.toy_text import (
    NAME_PIECES,
    SCENE_WORDS,
    SCENES,
    SENTENCE_PLANS,
    SPECIAL_TOKENS,
    scene_sentences,
    spell,
    tagged_sentences,
)

property_test = settings(max_examples=20, deadline=None, derandomize=True)
seeds = st.integers(0, 2**31 - 1)
HALVES = {"all": slice(0, 6), "first": slice(0, 3), "second": slice(3, 6)}


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_no_word_has_two_ids():
    assert len(set(SCENE_WORDS)) == len(SCENE_WORDS)
    assert len(set(NAME_PIECES)) == len(NAME_PIECES)
    assert SCENE_WORDS[:4] == NAME_PIECES[:4] == SPECIAL_TOKENS
    assert all(len(words) == 6 for lists in SCENES.values() for words in lists)


@given(seeds, st.sampled_from(sorted(HALVES)))
@property_test
def test_a_sentence_follows_its_grammar(seed, words):
    sentences = scene_sentences(20, generator=generator(seed), words=words)
    assert sentences.input_ids.shape == (20, 9)
    for ids, scene, rank in zip(*sentences, strict=True):
        found = spell(ids, SCENE_WORDS).split()
        adjectives, subjects, verbs, objects = (ws[HALVES[words]] for ws in list(SCENES.values())[scene])
        cls, the, adjective, subject, verb, the_2, adjective_2, thing, sep = found
        assert (cls, the, the_2, sep) == ("[CLS]", "the", "the", "[SEP]")
        assert {adjective, adjective_2} <= set(adjectives)
        assert subject in subjects
        assert verb in verbs
        assert thing in objects
        assert rank == (subject in {"captain", "pilot", "skipper", "chef", "owner", "host"})


def test_scene_and_rank_say_nothing_about_each_other():
    sentences = scene_sentences(4000, generator=generator(0))
    for scene in (0, 1):
        for rank in (0, 1):
            share = ((sentences.scene == scene) & (sentences.rank == rank)).float().mean().item()
            assert share == pytest.approx(0.25, abs=0.03)


def test_the_halves_share_no_content_word():
    first, second = (set(scene_sentences(500, generator=generator(0), words=w).input_ids.unique().tolist())
                     for w in ("first", "second"))  # fmt: skip
    assert first & second == {1, 2, 4}  # [CLS], [SEP], "the"


@given(seeds)
@property_test
def test_tagged_sentences_follow_a_plan(seed):
    for words, pieces, tags in tagged_sentences(10, generator=generator(seed)):
        assert len(words) == len(pieces) == len(tags)
        assert set(tags) <= set(TAGS)
        assert ["".join(p).replace("##", "") for p in pieces] == [word.lower() for word in words]
        assert all(piece in NAME_PIECES for word in pieces for piece in word)
        assert all(not word[0].startswith("##") and all(p.startswith("##") for p in word[1:]) for word in pieces)
        plan = tuple(w if tag == "O" else tag[2:] for w, tag in zip(words, tags, strict=True) if tag[0] != "I")
        assert plan in SENTENCE_PLANS
        for i, tag in enumerate(tags):
            assert tag[0] != "I" or tags[i - 1][2:] == tag[2:]


def test_a_name_does_not_tell_its_kind():
    starts = {kind: set() for kind in ("PER", "ORG", "LOC")}
    for _, pieces, tags in tagged_sentences(600, generator=generator(0)):
        for word, tag in zip(pieces, tags, strict=True):
            if tag != "O":
                starts[tag[2:]].add(word[0])
    assert starts["PER"] == starts["ORG"] == starts["LOC"]


def test_the_generator_decides_and_the_global_stream_is_left_alone():
    state = torch.get_rng_state()
    for draw in (scene_sentences, tagged_sentences):
        one, same, other = (draw(5, generator=generator(seed)) for seed in (1, 1, 2))
        assert str(one) == str(same) != str(other)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: scene_sentences(0, generator=generator(0)), "count must be at least 1, got 0"),
        (lambda: tagged_sentences(-1, generator=generator(0)), "count must be at least 1, got -1"),
        (lambda: scene_sentences(1, generator=generator(0), words="third"), "words must be all, first or second, got"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
