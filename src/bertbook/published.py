"""Names and shapes of the released BERT's parameters, for comparison with the toy's.

Written down from the public checkpoint's layout; nothing is allocated or downloaded.
"""

import re
from math import prod

import torch

from bertbook.milestones import positions_read
from bertbook.tiny import TinyBertForClassification, count_parameters

# bert-base-uncased, under the names of its config.json.
BERT_BASE = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}

Shapes = dict[str, tuple[int, ...]]


def bert_parameter_shapes(
    config: dict[str, int], *, num_labels: int | None = None
) -> Shapes:
    """Every parameter of a BERT encoder with pooler, by its public name.

    Args:
        config: the sizes, as in BERT_BASE. The number of heads decides no shape.
        num_labels: None for BertModel; a number for BertForSequenceClassification,
            whose encoder names begin with "bert." and which adds a classifier.

    Returns:
        parameter name -> shape, in the order of the checkpoint.

    Raises:
        ValueError: if a size is not positive.

    Source: Devlin et al. 2019, section 3; google-research/bert, modeling.py.

    >>> shapes = bert_parameter_shapes(BERT_BASE)
    >>> shapes["embeddings.word_embeddings.weight"]
    (30522, 768)
    >>> count(shapes)
    109482240
    """
    for name, size in {**config, "num_labels": num_labels}.items():
        if size is not None and size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")
    hidden_size = config["hidden_size"]
    intermediate_size = config["intermediate_size"]

    def linear(name: str, inputs: int, outputs: int) -> Shapes:
        return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}

    def layer_norm(name: str) -> Shapes:
        return {
            f"{name}.LayerNorm.weight": (hidden_size,),
            f"{name}.LayerNorm.bias": (hidden_size,),
        }

    tables = {
        "word": "vocab_size",
        "position": "max_position_embeddings",
        "token_type": "type_vocab_size",
    }
    shapes: Shapes = {
        f"embeddings.{table}_embeddings.weight": (config[rows], hidden_size)
        for table, rows in tables.items()
    }
    shapes |= layer_norm("embeddings")
    for i in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            shapes |= linear(f"{layer}.attention.self.{part}", hidden_size, hidden_size)
        shapes |= linear(f"{layer}.attention.output.dense", hidden_size, hidden_size)
        shapes |= layer_norm(f"{layer}.attention.output")
        shapes |= linear(f"{layer}.intermediate.dense", hidden_size, intermediate_size)
        shapes |= linear(f"{layer}.output.dense", intermediate_size, hidden_size)
        shapes |= layer_norm(f"{layer}.output")
    shapes |= linear("pooler.dense", hidden_size, hidden_size)
    if num_labels is None:
        return shapes
    return {f"bert.{name}": shape for name, shape in shapes.items()} | linear(
        "classifier", hidden_size, num_labels
    )


def count(shapes: Shapes) -> int:
    """How many numbers the parameters of these shapes hold.

    >>> count({"weight": (2, 32), "bias": (2,)})
    66
    """
    return sum(prod(shape) for shape in shapes.values())


def renamed(toy: Shapes) -> Shapes:
    """The toy's parameters under the public names of the parts they come closest to.

    This is the kindest possible attempt at loading: only parts that exist in both
    models are renamed. What has no counterpart keeps its own name.

    >>> list(renamed({"tok_emb.weight": (9, 4), "layers.0.attn.qkv.weight": (12, 4)}))
    ['bert.embeddings.word_embeddings.weight', 'layers.0.attn.qkv.weight']
    """
    counterparts = {
        "tok_emb": "bert.embeddings.word_embeddings",
        "pos_emb": "bert.embeddings.position_embeddings",
        "layers": "bert.encoder.layer",
        "attn.out": "attention.output.dense",
        "norm1": "attention.output.LayerNorm",
        "feed_forward.0": "intermediate.dense",
        "feed_forward.2": "output.dense",
        "norm2": "output.LayerNorm",
        "head": "classifier",
    }
    names = {}
    for name, shape in toy.items():
        public = "." + name
        for ours, theirs in counterparts.items():
            public = public.replace(f".{ours}.", f".{theirs}.")
        names[name if "qkv" in name else public.removeprefix(".")] = shape
    return names


def beside_the_toy(model: TinyBertForClassification) -> list[tuple]:
    """BERT-base and the toy, row by row.

    BERT-base's numbers are counted from its published shapes, the toy's from the
    module; where the toy's head reads is found out by its gradient.

    Returns:
        (component, BERT-base, toy) rows.

    Source: slide 56.

    >>> for component, base, toy in beside_the_toy(TinyBertForClassification())[:3]:
    ...     print(component, base, toy)
    layers 12 2
    hidden dim 768 32
    heads / head_dim 12 / 64 4 / 8
    """
    heads, toy_attn = BERT_BASE["num_attention_heads"], model.layers[0].attn
    hidden_size, toy_hidden_size = BERT_BASE["hidden_size"], model.head.in_features
    one_sentence = torch.zeros(1, 5, dtype=torch.long)
    read = positions_read(model, one_sentence, hidden_size=toy_hidden_size)
    return [
        ("layers", BERT_BASE["num_hidden_layers"], len(model.layers)),
        ("hidden dim", hidden_size, toy_hidden_size),
        (
            "heads / head_dim",
            f"{heads} / {hidden_size // heads}",
            f"{toy_attn.num_heads} / {toy_attn.head_dim}",
        ),
        ("params", count(bert_parameter_shapes(BERT_BASE)), count_parameters(model)),
        (
            "classification input",
            "[CLS] = x[:, 0, :]",
            "same" if read == [0] else f"positions {read}",
        ),
    ]


def config_like(model: TinyBertForClassification) -> dict[str, int]:
    """The configuration of a BERT with the toy's sizes.

    >>> config_like(TinyBertForClassification())["hidden_size"]
    32
    """
    return {
        "vocab_size": model.tok_emb.num_embeddings,
        "hidden_size": model.head.in_features,
        "num_hidden_layers": len(model.layers),
        "num_attention_heads": model.layers[0].attn.num_heads,
        "intermediate_size": model.layers[0].feed_forward[0].out_features,
        "max_position_embeddings": model.pos_emb.num_embeddings,
        "type_vocab_size": BERT_BASE["type_vocab_size"],
    }


def differences(theirs: Shapes, ours: Shapes) -> list[tuple[str, str, str]]:
    """The parameters that only one side has, or that have two shapes.

    Parameters of all layers stand in one row, under the name of layer ``*``.

    Returns:
        (name, shape in theirs, shape in ours) rows; "none" where there is none.

    >>> differences({"a.0.w": (2,), "a.1.w": (2,), "b": (3,)}, {"b": (3,), "c": (4,)})
    [('a.*.w', '(2,)', 'none'), ('c', 'none', '(4,)')]
    """
    rows = {}
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        if theirs.get(name) != ours.get(name):
            any_layer = re.sub(r"\.\d+\.", ".*.", name, count=1)
            shapes = (str(side.get(name, "none")) for side in (theirs, ours))
            rows[any_layer] = (any_layer, *shapes)
    return list(rows.values())
