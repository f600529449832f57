"""The grammar, the masked-LM measure, and the fine-tuning loop of the chapter on freezing."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bertbook.forgetting import (
    CLS,
    GRAMMAR_VOCAB,
    MASK,
    SEP,
    THE,
    classifier_from,
    fine_tune,
    generate_sentences,
    grammar_config,
    held_out_loss,
    hidden_word_loss,
    hide_one_word,
    pretrain_on_grammar,
    same_topic_task,
    topic_task,
)
from bertbook.freezing import freeze
from bertbook.heads import BertForPreTraining
from bertbook.masking import IGNORE_INDEX

property_test = settings(max_examples=20, deadline=None, derandomize=True)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def pretrained() -> BertForPreTraining:
    return pretrain_on_grammar(steps=2)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9), st.integers(0, 99))
@property_test
def test_every_word_tells_topic_and_kind(topics, seed):
    topics = torch.tensor(topics)
    ids = generate_sentences(topics, generator(seed))
    assert ids.shape == (len(topics), 9)
    assert (ids[:, 0] == CLS).all()
    assert (ids[:, 8] == SEP).all()
    assert (ids[:, [1, 5]] == THE).all()
    assert ids.max() < GRAMMAR_VOCAB
    words = ids - 5
    assert torch.equal(words[:, [2, 3, 4]] // 12, topics[:, :1].expand(-1, 3))
    assert torch.equal(words[:, [6, 7]] // 12, topics[:, 1:].expand(-1, 2))
    assert (words[:, [2, 3, 4, 6, 7]] // 4 % 3 == torch.tensor([0, 1, 2, 0, 1])).all()


@given(st.integers(1, 20), st.integers(0, 99))
@property_test
def test_one_word_is_hidden_and_the_input_stays(size, seed):
    ids, _ = topic_task(size, seed)
    before = ids.clone()
    masked, labels = hide_one_word(ids, generator(seed))
    hidden = masked == MASK
    assert torch.equal(ids, before)
    assert (hidden.sum(dim=1) == 1).all()
    assert torch.equal(hidden, labels != IGNORE_INDEX)
    assert torch.equal(torch.where(hidden, labels, masked), ids)
    assert (labels[hidden] > THE).all()


def test_the_labels_are_what_they_say():
    ids, labels = topic_task(50, seed=1)
    assert torch.equal((ids[:, 2] - 5) // 12, labels)
    ids, same = same_topic_task(50, seed=1)
    assert torch.equal(((ids[:, 2] - 5) // 12 == (ids[:, 6] - 5) // 12).long(), same)
    assert 0 < same.sum() < 50


def test_only_the_hidden_word_counts():
    model = BertForPreTraining(grammar_config()).double()
    masked, labels = hide_one_word(topic_task(4, 0)[0], generator())
    loss = hidden_word_loss(model, masked, labels)
    logits = model(masked).prediction_logits
    by_hand = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
    assert torch.allclose(loss, by_hand)


def test_pretraining_is_seeded_and_leaves_the_global_stream_alone(pretrained):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    again, other = pretrain_on_grammar(steps=2), pretrain_on_grammar(steps=2, seed=1)
    classifier_from(again, num_labels=2)
    assert torch.equal(torch.get_rng_state(), state)
    assert held_out_loss(again) == held_out_loss(pretrained) != held_out_loss(other)
    assert pretrained.bert.pooler.dense.weight.dtype == torch.float64


def test_fine_tuning_moves_the_language_model_and_not_the_original(pretrained):
    before = held_out_loss(pretrained)
    classifier, language_model = classifier_from(pretrained, num_labels=4)
    assert held_out_loss(language_model) == before
    losses = fine_tune(classifier, *topic_task(40, 0), epochs=3, learning_rate=1e-2)
    assert len(losses) == 6
    assert held_out_loss(language_model) != before == held_out_loss(pretrained)


def test_a_frozen_encoder_keeps_the_language_model_exactly(pretrained):
    classifier, language_model = classifier_from(pretrained, num_labels=4)
    freeze(classifier, ["embeddings", "layer.0", "layer.1"])
    head = classifier.classifier.weight.detach().clone()
    fine_tune(classifier, *topic_task(40, 0), epochs=2, learning_rate=1e-2)
    assert held_out_loss(language_model) == held_out_loss(pretrained)
    assert not torch.equal(classifier.classifier.weight, head)


def test_warm_up_makes_the_first_steps_smaller(pretrained):
    def moved(warmup_steps):
        classifier, _ = classifier_from(pretrained, num_labels=4)
        before = classifier.classifier.weight.detach().clone()
        fine_tune(classifier, *topic_task(8, 0), epochs=1, learning_rate=1e-2, warmup_steps=warmup_steps)
        return (classifier.classifier.weight - before).abs().max().item()

    assert moved(0) == pytest.approx(1e-2, rel=1e-3)  # Adam's first step has the length of the rate
    assert moved(4) == pytest.approx(2e-3, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: generate_sentences(torch.tensor([1, 2]), generator()), "topics must have shape (B, 2), got (2,)"),
        (lambda m: generate_sentences(torch.tensor([[0, 4]]), generator()), "topics must be in [0, 4), got [[0, 4]]"),
        (lambda m: topic_task(0, 0), "num_sentences must be at least 1, got 0"),
        (lambda m: same_topic_task(0, 0), "num_sentences must be at least 1, got 0"),
        (lambda m: pretrain_on_grammar(steps=0), "steps must be at least 1, got 0"),
        (lambda m: tune(m, epochs=0), "epochs must be at least 1, got 0"),
        (lambda m: tune(m, batch_size=0), "batch_size must be at least 1, got 0"),
        (lambda m: tune(m, learning_rate=0), "learning_rate must be greater than 0, got 0"),
        (lambda m: tune(m, warmup_steps=-1), "warmup_steps must not be negative, got -1"),
        (lambda m: tune(m.requires_grad_(False)), "model has nothing to train: unfreeze a part"),
    ],
)
def test_bad_input_is_named(call, message, pretrained):
    model, _ = classifier_from(pretrained, num_labels=4)
    with pytest.raises(ValueError, match=re.escape(message)):
        call(model)


def tune(model, **changes):
    return fine_tune(model, *topic_task(4, 0), **({"epochs": 1, "learning_rate": 1e-2} | changes))
