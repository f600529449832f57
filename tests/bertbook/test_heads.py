"""The heads: what is tied, what each reads, what the released checkpoints call it."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from bertbook.config import BertConfig
from bertbook.heads import (
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    MaskedLMHead,
)
from bertbook.published import BERT_BASE, bert_parameter_shapes

CONFIG = BertConfig(
    vocab_size=11,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=7,
    initializer_range=0.5,
)
SIZES = {name: getattr(CONFIG, name) for name in BERT_BASE}
IDS = torch.tensor([[1, 5, 6, 2], [1, 7, 2, 0]])
REAL = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])


def evaluated(model_class, **arguments) -> nn.Module:
    torch.manual_seed(0)
    return model_class(CONFIG, **arguments).eval()


def head_shapes(model: nn.Module) -> dict[str, tuple[int, ...]]:
    """The parameters outside the encoder, whose own are checked to be the published ones."""
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    encoder = {name.removeprefix("bert."): shape for name, shape in shapes.items() if name.startswith("bert.")}
    assert encoder == bert_parameter_shapes(SIZES)
    return {name: shape for name, shape in shapes.items() if not name.startswith("bert.")}


def test_pretraining_names_are_the_checkpoints():
    assert head_shapes(evaluated(BertForPreTraining)) == {
        "cls.predictions.bias": (11,),
        "cls.predictions.transform.dense.weight": (8, 8),
        "cls.predictions.transform.dense.bias": (8,),
        "cls.predictions.transform.LayerNorm.weight": (8,),
        "cls.predictions.transform.LayerNorm.bias": (8,),
        "cls.predictions.decoder.weight": (11, 8),
        "cls.seq_relationship.weight": (2, 8),
        "cls.seq_relationship.bias": (2,),
    }


@pytest.mark.parametrize(
    ("model_class", "arguments", "name", "rows"),
    [
        (BertForSequenceClassification, {"num_labels": 3}, "classifier", 3),
        (BertForTokenClassification, {"num_labels": 5}, "classifier", 5),
        (BertForQuestionAnswering, {}, "qa_outputs", 2),
    ],
)
def test_task_heads_are_one_linear_layer(model_class, arguments, name, rows):
    assert head_shapes(evaluated(model_class, **arguments)) == {f"{name}.weight": (rows, 8), f"{name}.bias": (rows,)}


# Tying


def test_the_decoder_is_the_token_table():
    model = evaluated(BertForPreTraining)
    table, decoder = model.bert.embeddings.word_embeddings, model.cls["predictions"].decoder
    assert decoder.weight is table.weight
    assert decoder.bias is None
    assert sum(p is table.weight for p in model.parameters()) == 1  # an optimiser meets it once
    copied = copy.deepcopy(model)
    assert copied.cls["predictions"].decoder.weight is copied.bert.embeddings.word_embeddings.weight
    loaded = evaluated(BertForPreTraining)
    loaded.load_state_dict(model.state_dict())
    assert loaded.cls["predictions"].decoder.weight is loaded.bert.embeddings.word_embeddings.weight


def test_the_tied_table_is_not_drawn_anew_by_the_head():
    # The decoder is created and initialised by torch before it is tied; the table must keep its own numbers.
    model = evaluated(BertForPreTraining)
    table = model.bert.embeddings.word_embeddings.weight
    assert not table[CONFIG.pad_token_id].any()
    assert table.std().item() == pytest.approx(0.5, rel=0.3)


def test_both_uses_of_the_table_add_to_its_gradient():
    model = evaluated(BertForPreTraining)
    table = model.bert.embeddings.word_embeddings.weight
    model(IDS).prediction_logits.square().sum().backward()
    never_in_the_input = [3, 4, 8, 9, 10]
    assert table.grad[never_in_the_input].any(dim=1).all()  # from the decoder alone


# What each head reads


def test_masked_lm_logits_by_hand():
    model = evaluated(BertForPreTraining)
    with torch.no_grad():
        model.cls["predictions"].bias.copy_(torch.arange(11.0))
    states = model.bert(IDS, attention_mask=REAL).last_hidden_state
    head = model.cls["predictions"]
    transformed = F.layer_norm(
        F.gelu(F.linear(states, head.transform["dense"].weight, head.transform["dense"].bias)), (8,), eps=1e-12
    )
    expected = transformed @ model.bert.embeddings.word_embeddings.weight.T + torch.arange(11.0)
    found = model(IDS, attention_mask=REAL).prediction_logits
    assert found.shape == (2, 4, 11)
    assert torch.allclose(found, expected, atol=1e-5)


def test_the_masked_lm_head_takes_any_shape():
    head = MaskedLMHead(CONFIG, token_table=nn.Embedding(11, 8)).eval()
    states = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(head(states.flatten(0, 1)), head(states).flatten(0, 1), atol=1e-6)


def test_next_sentence_logits_come_from_the_pooled_output():
    model = evaluated(BertForPreTraining)
    pooled = model.bert(IDS, attention_mask=REAL).pooler_output
    found = model(IDS, attention_mask=REAL).seq_relationship_logits
    assert torch.allclose(found, model.cls["seq_relationship"](pooled))
    assert found.shape == (2, 2)


def test_classifiers_by_hand():
    sequence, token = (
        evaluated(BertForSequenceClassification, num_labels=3),
        evaluated(BertForTokenClassification, num_labels=3),
    )
    pooled = sequence.bert(IDS, attention_mask=REAL).pooler_output
    assert torch.allclose(sequence(IDS, attention_mask=REAL), sequence.classifier(pooled))
    states = token.bert(IDS, attention_mask=REAL).last_hidden_state
    assert torch.allclose(token(IDS, attention_mask=REAL), token.classifier(states))


def test_question_answering_by_hand():
    model = evaluated(BertForQuestionAnswering)
    logits = model.qa_outputs(model.bert(IDS, attention_mask=REAL).last_hidden_state)
    start_logits, end_logits = model(IDS, attention_mask=REAL)
    assert torch.allclose(start_logits, logits[..., 0])
    assert torch.allclose(end_logits, logits[..., 1])


HEADS = [
    (BertForPreTraining, {}),
    (BertForSequenceClassification, {"num_labels": 3}),
    (BertForTokenClassification, {"num_labels": 3}),
    (BertForQuestionAnswering, {}),
]
every_head = pytest.mark.parametrize(("model_class", "arguments"), HEADS, ids=[head.__name__ for head, _ in HEADS])


@every_head
def test_masks_and_segments_reach_the_encoder_by_name_only(model_class, arguments):
    model = evaluated(model_class, **arguments)
    seen = {}
    model.bert.register_forward_pre_hook(lambda _, given, named: seen.update(named), with_kwargs=True)
    segments = torch.ones_like(IDS)
    model(IDS, attention_mask=REAL, token_type_ids=segments)
    assert seen["attention_mask"] is REAL
    assert seen["token_type_ids"] is segments
    with pytest.raises(TypeError, match="positional argument"):
        model(IDS, REAL)


@every_head
def test_initialisation_of_the_head(model_class, arguments):
    torch.manual_seed(0)
    model = model_class(BertConfig(**{**vars(CONFIG), "hidden_size": 512, "initializer_range": 0.02}), **arguments)
    for name, p in model.named_parameters():
        if not name.startswith("bert.") and name.endswith("weight") and "LayerNorm" not in name:
            assert p.std().item() == pytest.approx(0.02, rel=0.1), name
        elif name.endswith("bias"):
            assert not p.any(), name


@every_head
def test_two_evaluations_are_equal(model_class, arguments):
    model = evaluated(model_class, **arguments)
    first, second = model(IDS), model(IDS)
    if model_class is BertForPreTraining:
        first, second = first.prediction_logits, second.prediction_logits
    elif model_class is BertForQuestionAnswering:
        first, second = first[0], second[0]
    assert torch.equal(first, second)


@pytest.mark.parametrize("model_class", [BertForSequenceClassification, BertForTokenClassification])
def test_the_classifiers_drop_what_they_read(model_class):
    model = evaluated(model_class, num_labels=3)
    model.dropout.p = 1.0
    model.dropout.train()
    assert not model(IDS).any()  # the bias is zero


@pytest.mark.parametrize("model_class", [BertForSequenceClassification, BertForTokenClassification])
@pytest.mark.parametrize("num_labels", [0, -1, 2.0])
def test_a_head_has_classes(model_class, num_labels):
    with pytest.raises(ValueError, match=f"num_labels must be a positive int, got {num_labels}"):
        model_class(CONFIG, num_labels=num_labels)
