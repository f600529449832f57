"""Fill-mask: what a masked language model would write in the gap of a text."""

from typing import NamedTuple

import torch
from tokenizers import Tokenizer
from torch import nn


class Guess(NamedTuple):
    """A piece, and how probable the model finds it.

    >>> Guess("rain", 0.25).piece
    'rain'
    """

    piece: str
    probability: float


def fill_mask(
    model: nn.Module, tokenizer: Tokenizer, text: str, *, top: int = 5
) -> list[Guess]:
    """The most probable pieces for the gap of a text, the best one first.

    Args:
        model: a BertForPreTraining or BertForMaskedLM, in evaluation mode.
        tokenizer: the one that the model was trained with.
        text: holds [MASK] once.
        top: how many pieces, from 1 to V.

    Raises:
        ValueError: if the text does not hold [MASK] once, top is out of range, the
            tokenizer is another model's, or a part of the model is in training mode
            (its dropout would make the answer a draw).

    Source: slide 24; Devlin et al. 2019, section 3.1.

    >>> from bertbook.config import BertConfig
    >>> from bertbook.heads import BertForMaskedLM
    >>> from bertbook.tokenization import bert_tokenizer
    >>> from bertbook.wordpiece import BERT_SPECIAL_TOKENS
    >>> tokenizer = bert_tokenizer([*BERT_SPECIAL_TOKENS, "rain", "sun"])
    >>> config = BertConfig(vocab_size=7, hidden_size=8, num_attention_heads=2)
    >>> model = BertForMaskedLM(config).eval()
    >>> with torch.no_grad():
    ...     _ = model.cls["predictions"].bias.copy_(torch.arange(7.0))  # "sun" is 6
    >>> [guess.piece for guess in fill_mask(model, tokenizer, "rain [MASK]", top=2)]
    ['sun', 'rain']
    """
    encoded = tokenizer.encode(text)
    gaps = [i for i, piece in enumerate(encoded.tokens) if piece == "[MASK]"]
    if len(gaps) != 1:
        raise ValueError(f"text must hold [MASK] once, got {len(gaps)} in {text!r}")
    vocab_size = tokenizer.get_vocab_size()
    if model.config.vocab_size != vocab_size:
        raise ValueError(
            f"tokenizer has {vocab_size} pieces and model {model.config.vocab_size}: "
            "give the tokenizer that the model was trained with"
        )
    if top not in range(1, vocab_size + 1):
        raise ValueError(f"top must be from 1 to V = {vocab_size}, got {top}")
    if any(part.training for part in model.modules()):
        raise ValueError("model must be in evaluation mode: call model.eval() first")
    with torch.inference_mode():
        states = model.bert(torch.tensor([encoded.ids])).last_hidden_state
        logits = model.cls["predictions"](states[0, gaps[0]])
        best = logits.softmax(dim=-1).topk(top)
    return [
        Guess(tokenizer.id_to_token(i), probability)
        for i, probability in zip(
            best.indices.tolist(), best.values.tolist(), strict=True
        )
    ]
