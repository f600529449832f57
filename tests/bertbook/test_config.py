"""The configuration: the released sizes, and a clear error for every size that cannot be."""

import dataclasses
import json
import re

import pytest

from bertbook.config import NOT_COMPUTED, ONLY, BertConfig
from bertbook.published import BERT_BASE

SIZES = [*BERT_BASE]


def test_the_defaults_are_the_published_sizes():
    config = dataclasses.asdict(BertConfig.base())
    assert config == dataclasses.asdict(BertConfig())
    assert {name: config[name] for name in BERT_BASE} == BERT_BASE
    rates = {name: config[name] for name in config if name not in BERT_BASE}
    assert rates == {
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "id2label": None,
    }


def test_large_differs_from_base_in_four_sizes():
    base, large = dataclasses.asdict(BertConfig.base()), dataclasses.asdict(BertConfig.large())
    assert {name: size for name, size in large.items() if size != base[name]} == {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    }
    assert large["hidden_size"] // large["num_attention_heads"] == base["hidden_size"] // base["num_attention_heads"]


def test_a_configuration_cannot_be_changed_by_accident():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BertConfig().hidden_size = 32


@pytest.mark.parametrize("size", [0, -1, 1.0, True, "12", None])
@pytest.mark.parametrize("name", SIZES)
def test_a_size_is_a_positive_int(name, size):
    with pytest.raises(ValueError, match=re.escape(f"{name} must be a positive int, got {size!r}")):
        BertConfig(**{name: size})


def test_heads_divide_the_hidden_size():
    with pytest.raises(ValueError, match="hidden_size must be a multiple of num_attention_heads = 12, got 770"):
        BertConfig(hidden_size=770)
    assert BertConfig(hidden_size=12).hidden_size == 12


@pytest.mark.parametrize("rate", [-0.1, 1, 1.5, float("nan")])
@pytest.mark.parametrize("name", ["hidden_dropout_prob", "attention_probs_dropout_prob"])
def test_a_dropout_rate_lies_below_one(name, rate):
    with pytest.raises(ValueError, match=re.escape(f"{name} must be in [0, 1), got {rate}")):
        BertConfig(**{name: rate})
    assert getattr(BertConfig(**{name: 0}), name) == 0


@pytest.mark.parametrize("number", [0, -1e-12, float("nan")])
@pytest.mark.parametrize("name", ["initializer_range", "layer_norm_eps"])
def test_a_scale_is_positive(name, number):
    with pytest.raises(ValueError, match=f"{name} must be greater than 0, got {number}"):
        BertConfig(**{name: number})


@pytest.mark.parametrize("pad_token_id", [-1, 9, 0.5, 0.0, False, None])
def test_padding_is_an_id_of_the_vocabulary(pad_token_id):
    message = f"pad_token_id must be in [0, vocab_size) = [0, 9), got {pad_token_id}"
    with pytest.raises(ValueError, match=re.escape(message)):
        BertConfig(vocab_size=9, pad_token_id=pad_token_id)
    assert BertConfig(vocab_size=9, pad_token_id=8).pad_token_id == 8


def test_mini_is_small():
    assert dataclasses.asdict(BertConfig.mini()) == dataclasses.asdict(BertConfig()) | {
        "vocab_size": 8192,
        "hidden_size": 256,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    }


@pytest.mark.parametrize("act", ["relu", "gelu_new", "gelu_pytorch_tanh", None])
def test_no_other_activation_is_built(act):
    with pytest.raises(
        ValueError, match=re.escape(f"hidden_act must be 'gelu' (the exact one, with erf), got {act!r}")
    ):
        BertConfig(hidden_act=act)


@pytest.mark.parametrize("labels", [{}, {1: "a"}, {0: "a", 2: "b"}, {"0": "a"}])
def test_classes_are_numbered_without_a_gap(labels):
    with pytest.raises(ValueError, match="id2label must name the classes"):
        BertConfig(id2label=labels)


# config.json


@pytest.mark.parametrize(
    "config",
    [BertConfig.base(), BertConfig.mini(), BertConfig(hidden_dropout_prob=0.2, id2label={0: "no", 1: "yes"})],
)
def test_a_configuration_survives_its_file(config, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config.to_dict()), "utf-8")
    assert BertConfig.from_json_file(path) == config


RELEASED = {  # what the public folder of bert-base-uncased has in its config.json
    "architectures": ["BertForMaskedLM"],
    "attention_probs_dropout_prob": 0.1,
    "gradient_checkpointing": False,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "model_type": "bert",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0",
    "type_vocab_size": 2,
    "use_cache": True,
    "vocab_size": 30522,
}


def test_the_released_file_is_read():
    assert BertConfig.from_dict(RELEASED) == BertConfig.base()


@pytest.mark.parametrize("name", sorted(NOT_COMPUTED))
def test_fields_that_change_no_number_may_hold_anything(name):
    value = "bert" if name == "model_type" else ["anything"]
    assert BertConfig.from_dict(RELEASED | {name: value}) == BertConfig.base()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model_type", "albert"),
        ("hidden_act", "gelu_new"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("add_cross_attention", True),
        ("tie_word_embeddings", False),
        ("classifier_dropout", 0.3),
        ("pruned_heads", {"0": [1]}),
        ("problem_type", "regression"),
    ],
)
def test_fields_that_would_change_numbers_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .*got {re.escape(repr(value))}"):
        BertConfig.from_dict(RELEASED | {name: value})


@pytest.mark.parametrize("name", sorted(ONLY))
def test_what_this_model_does_may_be_said(name):
    for value in ONLY[name]:
        assert BertConfig.from_dict(RELEASED | {name: value}) == BertConfig.base()


def test_unknown_fields_are_refused_all_at_once():
    with pytest.raises(ValueError, match=r"fields that are not known here: \['alibi', 'rotary'\]; remove them if"):
        BertConfig.from_dict(RELEASED | {"rotary": 1, "alibi": 2})
