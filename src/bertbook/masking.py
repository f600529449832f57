"""Masked language modelling: what is hidden, what is asked, and the loss.

Shapes: B sequences, T tokens, V different token ids.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

SELECTION_RATE = 0.15  # of the candidates are selected: the model must predict them
MASK_SHARE = 0.8  # of the selected become [MASK]
RANDOM_SHARE = 0.1  # of the selected become a random piece; the rest stay
IGNORE_INDEX = (
    -100
)  # the label of what was not selected; torch's cross_entropy skips it


def mask_tokens(
    input_ids: Tensor,
    *,
    mask_token_id: int,
    vocab_size: int,
    special_token_ids: Iterable[int],
    generator: torch.Generator,
    probability: float = SELECTION_RATE,
) -> tuple[Tensor, Tensor]:
    """Select each candidate with the same probability, independently of the others.

    Args:
        input_ids: int64 or int32, any shape, usually (B, T). It is not changed.
        mask_token_id: the id of [MASK], one of special_token_ids.
        vocab_size: V; ids run from 0 to V - 1.
        special_token_ids: never selected, and never drawn as a random piece:
            [PAD], [CLS], [SEP], [MASK]. Every other id is a candidate.
        generator: where the random numbers come from, on the device of input_ids.
        probability: the chance of each candidate, between 0 and 1.

    Returns:
        (masked_ids, labels), both of the shape of input_ids. labels, int64, hold the
        original id where a token was selected, and IGNORE_INDEX everywhere else.

    Raises:
        TypeError: if input_ids is not a tensor of integers, an id is not an int,
            probability is not a number, or generator is not a torch.Generator.
        ValueError: if probability is not between 0 and 1, an id is outside [0, V),
            mask_token_id is not special, or every id is special.

    Source: slide 24; Devlin et al. 2019, section 3.1.

    >>> generator = torch.Generator().manual_seed(0)
    >>> masked_ids, labels = mask_tokens(
    ...     torch.tensor([[1, 5, 6, 7, 8, 9, 2]]), mask_token_id=3, vocab_size=10,
    ...     special_token_ids=[0, 1, 2, 3], generator=generator, probability=0.5)
    >>> labels
    tensor([[-100, -100,    6,    7,    8, -100, -100]])
    >>> masked_ids
    tensor([[1, 5, 3, 9, 3, 9, 2]])
    """
    if isinstance(probability, bool) or not isinstance(probability, float | int):
        raise TypeError(f"probability must be a number, got {probability!r}")
    if not 0 < probability < 1:
        raise ValueError(
            f"probability must be between 0 and 1, both excluded, got {probability}"
        )
    special = check_masking(
        input_ids, mask_token_id, vocab_size, special_token_ids, generator
    )
    draw = torch.rand(input_ids.shape, generator=generator, device=input_ids.device)
    selected = (draw < probability) & ~is_special(input_ids, special, vocab_size)
    return replace_selected(
        input_ids,
        selected,
        mask_token_id=mask_token_id,
        vocab_size=vocab_size,
        special=special,
        generator=generator,
    )


def mask_exactly(
    input_ids: Tensor,
    *,
    count: int,
    mask_token_id: int,
    vocab_size: int,
    special_token_ids: Iterable[int],
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Select exactly `count` candidates of each sequence, without replacement.

    Args:
        input_ids: int64 or int32, shape (B, T) or (T,). It is not changed.
        count: how many are selected in each sequence, at least 1.

    The other arguments, the returned pair and the errors are those of mask_tokens.

    Raises:
        ValueError: also if count is not a positive int, or a sequence has fewer
            candidates than that.

    Source: slide 24 (three of twenty); google-research/bert,
    create_pretraining_data.py.

    >>> input_ids = torch.tensor([[1, 5, 6, 7, 8, 2], [1, 5, 6, 2, 0, 0]])
    >>> masked_ids, labels = mask_exactly(
    ...     input_ids, count=2, mask_token_id=3, vocab_size=10,
    ...     special_token_ids=[0, 1, 2, 3], generator=torch.Generator().manual_seed(0))
    >>> (labels != IGNORE_INDEX).sum(dim=1)
    tensor([2, 2])
    """
    special = check_masking(
        input_ids, mask_token_id, vocab_size, special_token_ids, generator
    )
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ValueError(f"count must be a positive int, got {count!r}")
    if input_ids.dim() not in (1, 2):
        raise ValueError(
            f"input_ids must have shape (B, T) or (T,), got {tuple(input_ids.shape)}"
        )
    candidates = ~is_special(input_ids, special, vocab_size)
    fewest = candidates.sum(dim=-1)
    if (fewest < count).any():
        raise ValueError(
            f"count must be at most the candidates of each sequence, got {count} "
            f"where a sequence has {fewest.min().item()} tokens that are not special"
        )
    # The largest of independent numbers: a sample without replacement.
    draw = torch.rand(input_ids.shape, generator=generator, device=input_ids.device)
    positions = draw.masked_fill(~candidates, -1.0).topk(count, dim=-1).indices
    selected = torch.zeros_like(candidates).scatter(-1, positions, value=True)
    return replace_selected(
        input_ids,
        selected,
        mask_token_id=mask_token_id,
        vocab_size=vocab_size,
        special=special,
        generator=generator,
    )


def replace_selected(
    input_ids: Tensor,
    selected: Tensor,
    *,
    mask_token_id: int,
    vocab_size: int,
    special: Tensor,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Part the selected tokens: [MASK], a random piece, or the token itself.

    ONE number is drawn for each token, and its range is cut into three. Two draws
    (first "is it [MASK]?", then "is it random?") would give other shares.

    Args:
        input_ids: int64 or int32, any shape.
        selected: bool, the same shape.
        special: int64, shape (number of special ids,), sorted: never drawn.

    Returns:
        (masked_ids, labels), as mask_tokens does.

    Source: slide 24.

    >>> masked_ids, labels = replace_selected(
    ...     torch.tensor([5, 6, 7]), torch.tensor([False, True, True]),
    ...     mask_token_id=3, vocab_size=10, special=torch.tensor([0, 1, 2, 3]),
    ...     generator=torch.Generator().manual_seed(0))
    >>> masked_ids, labels
    (tensor([5, 3, 3]), tensor([-100,    6,    7]))
    """
    where = {"generator": generator, "device": input_ids.device}
    drawn = torch.randint(0, vocab_size - len(special), input_ids.shape, **where)
    draw = torch.rand(input_ids.shape, **where)
    # From here on, only the selected places are looked at: that is faster.
    places = selected.flatten().nonzero().squeeze(1)
    draw = draw.flatten().index_select(0, places)
    to_mask = places[draw < MASK_SHARE]
    to_random = places[(draw >= MASK_SHARE) & (draw < MASK_SHARE + RANDOM_SHARE)]
    original = input_ids.flatten()
    random_ids = ordinary_ids(drawn.flatten().index_select(0, to_random), special)
    masked_ids = original.index_fill(0, to_mask, mask_token_id)  # a new tensor
    masked_ids.index_copy_(0, to_random, random_ids.to(masked_ids.dtype))
    labels = torch.full_like(original, IGNORE_INDEX, dtype=torch.int64)
    labels.index_copy_(0, places, original.index_select(0, places).long())
    return masked_ids.view(input_ids.shape), labels.view(input_ids.shape)


def is_special(input_ids: Tensor, special: Tensor, vocab_size: int) -> Tensor:
    """Which tokens are special, by a table with an entry for each id of the vocabulary.

    One look-up a token, which is several times faster than comparing each with every
    special id, as torch.isin does.

    Args:
        input_ids: int64 or int32, any shape, in [0, vocab_size).
        special: int64, shape (number of special ids,).

    Returns:
        bool, the shape of input_ids.

    >>> is_special(torch.tensor([1, 5, 0]), torch.tensor([0, 1]), 6)
    tensor([ True, False,  True])
    """
    table = torch.zeros(vocab_size, dtype=torch.bool, device=input_ids.device)
    table.index_fill_(0, special, True)
    return table.index_select(0, input_ids.flatten()).view(input_ids.shape)


def ordinary_ids(ranks: Tensor, special: Tensor) -> Tensor:
    """The ids of the ordinary pieces with these ranks: rank 0 is the lowest such id.

    Args:
        ranks: int64, any shape.
        special: int64, shape (number of special ids,), sorted. They are stepped over.

    >>> ordinary_ids(torch.arange(5), torch.tensor([0, 1, 4]))
    tensor([2, 3, 5, 6, 7])
    """
    for token_id in special.tolist():
        ranks = ranks + (ranks >= token_id)
    return ranks


def check_masking(
    input_ids: Tensor,
    mask_token_id: int,
    vocab_size: int,
    special_token_ids: Iterable[int],
    generator: torch.Generator,
) -> Tensor:
    """Raise a clear error for unusable arguments (see mask_tokens).

    Returns:
        special_token_ids, sorted, as an int64 tensor on the device of input_ids.

    >>> check_masking(torch.tensor([7]), 3, 5, [3], torch.Generator())
    Traceback (most recent call last):
    ValueError: input_ids holds 7; ids must be in [0, vocab_size) = [0, 5)
    """
    if not isinstance(input_ids, Tensor):
        raise TypeError(
            "input_ids must be a torch.Tensor, got "
            f"{type(input_ids).__name__}: use torch.tensor(input_ids)"
        )
    if input_ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"input_ids must be int64 or int32 token ids, got {input_ids.dtype}"
        )
    if not isinstance(generator, torch.Generator):
        raise TypeError(
            "generator must be a torch.Generator, such as "
            f"torch.Generator().manual_seed(0), got {type(generator).__name__}"
        )
    if not isinstance(special_token_ids, Iterable):
        raise TypeError(
            f"special_token_ids must be a list of ids, got {special_token_ids!r}"
        )
    special = list(special_token_ids)
    named = {"vocab_size": [vocab_size], "mask_token_id": [mask_token_id]}
    for name, ids in {**named, "special_token_ids": special}.items():
        for token_id in ids:
            if not isinstance(token_id, int) or isinstance(token_id, bool):
                raise TypeError(f"{name} must hold ints, got {token_id!r}")
    special = sorted(set(special))
    if vocab_size < 1:
        raise ValueError(f"vocab_size must be at least 1, got {vocab_size}")
    if mask_token_id not in special:
        raise ValueError(
            f"mask_token_id must be one of special_token_ids, got {mask_token_id} "
            f"and {special}: else [MASK] could be selected, or drawn as a random piece"
        )
    outside = [i for i in special if not 0 <= i < vocab_size]
    found = []
    lowest, highest = map(int, input_ids.aminmax()) if input_ids.numel() else (0, 0)
    if lowest < 0 or highest >= vocab_size:
        found = input_ids[(input_ids < 0) | (input_ids >= vocab_size)].tolist()
    for name, wrong in {"special_token_ids": outside, "input_ids": found}.items():
        if wrong:
            raise ValueError(
                f"{name} holds {wrong[0]}; "
                f"ids must be in [0, vocab_size) = [0, {vocab_size})"
            )
    if len(special) == vocab_size:
        raise ValueError(
            f"special_token_ids holds all {vocab_size} ids of the vocabulary: "
            "no ordinary piece is left to select or to draw"
        )
    return torch.tensor(special, device=input_ids.device)


def masked_lm_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy over the selected positions, and over nothing else.

    If nothing is selected, there is nothing to learn: the loss is 0 and so is every
    gradient. (torch's own mean over nothing is NaN, which would spoil all weights.)

    Args:
        logits: floating point, shape (..., V).
        labels: int64, shape (...): an id in [0, V), or IGNORE_INDEX.

    Returns:
        the loss in nats, a scalar of the dtype of logits.

    Raises:
        TypeError: if logits are not floating point, or labels not int64.
        ValueError: if the shapes do not fit, or a label is neither an id nor
            IGNORE_INDEX.

    Source: slides 24 and 26; Devlin et al. 2019, section 3.1.

    >>> logits = torch.zeros(1, 3, 4)
    >>> masked_lm_loss(logits, torch.tensor([[IGNORE_INDEX, 2, 0]]))  # log of four
    tensor(1.3863)
    >>> masked_lm_loss(logits, torch.full((1, 3), IGNORE_INDEX))
    tensor(0.)
    """
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating point, got {logits.dtype}")
    if labels.dtype != torch.int64:
        raise TypeError(f"labels must be int64, got {labels.dtype}")
    if logits.dim() < 1 or logits.shape[:-1] != labels.shape:
        raise ValueError(
            "logits must have shape (..., V) and labels the same without V, "
            f"got {tuple(logits.shape)} and {tuple(labels.shape)}"
        )
    selected = labels != IGNORE_INDEX
    targets = labels[selected]
    wrong = targets[(targets < 0) | (targets >= logits.shape[-1])].tolist()
    if wrong:
        raise ValueError(
            f"labels holds {wrong[0]}; a label is an id in [0, {logits.shape[-1]}) "
            f"or IGNORE_INDEX = {IGNORE_INDEX}"
        )
    if selected.all():  # then a copy of the largest tensor of the whole step is spared
        chosen = logits.reshape(-1, logits.shape[-1])
    else:
        chosen = logits[selected]
    total = F.cross_entropy(chosen, targets, reduction="sum")
    return total / max(len(targets), 1)


@torch.no_grad()
def evaluate_masked_lm(
    model: nn.Module,
    input_ids: Tensor,
    *,
    seed: int,
    mask_token_id: int,
    vocab_size: int,
    special_token_ids: Iterable[int],
    probability: float = SELECTION_RATE,
) -> tuple[float, float]:
    """Masked-LM loss and accuracy on a fixed masking of held-out text.

    The text is masked here too: on unmasked text a model could copy. The seed makes
    the masking the same at every call, so that two results can be compared. The model
    is put into evaluation mode for the measurement. Afterwards each of its modules has
    the mode that it had before, even if the model raises an error.

    Args:
        model: maps ids (B, T) to logits (B, T, V).
        input_ids: int64 or int32, shape (B, T), not masked.
        seed: of the masking.

    The other arguments are those of mask_tokens.

    Returns:
        (loss, accuracy) over the selected positions. The loss is in nats; its
        exponential is not a perplexity.

    Raises:
        ValueError: if the masking selects nothing, and the errors of mask_tokens.

    Source: slide 24.

    >>> model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10))
    >>> text = torch.full((2, 50), 7)
    >>> settings = {"mask_token_id": 3, "vocab_size": 10, "special_token_ids": [3]}
    >>> once = evaluate_masked_lm(model, text, seed=0, **settings)
    >>> once == evaluate_masked_lm(model, text, seed=0, **settings)
    True
    """
    masked_ids, labels = mask_tokens(
        input_ids,
        mask_token_id=mask_token_id,
        vocab_size=vocab_size,
        special_token_ids=special_token_ids,
        generator=torch.Generator(input_ids.device).manual_seed(seed),
        probability=probability,
    )
    selected = labels != IGNORE_INDEX
    if not selected.any():
        raise ValueError(
            "no token of input_ids was selected: the accuracy over nothing is not "
            "defined; give more text, or another seed"
        )
    modes = [(module, module.training) for module in model.modules()]
    try:
        logits = model.eval()(masked_ids)
    finally:
        for module, was_training in modes:  # a frozen part may have been in eval
            module.training = was_training
    right = logits.argmax(dim=-1)[selected] == labels[selected]
    return masked_lm_loss(logits, labels).item(), right.double().mean().item()
