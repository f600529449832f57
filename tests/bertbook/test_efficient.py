"""LoRA, adapters and prompts: they start as the frozen model, train little, and count as derived."""

import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bertbook.config import BertConfig
from bertbook.efficient import Adapter, LoRALinear, PromptTuning, add_adapters, add_lora, merge_lora
from bertbook.heads import BertForSequenceClassification
from bertbook.outputs import logits_of
from bertbook.tiny import TinyBertForClassification, count_parameters

property_test = settings(max_examples=20, deadline=None, derandomize=True)
SMALL = BertConfig(
    vocab_size=9,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
IDS = torch.tensor([[1, 2, 3], [4, 5, 6]])


def classifier() -> BertForSequenceClassification:
    torch.manual_seed(0)
    return BertForSequenceClassification(SMALL, num_labels=2).double()


def bert_base() -> BertForSequenceClassification:
    with torch.device("meta"):
        return BertForSequenceClassification(BertConfig.base(), num_labels=2)


def one_step(model: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters before a step with a large rate."""
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1.0)
    for _ in range(2):  # the first moves the zero factor, the second the other one
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits_of(model(IDS)), torch.tensor([0, 1])).backward()
        optimizer.step()
    return before


METHODS = {
    "lora": lambda model: add_lora(model, rank=2, generator=torch.Generator().manual_seed(1)) and model,
    "adapters": lambda model: add_adapters(model, bottleneck=3, generator=torch.Generator().manual_seed(1)) and model,
    "prompt": lambda model: PromptTuning(model, prompt_length=2, generator=torch.Generator().manual_seed(1)),
}


@pytest.mark.parametrize("method", METHODS)
def test_exactly_what_is_trainable_moves(method):
    model = METHODS[method](classifier())
    before = one_step(model)
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {name for name, p in model.named_parameters() if p.requires_grad}
    new = re.compile(r"(\.[AB]|\.(down|up|LayerNorm)\.(weight|bias)|^prompt|classifier\.(weight|bias))$")
    assert all(new.search(name) for name in moved)


@pytest.mark.parametrize("method", ["lora", "adapters"])
def test_it_starts_as_the_model_that_it_adapts(method):
    model = classifier()
    before = model(IDS).logits
    assert torch.equal(METHODS[method](model)(IDS).logits, before)


@given(st.integers(1, 6), st.integers(1, 6), st.booleans(), st.floats(0.1, 32.0), st.data())
@property_test
def test_lora_is_the_formula_and_merging_keeps_the_output(inputs, outputs, bias, alpha, data):
    rank = data.draw(st.integers(1, min(inputs, outputs)))
    torch.manual_seed(0)
    base = nn.Linear(inputs, outputs, bias=bias).double()
    lora = LoRALinear(base, rank=rank, alpha=alpha)
    assert lora.A.shape == (rank, inputs)
    assert lora.B.shape == (outputs, rank)
    assert count_parameters(lora) == rank * (inputs + outputs)
    nn.init.normal_(lora.B)
    x = torch.randn(inputs).double()
    column = base.weight @ x + (alpha / rank) * (lora.B @ (lora.A @ x))  # as in the formula, x a column
    assert torch.allclose(lora(x), column + (base.bias if bias else 0))
    merged = lora.merged()
    assert torch.allclose(merged(x), lora(x))
    assert (merged.bias is not None) == bias
    assert not torch.equal(merged.weight, base.weight)


def test_merging_a_trained_model_gives_plain_linear_layers_and_the_same_logits():
    model = METHODS["lora"](classifier())
    one_step(model)
    expected = model(IDS).logits
    merge_lora(model)
    assert not [part for part in model.modules() if isinstance(part, LoRALinear)]
    assert torch.allclose(model(IDS).logits, expected)
    assert [name for name, _ in model.named_parameters()] == [name for name, _ in classifier().named_parameters()]


@pytest.mark.parametrize("rank", [1, 8])
def test_lora_on_bert_base(rank):
    model = bert_base()
    added = add_lora(model, rank=rank)
    assert added == 12 * 2 * rank * (768 + 768)
    assert count_parameters(model) == added + 1538


def test_adapters_on_bert_base_sit_before_the_addition():
    model = bert_base()
    width, layer = 64, 2 * 768 * 64 + 64 + 768
    assert add_adapters(model, bottleneck=width) == 24 * (layer + 2 * 768)
    output = model.bert.encoder["layer"][3].output
    assert isinstance(output.dense[1], Adapter)
    assert output.LayerNorm.weight.requires_grad


def test_prompts_on_bert_base():
    assert count_parameters(PromptTuning(bert_base(), prompt_length=20)) == 20 * 768 + 1538


def test_a_prompt_that_nobody_attends_to_changes_nothing():
    model = classifier()
    expected = model(IDS).logits
    prompted = PromptTuning(model, prompt_length=2)
    assert not torch.allclose(prompted(IDS), expected)
    for layer in model.bert.encoder["layer"]:
        attention = layer.attention["self"]
        attention.forward = hide_first_two(attention)
    assert torch.allclose(prompted(IDS), expected)


def hide_first_two(attention):
    plain = type(attention).forward

    def forward(hidden_states, *, mask=None, attentions=None):
        keys = torch.zeros(hidden_states.shape[1]).double()
        keys[:2] = -torch.inf
        return plain(attention, hidden_states, mask=keys.expand(1, 1, 1, -1))

    return forward


def test_padding_behind_a_prompted_sentence_is_not_seen():
    prompted = PromptTuning(classifier().float(), prompt_length=2)
    padded = torch.tensor([[1, 2, 3, 0, 0]])
    alone = prompted(padded[:, :3])
    mask = torch.tensor([[1, 1, 1, 0, 0]])
    assert torch.allclose(prompted(padded, attention_mask=mask), alone, atol=1e-6)
    assert not torch.allclose(prompted(padded), alone, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LoRALinear(nn.Linear(6, 4), rank=5, alpha=1.0), "rank must be from 1 to 4, got 5"),
        (lambda: LoRALinear(nn.Linear(6, 4), rank=0, alpha=1.0), "rank must be from 1 to 4, got 0"),
        (lambda: LoRALinear(nn.Linear(6, 4), rank=1, alpha=0.0), "alpha must be greater than 0, got 0.0"),
        (lambda: add_lora(classifier(), targets=("qkv",)), "targets must name linear layers of the model, got ('qkv"),
        (lambda: Adapter(0, bottleneck=1), "hidden_size must be at least 1, got 0"),
        (lambda: Adapter(8, bottleneck=0), "bottleneck must be at least 1, got 0"),
        (
            lambda: add_adapters(TinyBertForClassification(), bottleneck=1),
            "model has no BERT layer, got a TinyBertForClassification",
        ),
        (lambda: PromptTuning(classifier(), prompt_length=0), "prompt_length must be at least 1, got 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda m: add_lora(m, rank=99), ValueError, "rank must be from 1 to 8, got 99"),
        (lambda m: add_lora(m, rank=2.0), TypeError, "rank must be an int, got 2.0"),
        (lambda m: add_lora(m, rank=True), TypeError, "rank must be an int, got True"),
        (lambda m: add_lora(m, alpha=float("inf")), ValueError, "alpha must be greater than 0, got inf"),
        (lambda m: add_lora(m, targets=("query", "valeu")), ValueError, "it has none called ['valeu']"),
        (lambda m: add_lora(m, targets="query_value"), TypeError, "targets must be a tuple of names"),
        (lambda m: add_adapters(m, bottleneck=0), ValueError, "bottleneck must be at least 1, got 0"),
        (lambda m: PromptTuning(m, prompt_length=2.5), TypeError, "prompt_length must be an int, got 2.5"),
        (lambda m: LoRALinear(nn.Embedding(6, 4), rank=1, alpha=1.0), TypeError, "base must be an nn.Linear"),
    ],
)
def test_a_refused_call_leaves_the_model(change, error, message):
    model = classifier()
    names = [name for name, _ in model.named_modules()]
    with pytest.raises(error, match=re.escape(message)):
        change(model)
    assert [name for name, _ in model.named_modules()] == names
    assert all(p.requires_grad for p in model.parameters())


def test_adapters_are_added_once():
    model = METHODS["adapters"](classifier())
    with pytest.raises(ValueError, match="model has adapters"):
        add_adapters(model, bottleneck=3)


@pytest.mark.parametrize("method", METHODS)
def test_a_generator_is_the_only_source_of_numbers(method):
    model = classifier()
    state = torch.get_rng_state()
    model = METHODS[method](model)
    merge_lora(model)
    assert torch.equal(state, torch.get_rng_state())


def test_what_was_frozen_stays_frozen_when_merged():
    model = METHODS["lora"](classifier())
    merge_lora(model)
    assert {name for name, p in model.named_parameters() if p.requires_grad} == {
        "classifier.weight",
        "classifier.bias",
    }
    alone = merge_lora(LoRALinear(nn.Linear(6, 4), rank=2, alpha=1.0))
    assert type(alone) is nn.Linear
    assert not any(p.requires_grad for p in alone.parameters())


def test_new_weights_have_the_spread_of_their_input():
    generator = torch.Generator().manual_seed(0)
    lora = LoRALinear(nn.Linear(4096, 64), rank=8, alpha=1.0, generator=generator)
    assert lora.A.std().item() == pytest.approx(1 / 64, rel=0.1)
    adapter = Adapter(4096, bottleneck=16, generator=generator)
    assert adapter.down.weight.std().item() == pytest.approx(1 / 64, rel=0.1)


def test_a_prompt_works_in_half_precision():
    model = PromptTuning(classifier().bfloat16(), prompt_length=2)
    assert model(IDS, attention_mask=torch.ones_like(IDS)).dtype == torch.bfloat16
