"""Labels of tokens: the BIO scheme, the loss over labelled tokens, scores, spans."""

import torch
from torch import Tensor
from torch.nn import functional as F

from bertbook.masking import IGNORE_INDEX

TAGS = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")


def label_pieces(
    pieces: list[list[str]], tags: list[str], *, tag_names: tuple[str, ...] = TAGS
) -> tuple[list[str], list[int]]:
    """Write [CLS] and [SEP] around the pieces, and a label on each word's first piece.

    Args:
        pieces: the pieces of every word.
        tags: one tag a word, out of tag_names.
        tag_names: a tag's place in it is its label.

    Returns:
        the tokens, and one label a token: -100 on [CLS], [SEP] and later pieces.

    Raises:
        ValueError: if a word has no piece or no tag, or a tag is unknown.

    Source: the fine-tuning text; Devlin et al. 2019, section 5.3.

    >>> label_pieces([["ka", "##lo"], ["met"]], ["B-PER", "O"])
    (['[CLS]', 'ka', '##lo', 'met', '[SEP]'], [-100, 1, -100, 0, -100])
    """
    if len(pieces) != len(tags):
        raise ValueError(
            f"tags must hold one tag a word, {len(pieces)}, got {len(tags)}"
        )
    tokens, labels = ["[CLS]"], [IGNORE_INDEX]
    for word, tag in zip(pieces, tags, strict=True):
        if not word:
            raise ValueError("pieces holds a word without any piece")
        if tag not in tag_names:
            raise ValueError(f"tags must be out of {', '.join(tag_names)}, got {tag!r}")
        tokens += word
        labels += [tag_names.index(tag)] + [IGNORE_INDEX] * (len(word) - 1)
    return [*tokens, "[SEP]"], [*labels, IGNORE_INDEX]


def token_cross_entropy(
    logits: Tensor, labels: Tensor, *, num_labelled: int | None = None
) -> Tensor:
    """The summed cross-entropy of the labelled tokens, divided by how many there are.

    A big batch that is cut into micro-batches must be divided by the *big* batch's
    count: pass it as num_labelled with every part, and the parts sum to the whole.

    Args:
        logits: float, (B, T, C).
        labels: int64, (B, T); -100 is not counted.
        num_labelled: what to divide by; None: the labelled tokens of this batch.

    Returns:
        one number, in nats.

    Raises:
        TypeError: if logits are not floating point, or labels not int64.
        ValueError: if labels has another shape than (B, T), a label is neither a class
            nor -100, or nothing is labelled.

    Source: the fine-tuning text (which sums, over all tokens).

    >>> logits, labels = torch.zeros(1, 3, 4), torch.tensor([[-100, 2, -100]])
    >>> round(token_cross_entropy(logits, labels).item(), 4)  # log 4
    1.3863
    """
    if logits.dim() != 3 or labels.shape != logits.shape[:2]:
        raise ValueError(
            f"labels must have shape (B, T) and logits (B, T, C), "
            f"got {tuple(labels.shape)} and {tuple(logits.shape)}"
        )
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating point, got {logits.dtype}")
    if labels.dtype != torch.int64:
        raise TypeError(f"labels must be int64, got {labels.dtype}: use labels.long()")
    unknown = (labels < 0) | (labels >= logits.shape[-1])
    wrong = labels[unknown & (labels != IGNORE_INDEX)].tolist()
    if wrong:
        raise ValueError(
            f"labels holds {wrong[0]}; a label is a class in [0, {logits.shape[-1]}) "
            f"or {IGNORE_INDEX}"
        )
    if num_labelled is None:
        num_labelled = int((labels != IGNORE_INDEX).sum())
        if not num_labelled:
            raise ValueError(
                f"labels holds nothing but {IGNORE_INDEX}: "
                "the mean loss of no token is not defined"
            )
    if num_labelled < 1:
        raise ValueError(f"num_labelled must be at least 1, got {num_labelled}")
    total = F.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        ignore_index=IGNORE_INDEX,
        reduction="sum",
    )
    return total / num_labelled


def entities_of(tags: list[str]) -> set[tuple[str, int, int]]:
    """The entities of a sentence: (kind, first word, last word).

    An I- tag that continues nothing, or another kind, opens an entity of its own, as
    in the scorer of the CoNLL-2003 task.

    Raises:
        ValueError: if a tag is neither O, nor B- or I- and a kind.

    Source: the fine-tuning text.

    >>> sorted(entities_of(["B-PER", "I-PER", "O", "B-LOC"]))
    [('LOC', 3, 3), ('PER', 0, 1)]
    """
    found, kind, start = set(), None, 0
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, new_kind = tag.partition("-")
        if tag != "O" and (prefix not in ("B", "I") or not new_kind):
            raise ValueError(f"tags must be O, B-kind or I-kind, got {tag!r}")
        if kind and not (prefix == "I" and new_kind == kind):
            found.add((kind, start, i - 1))
            kind = None
        if tag != "O" and kind is None:
            kind, start = new_kind, i
    return found


def entity_f1(gold: list[list[str]], predicted: list[list[str]]) -> float:
    """The F1 of whole entities: right only if kind, first and last word all are.

    F1 is twice the right ones over the true ones plus the predicted ones.

    Args:
        gold, predicted: one list of tags a sentence, of equal lengths.

    Returns:
        between 0 and 1.

    Raises:
        ValueError: if the lengths differ, or there is no entity on either side.

    Source: the fine-tuning text (the CoNLL-2003 result is such a score).

    >>> entity_f1([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])
    0.0
    """
    if list(map(len, gold)) != list(map(len, predicted)):
        raise ValueError("predicted must have as many tags as gold, in every sentence")
    pairs = [
        (entities_of(g), entities_of(p)) for g, p in zip(gold, predicted, strict=True)
    ]
    right = sum(len(g & p) for g, p in pairs)
    counted = sum(len(g) + len(p) for g, p in pairs)
    if not counted:
        raise ValueError("gold and predicted hold no entity: F1 is not defined")
    return 2 * right / counted


def best_span(
    start_logits: Tensor,
    end_logits: Tensor,
    *,
    context: Tensor,
    max_tokens: int = 30,
    threshold: float = 0.0,
) -> tuple[int, int]:
    """The answer's first and last position, or (0, 0), which is [CLS]: no answer.

    A span scores its start logit plus its end logit. Only spans inside the context
    that do not end before they start are candidates.

    Args:
        start_logits, end_logits: float, (T,).
        context: bool, (T,): where an answer may lie; never at position 0.
        max_tokens: the longest answer.
        threshold: by how much the best span must beat the score of no answer.

    Raises:
        TypeError: if logits are not floating point.
        ValueError: if shapes differ or T is 0, a logit is not finite, max_tokens is not
            positive, or the context is empty, has a gap, or holds [CLS].

    Source: Devlin et al. 2019, sections 4.2 and 4.3.

    >>> start, end = torch.tensor([0.0, 1, 5, 0]), torch.tensor([0.0, 4, 0, 3])
    >>> context = torch.tensor([False, True, True, True])
    >>> best_span(start, end, context=context)  # 2 to 1 would score 9
    (2, 3)
    """
    if start_logits.dim() != 1 or not (
        start_logits.shape == end_logits.shape == context.shape
    ):
        raise ValueError(
            "start_logits, end_logits and context must have the same shape (T,), got "
            f"{tuple(start_logits.shape)}, {tuple(end_logits.shape)} and "
            f"{tuple(context.shape)}"
        )
    for name, logits in (("start_logits", start_logits), ("end_logits", end_logits)):
        if len(logits) == 0:
            raise ValueError(f"{name} is empty: give at least [CLS] and one token")
        if not logits.is_floating_point():
            raise TypeError(f"{name} must be floating point, got {logits.dtype}")
        if not logits.isfinite().all():
            raise ValueError(f"{name} must be finite, got {logits.tolist()}")
    if max_tokens < 1:
        raise ValueError(f"max_tokens must be at least 1, got {max_tokens}")
    context = context.bool()
    if context[0]:
        raise ValueError(
            "context must leave out position 0: [CLS] stands for no answer"
        )
    if not context.any():
        raise ValueError("context is empty: there is nowhere for an answer to lie")
    places = context.nonzero()
    if len(places) != places[-1] - places[0] + 1:
        raise ValueError("context must be one piece: an answer would run across a gap")
    scores = start_logits[:, None] + end_logits[None, :]  # (start, end)
    possible = (context[:, None] & context[None, :]).triu()  # end >= start
    possible = possible.tril(diagonal=max_tokens - 1)  # and not too far behind it
    best = int(scores.masked_fill(~possible, -torch.inf).argmax())
    start, end = divmod(best, len(context))
    no_answer = scores[0, 0]
    return (start, end) if scores[start, end] > no_answer + threshold else (0, 0)
