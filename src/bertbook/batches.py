"""From examples to batches: who shares a batch, padding, and when to mask.

Shapes: B sequences, T tokens.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Sampler

from bertbook.masking import IGNORE_INDEX, SELECTION_RATE, mask_tokens
from bertbook.pretraining_data import PretrainingExample
from bertbook.wordpiece import SpecialIds


class PretrainingCollator:
    """Makes one batch of examples: pads them, and masks what is not masked yet.

    Dynamic masking: the same example gets another masking in every batch. For static
    masking, give it examples that mask_once has made.

    Args:
        special: the ids of the special tokens.
        generator: what the maskings are drawn with; its state is what a resumed run
            has to restore.
        probability: the chance of each candidate to be selected.

    Source: slide 24; Liu et al. 2019, section 4.1.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> generator = torch.Generator().manual_seed(0)
    >>> collate = PretrainingCollator(special, generator=generator)
    >>> ids = torch.tensor([2, 5, 6, 3]), torch.tensor([2, 7, 3])
    >>> batch = collate([PretrainingExample(i, torch.zeros_like(i)) for i in ids])
    >>> list(batch)
    ['input_ids', 'token_type_ids', 'attention_mask', 'labels']
    >>> batch["attention_mask"]
    tensor([[1, 1, 1, 1],
            [1, 1, 1, 0]])
    """

    def __init__(
        self,
        special: SpecialIds,
        *,
        generator: torch.Generator,
        probability: float = SELECTION_RATE,
    ):
        self.special = special
        self.generator = generator
        self.probability = probability

    def __call__(self, examples: Sequence[PretrainingExample]) -> dict[str, Tensor]:
        """The arguments of BertForPreTraining, each int64 and (B, T).

        next_sentence_label, (B,), is there if the examples are pairs.

        Raises:
            ValueError: if there is no example, or only some of them are pairs, or only
                some of them are masked.
        """
        input_ids, token_type_ids, pair_labels, labels = columns(examples)
        ones = [torch.ones_like(ids) for ids in input_ids]
        batch = {
            "input_ids": padded(input_ids, self.special.pad),
            "token_type_ids": padded(token_type_ids, 0),
            "attention_mask": padded(ones, 0),
        }
        if labels is None:
            batch["input_ids"], batch["labels"] = mask_tokens(
                batch["input_ids"],
                generator=self.generator,
                probability=self.probability,
                **self.special.for_masking,
            )
        else:
            batch["labels"] = padded(labels, IGNORE_INDEX)
        if pair_labels is not None:
            batch["next_sentence_label"] = torch.tensor(pair_labels)
        return batch


def padded(rows: Sequence[Tensor], value: int) -> Tensor:
    """Rows (T,) of several lengths as one (B, longest T), filled up at their ends.

    >>> padded([torch.tensor([5, 6]), torch.tensor([7])], 0)
    tensor([[5, 6],
            [7, 0]])
    """
    return pad_sequence(rows, batch_first=True, padding_value=value)


def columns(examples: Sequence[PretrainingExample]) -> list[tuple | None]:
    """Each field of all the examples; None where no example has it.

    >>> columns([PretrainingExample("ids", "A", 0), PretrainingExample("IDS", "B", 1)])
    [('ids', 'IDS'), ('A', 'B'), (0, 1), None]
    """
    if not examples:
        raise ValueError("examples must hold at least one example")
    fields = []
    for name, values in zip(
        PretrainingExample._fields, zip(*examples, strict=True), strict=True
    ):
        missing = sum(value is None for value in values)
        if 0 < missing < len(values):
            raise ValueError(
                f"examples must all have {name}, or none: {missing} of {len(values)} "
                "have not"
            )
        fields.append(None if missing else values)
    return fields


def mask_once(
    examples: Sequence[PretrainingExample],
    *,
    special: SpecialIds,
    generator: torch.Generator,
    probability: float = SELECTION_RATE,
) -> list[PretrainingExample]:
    """Static masking: the same examples, masked once and for all.

    The released code does so with ten copies of the text, each masked differently. The
    masking of an example depends on the examples before it, and on no batch.

    Raises:
        ValueError: if there is no example, or one is masked already.

    Source: google-research/bert, create_pretraining_data.py; Liu et al. 2019,
    section 4.1.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=30)
    >>> generator = torch.Generator().manual_seed(0)
    >>> ids = torch.tensor([2, *range(5, 25), 3])
    >>> examples = [PretrainingExample(ids, torch.zeros_like(ids))]
    >>> [masked] = mask_once(examples, special=special, generator=generator)
    >>> masked.labels[masked.input_ids == special.mask]
    tensor([ 7, 16])
    """
    input_ids, token_type_ids, pair_labels, labels = columns(examples)
    if labels is not None:
        raise ValueError("examples must not be masked yet, but they have labels")
    lengths = [len(ids) for ids in input_ids]
    masked_ids, labels = mask_tokens(
        torch.cat(input_ids),
        generator=generator,
        probability=probability,
        **special.for_masking,
    )
    return [
        PretrainingExample(*fields)
        for fields in zip(
            masked_ids.split(lengths),
            token_type_ids,
            pair_labels or [None] * len(lengths),
            labels.split(lengths),
            strict=True,
        )
    ]


def evaluation_batches(
    examples: Sequence[PretrainingExample],
    *,
    special: SpecialIds,
    batch_size: int,
    seed: int,
    probability: float = SELECTION_RATE,
) -> list[dict[str, Tensor]]:
    """Every example once, with a masking that the seed alone decides.

    Two evaluations ask for the same tokens, whatever the batch size. The examples are
    sorted by length, which saves padding.

    Raises:
        ValueError: if batch_size is not positive, and the errors of mask_once.

    Source: slide 24.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> ids = torch.tensor([2, 5, 6, 3]), torch.tensor([2, 7, 3])
    >>> examples = [PretrainingExample(i, torch.zeros_like(i)) for i in ids]
    >>> batches = evaluation_batches(examples, special=special, batch_size=1, seed=0)
    >>> [tuple(batch["input_ids"].shape) for batch in batches]
    [(1, 3), (1, 4)]
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    generator = torch.Generator().manual_seed(seed)
    masked = mask_once(
        examples, special=special, generator=generator, probability=probability
    )
    masked.sort(key=lambda example: len(example.input_ids))
    collate = PretrainingCollator(special, generator=generator)  # draws nothing more
    return [
        collate(masked[start : start + batch_size])
        for start in range(0, len(masked), batch_size)
    ]


class LengthBuckets(Sampler[list[int]]):
    """Batches of examples of near lengths: little padding, and still a random order.

    Each epoch, the examples are shuffled and dealt into pools of pool_batches batches.
    Within a pool they are sorted by length and cut into batches; these come in random
    order. Every example comes exactly once an epoch. One batch may be smaller than the
    others.

    Args:
        lengths: the number of tokens of each example.
        batch_size: B, at least 1.
        generator: what an epoch is drawn with. Its state goes on from epoch to epoch.
        pool_batches: 1 is a plain shuffle; the more, the less padding, and the less
            random is who shares a batch.

    Raises:
        ValueError: if lengths is empty, or a number is not positive.

    >>> generator = torch.Generator().manual_seed(0)
    >>> buckets = LengthBuckets([9, 1, 8, 2, 9], batch_size=2, generator=generator)
    >>> list(buckets), len(buckets)
    ([[2, 4], [0], [1, 3]], 3)
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        batch_size: int,
        generator: torch.Generator,
        pool_batches: int = 50,
    ):
        if len(lengths) == 0:
            raise ValueError("lengths must hold the length of at least one example")
        for name, number in (
            ("batch_size", batch_size),
            ("pool_batches", pool_batches),
        ):
            if number < 1:
                raise ValueError(f"{name} must be at least 1, got {number}")
        self.lengths = torch.as_tensor(lengths)
        self.batch_size = batch_size
        self.generator = generator
        self.pool_batches = pool_batches

    def __len__(self) -> int:
        return -(-len(self.lengths) // self.batch_size)  # rounded up

    def __iter__(self) -> Iterator[list[int]]:
        shuffled = torch.randperm(len(self.lengths), generator=self.generator)
        batches = []
        for pool in shuffled.split(self.batch_size * self.pool_batches):
            by_length = pool[self.lengths[pool].argsort(stable=True)]
            batches += by_length.split(self.batch_size)
        order = torch.randperm(len(batches), generator=self.generator)
        for i in order.tolist():
            yield batches[i].tolist()


def padding_share(lengths: Sequence[int], batches: Sequence[Sequence[int]]) -> float:
    """The share of positions that are padding, if a batch is as long as its longest.

    Args:
        lengths: the number of tokens of each example.
        batches: the numbers of the examples of each batch.

    Raises:
        ValueError: if there is no batch.

    >>> padding_share([9, 1, 8, 2], [[0, 2], [1, 3]])
    0.09090909090909094
    >>> padding_share([9, 1, 8, 2], [[0, 1], [2, 3]])
    0.4117647058823529
    """
    if not batches:
        raise ValueError("batches must hold at least one batch")
    real = sum(lengths[i] for batch in batches for i in batch)
    positions = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    return 1 - real / positions
