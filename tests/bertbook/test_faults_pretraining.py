"""Faults that other code for BERT's pretraining had: a check that ours passes and a mutant with that fault fails.

A check is called as holds(implementation, case). The mutant has to pass it on a harmless case too, so that
it cannot fail for another reason than its fault.
"""

import math
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.config import BertConfig
from bertbook.heads import BertForPreTraining
from bertbook.masking import (
    IGNORE_INDEX,
    MASK_SHARE,
    RANDOM_SHARE,
    SELECTION_RATE,
    evaluate_masked_lm,
    mask_exactly,
    mask_tokens,
    masked_lm_loss,
)
from bertbook.model import BertEmbeddings, BertModel
from bertbook.pairs import (
    IS_NEXT,
    NOT_NEXT,
    class_balance,
    next_sentence_loss,
    pack_pair,
    sample_pairs,
)
from fault_reports import check_report, report

PAD, CLS, SEP, MASK = SPECIAL = range(4)
IDS = {"mask_token_id": MASK, "vocab_size": 20, "special_token_ids": SPECIAL}
MARKS = {"cls_token_id": CLS, "sep_token_id": SEP}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=seeded(seed))


def by_hand(input_ids, generator, *, candidates, mask_share=MASK_SHARE, random_share=RANDOM_SHARE, lowest=4):
    """A masking whose parts the mutants exchange: who may be selected, the shares, the lowest random id."""
    selected = candidates & (torch.rand(input_ids.shape, generator=generator) < SELECTION_RATE)
    draw = torch.rand(input_ids.shape, generator=generator)
    drawn = torch.randint(lowest, 20, input_ids.shape, generator=generator)
    masked_ids = input_ids.masked_fill(selected & (draw < mask_share), MASK)
    is_random = selected & (draw >= mask_share) & (draw < mask_share + random_share)
    return torch.where(is_random, drawn, masked_ids), input_ids.masked_fill(~selected, IGNORE_INDEX)


def ours(input_ids, generator):
    return mask_tokens(input_ids, generator=generator, **IDS)


# d2l-ai/d2l-en#2582, lucidrains/mlm-pytorch#2


def weighs_selected_only(loss_of, weights: list[int]) -> bool:
    """The mean is over positions of weight 1: the others have no gradient, and the value is theirs alone."""
    selected = torch.tensor(weights) == 1
    logits = normal(len(weights), 6).requires_grad_()
    original = torch.arange(len(weights))
    loss = loss_of(logits, original.masked_fill(~selected, IGNORE_INDEX), original)
    loss.backward()
    expected = F.cross_entropy(logits[selected], original[selected])
    return torch.allclose(loss, expected) and not logits.grad[~selected].any()


def ours_selected(logits, labels, original):
    return masked_lm_loss(logits, labels)


def averaged_before_weights(logits, labels, original):
    """The mean over everything, and then the mean of that scalar times each weight, as d2l's."""
    weights = (labels != IGNORE_INDEX).float()
    return (F.cross_entropy(logits, original) * weights).sum() / weights.sum()


def over_all_positions(logits, labels, original):
    return F.cross_entropy(logits, original)


# huggingface/transformers#11155, #1395


def spares(mask, token_id: int) -> bool:
    """A special id is never selected; another one is."""
    input_ids = torch.full((5000,), token_id)
    _, labels = mask(input_ids, seeded())
    selects = (labels != IGNORE_INDEX).any()
    return not selects if token_id in SPECIAL else bool(selects)


def specials_selected(input_ids, generator):
    return by_hand(input_ids, generator, candidates=input_ids >= 0)


def padding_selected(input_ids, generator):
    return by_hand(input_ids, generator, candidates=(input_ids == PAD) | (input_ids >= 4))


# huggingface/transformers#15342, graykode/nlp-tutorial#40


def draws_ordinary_pieces(mask, num_tokens: int) -> bool:
    """No random piece is [PAD], [CLS] or [SEP]."""
    masked_ids, _ = mask(torch.full((num_tokens,), 9), seeded())
    return not (masked_ids < MASK).any()


def from_the_whole_vocabulary(input_ids, generator):
    return by_hand(input_ids, generator, candidates=input_ids >= 4, lowest=0)


# lucidrains/mlm-pytorch#6


def splits_as_stated(mask, num_tokens: int) -> bool:
    """Of the selected tokens, the share that becomes [MASK] is within six standard deviations."""
    input_ids = torch.full((num_tokens,), 9)
    masked_ids, labels = mask(input_ids, seeded())
    selected = labels != IGNORE_INDEX
    number = selected.sum().item()
    masked = (masked_ids[selected] == MASK).sum().item()
    return abs(masked - number * MASK_SHARE) <= 6 * math.sqrt(number * MASK_SHARE * (1 - MASK_SHARE))


def two_independent_draws(input_ids, generator):
    return by_hand(input_ids, generator, candidates=input_ids >= 4, mask_share=0.9 * 0.9)


# facebookresearch/fairseq PR #752


def counts_exactly(select, count: int) -> bool:
    """Each of 200 sequences of ten candidates has exactly `count` selected positions."""
    return bool((select(torch.full((200, 10), 9), count).sum(dim=1) == count).all())


def ours_exactly(input_ids, count):
    return mask_exactly(input_ids, count=count, generator=seeded(), **IDS)[1] != IGNORE_INDEX


def with_replacement(input_ids, count):
    positions = torch.randint(input_ids.shape[1], (len(input_ids), count), generator=seeded())
    return torch.zeros_like(input_ids, dtype=torch.bool).scatter(1, positions, value=True)


# huggingface/course#291


def leaves_the_input(mask, rate: float) -> bool:
    """The input is as it was, and labels are ignored off the selection."""
    input_ids = torch.arange(4, 20).repeat(50)
    before = input_ids.clone()
    masked_ids, labels = mask(input_ids, seeded(), rate)
    changed = masked_ids != before
    some_ignored = bool((labels == IGNORE_INDEX).any())
    return torch.equal(input_ids, before) and some_ignored and bool((labels[changed] == before[changed]).all())


def ours_at_rate(input_ids, generator, rate):
    return mask_tokens(input_ids, generator=generator, probability=rate, **IDS)


def edited_in_place(input_ids, generator, rate):
    masked_ids, labels = ours_at_rate(input_ids, generator, rate)
    input_ids.copy_(masked_ids)
    return input_ids, labels


def labels_not_assigned(input_ids, generator, rate):
    """The ignored labels are computed and then dropped: some remain only if nothing is selected."""
    masked_ids, labels = ours_at_rate(input_ids, generator, rate)
    return masked_ids, labels if (labels == IGNORE_INDEX).all() else input_ids.clone()


# huggingface/transformers#2759


def ignores_the_constant(loss_of, num_ignored: int) -> bool:
    """Positions labelled by mask_tokens as ignored are ignored by the loss."""
    logits = normal(5, 6)
    labels = torch.arange(5)
    labels[:num_ignored] = IGNORE_INDEX
    try:
        return torch.allclose(loss_of(logits, labels), F.cross_entropy(logits[num_ignored:], labels[num_ignored:]))
    except (IndexError, ValueError):
        return False


def another_constant(logits, labels):
    return F.cross_entropy(logits, labels, ignore_index=-1)


# huggingface/transformers PR #1633, #3927


class Copies(nn.Module):
    """Says of every token that it is what it is; right on unmasked text, never right about a gap."""

    def forward(self, input_ids):
        return 9.0 * F.one_hot(input_ids, 20)


def masks_for_evaluation(evaluate, seeds: tuple[int, ...]) -> bool:
    """A model that copies is right on kept tokens only, and the same seed gives the same result."""
    text = torch.arange(4, 20).repeat(40, 10)
    results = [evaluate(Copies(), text, seed) for seed in seeds]
    repeats = all(evaluate(Copies(), text, seed) == found for seed, found in zip(seeds, results, strict=True))
    return repeats and all(accuracy < 0.2 for _, accuracy in results)


def ours_evaluated(model, text, seed):
    return evaluate_masked_lm(model, text, seed=seed, **IDS)


def on_unmasked_text(model, text, seed):
    logits = model(text)
    return masked_lm_loss(logits, text).item(), (logits.argmax(dim=-1) == text).double().mean().item()


def another_masking_each_time(model, text, seed):
    return ours_evaluated(model, text, torch.seed())


# codertimo/BERT-pytorch#98, #49


def counts_both_classes(loss_of, labels: list[int]) -> bool:
    """Every pair has a gradient."""
    logits = normal(len(labels), 2).requires_grad_()
    loss_of(logits, torch.tensor(labels)).backward()
    return bool((logits.grad != 0).all())


def ignoring_zero(logits, labels):
    return F.cross_entropy(logits, labels, ignore_index=0)


# codertimo/BERT-pytorch#86, #110


def negatives_are_negative(sample, sentences: tuple[int, ...]) -> bool:
    """No NotNext is the true next sentence. With one document: an error."""
    documents = [[[10 * d + s] for s in range(number)] for d, number in enumerate(sentences)]
    for seed in range(20):
        try:
            pairs = sample(documents, seeded(seed))
        except ValueError:
            return len(documents) == 1
        following = {(a[0], b[0]) for document in documents for a, b in pairwise(document)}
        if any((a[0], b[0]) in following for a, b, label in pairs if label == NOT_NEXT):
            return False
    return len(documents) > 1


def ours_sampled(documents, generator):
    return sample_pairs(documents, generator=generator)


def from_any_document(documents, generator):
    sentences = [sentence for document in documents for sentence in document]
    pairs = []
    for a, b, label in sample_pairs([*documents, [[999]]], generator=generator):
        other = sentences[torch.randint(len(sentences), (), generator=generator)]
        pairs.append((a, b if label == IS_NEXT else other, label))
    return pairs


# google-research/bert#125


def notices_one_class(report_balance, labels: list[int]) -> bool:
    """Labels that are all the same are refused; others are counted."""
    try:
        counts = report_balance(labels)
    except ValueError:
        return len(set(labels)) == 1
    return len(set(labels)) == 2 and counts == {"IsNext": labels.count(0), "NotNext": labels.count(1)}


def counted_only(labels):
    return {"IsNext": labels.count(0), "NotNext": labels.count(1)}


# huggingface/transformers#836


def zero_is_next(sample, num_documents: int) -> bool:
    """Label 0 stands where B follows A, and only there."""
    documents = [[[10 * d + s] for s in range(6)] for d in range(num_documents)]
    return all((b[0] == a[0] + 1) == (label == 0) for a, b, label in sample(documents, seeded()))


def labels_inverted(documents, generator):
    return [(a, b, 1 - label) for a, b, label in ours_sampled(documents, generator)]


# MorvanZhou/NLP-Tutorials#14


def small_bert() -> BertForPreTraining:
    torch.manual_seed(0)
    sizes = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    return BertForPreTraining(BertConfig(**sizes, intermediate_size=16, max_position_embeddings=12)).eval()


def reads_cls_only(next_sentence_logits, changed: int) -> bool:
    """The logits depend on the final state at position 0, and on no other."""
    states = normal(1, 5, 8)
    other = states.clone()
    other[:, changed] += 1.0
    same = torch.allclose(next_sentence_logits(states), next_sentence_logits(other), atol=1e-7)
    return same == (changed != 0)


def ours_on_cls(states):
    model = small_bert()
    return model.cls["seq_relationship"](model.bert.pooler(states))


def flattened(states):
    return states.flatten(1) @ normal(states.shape[1] * 8, 2, seed=1)


# huggingface/transformers#12188


def fits_and_ends(pack, lengths: tuple[int, int]) -> bool:
    """At most 12 tokens, both [SEP], the last at the end, and something of each sentence."""
    ids = pack([5] * lengths[0], [6] * lengths[1]).tolist()
    return len(ids) <= 12 and ids.count(SEP) == 2 and ids[-1] == SEP and {5, 6} <= set(ids)


def ours_packed(ids_a, ids_b):
    return pack_pair(ids_a, ids_b, max_length=12, **MARKS).input_ids


def not_truncated(ids_a, ids_b):
    return torch.tensor([CLS, *ids_a, SEP, *ids_b, SEP])


def cut_at_the_end(ids_a, ids_b):
    return not_truncated(ids_a, ids_b)[:12]


# huggingface/transformers PR #409


def rows_learn(embeddings_class, row: int) -> bool:
    """Position `row` and segment `row` get a gradient."""
    torch.manual_seed(0)
    embeddings = embeddings_class(small_bert().bert.config)
    ids, segments = torch.tensor([[5, 6, 7]]), torch.tensor([[0, 0, 1]])
    (embeddings(ids, token_type_ids=segments) * normal(1, 3, 8)).sum().backward()
    tables = embeddings.position_embeddings, embeddings.token_type_embeddings
    return all(bool(table.weight.grad[row].any()) for table in tables)


class PaddingIndexEverywhere(BertEmbeddings):
    def __init__(self, config):
        super().__init__(config)
        self.position_embeddings = nn.Embedding(12, 8, padding_idx=0)
        self.token_type_embeddings = nn.Embedding(2, 8, padding_idx=0)


# huggingface/transformers#1788


def takes_names_only(model_class, how: str) -> bool:
    """Segment ids cannot slip into the mask's place, because both are taken by name only."""
    torch.manual_seed(0)
    model = model_class(small_bert().bert.config)
    ids, segments = torch.tensor([[5, 6, 7]]), torch.tensor([[0, 0, 1]])
    if how == "by name":
        return model(ids, token_type_ids=segments).pooler_output.shape == (1, 8)
    try:
        model(ids, segments)
    except TypeError:
        return True
    return False


class ByPosition(BertModel):
    def forward(self, input_ids, attention_mask=None, token_type_ids=None):
        return super().forward(input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)


ALL, SOME = [1, 1, 1, 1], [1, 0, 0, 1]
REPORTS = [
    *report(
        "d2l-ai/d2l-en#2582",
        weighs_selected_only,
        ours_selected,
        averaged_before_weights,
        harmless=ALL,
        harmful=[SOME, [0, 1, 0, 0]],
    ),
    *report(
        "lucidrains/mlm-pytorch#2",
        weighs_selected_only,
        ours_selected,
        over_all_positions,
        harmless=ALL,
        harmful=[SOME, [0, 0, 0, 1]],
    ),
    *report(
        "huggingface/transformers#11155", spares, ours, specials_selected, harmless=9, harmful=[PAD, CLS, SEP, MASK]
    ),
    *report("huggingface/transformers#1395", spares, ours, padding_selected, harmless=CLS, harmful=[PAD]),
    *report(
        "huggingface/transformers#15342, graykode/nlp-tutorial#40",
        draws_ordinary_pieces,
        ours,
        from_the_whole_vocabulary,
        harmless=1,
        harmful=[10_000],
    ),
    *report(
        "lucidrains/mlm-pytorch#6", splits_as_stated, ours, two_independent_draws, harmless=100, harmful=[1_000_000]
    ),
    *report(
        "facebookresearch/fairseq PR #752", counts_exactly, ours_exactly, with_replacement, harmless=1, harmful=[3, 10]
    ),
    *report(
        "huggingface/course#291",
        leaves_the_input,
        ours_at_rate,
        edited_in_place,
        labels_not_assigned,
        harmless=1e-9,
        harmful=[0.15, 0.8],
    ),
    *report(
        "huggingface/transformers#2759",
        ignores_the_constant,
        masked_lm_loss,
        another_constant,
        harmless=0,
        harmful=[1, 4],
    ),
    *report(
        "huggingface/transformers PR #1633, #3927",
        masks_for_evaluation,
        ours_evaluated,
        on_unmasked_text,
        another_masking_each_time,
        harmless=(),
        harmful=[(0, 1, 2)],
    ),
    *report(
        "codertimo/BERT-pytorch#98, #49",
        counts_both_classes,
        next_sentence_loss,
        ignoring_zero,
        harmless=[NOT_NEXT],
        harmful=[[IS_NEXT, NOT_NEXT], [IS_NEXT]],
    ),
    *report(
        "codertimo/BERT-pytorch#86, #110",
        negatives_are_negative,
        ours_sampled,
        from_any_document,
        harmless=(2, 1),  # one pair, and it is IsNext
        harmful=[(3, 3), (4,)],
    ),
    *report(
        "google-research/bert#125",
        notices_one_class,
        class_balance,
        counted_only,
        harmless=[0, 1, 1],
        harmful=[[0, 0], [1]],
    ),
    *report("MorvanZhou/NLP-Tutorials#14", reads_cls_only, ours_on_cls, flattened, harmless=0, harmful=[1, 4]),
    *report(
        "huggingface/transformers#12188",
        fits_and_ends,
        ours_packed,
        not_truncated,
        cut_at_the_end,
        harmless=(4, 5),
        harmful=[(9, 1), (1, 12), (8, 8)],
    ),
    *report(
        "huggingface/transformers PR #409", rows_learn, BertEmbeddings, PaddingIndexEverywhere, harmless=1, harmful=[0]
    ),
    *report(
        "huggingface/transformers#1788",
        takes_names_only,
        BertModel,
        ByPosition,
        harmless="by name",
        harmful=["by position"],
    ),
]


@pytest.mark.parametrize(("holds", "implementation", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, implementation, mutant, harmless, harmful):
    check_report(holds, implementation, mutant, harmless, harmful)


def test_huggingface_transformers_836_labels_are_not_inverted():
    # No harmless case: an inverted label is wrong for every pair.
    assert (IS_NEXT, NOT_NEXT) == (0, 1)
    assert zero_is_next(ours_sampled, 3)
    assert not zero_is_next(labels_inverted, 3)
