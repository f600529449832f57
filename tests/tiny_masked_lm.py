"""The smallest model that can be pretrained, its text, its batches, and their trainer."""

from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.experiments.data_order import ShuffledBatches
from bertbook.experiments.training_loop import Trainer, TrainingSettings
from bertbook.masking import IGNORE_INDEX, masked_lm_loss


class TinyMaskedLM(nn.Module):
    """Each position sees the mean of its sequence, and guesses."""

    def __init__(self, dropout: float = 0.0, seed: int = 0):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.table = nn.Embedding(20, 8)
            self.LayerNorm = nn.LayerNorm(8)
            self.bias = nn.Parameter(torch.zeros(20))
        self.dropout = nn.Dropout(dropout)

    def forward(self, input_ids: Tensor, labels: Tensor):
        states = self.table(input_ids)
        states = self.dropout(self.LayerNorm(states + states.mean(dim=1, keepdim=True)))
        logits = F.linear(states, self.table.weight) + self.bias  # tied
        return SimpleNamespace(logits=logits, loss=masked_lm_loss(logits, labels))


def text(num_sequences: int = 12) -> list[Tensor]:
    """Sequences that repeat one token, so that there is something to learn."""
    return [torch.full((6,), 2 + i % 9) for i in range(num_sequences)]


def mask_some(examples: list[Tensor], *, generator: torch.Generator) -> dict[str, Tensor]:
    """A batch in which every sequence has another number of masks, from one to all but one."""
    input_ids = torch.stack(examples)
    numbers = torch.arange(len(examples)) % 5 + 1
    order = torch.rand(input_ids.shape, generator=generator).argsort(dim=1)
    selected = order < numbers[:, None]
    return {
        "input_ids": input_ids.masked_fill(selected, 1),
        "labels": input_ids.masked_fill(~selected, IGNORE_INDEX),
    }


def tiny_trainer(*, dropout: float = 0.0, model_seed: int = 0, accumulation: int = 1, **arguments) -> Trainer:
    settings = TrainingSettings(
        steps=12, learning_rate=0.05, warmup_steps=3, accumulation=accumulation, precision="float32"
    )
    batches = ShuffledBatches(text(), mask_some, batch_size=5, seed=1)
    return Trainer(TinyMaskedLM(dropout, model_seed), batches, settings, **arguments)


def losses_of(trainer: Trainer, upto: int) -> list[float]:
    """Train, and say what the loss was."""
    return [losses["loss"] for losses in trainer.steps(upto=upto)]


def weights_of(trainer: Trainer) -> Tensor:
    """Every number of the model."""
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])
