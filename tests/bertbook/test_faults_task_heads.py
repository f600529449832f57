"""Faults that other task heads had: a check that ours passes, and a mutant with that fault that fails it.

The pattern is that of test_faults.py: the mutant passes on a harmless case, so it fails for its fault alone.
"""

import pytest
import torch
from torch import nn

from bertbook.config import BertConfig
from bertbook.heads import BertForQuestionAnswering, BertForSequenceClassification, BertForTokenClassification
from bertbook.milestones import positions_read

SMALL = BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)


def built(head_class, **sizes):
    """A model in evaluation mode, with weights large enough for a fault to show."""
    torch.manual_seed(0)
    model = head_class(SMALL, **sizes).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model


def random_ids(num_tokens: int) -> torch.Tensor:
    return torch.randint(1, 30, (2, num_tokens), generator=torch.Generator().manual_seed(1))


# MorvanZhou/NLP-Tutorials#14: a sequence's head on more than the first state


class PooledMean(nn.Module):
    def __init__(self, pooler):
        super().__init__()
        self.pooler = pooler

    def forward(self, hidden_states):
        return self.pooler(hidden_states.mean(dim=1, keepdim=True))


def reads_the_first_state_only(model, num_tokens: int) -> bool:
    return positions_read(model, random_ids(num_tokens), hidden_size=16) == [0]


def classifier():
    return built(BertForSequenceClassification, num_labels=3)


def reads_the_mean():
    model = classifier()
    model.bert.pooler = PooledMean(model.bert.pooler)
    return model


# rasbt/LLMs-from-scratch#990: a token's labels depend on the padding beside it


def ignores_padding(model, padding: int) -> bool:
    """Every token has the logits that it has without padding."""
    ids = random_ids(4)
    padded = torch.cat([ids, torch.zeros(2, padding, dtype=torch.long)], dim=1)
    alone, beside = model(ids).logits, model(padded, attention_mask=(padded != 0).long()).logits
    return torch.allclose(beside[:, :4], alone, rtol=0, atol=1e-5)


def tagger():
    return built(BertForTokenClassification, num_labels=5)


def forgets_the_mask():
    model = tagger()
    encode = model.bert.forward
    model.bert.forward = lambda input_ids, **masks: encode(input_ids)
    return model


# huggingface/transformers#679: dropout stays on in evaluation


def answers_the_same_twice(model, dropout: float) -> bool:
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = dropout
    model.eval()
    return torch.equal(model(random_ids(6)).logits, model(random_ids(6)).logits)


class AlwaysDropout(nn.Dropout):
    def forward(self, x):
        return nn.functional.dropout(x, self.p, training=True)


def always_drops():
    model = classifier()
    model.dropout = AlwaysDropout()
    return model


REPORTS = [
    pytest.param(reads_the_first_state_only, classifier, reads_the_mean, 1, [2, 6], id="NLP-Tutorials#14"),
    pytest.param(ignores_padding, tagger, forgets_the_mask, 0, [1, 5], id="LLMs-from-scratch#990"),
    pytest.param(answers_the_same_twice, classifier, always_drops, 0.0, [0.5], id="transformers#679"),
]


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, ours, mutant, harmless, harmful):
    assert holds(ours(), harmless)
    assert holds(mutant(), harmless)
    for case in harmful:
        assert holds(ours(), case)
        assert not holds(mutant(), case)


def test_each_head_reads_its_own_states():
    """A sequence's head one state, a token's head its own, the head for questions all tokens."""
    ids = random_ids(6)
    tokens, questions = tagger(), built(BertForQuestionAnswering)
    states = tokens.bert(ids).last_hidden_state
    for position in range(6):
        assert torch.allclose(tokens(ids).logits[:, position], tokens.classifier(states[:, position]), atol=1e-6)
    spans = questions(ids)
    assert spans.start_logits.shape == spans.end_logits.shape == ids.shape
    assert not torch.allclose(spans.start_logits, spans.end_logits)
