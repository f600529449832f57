"""Reading to the left only: the next token's loss, and writing, without a look at the future."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from bertbook.experiments.next_token import (
    ask_for_next,
    causal_attention,
    next_by_filling,
    next_by_reading,
    next_token_loss,
    with_gap,
    write_on,
)
from bertbook.experiments.small import MAX_LENGTH, new_small_model
from bertbook.masking import IGNORE_INDEX
from bertbook.pretraining_data import PretrainingExample
from bertbook.wordpiece import SpecialIds

SPECIAL = SpecialIds(pad=0, unk=1, cls=2, sep=3, mask=4, vocab_size=40)
ENDINGS = ("nothing", "sep", "masks")


@pytest.fixture(scope="module")
def model():
    """A model whose guesses differ: the weights of a new one are too small for that."""
    model = new_small_model(seed=0, vocab_size=40)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10 if parameter.dim() == 2 else 1)
    return model


def sequences(rows: int = 5, length: int = MAX_LENGTH) -> torch.Tensor:
    """Full sequences, one unknown token in the first."""
    ids = torch.randint(5, 40, (rows, length), generator=torch.Generator().manual_seed(0))
    ids[:, 0], ids[:, -1], ids[0, 4] = SPECIAL.cls, SPECIAL.sep, SPECIAL.unk
    return ids


def ways_of(model) -> dict:
    filling = partial(next_by_filling, model, special=SPECIAL)
    return {
        "reading": partial(next_by_reading, model),
        **{ending: partial(filling, ending=ending) for ending in ENDINGS},
        "causal": partial(filling, causal=True),
    }


def test_a_causal_model_is_measured_as_from_its_logits_of_the_whole_sequence(model):
    ids = sequences()
    examples = ask_for_next([PretrainingExample(row, torch.zeros_like(row)) for row in ids], SPECIAL)
    labels = torch.stack([example.labels for example in examples])
    with torch.no_grad():
        logits = model.eval()(ids, attention_mask=causal_attention(torch.ones_like(ids))).logits
    asked = labels != IGNORE_INDEX
    assert asked.sum() == 5 * (MAX_LENGTH - 2) - 1
    loss, accuracy = next_token_loss(model, partial(next_by_reading, model), ids, SPECIAL)
    assert loss == pytest.approx(F.cross_entropy(logits[asked], labels[asked]).item(), abs=1e-5)
    right = logits[asked].argmax(dim=-1) == labels[asked]
    assert accuracy == pytest.approx(right.float().mean().item(), abs=1e-6)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_masked_model_is_measured_one_token_at_a_time(model, ending):
    ids = sequences(rows=2, length=9)
    losses = []
    for row in ids.tolist():
        for place in range(1, 8):
            rest = MAX_LENGTH - place - 2
            right = {"nothing": [], "sep": [3], "masks": [4] * rest + [3]}[ending]
            with torch.no_grad():
                logits = model.eval()(torch.tensor([[*row[:place], 4, *right]])).logits
            if row[place] != SPECIAL.unk:
                losses.append(F.cross_entropy(logits[0, place], torch.tensor(row[place])))
    loss, _ = next_token_loss(model, ways_of(model)[ending], ids, SPECIAL)
    assert loss == pytest.approx(torch.stack(losses).mean().item(), abs=1e-5)


@pytest.mark.parametrize("way", ["reading", *ENDINGS, "causal"])
def test_whoever_is_asked_for_the_next_token_is_shown_nothing_but_the_left(model, way):
    ids, shown = sequences(), []

    def asked(left):
        shown.append(left)
        return ways_of(model)[way](left)

    next_token_loss(model, asked, ids, SPECIAL)
    assert [left.shape[1] for left in shown] == [*range(1, MAX_LENGTH - 1)]
    assert all(torch.equal(left, ids[:, : left.shape[1]]) for left in shown)


def test_what_stands_behind_the_mask_is_nothing_to_a_causal_model(model):
    left = sequences()[:, :10]
    with torch.no_grad():
        for causal, same in ((True, True), (False, False)):
            one, two, three = (
                next_by_filling(model, left, special=SPECIAL, ending=ending, causal=causal) for ending in ENDINGS
            )
            assert torch.allclose(one, two, atol=1e-5) is same
            assert torch.allclose(one, three, atol=1e-5) is same


@pytest.mark.parametrize("way", ["reading", *ENDINGS])
def test_what_is_written_goes_on_from_what_is_written(model, way):
    """Each token is drawn from what the model says of all that is on its left."""
    prompts, count = sequences()[:, :6], 8
    written = write_on(
        model, ways_of(model)[way], prompts, SPECIAL, count=count, generator=torch.Generator().manual_seed(1)
    )
    assert torch.equal(written[:, :6], prompts)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for place in range(6, 6 + count):
            logits = ways_of(model)[way](written[:, :place])
            logits[:, :5] = -torch.inf
            drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
            assert torch.equal(drawn[:, 0], written[:, place])
    assert (written[:, 6:] > SPECIAL.mask).all()


def test_writing_repeats_itself_with_its_seed_alone(model):
    def write(seed):
        generator = torch.Generator().manual_seed(seed)
        return write_on(
            model, partial(next_by_reading, model), sequences()[:, :6], SPECIAL, count=8, generator=generator
        )

    assert torch.equal(write(1), write(1))
    assert not torch.equal(write(1), write(2))


def test_samples_are_as_frequent_as_the_model_says():
    logits = torch.full((1, 40), -torch.inf)
    logits[0, [7, 8]] = torch.tensor([0.75, 0.25]).log()
    written = write_on(
        torch.nn.Identity(),
        lambda left: logits.expand(len(left), -1),
        torch.full((4000, 1), 2),
        SPECIAL,
        count=1,
        generator=torch.Generator().manual_seed(0),
    )
    assert (written[:, 1] == 7).float().mean().item() == pytest.approx(0.75, abs=0.03)


def test_the_mode_comes_back(model):
    model.train()
    next_token_loss(model, partial(next_by_reading, model), sequences(), SPECIAL)
    write_on(model, partial(next_by_reading, model), sequences()[:, :3], SPECIAL, count=1, generator=torch.Generator())
    assert model.training


@pytest.mark.parametrize(
    ("length", "ending", "message"),
    [
        (31, "sep", "left must leave room for"),
        (32, "nothing", "left must leave room for"),
        (5, "dot", "ending must be one of"),
    ],
)
def test_a_gap_that_does_not_fit_is_an_error(length, ending, message):
    with pytest.raises(ValueError, match=message):
        with_gap(torch.full((1, length), 7), SPECIAL, ending=ending, max_length=32)
