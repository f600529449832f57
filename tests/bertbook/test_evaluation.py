"""The evaluation of pretraining: what is averaged, and that nothing disturbs it."""

import pytest
import torch
from torch.nn import functional as F

from bertbook.config import BertConfig
from bertbook.experiments.evaluation import evaluate_pretraining, loss_and_hits
from bertbook.heads import BertForPreTraining
from fault_reports import check_report, report


def small_bert(dropout: float = 0.1) -> BertForPreTraining:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=30,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        initializer_range=0.5,
    )
    return BertForPreTraining(config).train()


def batch_of(rows: int, masked: int, seed: int = 0) -> dict[str, torch.Tensor]:
    """Sequences of eight tokens, the first of them masked, the last one padding."""
    generator = torch.Generator().manual_seed(seed)
    input_ids = torch.randint(5, 30, (rows, 8), generator=generator)
    labels = torch.full((rows, 8), -100)
    labels[:, :masked] = torch.randint(5, 30, (rows, masked), generator=generator)
    attention_mask = torch.ones(rows, 8, dtype=torch.int64)
    attention_mask[:, -1] = 0
    next_label = torch.arange(rows) % 2
    return {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "labels": labels,
        "next_sentence_label": next_label,
    }


def joined(batches: list[dict]) -> dict[str, torch.Tensor]:
    return {name: torch.cat([batch[name] for batch in batches]) for name in batches[0]}


def one_by_one(model, batch) -> dict[str, float]:
    """The same numbers, from the model's full logits."""
    names = ("input_ids", "attention_mask")
    with torch.no_grad():
        output = model.eval()(**{name: batch[name] for name in names})
    logits, labels = output.prediction_logits.flatten(0, 1), batch["labels"].flatten()
    chosen, pairs = labels != -100, batch["next_sentence_label"]
    return {
        "mlm_loss": F.cross_entropy(logits, labels).item(),
        "mlm_accuracy": (logits.argmax(-1) == labels)[chosen].float().mean().item(),
        "nsp_loss": F.cross_entropy(output.seq_relationship_logits, pairs).item(),
        "nsp_accuracy": (output.seq_relationship_logits.argmax(-1) == pairs).float().mean().item(),
    }


def mean_of_means(model, batches):
    found = [evaluate_pretraining(model, [batch]) for batch in batches]
    return {name: sum(numbers[name] for numbers in found) / len(found) for name in found[0]}


def does_not_depend_on_the_cut(measure, sizes) -> bool:
    """Batches of so many rows, with so many masks a row, measure as one large batch."""
    batches = [batch_of(rows, masked, seed) for seed, (rows, masked) in enumerate(sizes)]
    model = small_bert()
    expected = one_by_one(model, joined(batches))
    return measure(model, batches) == pytest.approx(expected, abs=1e-5)


# huggingface/transformers#679, google-research/bert#857


def measures_the_same_twice(measure, dropout: float) -> bool:
    model = small_bert(dropout)
    batches = [batch_of(4, 2)]
    return measure(model, batches) == measure(model, batches) and model.training


def with_dropout_on(model, batches):
    modes = [(module, module.training) for module in model.modules()]
    model.eval = lambda: None
    found = evaluate_pretraining(model, batches)
    assert all(module.training is mode for module, mode in modes)
    return found


REPORTS = [
    *report(
        "huggingface/trl#2175",
        does_not_depend_on_the_cut,
        evaluate_pretraining,
        mean_of_means,
        harmless=[(3, 2), (3, 2)],
        harmful=[[(1, 5), (4, 1)], [(6, 1), (2, 6), (1, 2)]],
    ),
    *report(
        "huggingface/transformers#679",
        measures_the_same_twice,
        evaluate_pretraining,
        with_dropout_on,
        harmless=0.0,
        harmful=[0.1, 0.5],
    ),
]


@pytest.mark.parametrize(("holds", "ours", "mutant", "harmless", "harmful"), REPORTS)
def test_report(holds, ours, mutant, harmless, harmful):
    check_report(holds, ours, mutant, harmless, harmful)


def test_a_model_without_pairs_is_measured_on_masks_alone():
    batch = batch_of(3, 2)
    del batch["next_sentence_label"]
    assert list(evaluate_pretraining(small_bert(), [batch])) == ["mlm_loss", "mlm_accuracy"]


def test_gradients_are_neither_made_nor_lost():
    model = small_bert()
    model.bert.embeddings.word_embeddings.weight.grad = torch.ones(30, 8)
    evaluate_pretraining(model, [batch_of(2, 1)])
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    assert len(grads) == 1
    assert torch.equal(grads[0], torch.ones(30, 8))


def test_the_mode_comes_back_also_after_an_error():
    model = small_bert()
    model.bert.eval()  # a frozen part
    batch = batch_of(2, 1)
    batch["input_ids"] += 100
    with pytest.raises((IndexError, ValueError)):
        evaluate_pretraining(model, [batch])
    assert model.training
    assert not model.bert.training


def test_nothing_masked_is_an_error():
    with pytest.raises(ValueError, match="none is masked"):
        evaluate_pretraining(small_bert(), [batch_of(2, 0)])
    with pytest.raises(ValueError, match="none is masked"):
        evaluate_pretraining(small_bert(), [])


def test_losses_of_low_precision_are_summed_in_high():
    logits = torch.zeros(3000, 4, dtype=torch.bfloat16)
    loss, _, count = loss_and_hits(logits, torch.zeros(3000, dtype=torch.int64)).tolist()
    assert loss / count == pytest.approx(1.386294, abs=1e-5)
