"""Faults that other BERT models had: each report is a check that ours passes and a mutant with that fault fails.

A check is called as holds(implementation, case). The mutant has to pass it on a harmless case too, so that
it cannot fail for another reason than its fault.
"""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.attention import padding_mask
from bertbook.config import BertConfig
from bertbook.heads import BertForPreTraining
from bertbook.model import BertEmbeddings, BertLayer, BertModel, BertPooler, BertSelfAttention
from fault_reports import check_report, report

CONFIG = BertConfig(
    vocab_size=11,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=16,
    initializer_range=0.5,
)


def built(model_class, **sizes) -> nn.Module:
    torch.manual_seed(0)
    return model_class(BertConfig(**vars(CONFIG) | sizes)).eval()


def ids(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(1, 11, shape, generator=torch.Generator().manual_seed(seed))


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def close(found: Tensor, expected: Tensor) -> bool:
    return torch.allclose(found, expected, rtol=0, atol=1e-5)


# hyunwoongko/transformer PR #40


def hides_padding(model_class, padding: int) -> bool:
    """The states of a sentence of 4 tokens are those without the padding behind it."""
    model, input_ids = built(model_class), ids(1, 4 + padding)
    real = torch.tensor([[1] * 4 + [0] * padding])
    alone = model(input_ids[:, :4]).last_hidden_state
    return close(model(input_ids, attention_mask=real).last_hidden_state[:, :4], alone)


class QueriesMasked(BertModel):
    def forward(self, input_ids, *, attention_mask=None, token_type_ids=None):
        hidden_states = self.embeddings(input_ids)
        for layer in self.encoder["layer"]:
            hidden_states = layer(
                hidden_states, mask=padding_mask(attention_mask).mT if attention_mask is not None else None
            )
        return type("Output", (), {"last_hidden_state": hidden_states})


# pytorch/pytorch#103749, huggingface/transformers#31035


def defines_every_state(model_class, case: tuple[list[int], torch.dtype]) -> bool:
    """No state and no gradient is NaN, whatever is masked, in this precision."""
    mask, dtype = case
    model = built(model_class).to(dtype)
    output = model(ids(1, len(mask)), attention_mask=torch.tensor([mask]))
    output.last_hidden_state.square().sum().backward()
    grads = [p.grad for p in model.encoder.parameters()]
    return all(bool(tensor.isfinite().all()) for tensor in (output.last_hidden_state, *grads))


class PlainSoftmax(BertModel):
    def __init__(self, config):
        super().__init__(config)
        for layer in self.encoder["layer"]:
            layer.attention["self"].__class__ = PlainSoftmaxAttention


class PlainSoftmaxAttention(BertSelfAttention):
    clean = staticmethod(lambda weights: weights)

    def forward(self, hidden_states, *, mask=None, attentions=None):
        query, key, value = (self.split_heads(part(hidden_states)) for part in (self.query, self.key, self.value))
        scores = query @ key.mT / math.sqrt(key.shape[-1])
        return (self.clean((scores + mask).softmax(dim=-1)) @ value).transpose(1, 2).flatten(start_dim=2)


class NanReplacedAttention(PlainSoftmaxAttention):
    clean = staticmethod(lambda weights: weights.nan_to_num(0.0))


class NanReplacedAfterSoftmax(BertModel):
    def __init__(self, config):
        super().__init__(config)
        for layer in self.encoder["layer"]:
            layer.attention["self"].__class__ = NanReplacedAttention


# rasbt/LLMs-from-scratch#990, jina-ai/clip-as-service#93


def pools_the_sentence_alone(pooler_class, padding: int) -> bool:
    """The pooled vector of 4 tokens is the same with padding behind them."""
    pooler, model, input_ids = built(pooler_class), built(BertModel), ids(1, 4 + padding)
    real = torch.tensor([[1] * 4 + [0] * padding])
    states = model(input_ids, attention_mask=real).last_hidden_state
    return close(pooler(states), pooler(states[:, :4]))


class LastPooler(BertPooler):
    def forward(self, hidden_states):
        return torch.tanh(self.dense(hidden_states[:, -1]))


class MeanPooler(BertPooler):
    def forward(self, hidden_states):
        return torch.tanh(self.dense(hidden_states.mean(dim=1)))


# huggingface/transformers PR #409


def row_learns(embeddings_class, case: tuple[str, int]) -> bool:
    """A row of this table gets a gradient when it is used."""
    table, row = case
    embeddings = built(embeddings_class)
    embeddings(ids(1, 5), token_type_ids=torch.tensor([[0, 0, 0, 1, 1]])).pow(3).sum().backward()
    return bool(getattr(embeddings, f"{table}_embeddings").weight.grad[row].any())


class PaddedEverywhere(BertEmbeddings):
    def __init__(self, config):
        super().__init__(config)
        self.position_embeddings.padding_idx = self.token_type_embeddings.padding_idx = 0


# huggingface/transformers#1788


def needs_the_name(model_class, how: str) -> bool:
    """Segment ids cannot slip into the mask's place: both are taken by name only."""
    model, segments = built(model_class), torch.tensor([[0, 0, 1]])
    if how == "by name":
        return bool(model(ids(1, 3), token_type_ids=segments).last_hidden_state.isfinite().all())
    try:
        model(ids(1, 3), segments)
    except TypeError:
        return True
    return False


class MaskByPosition(BertModel):
    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        return super().forward(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)


# huggingface/transformers#679


def evaluates_the_same_twice(model_class, dropout: float) -> bool:
    model = built(model_class, hidden_dropout_prob=dropout)
    return torch.equal(model(ids(1, 5)).pooler_output, model(ids(1, 5)).pooler_output)


class DropoutAlwaysOn(BertModel):
    def __init__(self, config):
        super().__init__(config)
        rate = config.hidden_dropout_prob
        self.embeddings.dropout.forward = lambda x: F.dropout(x, rate, training=True)


# huggingface/transformers PR #2521, #2928, #9058


def adds_the_bias_once(model_class, bias: float) -> bool:
    """A bias of the masked-LM head moves every logit by itself, once, though it has two names."""
    model, input_ids = built(model_class), ids(1, 4)
    before = model(input_ids).prediction_logits
    with torch.no_grad():
        model.cls["predictions"].bias.fill_(bias)
    return close(model(input_ids).prediction_logits, before + bias)


class BiasTwice(BertForPreTraining):
    def __init__(self, config):
        super().__init__(config)
        head = self.cls["predictions"]
        head.register_forward_hook(lambda _, states, logits: logits + head.bias)


def resizes_the_whole_decoder(model_class, added: int) -> bool:
    """After the token table has grown, decoder and bias have grown with it, and are still tied."""
    model = built(model_class)
    with torch.no_grad():
        model.cls["predictions"].bias.fill_(1.0)
    before = model(ids(1, 4)).prediction_logits
    model.resize_token_embeddings(11 + added)
    head, table = model.cls["predictions"], model.bert.embeddings.word_embeddings
    if head.decoder.weight is not table.weight or head.bias.shape != (11 + added,) or head.bias[11:].any():
        return False
    return close(model(ids(1, 4)).prediction_logits[..., :11], before)


class ResizedTableOnly(BertForPreTraining):
    def resize_token_embeddings(self, vocab_size):
        self.bert.resize_token_embeddings(vocab_size)
        self.cls["predictions"].decoder.weight = self.bert.embeddings.word_embeddings.weight


class ResizedUntied(BertForPreTraining):
    def resize_token_embeddings(self, vocab_size):
        super().resize_token_embeddings(vocab_size)
        decoder = self.cls["predictions"].decoder
        if vocab_size > 11:
            decoder.weight = nn.Parameter(decoder.weight.detach().clone())


def decodes_with_the_token_table(model_class, change: float) -> bool:
    """What training changes in the token table is changed in the decoder."""
    model = built(model_class)
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight[3] += change
    return torch.equal(model.cls["predictions"].decoder.weight, model.bert.embeddings.word_embeddings.weight)


class TiedByValue(BertForPreTraining):
    def __init__(self, config):
        super().__init__(config)
        decoder = self.cls["predictions"].decoder
        decoder.weight = nn.Parameter(decoder.weight.detach().clone())


# huggingface/transformers#8907


def freezing_reaches_the_decoder(model_class, frozen: bool) -> bool:
    """The decoder is the encoder's token table: freeze one and you have frozen the other. Expected, not a fault."""
    model = built(model_class)
    if frozen:
        model.bert.requires_grad_(False)
    trainable = {name for name, p in model.cls.named_parameters() if p.requires_grad}
    return ("predictions.decoder.weight" in trainable) != frozen


# harvardnlp/annotated-transformer PR #119


def normalises_as_torch_does(norm_class, case: tuple[float, int]) -> bool:
    """Biased variance, and epsilon inside the root: it shows where features are few, or the spread is small."""
    spread, features = case
    x = spread * normal(2, 3, features).double()
    norm = norm_class(features, eps=CONFIG.layer_norm_eps).double()
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return torch.allclose(norm(x), centred / (variance + CONFIG.layer_norm_eps).sqrt(), rtol=1e-6, atol=1e-9)


class UnbiasedNorm(nn.LayerNorm):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + self.eps).sqrt()


class EpsilonOutside(nn.LayerNorm):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, correction=0) + self.eps)


# CyberZHG/keras-bert#129


def bends_exactly(layer_class, x: float) -> bool:
    """The feed-forward network's activation is x times the normal distribution function."""
    layer = built(layer_class).double()
    seen = []
    layer.output.dense.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        layer.intermediate["dense"].weight.zero_()
        layer.intermediate["dense"].bias.fill_(x)
    layer(normal(1, 1, 8).double())
    exact = x * 0.5 * (1 + math.erf(x / math.sqrt(2)))
    return torch.allclose(seen[0], torch.full_like(seen[0], exact), rtol=0, atol=1e-12)


class TanhLayer(BertLayer):
    def forward(self, hidden_states, *, mask=None):
        attended = self.attention["output"](self.attention["self"](hidden_states, mask=mask), hidden_states)
        return self.output(F.gelu(self.intermediate["dense"](attended), approximate="tanh"), attended)


# MorvanZhou/NLP-Tutorials#14


def pairs_are_read_at_cls(model_class, position: int) -> bool:
    """The next-sentence logits depend on the last layer's state at position 0, and on no other."""
    model, caught = built(model_class), []

    def remember(_, inputs, output):
        output.retain_grad()
        caught.append(output)

    model.bert.encoder["layer"][-1].register_forward_hook(remember)
    model(ids(1, 5)).seq_relationship_logits.sum().backward()
    return bool(caught[0].grad[0, position].any()) == (position == 0)


class FlattenedPairs(BertForPreTraining):
    def __init__(self, config):
        super().__init__(config)
        self.bert.pooler.forward = lambda states: torch.tanh(self.bert.pooler.dense(states.sum(dim=1)))


ROWS = {
    "harmless": ([1, 1, 0], torch.float32),
    "harmful": [([0, 0, 0], torch.float32), ([0, 0], torch.bfloat16)],
}
POOLED = {"harmless": 0, "harmful": [1, 5]}

REPORTS = [
    *report("hyunwoongko/transformer PR #40", hides_padding, BertModel, QueriesMasked, harmless=0, harmful=[1, 7]),
    *report("pytorch/pytorch#103749", defines_every_state, BertModel, PlainSoftmax, NanReplacedAfterSoftmax, **ROWS),
    *report("rasbt/LLMs-from-scratch#990", pools_the_sentence_alone, BertPooler, LastPooler, **POOLED),
    *report("jina-ai/clip-as-service#93", pools_the_sentence_alone, BertPooler, MeanPooler, **POOLED),
    *report(
        "huggingface/transformers PR #409",
        row_learns,
        BertEmbeddings,
        PaddedEverywhere,
        harmless=("position", 1),
        harmful=[("position", 0), ("token_type", 0)],
    ),
    *report(
        "huggingface/transformers#1788",
        needs_the_name,
        BertModel,
        MaskByPosition,
        harmless="by name",
        harmful=["by position"],
    ),
    *report(
        "huggingface/transformers#679",
        evaluates_the_same_twice,
        BertModel,
        DropoutAlwaysOn,
        harmless=0.0,
        harmful=[0.1, 0.5],
    ),
    *report(
        "huggingface/transformers#9058",
        adds_the_bias_once,
        BertForPreTraining,
        BiasTwice,
        harmless=0.0,
        harmful=[0.5, -2.0],
    ),
    *report(
        "huggingface/transformers PR #2521",
        resizes_the_whole_decoder,
        BertForPreTraining,
        ResizedTableOnly,
        ResizedUntied,
        harmless=0,
        harmful=[1, 5],
    ),
    *report(
        "huggingface/transformers#2928",
        decodes_with_the_token_table,
        BertForPreTraining,
        TiedByValue,
        harmless=0.0,
        harmful=[1.0],
    ),
    *report(
        "huggingface/transformers#8907",
        freezing_reaches_the_decoder,
        BertForPreTraining,
        TiedByValue,
        harmless=False,
        harmful=[True],
    ),
    *report(
        "harvardnlp/annotated-transformer PR #119",
        normalises_as_torch_does,
        type(built(BertLayer).output.LayerNorm),
        UnbiasedNorm,
        harmless=(0.0, 4),
        harmful=[(1.0, 4), (1.0, 64)],
    ),
    *report(
        "harvardnlp/annotated-transformer PR #119",
        normalises_as_torch_does,
        type(built(BertEmbeddings).LayerNorm),
        EpsilonOutside,
        harmless=(1.0, 4),
        harmful=[(1e-6, 4)],
    ),
    *report("CyberZHG/keras-bert#129", bends_exactly, BertLayer, TanhLayer, harmless=0.0, harmful=[-2.0, 1.0, 2.5]),
    *report(
        "MorvanZhou/NLP-Tutorials#14",
        pairs_are_read_at_cls,
        BertForPreTraining,
        FlattenedPairs,
        harmless=0,
        harmful=[1, 4],
    ),
]


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, ours, mutant, harmless, harmful):
    check_report(holds, ours, mutant, harmless, harmful)


def test_keras_bert_129_the_gap_between_the_two_formulas():
    x = torch.linspace(-6, 6, 100_001, dtype=torch.float64)
    gap = (F.gelu(x) - F.gelu(x, approximate="tanh")).abs().max().item()
    assert gap == pytest.approx(4.73e-4, abs=5e-7)
