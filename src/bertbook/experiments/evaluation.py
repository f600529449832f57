"""How well a model pretrains: on held-out text, under masks that never change.

Shapes: B sequences, T tokens, V token ids.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional as F

from bertbook.experiments.distributed import Batch
from bertbook.masking import IGNORE_INDEX


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, without gradients; then each module has the mode that it had.

    >>> model = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1).eval())
    >>> with evaluating(model):
    ...     [module.training for module in model]
    [False, False]
    >>> [module.training for module in model]
    [True, False]
    """
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad():
            model.eval()
            yield
    finally:
        for module, was_training in modes:
            module.training = was_training


def evaluate_pretraining(
    model: nn.Module, batches: Iterable[Batch]
) -> dict[str, float]:
    """Loss and accuracy of masked tokens, and of next sentences if batches have them.

    The means are taken over all masked tokens, and over all pairs, of all batches: a
    batch with more of them counts for more. Only masked positions are decoded.

    Args:
        model: a BertForPreTraining or BertForMaskedLM.
        batches: input_ids (B, T), labels (B, T), and what else the model takes; with
            next_sentence_label (B,) for next sentences.

    Returns:
        mlm_loss (nats; its exponential is not a perplexity), mlm_accuracy, and perhaps
        nsp_loss and nsp_accuracy.

    Raises:
        ValueError: if no token is masked in any batch.

    Source: slides 24 and 27.

    >>> from bertbook.config import BertConfig
    >>> from bertbook.heads import BertForPreTraining
    >>> model = BertForPreTraining(BertConfig(
    ...     vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
    >>> batch = {"input_ids": torch.tensor([[1, 3, 2]]),
    ...          "labels": torch.tensor([[-100, 7, -100]]),
    ...          "next_sentence_label": torch.tensor([0])}
    >>> list(evaluate_pretraining(model, [batch]))
    ['mlm_loss', 'mlm_accuracy', 'nsp_loss', 'nsp_accuracy']
    """
    sums = {name: torch.zeros(3, dtype=torch.float64) for name in ("mlm", "nsp")}
    device = next(model.parameters()).device
    with evaluating(model):
        for batch in batches:
            inputs = {name: tensor.to(device) for name, tensor in batch.items()}
            labels = inputs.pop("labels")
            next_label = inputs.pop("next_sentence_label", None)
            output = model.bert(**inputs)
            selected = labels != IGNORE_INDEX
            logits = model.cls["predictions"](output.last_hidden_state[selected])
            sums["mlm"] += loss_and_hits(logits, labels[selected])
            if next_label is not None:
                logits = model.cls["seq_relationship"](output.pooler_output)
                sums["nsp"] += loss_and_hits(logits, next_label)
    if not sums["mlm"][2]:
        raise ValueError("batches must mask at least one token, but none is masked")
    found = {}
    for name, (loss, hits, count) in sums.items():
        if count:
            found[f"{name}_loss"] = (loss / count).item()
            found[f"{name}_accuracy"] = (hits / count).item()
    return found


def loss_and_hits(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """The sum of the losses, how many guesses are right, and how many there are.

    Args:
        logits: floating point, (N, V).
        labels: int64, (N,).

    Returns:
        float64, (3,), on the CPU.

    >>> loss_and_hits(torch.eye(2) * 50, torch.tensor([0, 0])).tolist()
    [50.0, 1.0, 2.0]
    """
    loss = F.cross_entropy(logits.float(), labels, reduction="sum")
    hits = (logits.argmax(dim=-1) == labels).sum()
    numbers = [loss.item(), hits.item(), len(labels)]
    return torch.tensor(numbers, dtype=torch.float64)
