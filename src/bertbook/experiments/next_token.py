"""To the left only: the causal mask in a batch, the next token's loss, and writing.

A model that reads both sides has no output for "what comes next". It can be asked for
it with a [MASK] behind the text. Shapes: B sequences, T tokens, L tokens on the left,
V token ids.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from bertbook.experiments.distributed import Batch
from bertbook.experiments.evaluation import evaluating, loss_and_hits
from bertbook.masking import IGNORE_INDEX, is_special
from bertbook.pretraining_data import PretrainingExample
from bertbook.wordpiece import SpecialIds

NextLogits = Callable[[Tensor], Tensor]  # the left (B, L) -> logits (B, V)


def causal_attention(attention_mask: Tensor) -> Tensor:
    """A row for each token: it sees itself and what is left of it, but no padding.

    Args:
        attention_mask: int64, (B, T): 1 = real token, 0 = padding.

    Returns:
        int64, (B, T, T), for BertModel's argument of the same name.

    Source: slide 18.

    >>> causal_attention(torch.tensor([[1, 1, 0]]))
    tensor([[[1, 0, 0],
             [1, 1, 0],
             [1, 1, 0]]])
    """
    tokens = attention_mask.shape[1]
    left = torch.ones(tokens, tokens, dtype=torch.int64, device=attention_mask.device)
    return attention_mask[:, None, :] * left.tril()


def left_only(batch: Batch) -> Batch:
    """The same batch, in which no token sees what is right of it.

    >>> ones = torch.ones(1, 2, dtype=torch.int64)
    >>> left_only({"attention_mask": ones})["attention_mask"]
    tensor([[[1, 0],
             [1, 1]]])
    """
    return {**batch, "attention_mask": causal_attention(batch["attention_mask"])}


def ordinary_tokens(ids: Tensor, special: SpecialIds) -> Tensor:
    """Which tokens a model may be asked for: those that mask_tokens may select.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> ordinary_tokens(torch.tensor([2, 5, 1, 3]), special)
    tensor([False,  True, False, False])
    """
    marks = torch.tensor(special.for_masking["special_token_ids"], device=ids.device)
    return ~is_special(ids, marks, special.vocab_size)


def ask_for_next(
    examples: Sequence[PretrainingExample], special: SpecialIds
) -> list[PretrainingExample]:
    """The same examples, with the next token as the label of each token.

    [SEP] is not asked for: where sequences are full, its place gives it away. So the
    tokens that are asked for are those that a masked model may be asked for.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> ids = torch.tensor([2, 5, 6, 3])
    >>> [asked] = ask_for_next([PretrainingExample(ids, torch.zeros(4))], special)
    >>> asked.labels
    tensor([   5,    6, -100, -100])
    """
    asked = []
    for example in examples:
        labels = torch.full_like(example.input_ids, IGNORE_INDEX)
        following = example.input_ids[1:]
        ordinary = ordinary_tokens(following, special)
        labels[:-1] = following.masked_fill(~ordinary, IGNORE_INDEX)
        asked.append(example._replace(labels=labels))
    return asked


def next_by_reading(model: nn.Module, left: Tensor) -> Tensor:
    """What a causal model says at the last token: logits (B, V) of what follows.

    >>> from bertbook.experiments.small import new_small_model
    >>> model = new_small_model(seed=0, vocab_size=9)
    >>> next_by_reading(model, torch.ones(2, 3).long()).shape
    torch.Size([2, 9])
    """
    mask = causal_attention(torch.ones_like(left))
    output = model.bert(left, attention_mask=mask)
    return model.cls["predictions"](output.last_hidden_state[:, -1])


def next_by_filling(
    model: nn.Module,
    left: Tensor,
    *,
    special: SpecialIds,
    ending: str = "sep",
    causal: bool = False,
) -> Tensor:
    """What a masked model says at a [MASK] behind the text: logits (B, V).

    Args:
        left: int64, (B, L).
        ending: what stands behind the [MASK]; see with_gap.
        causal: whether tokens see their left side only.

    >>> from bertbook.experiments.small import new_small_model
    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> model = new_small_model(seed=0, vocab_size=9)
    >>> next_by_filling(model, torch.ones(2, 3).long(), special=special).shape
    torch.Size([2, 9])
    """
    max_length = model.config.max_position_embeddings
    ids = with_gap(left, special, ending=ending, max_length=max_length)
    mask = torch.ones_like(ids)
    mask = causal_attention(mask) if causal else mask
    output = model.bert(ids, attention_mask=mask)
    return model.cls["predictions"](output.last_hidden_state[:, left.shape[1]])


def with_gap(
    left: Tensor, special: SpecialIds, *, ending: str, max_length: int
) -> Tensor:
    """The left side, a [MASK] behind it, and an ending.

    Args:
        left: int64, (B, L).
        ending: "nothing"; "sep": [SEP]; "masks": a [MASK] at every place that is left,
            and [SEP], so that the sequence is as long as those of the training.
        max_length: tokens of the longest sequence.

    Raises:
        ValueError: if the result would be too long, or the ending is another one.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> left = torch.tensor([[2, 7]])
    >>> for ending in ("nothing", "sep", "masks"):
    ...     print(with_gap(left, special, ending=ending, max_length=6).tolist())
    [[2, 7, 4]]
    [[2, 7, 4, 3]]
    [[2, 7, 4, 4, 4, 3]]
    """
    rest = max_length - left.shape[1] - 2
    endings = {
        "nothing": [],
        "sep": [special.sep],
        "masks": [special.mask] * rest + [special.sep],
    }
    if ending not in endings:
        raise ValueError(f"ending must be one of {[*endings]}, got {ending!r}")
    right = torch.tensor([special.mask, *endings[ending]], device=left.device)
    if left.shape[1] + len(right) > max_length:
        raise ValueError(
            f"left must leave room for [MASK] and its ending in {max_length} tokens, "
            f"but has {left.shape[1]}"
        )
    return torch.cat([left, right.expand(len(left), -1)], dim=1)


def next_token_loss(
    model: nn.Module, next_logits: NextLogits, ids: Tensor, special: SpecialIds
) -> tuple[float, float]:
    """Loss and accuracy of each ordinary token, given nothing but what is left of it.

    Args:
        model: is put into evaluation mode.
        next_logits: asks the model; it is given nothing else than the left side.
        ids: int64, (B, T), [CLS] first and [SEP] last, without padding.

    Returns:
        (loss in nats, accuracy), means over all tokens that are asked for.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> ids = torch.tensor([[2, 5, 6, 3]])
    >>> loss, accuracy = next_token_loss(
    ...     nn.Identity(), lambda left: torch.zeros(len(left), 9), ids, special)
    >>> round(loss, 4), accuracy  # log of nine
    (2.1972, 0.0)
    """
    sums = torch.zeros(3, dtype=torch.float64)
    with evaluating(model):
        for length in range(1, ids.shape[1] - 1):
            following = ids[:, length]
            asked = ordinary_tokens(following, special)
            logits = next_logits(ids[:, :length])
            sums += loss_and_hits(logits[asked], following[asked])
    loss, hits, count = sums.tolist()
    return loss / count, hits / count


def write_on(
    model: nn.Module,
    next_logits: NextLogits,
    prompts: Tensor,
    special: SpecialIds,
    *,
    count: int,
    generator: torch.Generator,
) -> Tensor:
    """Sample one token after the other, as the model weighs them (temperature 1).

    Args:
        model: is put into evaluation mode.
        next_logits: asks the model for the next token.
        prompts: int64, (B, L).
        count: how many tokens are written; special ones never.
        generator: on the CPU.

    Returns:
        int64, (B, L + count).

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> logits = torch.eye(9)[[7]] * 100  # always 7
    >>> write_on(nn.Identity(), lambda left: logits, torch.tensor([[2, 5]]), special,
    ...          count=2, generator=torch.Generator().manual_seed(0))
    tensor([[2, 5, 7, 7]])
    """
    every_id = torch.arange(special.vocab_size)
    never = ~ordinary_tokens(every_id, special)
    ids = prompts
    with evaluating(model):
        for _ in range(count):
            logits = next_logits(ids).float().cpu().masked_fill(never, -torch.inf)
            drawn = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator)
            ids = torch.cat([ids, drawn.to(ids.device)], dim=1)
    return ids
