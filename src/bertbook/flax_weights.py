"""The Flax exercise's encoder again, in torch, and how it takes over Flax's weights.

Built from the same attention as the rest of the book. It knows nothing of jax: it
reads a tree of arrays. Shapes: B sequences, T tokens, D features, H heads, F features
inside the feed-forward part, V token ids.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.attention import attention
from bertbook.heads import BertForPreTraining

FLAX_EPS = 1e-6  # what Flax's LayerNorm adds to the variance; torch's default is 1e-5


class PreNormBlock(nn.Module):
    """One pre-LN block with ReLU: the torch twin of the exercise's BERTBlock.

    Args:
        num_heads: H.
        d_model: D, a multiple of H.
        d_ff: F.

    Raises:
        ValueError: if d_model is not a positive multiple of num_heads.

    Source: the Flax exercise.

    >>> PreNormBlock(num_heads=2, d_model=4, d_ff=8)(torch.zeros(1, 3, 4)).shape
    torch.Size([1, 3, 4])
    """

    def __init__(self, num_heads: int, d_model: int, d_ff: int):
        super().__init__()
        if num_heads < 1 or d_model < 1 or d_model % num_heads:
            raise ValueError(
                "d_model must be a positive multiple of num_heads, "
                f"got {d_model} and {num_heads}"
            )
        self.num_heads = num_heads
        self.norm1 = nn.LayerNorm(d_model, eps=FLAX_EPS)
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.out = nn.Linear(d_model, d_model)
        self.norm2 = nn.LayerNorm(d_model, eps=FLAX_EPS)
        self.dense1 = nn.Linear(d_model, d_ff)
        self.dense2 = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """(B, T, D) and an additive mask -> (B, T, D)."""
        normed = self.norm1(x)
        query, key, value = (
            part(normed).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        heads, _ = attention(query, key, value, mask=mask)  # (B, H, T, D/H)
        x = x + self.out(heads.transpose(1, 2).flatten(start_dim=2))
        return x + self.dense2(F.relu(self.dense1(self.norm2(x))))


class PreNormEncoder(nn.Module):
    """Token and position embeddings, and num_layers blocks: the twin of MiniBERT.

    Args:
        vocab_size: V.
        max_len: how many positions have an embedding; in the exercise, exactly T.
        d_model: D, a multiple of num_heads.
        num_heads: H.
        d_ff: F.
        num_layers: L; 0 gives the embeddings themselves.

    Source: the Flax exercise.

    >>> encoder = PreNormEncoder(5, 3, 4, num_heads=2, d_ff=8, num_layers=1)
    >>> encoder(torch.tensor([[2, 0, 2]])).shape
    torch.Size([1, 3, 4])
    """

    def __init__(
        self,
        vocab_size: int,
        max_len: int,
        d_model: int,
        *,
        num_heads: int,
        d_ff: int,
        num_layers: int,
    ):
        super().__init__()
        self.tok_emb = nn.Embedding(vocab_size, d_model)
        self.pos_emb = nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList(
            PreNormBlock(num_heads, d_model, d_ff) for _ in range(num_layers)
        )

    def forward(self, input_ids: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Ids (B, T) and an additive mask -> hidden states (B, T, D).

        Raises:
            ValueError: if input_ids is not (B, T) with T from 1 to max_len.
        """
        max_len = self.pos_emb.num_embeddings
        if input_ids.dim() != 2 or not 1 <= input_ids.shape[1] <= max_len:
            raise ValueError(
                f"input_ids must have shape (B, T) with T from 1 to {max_len}, "
                f"got {tuple(input_ids.shape)}"
            )
        x = self.tok_emb(input_ids) + self.pos_emb.weight[: input_ids.shape[1]]
        for block in self.blocks:
            x = block(x, mask=mask)
        return x


def torch_from_flax(variables: Mapping[str, Any]) -> PreNormEncoder:
    """A torch encoder that computes what MiniBERT computes with these variables.

    Args:
        variables: what ``MiniBERT(...).init`` returns: {"params": tree of arrays}.

    Returns:
        the encoder, float32, with every array of the tree copied into it.

    Raises:
        ValueError: if a parameter is missing, left over, or of another shape.

    Source: the Flax exercise.

    >>> tables = {"Embed_0": {"embedding": np.eye(2)}, "pos_embed": np.zeros((3, 2))}
    >>> torch_from_flax({"params": tables})(torch.tensor([[0, 1, 0]]))[0, 1].tolist()
    [0.0, 1.0]
    """
    arrays = flattened(variables.get("params", {}))
    for name in ("Embed_0/embedding", "pos_embed"):
        if name not in arrays:
            raise ValueError(f"variables lacks {name!r}; is it MiniBERT's?")
    num_layers = len({n.split("/")[0] for n in arrays if n.startswith("BERTBlock_")})
    vocab_size, d_model = arrays["Embed_0/embedding"].shape
    query = arrays.get("BERTBlock_0/MultiHeadDotProductAttention_0/query/kernel")
    widened = arrays.get("BERTBlock_0/Dense_0/kernel")
    encoder = PreNormEncoder(
        vocab_size,
        len(arrays["pos_embed"]),
        d_model,
        num_heads=1 if query is None else query.shape[1],
        d_ff=1 if widened is None else widened.shape[1],
        num_layers=num_layers,
    )
    state = torch_state(arrays, d_model)
    found, wanted = set(state), set(encoder.state_dict())
    if found != wanted:
        raise ValueError(
            f"variables do not fit MiniBERT: missing {sorted(wanted - found)}, "
            f"left over {sorted(found - wanted)}"
        )
    try:
        encoder.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(f"variables hold an array of another shape: {error}") from None
    return encoder


FLAX_TO_TORCH = {
    "LayerNorm_0": "norm1",
    "MultiHeadDotProductAttention_0/query": "query",
    "MultiHeadDotProductAttention_0/key": "key",
    "MultiHeadDotProductAttention_0/value": "value",
    "MultiHeadDotProductAttention_0/out": "out",
    "LayerNorm_1": "norm2",
    "Dense_0": "dense1",
    "Dense_1": "dense2",
}


def torch_state(arrays: Mapping[str, np.ndarray], d_model: int) -> dict[str, Tensor]:
    """Flax's arrays under torch's names, and in torch's layout.

    Two things change. Flax multiplies x @ kernel, torch x @ weight.T: kernels are
    transposed. And Flax keeps heads apart, (D, H, D/H) in query, key and value and
    (H, D/H, D) in out: they are joined first, head by head.

    Args:
        arrays: {"BERTBlock_0/Dense_0/kernel": ...}, as flattened returns them.
        d_model: D.

    Returns:
        {"blocks.0.dense1.weight": ...}; unknown names stay as they are.

    Source: the Flax exercise.

    >>> kernel = {"BERTBlock_0/Dense_0/kernel": np.zeros((4, 8))}
    >>> {name: tensor.shape for name, tensor in torch_state(kernel, 4).items()}
    {'blocks.0.dense1.weight': torch.Size([8, 4])}
    """
    state = {}
    for name, array in arrays.items():
        block, _, rest = name.partition("/")
        layer, _, kind = rest.rpartition("/")
        if name == "Embed_0/embedding":
            name = "tok_emb.weight"
        elif name == "pos_embed":
            name = "pos_emb.weight"
        elif block.startswith("BERTBlock_") and layer in FLAX_TO_TORCH:
            if kind == "kernel":
                joined = (-1, d_model) if layer.endswith("/out") else (d_model, -1)
                array = array.reshape(array.shape if array.ndim == 2 else joined).T
            elif kind == "bias":
                array = array.reshape(-1)
            ending = "bias" if kind == "bias" else "weight"  # a norm's scale too
            number = block.removeprefix("BERTBlock_")
            name = f"blocks.{number}.{FLAX_TO_TORCH[layer]}.{ending}"
        state[name] = torch.tensor(np.array(array), dtype=torch.float32)
    return state


def flattened(tree: Mapping[str, Any], prefix: str = "") -> dict[str, np.ndarray]:
    """A tree of arrays as one dict, its keys joined by slashes.

    Source: the Flax exercise.

    >>> flattened({"Dense_0": {"bias": [1.0, 2.0]}})
    {'Dense_0/bias': array([1., 2.])}
    """
    flat = {}
    for name, branch in tree.items():
        if isinstance(branch, Mapping):
            flat |= flattened(branch, f"{prefix}{name}/")
        else:
            flat[prefix + name] = np.asarray(branch)
    return flat


def mini_beside_bert(
    mini: PreNormEncoder, bert: BertForPreTraining
) -> list[tuple[str, str, str]]:
    """Where the exercise's encoder and BERT differ, read off the modules themselves.

    Args:
        mini: with at least one block.
        bert: BERT with its pretraining heads.

    Returns:
        rows (part, in mini, in BERT).

    Source: the Flax exercise; Devlin et al. 2019; google-research/bert, modeling.py.

    >>> from bertbook.config import BertConfig
    >>> config = BertConfig(vocab_size=5, hidden_size=4, num_attention_heads=2)
    >>> mini = PreNormEncoder(5, 3, 4, num_heads=2, d_ff=8, num_layers=1)
    >>> mini_beside_bert(mini, BertForPreTraining(config))[0]
    ('activation', 'relu', 'gelu')
    """
    models = {"mini": mini, "bert": bert}
    layers = {"mini": mini.blocks[0], "bert": bert.bert.encoder.layer[0]}

    def activation(model: str) -> str:
        called = type(layers[model]).forward.__code__.co_names
        return next(name for name in ("relu", "gelu") if name in called)

    def norm_place(model: str) -> str:
        # Behind a LayerNorm, the features of a token have mean 0; a sum does not.
        d_model = mini.tok_emb.embedding_dim
        width = {"mini": d_model, "bert": bert.bert.config.hidden_size}[model]
        x = torch.arange(width, dtype=torch.float32).expand(1, 2, -1)
        mean = layers[model].eval()(x).mean(dim=-1)
        return "after the sum" if mean.abs().max() < 1e-3 else "before the sublayer"

    def having(part: str) -> list[str]:
        names = {
            model: [name for name, _ in module.named_modules() if part in name]
            for model, module in models.items()
        }
        return ["yes" if names[model] else "none" for model in models]

    def epsilons(model: str) -> str:
        norms = [m for m in models[model].modules() if isinstance(m, nn.LayerNorm)]
        return ", ".join(sorted({f"{norm.eps:.0e}" for norm in norms}))

    def dropout(model: str) -> str:
        rates = {m.p for m in models[model].modules() if isinstance(m, nn.Dropout)}
        return ", ".join(f"{rate:g}" for rate in sorted(rates)) or "none"

    def positions(model: str) -> str:
        table = {
            "mini": mini.pos_emb,
            "bert": bert.bert.embeddings.position_embeddings,
        }
        return f"{table[model].num_embeddings} rows"

    return [
        ("activation", *map(activation, models)),
        ("LayerNorm of a block", *map(norm_place, models)),
        ("segment embeddings", *having("token_type_embeddings")),
        ("embedding LayerNorm", *having("embeddings.LayerNorm")),
        ("dropout", *map(dropout, models)),
        ("epsilon of LayerNorm", *map(epsilons, models)),
        ("position table", *map(positions, models)),
        ("pooler", *having("pooler")),
        ("masked-LM head", *having("predictions")),
        ("next-sentence head", *having("seq_relationship")),
    ]
