"""The sizes of a BERT, under the names of the public config.json, and that file."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

# Fields of a public config.json that change nothing that this model computes: where
# the file is from, what other code keeps or prints, ids that only a tokenizer or a
# text generator reads, and sizes of parts that the released BERT never had.
NOT_COMPUTED = {
    "_name_or_path",
    "architectures",
    "bos_token_id",
    "chunk_size_feed_forward",
    "directionality",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "label2id",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "return_dict",
    "sep_token_id",
    "torch_dtype",
    "transformers_version",
    "use_cache",
    "xla_device",
}
# Fields that would change what is computed, with the only values this model knows.
ONLY = {
    "add_cross_attention": (False,),
    "classifier_dropout": (None,),  # the heads drop out at hidden_dropout_prob
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "position_embedding_type": ("absolute",),
    "problem_type": (None, "single_label_classification"),
    "pruned_heads": ({}, None),
    "tie_encoder_decoder": (False,),
    "tie_word_embeddings": (True,),
    "torchscript": (False,),
}


@dataclass(frozen=True)
class BertConfig:
    """Every size and rate of a BERT. The defaults are bert-base-uncased.

    Args:
        vocab_size: V, different token ids.
        hidden_size: D, a multiple of num_attention_heads.
        num_hidden_layers: how many layers.
        num_attention_heads: H.
        intermediate_size: the width of the feed-forward network.
        hidden_act: the activation there: "gelu", the exact one. No other is built.
        max_position_embeddings: the longest sequence that has position embeddings.
        type_vocab_size: segments.
        hidden_dropout_prob: dropout after the embeddings and after each sublayer.
        attention_probs_dropout_prob: dropout on the attention weights.
        initializer_range: standard deviation of the initial weights.
        layer_norm_eps: what LayerNorm adds to the variance.
        pad_token_id: the id of padding. A lookup gives its token embedding no gradient;
            a masked-LM head that is tied to the table does.
        id2label: the names of a classifier's classes, from 0; None for other models.

    Raises:
        ValueError: if a size is not a positive int, hidden_size is not a multiple of
            num_attention_heads, a rate is outside [0, 1), pad_token_id is not an id,
            or hidden_act or id2label is not as described.

    Source: Devlin et al. 2019, section 3; google-research/bert, modeling.py.

    >>> config = BertConfig.base()
    >>> config.hidden_size // config.num_attention_heads
    64
    >>> BertConfig(hidden_size=100)
    Traceback (most recent call last):
    ValueError: hidden_size must be a multiple of num_attention_heads = 12, got 100
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0
    id2label: dict[int, str] | None = None

    def __post_init__(self):
        check_config(self)

    @classmethod
    def base(cls) -> "BertConfig":
        """bert-base-uncased: 12 layers of 768 features and 12 heads."""
        return cls()

    @classmethod
    def large(cls) -> "BertConfig":
        """bert-large-uncased: 24 layers of 1024 features and 16 heads."""
        return cls(
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
        )

    @classmethod
    def mini(cls) -> "BertConfig":
        """The one this book pretrains: 4 layers of 256 features, 8192 tokens."""
        return cls(
            vocab_size=8192,
            hidden_size=256,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=1024,
        )

    @classmethod
    def from_dict(cls, published: dict) -> "BertConfig":
        """From config.json's fields; a missing one is BERT-base's."""
        check_published(published)
        known = {field.name for field in fields(cls)}
        sizes = {name: value for name, value in published.items() if name in known}
        if isinstance(sizes.get("id2label"), dict):  # in JSON, every key is a text
            sizes["id2label"] = {int(i): name for i, name in sizes["id2label"].items()}
        return cls(**sizes)

    @classmethod
    def from_json_file(cls, path: str | Path) -> "BertConfig":
        """From a public config.json; see check_published."""
        try:
            published = json.loads(Path(path).read_text("utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is not JSON: {error}") from error
        if not isinstance(published, dict):
            raise ValueError(f"{path} must hold one JSON object, got {published!r}")
        return cls.from_dict(published)

    def to_dict(self) -> dict:
        """The fields of a config.json that public code reads, too."""
        known = asdict(self)
        if self.id2label is None:
            del known["id2label"]
        else:
            known["label2id"] = {name: i for i, name in self.id2label.items()}
        return {"model_type": "bert", **known}


def check_published(published: dict) -> None:
    """Raise a clear error for a config.json of a model that this book does not build.

    Fields that change no number (NOT_COMPUTED) may hold anything. Fields that would
    change numbers (ONLY) must say what this model does. A field that is in neither list
    is refused: nobody knows what it would change.

    >>> check_published({"model_type": "bert", "use_cache": True})
    >>> check_published({"position_embedding_type": "relative_key"})
    Traceback (most recent call last):
    ValueError: position_embedding_type must be 'absolute', got 'relative_key': \
this book's BERT computes nothing else
    """
    kind = published.get("model_type", "bert")
    if kind != "bert":
        raise ValueError(f"model_type must be 'bert', got {kind!r}")
    for name, values in ONLY.items():
        if published.get(name, values[0]) not in values:
            raise ValueError(
                f"{name} must be {' or '.join(map(repr, values))}, "
                f"got {published[name]!r}: this book's BERT computes nothing else"
            )
    known = {field.name for field in fields(BertConfig)}
    unknown = sorted(set(published) - known - NOT_COMPUTED - ONLY.keys())
    if unknown:
        raise ValueError(
            f"the configuration has fields that are not known here: {unknown}; "
            "remove them if they do not change what the model computes"
        )


def check_config(config: BertConfig) -> None:
    """Raise a clear error for a size or rate that no model can have.

    >>> check_config(BertConfig(num_hidden_layers=0))
    Traceback (most recent call last):
    ValueError: num_hidden_layers must be a positive int, got 0
    """
    for name in (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
    ):
        size = getattr(config, name)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name} must be a positive int, got {size!r}")
    if config.hidden_size % config.num_attention_heads:
        raise ValueError(
            "hidden_size must be a multiple of num_attention_heads = "
            f"{config.num_attention_heads}, got {config.hidden_size}"
        )
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        rate = getattr(config, name)
        if not 0 <= rate < 1:
            raise ValueError(f"{name} must be in [0, 1), got {rate}")
    for name in ("initializer_range", "layer_norm_eps"):
        if not getattr(config, name) > 0:
            raise ValueError(
                f"{name} must be greater than 0, got {getattr(config, name)}"
            )
    pad = config.pad_token_id
    is_int = isinstance(pad, int) and not isinstance(pad, bool)
    if not is_int or pad not in range(config.vocab_size):
        raise ValueError(
            f"pad_token_id must be in [0, vocab_size) = [0, {config.vocab_size}), "
            f"got {pad}: give an int"
        )
    if config.hidden_act != "gelu":
        raise ValueError(
            f"hidden_act must be 'gelu' (the exact one, with erf), "
            f"got {config.hidden_act!r}: no other activation is built here"
        )
    labels = config.id2label
    if labels is not None and (
        not labels or sorted(labels) != list(range(len(labels)))
    ):
        raise ValueError(
            f"id2label must name the classes 0, 1, ... without a gap, got {labels!r}"
        )


def count_labels(config: BertConfig, num_labels: int | None) -> int:
    """How many classes a head has: num_labels, or as many as the configuration names.

    >>> count_labels(BertConfig(id2label={0: "no", 1: "yes"}), None)
    2
    >>> count_labels(BertConfig(), 0)
    Traceback (most recent call last):
    ValueError: num_labels must be a positive int, got 0
    """
    if num_labels is None and config.id2label is not None:
        return len(config.id2label)
    if (
        not isinstance(num_labels, int)
        or isinstance(num_labels, bool)
        or num_labels < 1
    ):
        raise ValueError(f"num_labels must be a positive int, got {num_labels!r}")
    return num_labels
