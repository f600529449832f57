"""The sizes of a BERT, under the names of the public config.json."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BertConfig:
    """Every size and rate of a BERT. The defaults are bert-base-uncased.

    Args:
        vocab_size: V, different token ids.
        hidden_size: D, a multiple of num_attention_heads.
        num_hidden_layers: how many layers.
        num_attention_heads: H.
        intermediate_size: the width of the feed-forward network.
        max_position_embeddings: the longest sequence that has position embeddings.
        type_vocab_size: segments.
        hidden_dropout_prob: dropout after the embeddings and after each sublayer.
        attention_probs_dropout_prob: dropout on the attention weights.
        initializer_range: standard deviation of the initial weights.
        layer_norm_eps: what LayerNorm adds to the variance.
        pad_token_id: the id of padding. A lookup gives its token embedding no gradient;
            a masked-LM head that is tied to the table does.

    Raises:
        ValueError: if a size is not a positive int, hidden_size is not a multiple of
            num_attention_heads, a rate is outside [0, 1), or pad_token_id is not an id.

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
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0

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
