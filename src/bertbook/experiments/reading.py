"""What the pretrained BERT uses of what it reads: asked again, with something changed.

No model is trained. The weights are those that ``pretrain`` has kept, and the text is
what it has held out. Asked are: the neighbours of a gap in another order; fewer of
them; frequent and rare pieces; and pairs of sentences that follow each other in another
way than in training.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from bertbook.baselines import piece_shares
from bertbook.batches import padded
from bertbook.corpus import hold_out, load_addresses
from bertbook.experiments.distributed import Batch
from bertbook.experiments.evaluation import evaluating
from bertbook.experiments.pretraining_text import (
    EVALUATION_BATCH_SIZE,
    MAX_LENGTH,
    Documents,
    PretrainingText,
    encode_addresses,
    held_out_batches,
    whole_text,
)
from bertbook.experiments.recording import FollowUp, Numbers
from bertbook.experiments.results import RESULTS
from bertbook.experiments.small import asked_three_ways, measure_ways
from bertbook.heads import BertForPreTraining
from bertbook.masking import IGNORE_INDEX
from bertbook.pairs import IS_NEXT, NOT_NEXT, SentencePair
from bertbook.pretraining_data import pair_examples
from bertbook.wordpiece import SpecialIds

SEED = 0
EVERY = 4  # held-out example is asked: enough to know two digits
REACHES = (0, 1, 2, 4, 8, 16)  # tokens on each side that are shown
RANKS = (10, 100, 1000)  # most frequent pieces, and all others
PAIRS = 1000  # of each kind


def shuffle_around(
    batch: Batch, special: SpecialIds, *, generator: torch.Generator
) -> Batch:
    """The same batch; what is not asked for has changed places, within its sequence.

    What is asked for, and the marks, stay where they are.

    >>> special = SpecialIds(0, 1, 2, 3, 4, vocab_size=9)
    >>> batch = {"input_ids": torch.tensor([[2, 5, 6, 4, 7, 8, 3]]),
    ...          "labels": torch.tensor([[-100, -100, -100, 5, -100, -100, -100]])}
    >>> generator = torch.Generator().manual_seed(1)
    >>> shuffle_around(batch, special, generator=generator)["input_ids"]
    tensor([[2, 6, 8, 4, 7, 5, 3]])
    """
    marks = torch.tensor(special.for_masking["special_token_ids"])
    shuffled = batch["input_ids"].clone()
    moved = ~torch.isin(shuffled, marks) & (batch["labels"] == IGNORE_INDEX)
    for ids, moves in zip(shuffled, moved, strict=True):
        order = torch.randperm(int(moves.sum()), generator=generator)
        ids[moves] = ids[moves][order]
    return {**batch, "input_ids": shuffled}


def ask_once(batch: Batch, *, generator: torch.Generator) -> Batch:
    """The same batch, in which at most one token of each sequence is asked for.

    >>> batch = {"labels": torch.tensor([[-100, 5, 6], [-100, -100, 7]])}
    >>> ask_once(batch, generator=torch.Generator().manual_seed(0))["labels"]
    tensor([[-100,    5, -100],
            [-100, -100,    7]])
    """
    labels = batch["labels"]
    draw = torch.rand(labels.shape, generator=generator)
    draw = draw.masked_fill(labels == IGNORE_INDEX, -1.0)
    one = draw.argmax(dim=1, keepdim=True)
    once = torch.full_like(labels, IGNORE_INDEX)
    return {**batch, "labels": once.scatter(1, one, labels.gather(1, one))}


def show_near(batch: Batch, *, reach: int) -> Batch:
    """The same batch; nobody sees a token further than `reach` from the one asked for.

    Args:
        batch: with at most one token asked for in a sequence; see ask_once.
        reach: tokens on each side.

    >>> batch = {"attention_mask": torch.ones(1, 6, dtype=torch.int64),
    ...          "labels": torch.tensor([[-100, -100, 5, -100, -100, -100]])}
    >>> show_near(batch, reach=1)["attention_mask"]
    tensor([[0, 1, 1, 1, 0, 0]])
    """
    asked = (batch["labels"] != IGNORE_INDEX).long().argmax(dim=1, keepdim=True)
    places = torch.arange(batch["labels"].shape[1])
    near = (places - asked).abs() <= reach
    return {**batch, "attention_mask": batch["attention_mask"] * near}


def measure_context(
    model: nn.Module,
    batches: Sequence[Batch],
    standing: dict[str, list[Batch]],
    special: SpecialIds,
) -> Numbers:
    """Loss and accuracy at the same masked tokens, as the text around them changes.

    Args:
        model: a BertForPreTraining.
        batches: masked as BERT does it.
        standing: the same, asked_three_ways.
        special: the ids that stay where they are.

    Returns:
        of the text as it is (whole), with its other tokens in another order (shuffled),
        and with a gap, the token itself or a random piece wherever a token is asked for
        (mask, same, random). Then of one gap a sequence: with all around it (once), and
        with what is near (reach_0, ...). Under names such as whole_loss.

    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> from bertbook.experiments.pretrain import new_pretraining_model
    >>> text = rain_text()
    >>> model = new_pretraining_model(text.tokenizer, seed=0)
    >>> batches = held_out_batches(text)
    >>> standing = asked_three_ways(batches, text.special)
    >>> found = measure_context(model, batches, standing, text.special)
    >>> [name for name in found if name.endswith("loss")][:4]
    ['whole_loss', 'shuffled_loss', 'mask_loss', 'same_loss']
    """
    generator = torch.Generator().manual_seed(SEED)
    once = [ask_once(batch, generator=generator) for batch in standing["mask"]]
    ways = {
        "whole": batches,
        "shuffled": [shuffle_around(b, special, generator=generator) for b in batches],
        **standing,
        "once": once,
        **{
            f"reach_{reach}": [show_near(batch, reach=reach) for batch in once]
            for reach in REACHES
        },
    }
    return {
        name: number
        for name, number in measure_ways(model, ways).items()
        if not name.startswith("nsp")
    }


def guesses_and_answers(
    model: nn.Module, batches: Sequence[Batch]
) -> tuple[Tensor, Tensor]:
    """What the model finds most probable wherever it is asked, and what stood there.

    >>> from bertbook.experiments.small import new_small_model
    >>> batch = {"input_ids": torch.tensor([[2, 4, 3]]),
    ...          "labels": torch.tensor([[-100, 5, -100]])}
    >>> guesses_and_answers(new_small_model(seed=0, vocab_size=9), [batch])[1]
    tensor([5])
    """
    guesses, answers = [], []
    with evaluating(model):
        for batch in batches:
            asked = batch["labels"] != IGNORE_INDEX
            inputs = {
                name: batch[name]
                for name in ("input_ids", "attention_mask", "token_type_ids")
                if name in batch
            }
            states = model.bert(**inputs).last_hidden_state[asked]
            guesses.append(model.cls["predictions"](states).argmax(dim=-1))
            answers.append(batch["labels"][asked])
    return torch.cat(guesses), torch.cat(answers)


def repeated_share(model: nn.Module, batches: Sequence[Batch]) -> float:
    """How often the model's best guess is what stands in the place that is asked for.

    >>> from bertbook.experiments.small import new_small_model
    >>> batch = {"input_ids": torch.tensor([[2, 4, 3]]),
    ...          "labels": torch.tensor([[-100, 5, -100]])}
    >>> repeated_share(new_small_model(seed=0, vocab_size=9), [batch])
    0.0
    """
    guesses, _ = guesses_and_answers(model, batches)
    shown = [batch["input_ids"][batch["labels"] != IGNORE_INDEX] for batch in batches]
    return (guesses == torch.cat(shown)).double().mean().item()


def measure_ranks(guesses: Tensor, answers: Tensor, shares: Tensor) -> Numbers:
    """How often the frequent and the rare pieces are asked for, guessed, and guessed
    rightly.

    Args:
        guesses, answers: ids, of one shape.
        shares: how frequent each piece is in the training text.

    Returns:
        by the largest rank of its pieces: top_10_asked, top_10_guessed (shares of all
        that is asked) and top_10_right (share of those asked), and so on; and of all
        further pieces, others_asked, others_guessed and others_right.

    >>> ids = torch.arange(2000)
    >>> shares = (2000.0 - ids) / ids.sum()  # id 0 is the most frequent
    >>> found = measure_ranks(ids * 0, ids, shares)
    >>> found["top_10_asked"], found["top_10_right"], found["others_guessed"]
    (0.005, 0.1, 0.0)
    """
    rank = shares.argsort(descending=True).argsort()
    found = {}
    lowest = 0
    for name, highest in (*((f"top_{r}", r) for r in RANKS), ("others", len(shares))):
        asked, guessed = (
            (rank[ids] >= lowest) & (rank[ids] < highest) for ids in (answers, guesses)
        )
        found[f"{name}_asked"] = asked.double().mean().item()
        found[f"{name}_guessed"] = guessed.double().mean().item()
        found[f"{name}_right"] = (guesses == answers)[asked].double().mean().item()
        lowest = highest
    return found


def sentence_pairs(
    documents: Documents, *, count: int, generator: torch.Generator
) -> dict[str, list[SentencePair]]:
    """Pairs of single sentences, of four kinds; the first sentences are the same.

    Args:
        documents: at least two, with at least four sentences in one of them.
        count: pairs of each kind.
        generator: where the random numbers come from.

    Returns:
        "next": a sentence and the next one; "backwards": the same two, the later one
        first; "same address": the second is from another place of the document; "other
        address": it is from another document.

    Raises:
        ValueError: if there are too few documents, or sentences.

    >>> documents = [[[i] for i in range(10, 15)], [[i] for i in range(20, 25)]]
    >>> generator = torch.Generator().manual_seed(0)
    >>> pairs = sentence_pairs(documents, count=1, generator=generator)
    >>> for kind, [(a, b, label)] in pairs.items():
    ...     print(kind, a, b, label)
    next [20] [21] 0
    backwards [21] [20] 1
    same address [20] [24] 1
    other address [20] [10] 1
    """

    def drawn(below: int) -> int:
        return int(torch.randint(below, (), generator=generator))

    places = [
        (d, i)
        for d, document in enumerate(documents)
        for i in range(len(document) - 1)
        if len(document) >= 4
    ]
    if len(documents) < 2 or not places:
        raise ValueError(
            "documents must be at least two, one of them with at least four sentences, "
            f"got {len(documents)} with {[len(document) for document in documents][:9]}"
        )
    pairs = {"next": [], "backwards": [], "same address": [], "other address": []}
    for _ in range(count):
        d, i = places[drawn(len(places))]
        first, second = documents[d][i], documents[d][i + 1]
        far = [s for j, s in enumerate(documents[d]) if not i - 1 <= j <= i + 1]
        other = documents[(d + 1 + drawn(len(documents) - 1)) % len(documents)]
        pairs["next"].append(SentencePair(first, second, IS_NEXT))
        pairs["backwards"].append(SentencePair(second, first, NOT_NEXT))
        elsewhere = far[drawn(len(far))], other[drawn(len(other))]
        for kind, sentence in zip(("same", "other"), elsewhere, strict=True):
            pairs[f"{kind} address"].append(SentencePair(first, sentence, NOT_NEXT))
    return pairs


def is_next_probabilities(
    model: nn.Module, pairs: Sequence[SentencePair], special: SpecialIds
) -> Iterator[float]:
    """How probable the model finds it, pair by pair, that the second part is the next.

    >>> from bertbook.experiments.pretrain import new_pretraining_model
    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> text = rain_text()
    >>> model = new_pretraining_model(text.tokenizer, seed=0)
    >>> pairs = [SentencePair([5, 6], [7], IS_NEXT)]
    >>> [probability] = is_next_probabilities(model, pairs, text.special)
    >>> 0.4 < probability < 0.6  # it knows nothing yet
    True
    """
    examples = pair_examples(pairs, special=special, max_length=MAX_LENGTH)
    with evaluating(model):
        for start in range(0, len(examples), EVALUATION_BATCH_SIZE):
            some = examples[start : start + EVALUATION_BATCH_SIZE]
            input_ids = padded([example.input_ids for example in some], special.pad)
            output = model.bert(
                input_ids,
                attention_mask=(input_ids != special.pad).long(),
                token_type_ids=padded([example.token_type_ids for example in some], 0),
            )
            logits = model.cls["seq_relationship"](output.pooler_output)
            yield from logits.softmax(dim=-1)[:, IS_NEXT].tolist()


def measure_reading(
    model: nn.Module, text: PretrainingText, documents: Documents
) -> Numbers:
    """Everything that is asked of the pretrained model.

    Args:
        model: a BertForPreTraining.
        text: what it was pretrained on, and what was held out.
        documents: the held-out addresses, as ids of sentences.

    >>> from bertbook.experiments.pretrain import new_pretraining_model
    >>> from bertbook.experiments.pretraining_text import rain_text
    >>> text = rain_text()
    >>> model = new_pretraining_model(text.tokenizer, seed=0)
    >>> documents = [[[5], [6], [7], [8]], [[9], [10], [11], [12]]]
    >>> found = measure_reading(model, text, documents)
    >>> found["tokens_asked"] > found["sequences_asked"]
    True
    """
    special = text.special
    batches = held_out_batches(text._replace(held_out=text.held_out[::EVERY]))
    standing = asked_three_ways(batches, special)
    guesses, answers = guesses_and_answers(model, standing["mask"])  # none is copied
    training_ids = torch.cat([example.input_ids for example in text.training])
    shares = piece_shares(training_ids, special=special, smoothing=1.0)
    generator = torch.Generator().manual_seed(SEED)
    found = {
        **measure_context(model, batches, standing, special),
        **measure_ranks(guesses, answers, shares),
        "random_repeated": repeated_share(model, standing["random"]),
    }
    pairs = sentence_pairs(documents, count=PAIRS, generator=generator)
    for kind, its_pairs in pairs.items():
        judged = torch.tensor([*is_next_probabilities(model, its_pairs, special)])
        found[f"{kind} judged next"] = (judged > 0.5).double().mean().item()
    return {
        **{name: round(number, 6) for name, number in found.items()},
        "tokens_asked": len(answers),
        "sequences_asked": sum(len(batch["labels"]) for batch in batches),
    }


def measure_stored(folder: Path) -> Numbers:
    """measure_reading of the weights that ``pretrain`` has kept.

    >>> whole_text.cache_info().maxsize is None  # importing prepares nothing
    True
    """
    text = whole_text()
    _, held_out = hold_out(load_addresses())
    documents = encode_addresses(held_out, text.tokenizer)
    model = BertForPreTraining.from_pretrained(RESULTS / "pretrain")
    return measure_reading(model, text, documents)


EXPERIMENT = FollowUp(
    "reading",
    seeds=[SEED],
    runs={},
    summarize=lambda logs: {"every": EVERY, "reaches": [*REACHES], "pairs": PAIRS},
    recompute=measure_stored,
    reads=("pretrain",),
)
