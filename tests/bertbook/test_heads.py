"""The heads: what is tied, what each reads, what the released checkpoints call it."""

import copy
import re
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.config import BertConfig
from bertbook.heads import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    MaskedLMHead,
)
from bertbook.masking import IGNORE_INDEX
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
    published = bert_parameter_shapes(SIZES)
    if model.bert.pooler is None:
        published = {name: shape for name, shape in published.items() if not name.startswith("pooler.")}
    assert encoder == published
    return {name: shape for name, shape in shapes.items() if not name.startswith("bert.")}


MASKED_LM = {
    "cls.predictions.bias": (11,),
    "cls.predictions.transform.dense.weight": (8, 8),
    "cls.predictions.transform.dense.bias": (8,),
    "cls.predictions.transform.LayerNorm.weight": (8,),
    "cls.predictions.transform.LayerNorm.bias": (8,),
    "cls.predictions.decoder.weight": (11, 8),
    "cls.predictions.decoder.bias": (11,),
}


def logits(output) -> list[Tensor]:
    """Every tensor of logits that an output holds."""
    return [value for name, value in vars(output).items() if name.endswith("logits") and value is not None]


def test_pretraining_names_are_the_checkpoints():
    assert head_shapes(evaluated(BertForMaskedLM)) == MASKED_LM
    assert head_shapes(evaluated(BertForPreTraining)) == MASKED_LM | {
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
    assert decoder.bias is model.cls["predictions"].bias
    for tied in (table.weight, decoder.bias):
        assert sum(p is tied for p in model.parameters()) == 1  # an optimiser meets it once
    loaded = evaluated(BertForPreTraining)
    loaded.load_state_dict(model.state_dict())
    for again in (copy.deepcopy(model), loaded, copy.deepcopy(model).double()):
        head = again.cls["predictions"]
        assert head.decoder.weight is again.bert.embeddings.word_embeddings.weight
        assert head.decoder.bias is head.bias


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
    assert torch.allclose(sequence(IDS, attention_mask=REAL).logits, sequence.classifier(pooled))
    states = token.bert(IDS, attention_mask=REAL).last_hidden_state
    assert torch.allclose(token(IDS, attention_mask=REAL).logits, token.classifier(states))


def test_question_answering_by_hand():
    model = evaluated(BertForQuestionAnswering)
    logits = model.qa_outputs(model.bert(IDS, attention_mask=REAL).last_hidden_state)
    found = model(IDS, attention_mask=REAL)
    assert torch.allclose(found.start_logits, logits[..., 0])
    assert torch.allclose(found.end_logits, logits[..., 1])


HEADS = [
    (BertForPreTraining, {}),
    (BertForMaskedLM, {}),
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
    for first, second in zip(logits(model(IDS)), logits(model(IDS)), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("model_class", [BertForSequenceClassification, BertForTokenClassification])
def test_the_classifiers_drop_what_they_read(model_class):
    model = evaluated(model_class, num_labels=3)
    model.dropout.p = 1.0
    model.dropout.train()
    assert not model(IDS).logits.any()  # the bias is zero


@pytest.mark.parametrize("model_class", [BertForSequenceClassification, BertForTokenClassification])
@pytest.mark.parametrize("num_labels", [0, -1, 2.0, True, None])
def test_a_head_has_classes(model_class, num_labels):
    with pytest.raises(ValueError, match=f"num_labels must be a positive int, got {num_labels}"):
        model_class(CONFIG, num_labels=num_labels)


def test_classes_can_come_from_the_configuration():
    named = replace(CONFIG, id2label={0: "no", 1: "perhaps", 2: "yes"})
    model = BertForSequenceClassification(named)
    assert model.classifier.out_features == 3
    assert model.config == named
    other = BertForSequenceClassification(named, num_labels=2)  # another task has other classes
    assert other.config.id2label == {0: "LABEL_0", 1: "LABEL_1"}
    assert BertForQuestionAnswering(named).config.id2label is None


# Losses

LABELS = torch.tensor([[-100, 5, -100, 3], [-100, -100, 10, -100]])
NO_LABELS = torch.full_like(LABELS, IGNORE_INDEX)
TARGETS = {
    BertForPreTraining: ({"labels": LABELS, "next_sentence_label": torch.tensor([1, 0])}, {"labels": NO_LABELS}),
    BertForMaskedLM: ({"labels": LABELS}, {"labels": NO_LABELS}),
    BertForSequenceClassification: ({"labels": torch.tensor([2, 0])}, {"labels": NO_LABELS[:, 0]}),
    BertForTokenClassification: ({"labels": LABELS.clamp(max=2)}, {"labels": NO_LABELS}),
    BertForQuestionAnswering: (
        {"start_positions": torch.tensor([1, 0]), "end_positions": torch.tensor([3, 0])},
        {"start_positions": NO_LABELS[:, 0], "end_positions": NO_LABELS[:, 0]},
    ),
}


def gradients(model, loss) -> dict[str, Tensor]:
    model.zero_grad()
    loss.backward()
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@every_head
def test_without_labels_there_is_no_loss(model_class, arguments):
    output = evaluated(model_class, **arguments)(IDS)
    assert output.loss is None
    assert logits(output)


@every_head
def test_with_nothing_labelled_loss_and_gradients_are_zero(model_class, arguments):
    model = evaluated(model_class, **arguments)
    loss = model(IDS, **TARGETS[model_class][1]).loss
    assert loss.item() == 0
    found = gradients(model, loss)
    assert found
    assert not any(gradient.any() for gradient in found.values())  # a NaN would be "any"


@pytest.mark.parametrize("model_class", [BertForMaskedLM, BertForPreTraining])
def test_only_labelled_positions_pass_the_decoder(model_class):
    model = evaluated(model_class)
    decoded = []
    model.cls["predictions"].decoder.register_forward_hook(lambda _, given, result: decoded.append(tuple(result.shape)))
    named = TARGETS[model_class][0]
    few, all_of_them = model(IDS, **named), model(IDS, **named, return_logits=True)
    assert decoded == [(3, 11), (2, 4, 11)]
    name = "logits" if model_class is BertForMaskedLM else "prediction_logits"
    assert getattr(few, name) is None
    assert torch.equal(getattr(all_of_them, name), getattr(model(IDS), name))
    assert torch.allclose(few.loss, all_of_them.loss, atol=1e-6)
    one, other = gradients(model, few.loss), gradients(model, all_of_them.loss)
    assert one.keys() == other.keys()
    assert all(torch.allclose(one[key], other[key], atol=1e-6) for key in one)


def test_the_pretraining_loss_is_the_sum_of_those_that_have_labels():
    model, (both, _) = evaluated(BertForPreTraining), TARGETS[BertForPreTraining]
    full = model(IDS)
    masked_lm = F.cross_entropy(full.prediction_logits[LABELS != -100], LABELS[LABELS != -100])
    next_sentence = F.cross_entropy(full.seq_relationship_logits, both["next_sentence_label"])
    output = model(IDS, **both)
    assert torch.allclose(output.masked_lm_loss, masked_lm, atol=1e-6)
    assert torch.allclose(output.next_sentence_loss, next_sentence, atol=1e-6)
    assert torch.allclose(output.loss, masked_lm + next_sentence, atol=1e-6)
    assert torch.equal(model(IDS, labels=LABELS).loss, output.masked_lm_loss)
    pairs_alone = model(IDS, next_sentence_label=both["next_sentence_label"])
    assert torch.equal(pairs_alone.loss, output.next_sentence_loss)
    assert pairs_alone.prediction_logits is not None  # nobody gave labels for them


def test_losses_by_hand():
    sequence = evaluated(BertForSequenceClassification, num_labels=3)
    expected = -sequence(IDS).logits.log_softmax(-1)[[0, 1], [2, 0]].mean()
    assert torch.allclose(sequence(IDS, labels=torch.tensor([2, 0])).loss, expected)
    half = sequence(IDS, labels=torch.tensor([2, IGNORE_INDEX])).loss
    assert torch.allclose(half, -sequence(IDS).logits.log_softmax(-1)[0, 2])
    token = evaluated(BertForTokenClassification, num_labels=3)
    shares = token(IDS).logits.log_softmax(-1)
    expected = -(shares[0, 1, 2] + shares[0, 3, 2] + shares[1, 2, 2]) / 3
    assert torch.allclose(token(IDS, labels=LABELS.clamp(max=2)).loss, expected)
    questions = evaluated(BertForQuestionAnswering)
    output = questions(IDS, start_positions=torch.tensor([1, 0]), end_positions=torch.tensor([3, IGNORE_INDEX]))
    starts, ends = output.start_logits.log_softmax(-1), output.end_logits.log_softmax(-1)
    expected = -((starts[0, 1] + starts[1, 0]) / 2 + ends[0, 3]) / 2
    assert torch.allclose(output.loss, expected)


@every_head
def test_attention_weights_on_request(model_class, arguments):
    model = evaluated(model_class, **arguments)
    plain = model(IDS, attention_mask=REAL, output_attentions=True)
    assert [tuple(weights.shape) for weights in plain.attentions] == [(2, 2, 4, 4)] * 2
    fast = model(IDS, attention_mask=REAL)
    assert fast.attentions is None
    for one, other in zip(logits(plain), logits(fast), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


POSITION = torch.tensor([0, 0])


@pytest.mark.parametrize(
    ("model_class", "arguments", "named", "message"),
    [
        (BertForMaskedLM, {}, {"labels": LABELS[:, :3]}, "labels must have shape (2, 4), as input_ids, got (2, 3)"),
        (BertForMaskedLM, {}, {"labels": LABELS + 1}, "labels holds -99; a label is an id in [0, 11)"),
        (
            BertForMaskedLM,
            {},
            {"labels": LABELS.clamp(min=-1)},
            "labels holds -1; a label is an id in [0, 11) or IGNORE",
        ),
        (
            BertForPreTraining,
            {},
            {"next_sentence_label": POSITION + 2},
            "labels must hold only 0 (IsNext) and 1 (NotNext)",
        ),
        (
            BertForPreTraining,
            {},
            {"next_sentence_label": POSITION[:1]},
            "logits must have shape (B, 2) and labels (B,)",
        ),
        (
            BertForSequenceClassification,
            {"num_labels": 3},
            {"labels": POSITION + 3},
            "labels holds 3; a label is an id",
        ),
        (BertForSequenceClassification, {"num_labels": 3}, {"labels": POSITION[:, None]}, "logits must have shape"),
        (BertForSequenceClassification, {"num_labels": 1}, {"labels": POSITION}, "this head has num_labels = 1"),
        (BertForTokenClassification, {"num_labels": 1}, {"labels": LABELS}, "this head has num_labels = 1"),
        (BertForTokenClassification, {"num_labels": 3}, {"labels": POSITION}, "logits must have shape"),
        (BertForQuestionAnswering, {}, {"start_positions": POSITION}, "give both, or neither"),
        (
            BertForQuestionAnswering,
            {},
            {"start_positions": POSITION, "end_positions": POSITION + 4},
            "end_positions holds 4; a position is in [0, 4), or -100 if there is none",
        ),
        (
            BertForQuestionAnswering,
            {},
            {"start_positions": POSITION - 1, "end_positions": POSITION},
            "start_positions holds -1; a position",
        ),
        (
            BertForQuestionAnswering,
            {},
            {"start_positions": POSITION[:, None], "end_positions": POSITION},
            "start_positions must have shape (2,), got (2, 1)",
        ),
    ],
)
def test_bad_labels_are_named(model_class, arguments, named, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        evaluated(model_class, **arguments)(IDS, **named)


@every_head
def test_an_unknown_keyword_is_an_error(model_class, arguments):
    with pytest.raises(TypeError, match="unexpected keyword argument 'lables'"):
        evaluated(model_class, **arguments)(IDS, lables=IDS)


# Resizing


@pytest.mark.parametrize("vocab_size", [6, 11, 15])
@pytest.mark.parametrize("model_class", [BertForMaskedLM, BertForPreTraining])
def test_resizing_covers_the_table_the_decoder_and_its_bias(model_class, vocab_size):
    model = evaluated(model_class)
    head = model.cls["predictions"]
    with torch.no_grad():
        head.bias.copy_(torch.arange(11.0) + 1)
    ids = torch.tensor([[1, 5, 4, 2]])  # all of them stay
    old = model(ids)
    model.resize_token_embeddings(vocab_size)
    new, table = model(ids), model.bert.embeddings.word_embeddings
    assert model.config.vocab_size == table.num_embeddings == head.decoder.out_features == vocab_size
    assert head.decoder.weight is table.weight
    assert head.decoder.bias is head.bias
    assert head.bias.tolist() == [*range(1, min(vocab_size, 11) + 1), *[0] * (vocab_size - 11)]
    kept = min(vocab_size, 11)
    assert logits(new)[0].shape[-1] == vocab_size
    assert torch.allclose(logits(new)[0][..., :kept], logits(old)[0][..., :kept], atol=1e-6)
    assert table.weight[11:].any(dim=1).all()  # new rows are drawn, not zero
    model(ids, labels=ids.clamp(max=vocab_size - 1)).loss.backward()
    assert table.weight.grad.shape == (vocab_size, 8)
    assert head.bias.grad.shape == (vocab_size,)
    assert model_class(model.config).load_state_dict(model.state_dict()).missing_keys == []


def test_resizing_an_encoder_keeps_what_is_frozen_and_its_precision():
    model = evaluated(BertForSequenceClassification, num_labels=2).bert.double()
    model.requires_grad_(False)
    model.resize_token_embeddings(20)
    table = model.embeddings.word_embeddings
    assert table.weight.dtype == torch.float64
    assert not table.weight.requires_grad
    assert table.padding_idx == CONFIG.pad_token_id
    assert not table.weight[CONFIG.pad_token_id].any()
    with pytest.raises(ValueError, match="vocab_size must be a positive int, got 0"):
        model.resize_token_embeddings(0)
    assert model.embeddings.word_embeddings is table
