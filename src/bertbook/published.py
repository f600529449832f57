"""Names and shapes of the released BERT's parameters, for comparison with the toy's.

Written down from the public checkpoint's layout; nothing is allocated or downloaded.
"""

from math import prod

Shapes = dict[str, tuple[int, ...]]


def bert_parameter_shapes(
    *,
    vocab_size: int = 30522,
    hidden_size: int = 768,
    num_hidden_layers: int = 12,
    intermediate_size: int = 3072,
    max_position_embeddings: int = 512,
    type_vocab_size: int = 2,
    num_labels: int | None = None,
) -> Shapes:
    """Every parameter of a BERT encoder with pooler, by its name in the public checkpoint.

    The defaults are those of bert-base-uncased.

    Args:
        num_labels: None for BertModel; a number for BertForSequenceClassification,
            whose encoder names begin with "bert." and which adds a classifier.

    Returns:
        parameter name -> shape, in the order of the checkpoint.

    Raises:
        ValueError: if a size is not positive.

    Source: Devlin et al. 2019, section 3; google-research/bert, modeling.py.

    >>> shapes = bert_parameter_shapes()
    >>> shapes["embeddings.word_embeddings.weight"]
    (30522, 768)
    >>> count(shapes)
    109482240
    """
    sizes = {
        "vocab_size": vocab_size,
        "hidden_size": hidden_size,
        "num_hidden_layers": num_hidden_layers,
        "intermediate_size": intermediate_size,
        "max_position_embeddings": max_position_embeddings,
        "type_vocab_size": type_vocab_size,
        "num_labels": 1 if num_labels is None else num_labels,
    }
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")

    def linear(name: str, inputs: int, outputs: int) -> Shapes:
        return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}

    def layer_norm(name: str) -> Shapes:
        return {f"{name}.LayerNorm.weight": (hidden_size,), f"{name}.LayerNorm.bias": (hidden_size,)}

    shapes: Shapes = {
        "embeddings.word_embeddings.weight": (vocab_size, hidden_size),
        "embeddings.position_embeddings.weight": (max_position_embeddings, hidden_size),
        "embeddings.token_type_embeddings.weight": (type_vocab_size, hidden_size),
    }
    shapes |= layer_norm("embeddings")
    for i in range(num_hidden_layers):
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
    return {f"bert.{name}": shape for name, shape in shapes.items()} | linear("classifier", hidden_size, num_labels)


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

    >>> renamed({"layers.0.attn.out.bias": (32,), "layers.0.attn.qkv.weight": (96, 32)})
    {'bert.encoder.layer.0.attention.output.dense.bias': (32,), 'layers.0.attn.qkv.weight': (96, 32)}
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
