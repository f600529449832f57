"""Where the parameters of a BERT sit, counted on its shapes without its weights.

Everything here is built on torch's "meta" device: a tensor there has a shape and a
dtype, and no memory. BERT-large is counted as fast as a toy.
"""

from collections.abc import Callable

import torch
from torch import nn

from bertbook.config import BertConfig
from bertbook.heads import BertForPreTraining
from bertbook.model import BertEmbeddings, BertLayer, BertModel
from bertbook.tiny import count_parameters


def without_weights(build: Callable[..., nn.Module], *sizes, **names) -> nn.Module:
    """Build a module whose tensors have shapes but no memory.

    Args:
        build: a module's class, or a function that builds one.
        sizes, names: what it is called with.

    Returns:
        the module, on the meta device. It can be counted, not run.

    Source: slide 7.

    >>> model = without_weights(BertModel, BertConfig.large())
    >>> model.embeddings.word_embeddings.weight.device
    device(type='meta')
    """
    with torch.device("meta"):
        return build(*sizes, **names)


def count_components(config: BertConfig) -> dict[str, int]:
    """Every parameter of the pretraining model once, by the part it belongs to.

    The decoder of the masked-LM head is the token table again (the same tensor), so
    it is counted there and nowhere else.

    Returns:
        component -> count, in the order in which a token meets them.

    Source: slide 7.

    >>> counts = count_components(BertConfig.base())
    >>> counts["token embeddings"], counts["pooler"]
    (23440896, 590592)
    >>> sum(counts.values())
    110106428
    """
    model = without_weights(BertForPreTraining, config)
    embeddings, predictions = model.bert.embeddings, model.cls["predictions"]
    parts = {
        "token embeddings": embeddings.word_embeddings,
        "position embeddings": embeddings.position_embeddings,
        "segment embeddings": embeddings.token_type_embeddings,
        "embedding LayerNorm": embeddings.LayerNorm,
        "layers": model.bert.encoder,
        "pooler": model.bert.pooler,
        "masked-LM transform": predictions.transform,
        "masked-LM bias": nn.ParameterList([predictions.bias]),
        "next-sentence head": model.cls["seq_relationship"],
    }
    counts = {name: count_parameters(part) for name, part in parts.items()}
    assert sum(counts.values()) == count_parameters(model)  # each exactly once
    return counts


def count_layer(config: BertConfig) -> dict[str, int]:
    """The parameters of one layer: attention, feed-forward, the two LayerNorms, all.

    Source: slide 7.

    >>> count_layer(BertConfig.base())["one layer"]
    7087872
    """
    layer = without_weights(BertLayer, config)
    norms = [part for part in layer.modules() if isinstance(part, nn.LayerNorm)]
    return {
        "attention": count_parameters(layer.attention["self"])
        + count_parameters(layer.attention["output"].dense),
        "feed-forward": count_parameters(layer.intermediate)
        + count_parameters(layer.output.dense),
        f"{len(norms)} LayerNorms": sum(count_parameters(norm) for norm in norms),
        "one layer": count_parameters(layer),
    }


def count_chain(config: BertConfig) -> dict[str, int]:
    """Five totals, each right for another question. All are "the size of BERT".

    Returns:
        what is counted -> count. The first leaves out what the lesson left out.

    Source: slide 7.

    >>> for what, count in count_chain(BertConfig.base()).items():
    ...     print(f"{count:12,} {what}")
     108,495,360 token embeddings and layers
     108,891,648 encoder without pooler
     109,482,240 encoder with pooler
     109,514,298 masked-LM model, tied, without pooler
     110,106,428 pretraining model, tied
    """
    counts = count_components(config)
    tables = ("position embeddings", "segment embeddings", "embedding LayerNorm")
    lesson = counts["token embeddings"] + counts["layers"]
    encoder = lesson + sum(counts[table] for table in tables)
    masked_lm = counts["masked-LM transform"] + counts["masked-LM bias"]
    return {
        "token embeddings and layers": lesson,
        "encoder without pooler": encoder,
        "encoder with pooler": encoder + counts["pooler"],
        "masked-LM model, tied, without pooler": encoder + masked_lm,
        "pretraining model, tied": sum(counts.values()),
    }


def dimensions(config: BertConfig) -> list[tuple[str, int, str]]:
    """A BERT's sizes, read off the module itself, with what each size means.

    Returns:
        (component, size, note) rows.

    Source: slide 7.

    >>> for component, size, note in dimensions(BertConfig.base())[:4]:
    ...     print(f"{component}: {size:,} ({note})")
    transformer layers: 12 (each with 2 LayerNorms)
    hidden dim H: 768 (width of every state)
    attention heads: 12 (768 / 12 = 64 features a head)
    FFN dim: 3,072 (4 x H)
    """
    model = without_weights(BertModel, config)
    layers = model.encoder["layer"]
    norms = [part for part in layers[0].modules() if isinstance(part, nn.LayerNorm)]
    hidden_size = model.embeddings.word_embeddings.embedding_dim
    num_heads = layers[0].attention["self"].num_heads
    widened = layers[0].intermediate["dense"].out_features
    positions = model.embeddings.position_embeddings
    learned = "learned" if positions.weight.requires_grad else "fixed"
    head_dim = f"{hidden_size} / {num_heads} = {hidden_size // num_heads}"
    return [
        (
            "transformer layers",
            len(layers),
            f"each with {len(norms)} LayerNorms",
        ),
        ("hidden dim H", hidden_size, "width of every state"),
        ("attention heads", num_heads, f"{head_dim} features a head"),
        ("FFN dim", widened, f"{widened / hidden_size:g} x H"),
        ("total params", count_parameters(model), "with the pooler"),
        ("max sequence length", positions.num_embeddings, f"{learned} positions"),
    ]


def embedding_sizes(config: BertConfig) -> dict[str, str]:
    """The three tables of the input embeddings and their shapes.

    Source: slide 9.

    >>> embedding_sizes(BertConfig.base())["position"]
    '512 x 768'
    """
    embeddings = without_weights(BertEmbeddings, config)
    tables = {
        "token": embeddings.word_embeddings,
        "position": embeddings.position_embeddings,
        "segment": embeddings.token_type_embeddings,
    }
    return {
        name: f"{table.num_embeddings:,} x {table.embedding_dim}"
        for name, table in tables.items()
    }
