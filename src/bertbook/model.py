"""BERT's encoder, as released: embeddings, post-LN layers, pooler.

Parts and parameters have the names of the public checkpoints, so a reader finds each
of them there again. Shapes: B sequences, T tokens, D features, H heads.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.attention import attention_weights, padding_mask
from bertbook.config import BertConfig
from bertbook.outputs import BertModelOutput
from bertbook.pretrained import BertPreTrainedModel


class BertEmbeddings(nn.Module):
    """Token + position + segment, then LayerNorm and dropout.

    Source: slide 9; Devlin et al. 2019, figure 2; modeling.py, embedding_postprocessor.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_attention_heads=2)
    >>> BertEmbeddings(config)(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.word_embeddings = nn.Embedding(
            config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id
        )
        # No padding index here: position 0 and segment 0 are real.
        self.position_embeddings = nn.Embedding(
            config.max_position_embeddings, config.hidden_size
        )
        self.token_type_embeddings = nn.Embedding(
            config.type_vocab_size, config.hidden_size
        )
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, input_ids: Tensor, *, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Token ids (B, T) -> (B, T, D). Without token_type_ids, all are segment 0.

        Raises:
            TypeError: if input_ids or token_type_ids is not int64 or int32.
            ValueError: if a shape is not (B, T) with T from 1 to
                max_position_embeddings, or an id has no row in its table.
        """
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        check_ids("input_ids", input_ids, self.word_embeddings)
        check_ids("token_type_ids", token_type_ids, self.token_type_embeddings)
        max_len = self.position_embeddings.num_embeddings
        if not 1 <= input_ids.shape[1] <= max_len:
            raise ValueError(
                f"input_ids has {input_ids.shape[1]} tokens a sequence; this model "
                f"takes 1 to max_position_embeddings = {max_len}"
            )
        if token_type_ids.shape != input_ids.shape:
            raise ValueError(
                f"token_type_ids must have the shape of input_ids, "
                f"{tuple(input_ids.shape)}, got {tuple(token_type_ids.shape)}"
            )
        positions = torch.arange(input_ids.shape[1], device=input_ids.device)
        summed = (
            self.word_embeddings(input_ids)
            + self.position_embeddings(positions)
            + self.token_type_embeddings(token_type_ids)
        )
        return self.dropout(self.LayerNorm(summed))


def check_ids(name: str, ids: Tensor, table: nn.Embedding) -> None:
    """Raise a clear error unless ids are (B, T) integers with a row in the table.

    >>> check_ids("input_ids", torch.tensor([[7]]), nn.Embedding(5, 2))
    Traceback (most recent call last):
    ValueError: input_ids holds 7; ids must be in [0, 5)
    """
    if ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} must be int64 or int32, got {ids.dtype}")
    if ids.dim() != 2:
        raise ValueError(f"{name} must have shape (B, T), got {tuple(ids.shape)}")
    outside = (ids < 0) | (ids >= table.num_embeddings)
    if not ids.is_meta and outside.any():
        raise ValueError(
            f"{name} holds {ids[outside][0].item()}; "
            f"ids must be in [0, {table.num_embeddings})"
        )


class BertSelfAttention(nn.Module):
    """Multi-head self-attention with biases on query, key and value.

    torch's scaled_dot_product_attention computes it fast, without ever holding all the
    weights. Asked for them, this part computes the formula as it is written.

    Source: slide 12; Devlin et al. 2019, section 3; modeling.py, attention_layer.

    >>> config = BertConfig(hidden_size=8, num_attention_heads=2)
    >>> BertSelfAttention(config)(torch.zeros(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def split_heads(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, D/H)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(
        self,
        hidden_states: Tensor,
        *,
        mask: Tensor | None = None,
        attentions: list[Tensor] | None = None,
    ) -> Tensor:
        """(B, T, D) and an additive mask -> the heads side by side, (B, T, D).

        The weights (B, H, T, T), before dropout, are appended to attentions, if given.
        """
        query, key, value = (
            self.split_heads(part(hidden_states))
            for part in (self.query, self.key, self.value)
        )
        if attentions is None:
            rate = self.dropout.p if self.dropout.training else 0.0
            heads = F.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, dropout_p=rate
            )
        else:
            scores = query @ key.transpose(-2, -1) / math.sqrt(key.shape[-1])
            weights = attention_weights(
                scores, None if mask is None else mask.to(scores.dtype)
            )
            attentions.append(weights)
            heads = self.dropout(weights) @ value
        return heads.transpose(1, 2).flatten(start_dim=2)


class BertSublayerOutput(nn.Module):
    """Dense, dropout, add the input, *then* LayerNorm: what makes BERT post-LN.

    It ends both halves of a layer. (The public PyTorch code has a class for each,
    BertSelfOutput and BertOutput, which do the same.)

    Source: slide 7; modeling.py, transformer_model.

    >>> config = BertConfig(hidden_size=8, num_attention_heads=2)
    >>> x = torch.zeros(1, 3, 8)
    >>> BertSublayerOutput(8, config)(x, x).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, in_features: int, config: BertConfig):
        super().__init__()
        self.dense = nn.Linear(in_features, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, computed: Tensor, residual: Tensor) -> Tensor:
        """What the sublayer computed, and its input (B, T, D) -> (B, T, D)."""
        return self.LayerNorm(residual + self.dropout(self.dense(computed)))


class BertLayer(nn.Module):
    """Self-attention and feed-forward, each added to its input and then normalised.

    Source: slide 7; Devlin et al. 2019, section 3.

    >>> config = BertConfig(hidden_size=8, num_attention_heads=2, intermediate_size=16)
    >>> BertLayer(config)(torch.zeros(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.attention = nn.ModuleDict(
            {
                "self": BertSelfAttention(config),
                "output": BertSublayerOutput(config.hidden_size, config),
            }
        )
        self.intermediate = nn.ModuleDict(
            {"dense": nn.Linear(config.hidden_size, config.intermediate_size)}
        )
        self.output = BertSublayerOutput(config.intermediate_size, config)

    def forward(self, hidden_states: Tensor, **masks) -> Tensor:
        """(B, T, D) -> (B, T, D); keywords as for BertSelfAttention."""
        context = self.attention["self"](hidden_states, **masks)
        attended = self.attention["output"](context, hidden_states)
        widened = F.gelu(self.intermediate["dense"](attended))  # the exact one (erf)
        return self.output(widened, attended)


class BertPooler(nn.Module):
    """tanh of a linear layer on the [CLS] state: what the released heads read.

    Source: Devlin et al. 2019, section 3.1; modeling.py.

    >>> config = BertConfig(hidden_size=8, num_attention_heads=2)
    >>> BertPooler(config)(torch.zeros(2, 3, 8)).shape
    torch.Size([2, 8])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """(B, T, D) -> (B, D), from position 0 only."""
        return torch.tanh(self.dense(hidden_states[:, 0]))


class BertModel(BertPreTrainedModel):
    """Embeddings, layers and pooler: the encoder that pretraining trains.

    Without add_pooling_layer there is no pooler, and pooler_output is None: as in the
    public code, the heads that read every position have none.

    Source: slide 7; Devlin et al. 2019, section 3; modeling.py, BertModel.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=2,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> model = BertModel(config)
    >>> output = model(torch.tensor([[1, 2, 3]]))
    >>> output.last_hidden_state.shape, output.pooler_output.shape
    (torch.Size([1, 3, 8]), torch.Size([1, 8]))
    """

    def __init__(self, config: BertConfig, *, add_pooling_layer: bool = True):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        layers = nn.ModuleList(
            BertLayer(config) for _ in range(config.num_hidden_layers)
        )
        self.encoder = nn.ModuleDict({"layer": layers})
        self.pooler = BertPooler(config) if add_pooling_layer else None
        initialize(self, std=config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        *,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_attentions: bool = False,
    ) -> BertModelOutput:
        """Token ids (B, T) -> hidden states (B, T, D) and the pooled output (B, D).

        Args:
            input_ids: int64 or int32, shape (B, T).
            attention_mask: shape (B, T): 1 = real token, 0 = padding. None: all real.
                Or (B, T, T), as in the public code: row by row, at which tokens a token
                may look.
            token_type_ids: shape (B, T): 0 = sentence A, 1 = B. None: all 0.
            output_attentions: compute attention by its plain formula, and return the
                weights of every layer, (B, H, T, T), before dropout.

        Raises:
            TypeError, ValueError: see BertEmbeddings and padding_mask.
        """
        hidden_states = self.embeddings(input_ids, token_type_ids=token_type_ids)
        mask = None
        if attention_mask is not None:
            batch, tokens = input_ids.shape
            if attention_mask.shape not in ((batch, tokens), (batch, tokens, tokens)):
                raise ValueError(
                    "attention_mask must have the shape of input_ids, "
                    f"{(batch, tokens)}, or a row for each token, "
                    f"{(batch, tokens, tokens)}, got {tuple(attention_mask.shape)}"
                )
            mask = padding_mask(attention_mask).to(hidden_states.dtype)
            if attention_mask.all():  # where nothing is hidden, nothing is added
                mask = None
        attentions = [] if output_attentions else None
        for layer in self.encoder["layer"]:
            hidden_states = layer(hidden_states, mask=mask, attentions=attentions)
        return BertModelOutput(
            hidden_states,
            self.pooler(hidden_states) if self.pooler is not None else None,
            tuple(attentions) if output_attentions else None,
        )

    def resize_token_embeddings(self, vocab_size: int) -> None:
        """Give the token table so many rows: the first stay, new ones are drawn anew.

        The table is a new tensor: an optimizer must be built after this.
        """
        old = self.embeddings.word_embeddings
        self.config = replace(self.config, vocab_size=vocab_size)
        table = nn.Embedding(
            vocab_size, old.embedding_dim, padding_idx=old.padding_idx
        ).to(old.weight)
        initialize(table, std=self.config.initializer_range)
        kept = min(vocab_size, old.num_embeddings)
        with torch.no_grad():
            table.weight[:kept] = old.weight[:kept]
        table.weight.requires_grad_(old.weight.requires_grad)
        self.embeddings.word_embeddings = table


def initialize(module: nn.Module, *, std: float) -> None:
    """Normal weights of that standard deviation, zero biases; LayerNorm keeps 1 and 0.

    Source: modeling.py, create_initializer (there truncated at two deviations).

    >>> linear = nn.Linear(100, 100)
    >>> initialize(linear, std=0.02)
    >>> linear.bias.abs().max().item()
    0.0
    """
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=std)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.Embedding) and part.padding_idx is not None:
            with torch.no_grad():
                part.weight[part.padding_idx].zero_()
