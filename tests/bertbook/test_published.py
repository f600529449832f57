"""The released BERT's names and shapes: published counts, and the toy's names beside them."""

import pytest
import torch
from torch import nn

from bertbook.published import (
    BERT_BASE,
    bert_parameter_shapes,
    beside_the_toy,
    config_like,
    count,
    differences,
    renamed,
)
from bertbook.tiny import TinyBertForClassification

SMALL = {"vocab_size": 11, "hidden_size": 4, "num_hidden_layers": 2, "intermediate_size": 6}


def shapes_of(*, num_labels: int | None = None, **sizes: int) -> dict[str, tuple[int, ...]]:
    """The published shapes, with some sizes of bert-base-uncased replaced."""
    return bert_parameter_shapes(BERT_BASE | sizes, num_labels=num_labels)


def toy_shapes(**sizes: int) -> dict[str, tuple[int, ...]]:
    return {name: tuple(p.shape) for name, p in TinyBertForClassification(**sizes).named_parameters()}


@pytest.mark.parametrize(
    ("sizes", "parameters"),
    [
        ({}, 109_482_240),  # base, uncased
        ({"hidden_size": 1024, "num_hidden_layers": 24, "intermediate_size": 4096}, 335_141_888),  # large, uncased
        ({"vocab_size": 28_996}, 108_310_272),  # base, cased
        ({"hidden_size": 128, "num_hidden_layers": 2, "intermediate_size": 512}, 4_385_920),  # tiny
        ({"num_labels": 2}, 109_483_778),
    ],
)
def test_published_counts(sizes, parameters):
    assert count(shapes_of(**sizes)) == parameters


def test_count_equals_torchs_on_the_same_layers():
    embeddings = [nn.Embedding(11, 4), nn.Embedding(512, 4), nn.Embedding(2, 4), nn.LayerNorm(4)]
    layer = [*[nn.Linear(4, 4) for _ in range(4)], nn.Linear(4, 6), nn.Linear(6, 4), nn.LayerNorm(4), nn.LayerNorm(4)]
    modules = [*embeddings, *layer, *layer, nn.Linear(4, 4)]
    assert count(shapes_of(**SMALL)) == sum(p.numel() for m in modules for p in m.parameters())


def test_names_are_the_checkpoints():
    names = list(shapes_of(**SMALL))
    parts = [
        *["attention.self.query", "attention.self.key", "attention.self.value"],
        *["attention.output.dense", "attention.output.LayerNorm"],
        *["intermediate.dense", "output.dense", "output.LayerNorm"],
    ]
    assert names == [
        "embeddings.word_embeddings.weight",
        "embeddings.position_embeddings.weight",
        "embeddings.token_type_embeddings.weight",
        "embeddings.LayerNorm.weight",
        "embeddings.LayerNorm.bias",
        *[f"encoder.layer.{i}.{part}.{kind}" for i in range(2) for part in parts for kind in ("weight", "bias")],
        "pooler.dense.weight",
        "pooler.dense.bias",
    ]


def test_classification_prefixes_the_encoder_and_adds_a_head():
    encoder = shapes_of(**SMALL)
    shapes = shapes_of(**SMALL, num_labels=3)
    head = {"classifier.weight": (3, 4), "classifier.bias": (3,)}
    assert shapes == {f"bert.{name}": shape for name, shape in encoder.items()} | head


@pytest.mark.parametrize("size", [0, -1])
@pytest.mark.parametrize(
    "name",
    [
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
        "num_labels",
    ],
)
def test_the_size_that_is_not_positive_is_named(name, size):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got {size}"):
        shapes_of(**{name: size})


# The toy's names


@pytest.mark.parametrize("num_layers", [1, 2, 12])
def test_renamed_maps_onto_public_names(num_layers):
    toy = toy_shapes(num_layers=num_layers)
    public = shapes_of(num_hidden_layers=num_layers, num_labels=2)
    names = renamed(toy)
    assert len(names) == len(toy)  # no two collide
    assert list(names.values()) == list(toy.values())
    # The fused projection is the one part without a counterpart.
    assert set(names) - set(public) == {f"layers.{i}.attn.qkv.weight" for i in range(num_layers)}


def test_renamed_pairs_parts_that_do_the_same():
    # At the toy's own sizes, all but the fused projection also have the public shape.
    sizes = {"vocab_size": 100, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 128}
    public = shapes_of(**sizes, max_position_embeddings=16, num_labels=2)
    names = renamed(toy_shapes())
    assert all(names[name] == shape for name, shape in public.items() if name in names)
    # What the toy lacks: the segment table, the first LayerNorm, the pooler, and query, key, value with biases.
    missing = {name.removeprefix("bert.") for name in set(public) - set(names)}
    assert {name for name in missing if "attention.self" not in name} == {
        "embeddings.token_type_embeddings.weight",
        "embeddings.LayerNorm.weight",
        "embeddings.LayerNorm.bias",
        "pooler.dense.weight",
        "pooler.dense.bias",
    }
    assert len(missing) == 5 + 2 * 6


def test_public_weights_do_not_load_into_the_toy():
    with torch.device("meta"):
        toy = TinyBertForClassification()
        weights = {name: torch.empty(shape) for name, shape in shapes_of(num_labels=2).items()}
    with pytest.raises(RuntimeError, match="Missing key"):
        toy.load_state_dict(weights)


def test_beside_the_toy_counts_both_and_finds_where_the_head_reads():
    assert beside_the_toy(TinyBertForClassification()) == [
        ("layers", 12, 2),
        ("hidden dim", 768, 32),
        ("heads / head_dim", "12 / 64", "4 / 8"),
        ("params", 109_482_240, 28_994),
        ("classification input", "[CLS] = x[:, 0, :]", "same"),
    ]


def test_a_toy_that_reads_elsewhere_is_not_called_the_same():
    class LastPosition(TinyBertForClassification):
        def forward(self, input_ids):
            return self.head(self.encode(input_ids)[:, -1, :])

    assert beside_the_toy(LastPosition())[-1] == ("classification input", "[CLS] = x[:, 0, :]", "positions [4]")


def test_even_a_bert_of_the_toys_sizes_has_other_parameters():
    model = TinyBertForClassification()
    public = bert_parameter_shapes(config_like(model), num_labels=2)
    rows = differences(public, renamed(toy_shapes()))
    only_public = [name for name, _, toy in rows if toy == "none"]
    only_toy = [name for name, theirs, _ in rows if theirs == "none"]
    assert len(rows) == len(only_public) + len(only_toy)  # where both have a parameter, its shape agrees
    assert only_toy == ["layers.*.attn.qkv.weight"]
    assert {name.split(".")[-2] for name in only_public} == {
        *("token_type_embeddings", "LayerNorm", "query", "key", "value", "dense")
    }
