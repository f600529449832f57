"""The three families of Transformers, small, and an experiment that tells them apart.

Each model maps token ids (B, T) to states (B, T, D). Who may look at whom is not
read from the code: one token is replaced, and the states that change are noted.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.attention import attention, causal_mask
from bertbook.config import BertConfig
from bertbook.model import BertModel, BertSelfAttention, BertSublayerOutput

FULL, CAUSAL, MIXED = "bidirectional (full)", "causal (left-to-right)", "mixed"


class EncoderOnly(nn.Module):
    """BERT's family: every token looks at every token.

    Source: slide 5.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> EncoderOnly(config)(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.encoder = BertModel(config)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Token ids (B, T) -> states (B, T, D)."""
        return self.encoder(input_ids).last_hidden_state


class DecoderOnly(nn.Module):
    """GPT's family: the same stack of layers, under a causal mask.

    Source: slide 5.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> DecoderOnly(config)(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.decoder = BertModel(config)

    def forward(self, input_ids: Tensor) -> Tensor:
        """Token ids (B, T) -> states (B, T, D)."""
        states = self.decoder.embeddings(input_ids)
        mask = causal_mask(input_ids.shape[1]).to(states)  # its dtype and device
        for layer in self.decoder.encoder["layer"]:
            states = layer(states, mask=mask)
        return states


class CrossAttention(BertSelfAttention):
    """Attention from one text to another: what a decoder needs to read an encoder.

    The queries come from the text being written, the keys and values from the text
    being read. No mask: all of that text is there already.

    Source: slide 5; Vaswani et al. 2017, section 3.2.3.

    >>> config = BertConfig(hidden_size=8, num_attention_heads=2)
    >>> written, read = torch.zeros(1, 3, 8), torch.zeros(1, 5, 8)
    >>> CrossAttention(config)(written, memory=read).shape
    torch.Size([1, 3, 8])
    """

    def forward(self, hidden_states: Tensor, *, memory: Tensor) -> Tensor:
        """States (B, T_q, D) and memory (B, T_k, D) -> (B, T_q, D)."""
        query = self.split_heads(self.query(hidden_states))
        key = self.split_heads(self.key(memory))
        value = self.split_heads(self.value(memory))
        heads, _ = attention(query, key, value)
        return heads.transpose(1, 2).flatten(start_dim=2)


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention, feed-forward: three sublayers, not two.

    Source: slide 5; Vaswani et al. 2017, section 3.1.

    >>> config = BertConfig(hidden_size=8, num_attention_heads=2, intermediate_size=16)
    >>> written, read = torch.zeros(1, 3, 8), torch.zeros(1, 5, 8)
    >>> DecoderLayer(config)(written, memory=read).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.self_attention = BertSelfAttention(config)
        self.self_output = BertSublayerOutput(config.hidden_size, config)
        self.cross_attention = CrossAttention(config)
        self.cross_output = BertSublayerOutput(config.hidden_size, config)
        self.widen = nn.Linear(config.hidden_size, config.intermediate_size)
        self.output = BertSublayerOutput(config.intermediate_size, config)

    def forward(self, hidden_states: Tensor, *, memory: Tensor) -> Tensor:
        """States (B, T_q, D) and memory (B, T_k, D) -> states (B, T_q, D)."""
        mask = causal_mask(hidden_states.shape[1]).to(hidden_states)
        context = self.self_attention(hidden_states, mask=mask)
        states = self.self_output(context, hidden_states)
        states = self.cross_output(self.cross_attention(states, memory=memory), states)
        return self.output(F.gelu(self.widen(states)), states)


class EncoderDecoder(nn.Module):
    """The family of T5 and BART: an encoder reads one text, a decoder writes another.

    Args:
        config: the sizes of both stacks.
        source_len: how many of the input tokens are the text being read; the tokens
            after them are the text being written.

    Source: slide 5; Raffel et al. 2020; Lewis et al. 2020.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> EncoderDecoder(config, source_len=3)(torch.tensor([[1, 2, 3, 4, 5]])).shape
    torch.Size([1, 5, 8])
    """

    def __init__(self, config: BertConfig, *, source_len: int):
        super().__init__()
        self.source_len = source_len
        self.encoder = BertModel(config)
        self.decoder = nn.ModuleList(
            DecoderLayer(config) for _ in range(config.num_hidden_layers)
        )

    def forward(self, input_ids: Tensor) -> Tensor:
        """Ids of both texts (B, T) -> states (B, T, D): the encoder's, the decoder's.

        Raises:
            ValueError: if no token is left for the text being written.
        """
        if input_ids.shape[1] <= self.source_len:
            raise ValueError(
                f"input_ids must hold more than source_len = {self.source_len} tokens "
                f"a sequence, got {input_ids.shape[1]}"
            )
        source_ids = input_ids[:, : self.source_len]
        target_ids = input_ids[:, self.source_len :]
        memory = self.encoder(source_ids).last_hidden_state
        states = self.encoder.embeddings(target_ids)  # both texts share the tables
        for layer in self.decoder:
            states = layer(states, memory=memory)
        return torch.cat([memory, states], dim=1)


def influence(model: Callable[[Tensor], Tensor], input_ids: Tensor) -> Tensor:
    """Replace one token at a time: whose states change?

    Args:
        model: maps token ids (1, T) to states (1, T, D), without dropout.
        input_ids: int64, shape (1, T). The replacement of each id is the id after it.

    Returns:
        bool, shape (T, T): row i, column j is True if the state at position i changes
        when the token at position j is replaced.

    Raises:
        ValueError: if input_ids is not of shape (1, T), or two runs of the model on
            the same ids differ (then it is dropout that changes the states).

    Source: slide 5.

    >>> influence(lambda ids: ids[..., None].cumsum(dim=1), torch.tensor([[5, 6]]))
    tensor([[ True, False],
            [ True,  True]])
    """
    if input_ids.dim() != 2 or input_ids.shape[0] != 1:
        raise ValueError(
            f"input_ids must have shape (1, T), got {tuple(input_ids.shape)}"
        )
    with torch.no_grad():
        before = model(input_ids)
        if not torch.equal(before, model(input_ids)):
            raise ValueError(
                "model gives two results for the same ids: switch it to eval()"
            )
        columns = []
        for j in range(input_ids.shape[1]):
            replaced = input_ids.clone()
            replaced[0, j] += 1
            columns.append((model(replaced) != before).any(dim=-1)[0])
    return torch.stack(columns, dim=1)


def name_attention(influenced: Tensor) -> str:
    """What kind of attention a matrix of influences shows.

    Returns:
        "bidirectional (full)" if every state depends on every token, "causal
        (left-to-right)" if on none that comes later, "mixed" if on some of these.

    Raises:
        ValueError: if influenced is not a square bool matrix, or a state does not
            depend on its own token and on all earlier ones. None of the three families
            is blind there.

    Source: slide 5.

    >>> name_attention(torch.tensor([[True, False], [True, True]]))
    'causal (left-to-right)'
    """
    square = influenced.dim() == 2 and influenced.shape[0] == influenced.shape[1]
    if not square or influenced.dtype != torch.bool:
        raise ValueError(
            "influenced must be a bool matrix of shape (T, T), as influence gives it, "
            f"got {influenced.dtype} of shape {tuple(influenced.shape)}"
        )
    ahead = torch.ones_like(influenced).triu(diagonal=1)  # the token comes later
    if not influenced[~ahead].all():
        raise ValueError(
            "influenced must be True on and below the diagonal: in all three families "
            "a state depends on its own token and on all earlier ones"
        )
    if influenced.all():
        return FULL
    return MIXED if influenced[ahead].any() else CAUSAL


def name_component(model: nn.Module) -> str:
    """Which stacks a model has, by its modules called encoder and decoder.

    Raises:
        ValueError: if it has neither.

    Source: slide 6.

    >>> name_component(nn.ModuleDict({"decoder": nn.Identity()}))
    'decoder only'
    """
    children = dict(model.named_children())
    stacks = [name for name in ("encoder", "decoder") if name in children]
    if not stacks:
        raise ValueError(
            "model has neither an encoder nor a decoder; it has "
            f"{', '.join(children) or 'no modules'}"
        )
    return " + ".join(stacks) if len(stacks) == 2 else f"{stacks[0]} only"
