"""What is asked of the pretrained model: each question changes what it says it changes, and nothing else."""

import pytest
import torch

from bertbook.experiments.pretrain import new_pretraining_model
from bertbook.experiments.pretraining_text import held_out_batches, rain_text
from bertbook.experiments.reading import (
    ask_once,
    guesses_and_answers,
    is_next_probabilities,
    measure_context,
    measure_ranks,
    repeated_share,
    sentence_pairs,
    show_near,
    shuffle_around,
)
from bertbook.experiments.small import asked_three_ways
from bertbook.masking import IGNORE_INDEX
from bertbook.pairs import IS_NEXT, SentencePair


@pytest.fixture(scope="module")
def text():
    return rain_text()


@pytest.fixture(scope="module")
def batch(text):
    [batch] = held_out_batches(text)
    return batch


@pytest.fixture(scope="module")
def model(text):
    return new_pretraining_model(text.tokenizer, seed=0).eval()


def generator():
    return torch.Generator().manual_seed(0)


def test_shuffling_moves_only_what_is_neither_asked_for_nor_a_mark(batch, text):
    shuffled = shuffle_around(batch, text.special, generator=generator())
    before, after = batch["input_ids"], shuffled["input_ids"]
    assert not torch.equal(before, after)
    assert torch.equal(before.sort(dim=1).values, after.sort(dim=1).values)
    asked = batch["labels"] != IGNORE_INDEX
    marks = torch.isin(before, torch.tensor(text.special.for_masking["special_token_ids"]))
    assert torch.equal(before[asked | marks], after[asked | marks])
    assert torch.equal(batch["labels"], shuffled["labels"])


def test_once_asks_for_one_of_those_that_were_asked_for(batch):
    labels = ask_once(batch, generator=generator())["labels"]
    asked = labels != IGNORE_INDEX
    assert asked.sum(dim=1).tolist() == (batch["labels"] != IGNORE_INDEX).any(dim=1).long().tolist()
    assert torch.equal(labels[asked], batch["labels"][asked])


def test_nothing_beyond_the_reach_can_change_an_answer(batch, model):
    near = show_near(ask_once(batch, generator=generator()), reach=3)
    asked = near["labels"] != IGNORE_INDEX
    places = torch.arange(asked.shape[1])
    far = (places - asked.long().argmax(dim=1, keepdim=True)).abs() > 3
    changed = {**near, "input_ids": torch.where(far, 7, near["input_ids"])}
    assert not torch.equal(near["input_ids"], changed["input_ids"])
    answers = []
    for one in (near, changed):
        inputs = {name: one[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
        answers.append(model.bert(**inputs).last_hidden_state[asked])
    assert torch.allclose(*answers, atol=1e-6)


def test_a_reach_over_the_whole_sequence_hides_nothing(batch, model, text):
    once = ask_once(batch, generator=generator())
    assert torch.equal(show_near(once, reach=64)["attention_mask"], batch["attention_mask"])
    standing = asked_three_ways([batch], text.special)
    found = measure_context(model, [batch], standing, text.special)
    assert set(found) == {
        f"{way}_{what}"
        for what in ("loss", "accuracy")
        for way in ("whole", "shuffled", "mask", "same", "random", "once", *(f"reach_{r}" for r in (0, 1, 2, 4, 8, 16)))
    }


def test_guesses_stand_beside_their_answers(batch, model):
    guesses, answers = guesses_and_answers(model, [batch, batch])
    asked = batch["labels"] != IGNORE_INDEX
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
    expected = model(**inputs).prediction_logits[asked].argmax(dim=-1)
    assert guesses.tolist() == expected.tolist() * 2
    assert answers.tolist() == batch["labels"][asked].tolist() * 2


def test_a_guess_repeats_what_is_shown_or_does_not(batch, text):
    model = new_pretraining_model(text.tokenizer, seed=0)
    asked = batch["labels"] != IGNORE_INDEX
    shown = batch["input_ids"].clone()
    wished = shown[asked][0]
    with torch.no_grad():  # the model always says the piece that the first place shows
        model.cls["predictions"].bias[wished] = 1e6
    expected = (shown[asked] == wished).double().mean().item()
    assert 0 < repeated_share(model, [batch]) == expected < 1


@pytest.mark.parametrize("documents", [[[[5]] * 4], [[[5]] * 3, [[6]] * 3]])
def test_too_little_text_for_four_kinds_of_pairs_is_refused(documents):
    with pytest.raises(ValueError, match="documents must be at least two, one of them with at least four sentences"):
        sentence_pairs(documents, count=1, generator=generator())


def test_every_answer_has_one_rank():
    answers = torch.randint(5000, (400,), generator=generator())
    shares = torch.rand(5000, generator=generator())
    guesses = answers.clone()
    guesses[::2] = shares.argmax()
    found = measure_ranks(guesses, answers, shares)
    for what in ("asked", "guessed"):
        assert sum(number for name, number in found.items() if name.endswith(what)) == pytest.approx(1)
    assert found["top_10_guessed"] >= 0.5
    right = sum(found[f"{band}_asked"] * found[f"{band}_right"] for band in ("top_100", "top_1000", "others"))
    assert right == pytest.approx((guesses == answers).double().mean().item(), abs=0.01)


@pytest.fixture
def documents():
    """Five of twenty sentences; a sentence names its document and its place."""
    return [[[100 * d + i] for i in range(20)] for d in range(1, 6)]


def test_pairs_are_of_the_kind_that_they_are_called(documents):
    pairs = sentence_pairs(documents, count=200, generator=generator())
    assert {kind: len(found) for kind, found in pairs.items()} == dict.fromkeys(pairs, 200)
    for (a, b, _), (c, d, _), (e, f, _), (g, h, _) in zip(*pairs.values(), strict=True):
        assert b[0] == a[0] + 1
        assert (c, d) == (b, a)
        assert e == g == a
        assert f[0] // 100 == a[0] // 100
        assert abs(f[0] - a[0]) > 1
        assert h[0] // 100 != a[0] // 100


def test_only_what_is_next_is_labelled_so(documents):
    pairs = sentence_pairs(documents, count=5, generator=generator())
    labels = {kind: {pair.label for pair in found} for kind, found in pairs.items()}
    assert [kind for kind, found in labels.items() if found == {IS_NEXT}] == ["next"]


def test_probabilities_are_those_of_the_pair_classifier(model, text):
    with torch.no_grad():
        pairs = [SentencePair([5, 6], [7, 8], IS_NEXT), SentencePair([9], [5], IS_NEXT)]
        found = [*is_next_probabilities(model, pairs, text.special)]
        ids = torch.tensor([[text.special.cls, 9, text.special.sep, 5, text.special.sep]])
        types = torch.tensor([[0, 0, 0, 1, 1]])
        logits = model(ids, token_type_ids=types).seq_relationship_logits
    assert found[1] == pytest.approx(logits.softmax(dim=-1)[0, IS_NEXT].item(), abs=1e-6)
