"""fill_mask: the model's own probabilities at the gap, whichever head has them; and its errors."""

import pytest
import torch

from bertbook.config import BertConfig
from bertbook.fill_mask import fill_mask
from bertbook.heads import BertForMaskedLM, BertForPreTraining
from bertbook.tokenization import bert_tokenizer
from bertbook.wordpiece import BERT_SPECIAL_TOKENS

WORDS = ["the", "cat", "ran", "home", "##s"]


@pytest.fixture
def tokenizer():
    return bert_tokenizer([*BERT_SPECIAL_TOKENS, *WORDS])


def model_of(kind):
    torch.manual_seed(0)
    config = BertConfig(vocab_size=10, hidden_size=8, num_hidden_layers=2, num_attention_heads=2, initializer_range=0.5)
    return kind(config).eval()


@pytest.mark.parametrize("kind", [BertForMaskedLM, BertForPreTraining])
def test_the_guesses_are_the_logits_at_the_gap(kind, tokenizer):
    model = model_of(kind)
    guesses = fill_mask(model, tokenizer, "the [MASK] ran", top=10)
    output = model(torch.tensor([tokenizer.encode("the [MASK] ran").ids]))
    logits = output.logits if kind is BertForMaskedLM else output.prediction_logits
    expected = logits[0, 2].softmax(dim=-1)
    assert {tokenizer.token_to_id(g.piece): g.probability for g in guesses} == pytest.approx(
        dict(enumerate(expected.tolist()))
    )
    assert guesses == sorted(guesses, key=lambda guess: -guess.probability)


def test_the_words_around_the_gap_matter(tokenizer):
    model = model_of(BertForMaskedLM)
    one, other = (fill_mask(model, tokenizer, text) for text in ("the [MASK] ran", "the [MASK] cats"))
    assert one != other


def test_it_changes_nothing(tokenizer):
    model = model_of(BertForMaskedLM)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert fill_mask(model, tokenizer, "[MASK]") == fill_mask(model, tokenizer, "[MASK]")
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert not model.training


@pytest.mark.parametrize(
    ("text", "top", "message"),
    [
        ("the cat", 5, r"text must hold \[MASK\] once, got 0 in 'the cat'"),
        ("[MASK] [MASK]", 5, r"text must hold \[MASK\] once, got 2"),
        ("[MASK]", 0, "top must be from 1 to V = 10, got 0"),
        ("[MASK]", 11, "top must be from 1 to V = 10, got 11"),
        ("[MASK]", 2.5, r"top must be from 1 to V = 10, got 2\.5"),
    ],
)
def test_a_question_that_has_no_answer_is_refused(tokenizer, text, top, message):
    with pytest.raises(ValueError, match=message):
        fill_mask(model_of(BertForMaskedLM), tokenizer, text, top=top)


def test_dropout_is_refused(tokenizer):
    with pytest.raises(ValueError, match=r"call model\.eval\(\) first"):
        fill_mask(model_of(BertForMaskedLM).train(), tokenizer, "[MASK]")


def test_dropout_in_a_part_is_refused(tokenizer):
    model = model_of(BertForMaskedLM)
    model.bert.train()
    with pytest.raises(ValueError, match=r"call model\.eval\(\) first"):
        fill_mask(model, tokenizer, "[MASK]")


def test_the_tokenizer_of_another_model_is_refused():
    other = bert_tokenizer([*BERT_SPECIAL_TOKENS, *WORDS[:2]])
    with pytest.raises(ValueError, match="tokenizer has 7 pieces and model 10"):
        fill_mask(model_of(BertForMaskedLM), other, "[MASK]")
