"""What the heads of the book's BERT look at, before its pretraining and after it.

Nothing is trained here: the weights are those that ``pretrain`` has kept. Shapes: L
layers, H heads, B sequences, T tokens, A tokens that are asked.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from bertbook.experiments.evaluation import evaluating
from bertbook.experiments.pretrain import SEED, new_pretraining_model
from bertbook.experiments.pretraining_text import (
    MAX_LENGTH,
    PretrainingText,
    whole_text,
)
from bertbook.experiments.recording import FollowUp, Numbers
from bertbook.experiments.results import RESULTS
from bertbook.heads import BertForPreTraining
from bertbook.pretraining_data import PretrainingExample

MEASURED_EACH = 10  # held-out example: some of each address

Profile = dict[str, Tensor]  # by what is looked at: a share for each head, (L, H)


def profile(
    weights: Tensor, input_ids: Tensor, *, cls_token_id: int, sep_token_id: int
) -> Profile:
    """How much of its weight a token gives, on average, to itself, a neighbour, ...

    Asked are the tokens between two others of their segment: each of them has a
    previous and a next token that is no mark. So no token looked at counts twice.

    Args:
        weights: of all layers and heads, floating point, shape (L, H, B, T, T).
        input_ids: shape (B, T), without padding.
        cls_token_id, sep_token_id: the marks.

    Returns:
        the mean shares "itself", "previous", "next", "cls", "sep" (all of them) and
        "others", which sum to 1, and the mean "distance" in tokens; each (L, H).

    Raises:
        ValueError: if the shapes do not fit, or no token can be asked.

    Source: Clark et al. 2019, section 3.

    >>> input_ids = torch.tensor([[2, 7, 8, 9, 3]])  # 8 is asked
    >>> weights = torch.zeros(1, 1, 1, 5, 5)
    >>> weights[..., 2, :] = torch.tensor([0.1, 0.6, 0.0, 0.1, 0.2])
    >>> found = profile(weights, input_ids, cls_token_id=2, sep_token_id=3)
    >>> {name: round(share.item(), 4) for name, share in found.items()}
    {'itself': 0.0, 'previous': 0.6, 'next': 0.1, 'cls': 0.1, 'sep': 0.2, \
'others': 0.0, 'distance': 1.3}
    """
    batch, tokens = input_ids.shape
    if weights.dim() != 5 or weights.shape[2:] != (batch, tokens, tokens):
        raise ValueError(
            f"weights must have shape (L, H, {batch}, {tokens}, {tokens}) for these "
            f"input_ids, got {tuple(weights.shape)}"
        )
    is_cls, is_sep = input_ids == cls_token_id, input_ids == sep_token_id
    plain = ~(is_cls | is_sep)
    asked = F.pad(plain[:, :-2] & plain[:, 1:-1] & plain[:, 2:], (1, 1))  # (B, T)
    if not asked.any():
        raise ValueError("input_ids must hold a segment of at least three tokens")
    sequence, position = asked.nonzero(as_tuple=True)  # (A,) each
    offset = torch.arange(tokens) - position[:, None]  # (A, T)
    looked_at = {
        "itself": offset == 0,
        "previous": offset == -1,
        "next": offset == 1,
        "cls": is_cls[sequence],
        "sep": is_sep[sequence],
    }
    looked_at["others"] = ~torch.stack([*looked_at.values()]).any(dim=0)
    looked_at["distance"] = offset.abs()
    rows = weights[:, :, asked]  # (L, H, A, T)
    return {
        name: torch.einsum("lhat,at->lh", rows, what.to(rows.dtype)) / len(position)
        for name, what in looked_at.items()
    }


def weights_of_heads(
    model: BertForPreTraining, examples: Sequence[PretrainingExample]
) -> Tensor:
    """The weights of all heads, (L, H, B, T, T), for examples of one length.

    >>> from bertbook.config import BertConfig
    >>> model = BertForPreTraining(BertConfig(
    ...     vocab_size=9, hidden_size=8, num_hidden_layers=3, num_attention_heads=2))
    >>> ids = torch.tensor([2, 7, 8, 3])
    >>> example = PretrainingExample(ids, torch.zeros_like(ids))
    >>> weights_of_heads(model, [example]).shape
    torch.Size([3, 2, 1, 4, 4])
    """
    with evaluating(model):
        output = model.bert(
            torch.stack([example.input_ids for example in examples]),
            token_type_ids=torch.stack(
                [example.token_type_ids for example in examples]
            ),
            output_attentions=True,
        )
    return torch.stack(output.attentions).transpose(1, 2)


def full_examples(text: PretrainingText) -> list[PretrainingExample]:
    """Every tenth held-out example, if it is full; nothing in it is masked.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> {len(example.input_ids) for example in full_examples(rain_text())}
    {64}
    """
    some = text.held_out[::MEASURED_EACH]
    return [example for example in some if len(example.input_ids) == MAX_LENGTH]


def measure_profiles(
    text: PretrainingText, pretrained: BertForPreTraining
) -> dict[str, Profile]:
    """The profiles of a pretrained model, of the one it began as, and of even weights.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> text = rain_text()
    >>> model = new_pretraining_model(text.tokenizer, seed=1)
    >>> [found["sep"].shape for found in measure_profiles(text, model).values()]
    [torch.Size([4, 4]), torch.Size([4, 4]), torch.Size([1, 1])]
    """
    examples = full_examples(text)
    input_ids = torch.stack([example.input_ids for example in examples])
    untrained = new_pretraining_model(text.tokenizer, seed=SEED)
    weights = {
        "pretrained": weights_of_heads(pretrained, examples),
        "untrained": weights_of_heads(untrained, examples),
        "uniform": torch.ones(1, 1, len(examples), MAX_LENGTH, MAX_LENGTH) / MAX_LENGTH,
    }
    return {
        name: profile(of_model, input_ids, **text.special.for_packing)
        for name, of_model in weights.items()
    }


def describe_profiles(
    text: PretrainingText, pretrained: BertForPreTraining
) -> dict[str, Any]:
    """The values of the result: of each profile, what each head of each layer gives.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> text = rain_text()
    >>> model = new_pretraining_model(text.tokenizer, seed=1)
    >>> describe_profiles(text, model)["uniform"]["sep"]  # two of 64 tokens
    [[0.03125]]
    """
    return {
        "sequences": len(full_examples(text)),
        "length": MAX_LENGTH,
        **{
            model: {
                what: [
                    [round(share, 6) for share in layer] for layer in shares.tolist()
                ]
                for what, shares in found.items()
            }
            for model, found in measure_profiles(text, pretrained).items()
        },
    }


def mean_shares(text: PretrainingText, pretrained: BertForPreTraining) -> Numbers:
    """What all heads together give, which is quickly measured anew.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> text = rain_text()
    >>> model = new_pretraining_model(text.tokenizer, seed=1)
    >>> mean_shares(text, model)["uniform itself"]  # one of 64 tokens
    0.015625
    """
    return {
        f"{model} {what}": round(shares.mean().item(), 6)
        for model, found in measure_profiles(text, pretrained).items()
        for what, shares in found.items()
    }


def kept_model() -> BertForPreTraining:
    """The book's BERT, with the weights that ``pretrain`` has kept.

    Raises:
        FileNotFoundError: if there are none yet.

    >>> callable(kept_model)
    True
    """
    return BertForPreTraining.from_pretrained(RESULTS / "pretrain")


EXPERIMENT = FollowUp(
    "attention_profile",
    seeds=[SEED],
    runs={},
    summarize=lambda logs: describe_profiles(whole_text(), kept_model()),
    recompute=lambda folder: mean_shares(whole_text(), kept_model()),
    reads=("pretrain",),
)
