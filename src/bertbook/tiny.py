"""The toy: a BERT-shaped classifier that is small enough to type in one sitting.

It keeps BERT's plan (embeddings, bidirectional self-attention, feed-forward, a
head on position 0) and leaves out what makes BERT large or robust. What it leaves
out is listed in the project chapter. The order in which the layers are created is
part of the recipe: each draws its first weights from the same random stream.
"""

import math

import torch
from torch import Tensor, nn

from bertbook.attention import attention_weights


class TinySelfAttn(nn.Module):
    """Multi-head self-attention without any mask: every token sees every token.

    Args:
        hidden_size: D, a multiple of num_heads.
        num_heads: H. Each head works on D/H features.

    Raises:
        ValueError: if hidden_size is not a positive multiple of num_heads.

    Source: slide 52.

    >>> attn = TinySelfAttn(hidden_size=32, num_heads=4)
    >>> output, weights = attn(torch.zeros(2, 6, 32))
    >>> output.shape, weights.shape
    (torch.Size([2, 6, 32]), torch.Size([2, 4, 6, 6]))
    """

    def __init__(self, hidden_size: int = 32, num_heads: int = 4):
        super().__init__()
        if num_heads < 1 or hidden_size < 1 or hidden_size % num_heads:
            raise ValueError(
                "hidden_size must be a positive multiple of num_heads, "
                f"got {hidden_size} and {num_heads}"
            )
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size, bias=False)
        self.out = nn.Linear(hidden_size, hidden_size)

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, D/H): each head gets its own slice of the features."""
        B, T, _ = x.shape
        return x.view(B, T, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, T, D) float -> output (B, T, D) and weights (B, H, T, T)."""
        if x.dim() != 3 or x.shape[-1] != self.out.in_features:
            raise ValueError(
                f"x must have shape (B, T, {self.out.in_features}), "
                f"got {tuple(x.shape)}"
            )
        query, key, value = (
            self.split_heads(part) for part in self.qkv(x).chunk(3, dim=-1)
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.head_dim)
        weights = attention_weights(scores)  # no mask: both directions
        heads = weights @ value  # (B, H, T, D/H)
        merged = heads.transpose(1, 2).flatten(start_dim=2)  # (B, T, D)
        return self.out(merged), weights


class TinyLayer(nn.Module):
    """One pre-LN Transformer layer: x + attention(LN(x)), then x + feed_forward(LN(x)).

    BERT itself is post-LN: it normalises after each addition instead of before each
    sublayer.

    Source: slide 53.

    >>> TinyLayer(hidden_size=32, num_heads=4)(torch.zeros(2, 6, 32)).shape
    torch.Size([2, 6, 32])
    """

    def __init__(self, hidden_size: int = 32, num_heads: int = 4):
        super().__init__()
        self.attn = TinySelfAttn(hidden_size, num_heads)
        self.feed_forward = nn.Sequential(
            nn.Linear(hidden_size, 4 * hidden_size),
            nn.GELU(),  # the exact one (erf)
            nn.Linear(4 * hidden_size, hidden_size),
        )
        self.norm1 = nn.LayerNorm(hidden_size)
        self.norm2 = nn.LayerNorm(hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) float -> (B, T, D)."""
        attended, _ = self.attn(self.norm1(x))
        x = x + attended
        return x + self.feed_forward(self.norm2(x))


class TinyBertForClassification(nn.Module):
    """Embeddings, num_layers TinyLayers, and a linear head on position 0.

    Args:
        vocab_size: V; ids run from 0 to V - 1.
        hidden_size: D, a multiple of num_heads.
        num_heads: H.
        num_layers: how many TinyLayers, at least 1.
        max_len: the longest sequence that has position embeddings.
        num_classes: how many logits a sequence gets.

    Raises:
        ValueError: if a size is not positive, or hidden_size is not a multiple of
            num_heads.

    Source: slides 35, 53 and 56.

    >>> model = TinyBertForClassification()
    >>> model(torch.zeros(3, 10, dtype=torch.long)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        vocab_size: int = 100,
        hidden_size: int = 32,
        num_heads: int = 4,
        num_layers: int = 2,
        max_len: int = 16,
        num_classes: int = 2,
    ):
        super().__init__()
        sizes = {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "num_layers": num_layers,
            "max_len": max_len,
            "num_classes": num_classes,
        }
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} must be at least 1, got {size}")
        self.tok_emb = nn.Embedding(vocab_size, hidden_size)
        self.pos_emb = nn.Embedding(max_len, hidden_size)
        self.layers = nn.ModuleList(
            TinyLayer(hidden_size, num_heads) for _ in range(num_layers)
        )
        self.head = nn.Linear(hidden_size, num_classes)

    def encode(self, input_ids: Tensor) -> Tensor:
        """Token ids (B, T) -> hidden states (B, T, D). Errors as for forward."""
        self.check_input_ids(input_ids)
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        x = self.tok_emb(input_ids) + self.pos_emb(positions)
        for layer in self.layers:
            x = layer(x)
        return x

    def forward(self, input_ids: Tensor) -> Tensor:
        """Token ids (B, T) -> logits (B, num_classes), read from position 0.

        Raises:
            TypeError: if input_ids is not int64 or int32.
            ValueError: if its shape is not (B, T) with 1 <= T <= max_len, or an id
                is outside [0, vocab_size).
        """
        x = self.encode(input_ids)
        return self.head(x[:, 0, :])

    def check_input_ids(self, input_ids: Tensor) -> None:
        """Raise the error that names what is wrong with input_ids (see forward)."""
        vocab_size, max_len = (
            self.tok_emb.num_embeddings,
            self.pos_emb.num_embeddings,
        )
        if input_ids.dtype not in (torch.int64, torch.int32):
            raise TypeError(
                f"input_ids must be int64 or int32 token ids, got {input_ids.dtype}"
            )
        if input_ids.dim() != 2:
            raise ValueError(
                f"input_ids must have shape (B, T), got {tuple(input_ids.shape)}"
            )
        if not 1 <= input_ids.shape[1] <= max_len:
            raise ValueError(
                f"input_ids has {input_ids.shape[1]} tokens a sequence; "
                f"this model takes 1 to max_len = {max_len}"
            )
        if input_ids.numel() and not (
            input_ids.min() >= 0 and input_ids.max() < vocab_size
        ):
            bad = input_ids[(input_ids < 0) | (input_ids >= vocab_size)][0].item()
            raise ValueError(
                f"input_ids holds {bad}; "
                f"ids must be in [0, vocab_size) = [0, {vocab_size})"
            )


def count_parameters(module: nn.Module) -> int:
    """How many numbers the optimiser may change.

    >>> count_parameters(nn.Linear(32, 2))
    66
    """
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def parameter_table(model: TinyBertForClassification) -> list[tuple[str, int]]:
    """Where the parameters sit: a (component, count) row a part, and the total.

    Source: slide 35.

    >>> for component, count in parameter_table(TinyBertForClassification()):
    ...     print(f"{component:22} {count:6,}")
    tok_emb (100 x 32)      3,200
    pos_emb (16 x 32)         512
    2 x TinyLayer          25,216
    head Linear(32, 2)         66
    total                  28,994
    """

    def shape(embedding: nn.Embedding) -> str:
        return f"({embedding.num_embeddings} x {embedding.embedding_dim})"

    return [
        (f"tok_emb {shape(model.tok_emb)}", count_parameters(model.tok_emb)),
        (f"pos_emb {shape(model.pos_emb)}", count_parameters(model.pos_emb)),
        (f"{len(model.layers)} x TinyLayer", count_parameters(model.layers)),
        (
            f"head Linear({model.head.in_features}, {model.head.out_features})",
            count_parameters(model.head),
        ),
        ("total", count_parameters(model)),
    ]
