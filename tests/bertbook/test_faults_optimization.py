"""Faults of other BERT code in optimisation, evaluation and heads: a check that ours passes, a mutant that fails it.

As in test_faults.py, a check is called as holds(implementation, case), and the mutant has to pass it on a harmless
case too, so that it cannot fail for another reason than its fault.
"""

import pytest
import torch
from torch import nn

from bertbook.config import BertConfig
from bertbook.heads import BertForPreTraining, BertForSequenceClassification, BertForTokenClassification
from bertbook.masking import IGNORE_INDEX
from bertbook.optimizers import parameter_groups
from bertbook.schedules import linear_warmup_decay
from bertbook.tagging import TAGS, best_span, entities_of, label_pieces, token_cross_entropy
from fault_reports import check_report, report


def mini(dropout: float = 0.0) -> BertConfig:
    return BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )


# namisan/mt-dnn PR #37, facebookresearch/BalancingGroups#6

MODELS = {
    "a bare layer": lambda: nn.Linear(3, 3),
    "BERT": lambda: BertForPreTraining(mini()),
    "a norm under another name": lambda: nn.ModuleDict({"final": nn.LayerNorm(3), "dense": nn.Linear(3, 3)}),
}


def groups_are_right(group, which: str) -> bool:
    """Every trainable parameter in exactly one group; biases and LayerNorms in the undecayed one."""
    model = MODELS[which]()
    groups = group(model, weight_decay=0.01)
    grouped = [id(p) for g in groups for p in g["params"]]
    spared = {id(p) for g in groups if g["weight_decay"] == 0 for p in g["params"]}
    norms = {id(p) for m in model.modules() if isinstance(m, nn.LayerNorm) for p in m.parameters()}
    biases = {id(p) for name, p in model.named_parameters() if name.split(".")[-1] == "bias"}
    return sorted(grouped) == sorted(id(p) for p in model.parameters()) and spared == norms | biases


def grouped_by(spares, decays, model, weight_decay):
    named = list(model.named_parameters())
    return [
        {"params": [p for name, p in named if decays(name)], "weight_decay": weight_decay},
        {"params": [p for name, p in named if spares(name)], "weight_decay": 0.0},
    ]


def names_of_another_code(model, *, weight_decay):
    """The list of names says gamma and beta; this model says LayerNorm.weight."""
    spared = ("bias", "gamma", "beta")
    return grouped_by(lambda n: n.endswith(spared), lambda n: not n.endswith(spared), model, weight_decay)


def norms_told_by_name(model, *, weight_decay):
    def spares(name):
        return name.endswith("bias") or "LayerNorm" in name

    return grouped_by(spares, lambda n: not spares(n), model, weight_decay)


def norms_in_no_group(model, *, weight_decay):
    return grouped_by(
        lambda n: n.endswith("bias"),
        lambda n: not n.endswith("bias") and "LayerNorm" not in n and "final" not in n,
        model,
        weight_decay,
    )


def everything_decays_too(model, *, weight_decay):
    return grouped_by(lambda n: n.endswith("bias"), lambda n: True, model, weight_decay)


# google-research/bert#1293, huggingface/transformers PR #327


def moves_and_never_climbs(schedule, step: int) -> bool:
    """Inside the run the factor is above zero; from its end on it is zero."""
    factor = schedule(step, warmup_steps=4, total_steps=10)
    return factor > 0 if step < 10 else factor == 0


def first_step_is_zero(step, *, warmup_steps, total_steps):
    if step < warmup_steps:
        return step / warmup_steps
    return linear_warmup_decay(step, warmup_steps=warmup_steps, total_steps=total_steps)


def runs_below_zero(step, *, warmup_steps, total_steps):
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return (total_steps - step) / (total_steps - warmup_steps)


# huggingface/trl#2175, huggingface/transformers PR #34191


def equals_the_big_batch(accumulate, lengths: tuple[int, int]) -> bool:
    """Two micro-batches of sentences with so many labelled tokens give the big batch's gradient."""
    torch.manual_seed(0)
    model = BertForTokenClassification(mini(), num_labels=3)
    input_ids = torch.randint(1, 20, (2, 6))
    labels = torch.full((2, 6), IGNORE_INDEX)
    for row, length in enumerate(lengths):
        labels[row, :length] = torch.randint(0, 3, (length,))

    def gradient(step):
        model.zero_grad()
        step(model, input_ids, labels)
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    big = gradient(lambda model, ids, labels: token_cross_entropy(model(ids).logits, labels).backward())
    return torch.allclose(gradient(accumulate), big, rtol=0, atol=1e-6)


def divided_by_the_whole_count(model, input_ids, labels):
    num_labelled = int((labels != IGNORE_INDEX).sum())
    for row in range(2):
        rows = slice(row, row + 1)
        token_cross_entropy(model(input_ids[rows]).logits, labels[rows], num_labelled=num_labelled).backward()


def mean_of_means(model, input_ids, labels):
    for row in range(2):
        rows = slice(row, row + 1)
        (token_cross_entropy(model(input_ids[rows]).logits, labels[rows]) / 2).backward()


# huggingface/transformers#679, google-research/bert#857


def evaluates_the_same_twice(logits_of, dropout: float) -> bool:
    """Two evaluations of a model that has just been trained are equal."""
    torch.manual_seed(0)
    model = BertForSequenceClassification(mini(dropout), num_labels=2).train()
    input_ids = torch.randint(1, 20, (4, 6))
    return torch.equal(logits_of(model, input_ids), logits_of(model, input_ids))


def in_evaluation_mode(model, input_ids):
    return model.eval()(input_ids).logits


def as_it_was_left(model, input_ids):
    return model(input_ids).logits


# huggingface/notebooks#250


def keeps_one_entity(label, num_pieces: int) -> bool:
    """A word of so many pieces is one entity, also when every label that counts is read back."""
    _, labels = label([["ka", *["##lo"] * (num_pieces - 1)]], ["B-PER"])
    return entities_of([TAGS[i] for i in labels if i != IGNORE_INDEX]) == {("PER", 0, 0)}


def begin_on_every_piece(pieces, tags):
    tokens, labels = ["[CLS]"], [IGNORE_INDEX]
    for word, tag in zip(pieces, tags, strict=True):
        tokens += word
        labels += [TAGS.index(tag)] * len(word)
    return [*tokens, "[SEP]"], [*labels, IGNORE_INDEX]


# deepset-ai/FARM#558, huggingface/transformers#1282

CONTEXT = torch.tensor([False, False, True, True, True, True])
SPANS = {  # the peaks of start and end, and the span that is right
    "inside": ((3, 4), (3, 4)),
    "at the left edge": ((2, 2), (2, 2)),
    "at the right edge": ((5, 5), (5, 5)),
    "end before start": ((4, 2), None),
    "in the question": ((1, 1), None),
    "no answer": ((0, 0), (0, 0)),
}


def chooses_a_possible_span(choose, case: str) -> bool:
    """The right span where there is one; else some span of the context that ends where it starts or later."""
    (first, last), right = SPANS[case]
    start, end = torch.zeros(6), torch.zeros(6)
    start[first] = end[last] = 5.0
    found = choose(start, end, context=CONTEXT)
    if right is not None:
        return found == right
    return found == (0, 0) or (2 <= found[0] <= found[1] <= 5)


def both_peaks(start, end, *, context):
    return start.argmax().item(), end.argmax().item()


def end_before_start_is_possible(start, end, *, context):
    hidden = ~context.clone()
    hidden[0] = False
    return both_peaks(start.masked_fill(hidden, -9), end.masked_fill(hidden, -9), context=context)


def edges_left_out(start, end, *, context):
    inner = context.clone()
    inner[context.nonzero()[0]] = inner[context.nonzero()[-1]] = False
    return best_span(start, end, context=inner)


def always_answers(start, end, *, context):
    return best_span(start, end, context=context, threshold=-100.0)


SPANS_REPORT = (chooses_a_possible_span, best_span)
REPORTS = [
    *report(
        "namisan/mt-dnn PR #37",
        groups_are_right,
        parameter_groups,
        names_of_another_code,
        norms_in_no_group,
        harmless="a bare layer",
        harmful=["BERT", "a norm under another name"],
    ),
    *report(
        "facebookresearch/BalancingGroups#6",
        groups_are_right,
        parameter_groups,
        norms_told_by_name,
        harmless="BERT",
        harmful=["a norm under another name"],
    ),
    *report(
        "google-research/bert#1293", moves_and_never_climbs, linear_warmup_decay, first_step_is_zero, harmless=1,
        harmful=[0],
    ),
    *report(
        "huggingface/transformers PR #327", moves_and_never_climbs, linear_warmup_decay, runs_below_zero, harmless=10,
        harmful=[11, 50],
    ),
    *report(
        "huggingface/trl#2175", equals_the_big_batch, divided_by_the_whole_count, mean_of_means, harmless=(3, 3),
        harmful=[(1, 5), (6, 2)],
    ),
    *report(
        "huggingface/transformers#679", evaluates_the_same_twice, in_evaluation_mode, as_it_was_left, harmless=0.0,
        harmful=[0.1, 0.5],
    ),
    *report("huggingface/notebooks#250", keeps_one_entity, label_pieces, begin_on_every_piece, harmless=1,
            harmful=[2, 4]),
    *report("deepset-ai/FARM#558", *SPANS_REPORT, edges_left_out, harmless="inside",
            harmful=["at the left edge", "at the right edge"]),
    *report("huggingface/transformers#1282", *SPANS_REPORT, end_before_start_is_possible, harmless="no answer",
            harmful=["end before start"]),
    *report("huggingface/transformers#1282", *SPANS_REPORT, both_peaks, harmless="inside",
            harmful=["end before start", "in the question"]),
    *report("huggingface/transformers#1282", *SPANS_REPORT, always_answers, harmless="inside", harmful=["no answer"]),
]  # fmt: skip


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, ours, mutant, harmless, harmful):
    check_report(holds, ours, mutant, harmless, harmful)


def test_a_parameter_in_both_groups_is_noticed():
    # torch refuses it too; without the check, grouping alone would let it pass.
    assert not groups_are_right(everything_decays_too, "a bare layer")
