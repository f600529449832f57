"""What stands on top of the encoder: the two pretraining heads and three task heads."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.config import BertConfig
from bertbook.model import BertModel, initialize


@dataclass
class PretrainingOutput:
    """The logits of both pretraining tasks.

    >>> output = PretrainingOutput(torch.zeros(1, 3, 9), torch.zeros(1, 2))
    >>> output.prediction_logits.shape
    torch.Size([1, 3, 9])
    """

    prediction_logits: Tensor  # (B, T, V)
    seq_relationship_logits: Tensor  # (B, 2)


class MaskedLMHead(nn.Module):
    """Dense, GELU, LayerNorm, then the token table again as decoder, plus a bias.

    Source: slide 24; Devlin et al. 2019, section 3.1; run_pretraining.py.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_attention_heads=2)
    >>> head = MaskedLMHead(config, token_table=nn.Embedding(9, 8))
    >>> head(torch.zeros(1, 3, 8)).shape
    torch.Size([1, 3, 9])
    """

    def __init__(self, config: BertConfig, *, token_table: nn.Embedding):
        super().__init__()
        self.transform = nn.ModuleDict(
            {
                "dense": nn.Linear(config.hidden_size, config.hidden_size),
                "LayerNorm": nn.LayerNorm(
                    config.hidden_size, eps=config.layer_norm_eps
                ),
            }
        )
        initialize(self, std=config.initializer_range)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.decoder.weight = token_table.weight  # tied: one tensor, two uses
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, hidden_states: Tensor) -> Tensor:
        """(..., D) -> logits (..., V)."""
        transformed = F.gelu(self.transform["dense"](hidden_states))
        return self.decoder(self.transform["LayerNorm"](transformed)) + self.bias


class BertForPreTraining(nn.Module):
    """The encoder with both pretraining heads.

    Source: slides 24 and 27; Devlin et al. 2019, section 3.1.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> BertForPreTraining(config)(torch.tensor([[1, 2]])).seq_relationship_logits.shape
    torch.Size([1, 2])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.bert = BertModel(config)
        table = self.bert.embeddings.word_embeddings
        self.cls = nn.ModuleDict(
            {
                "predictions": MaskedLMHead(config, token_table=table),
                "seq_relationship": nn.Linear(config.hidden_size, 2),
            }
        )
        initialize(self.cls["seq_relationship"], std=config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        *,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> PretrainingOutput:
        """Token ids (B, T) -> logits for every token and for every pair."""
        output = self.bert(
            input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )
        return PretrainingOutput(
            self.cls["predictions"](output.last_hidden_state),
            self.cls["seq_relationship"](output.pooler_output),
        )


def check_num_labels(num_labels: int) -> None:
    """Raise a clear error for a number of classes that no head can have.

    >>> check_num_labels(0)
    Traceback (most recent call last):
    ValueError: num_labels must be a positive int, got 0
    """
    if (
        not isinstance(num_labels, int)
        or isinstance(num_labels, bool)
        or num_labels < 1
    ):
        raise ValueError(f"num_labels must be a positive int, got {num_labels!r}")


class BertForSequenceClassification(nn.Module):
    """Dropout and a linear layer on the pooled [CLS] state: one label a sequence.

    Source: slide 33; google-research/bert, run_classifier.py.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> model = BertForSequenceClassification(config, num_labels=3)
    >>> model(torch.tensor([[1, 2]])).shape
    torch.Size([1, 3])
    """

    def __init__(self, config: BertConfig, *, num_labels: int):
        super().__init__()
        check_num_labels(num_labels)
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, num_labels)
        initialize(self.classifier, std=config.initializer_range)

    def forward(self, input_ids: Tensor, **masks: Tensor | None) -> Tensor:
        """Token ids (B, T) -> logits (B, num_labels); keywords as for BertModel."""
        return self.classifier(
            self.dropout(self.bert(input_ids, **masks).pooler_output)
        )


class BertForTokenClassification(nn.Module):
    """Dropout and one linear layer, the same at every position: one label a token.

    Source: slide 33; Devlin et al. 2019, section 5.3.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> BertForTokenClassification(config, num_labels=5)(torch.tensor([[1, 2]])).shape
    torch.Size([1, 2, 5])
    """

    def __init__(self, config: BertConfig, *, num_labels: int):
        super().__init__()
        check_num_labels(num_labels)
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, num_labels)
        initialize(self.classifier, std=config.initializer_range)

    def forward(self, input_ids: Tensor, **masks: Tensor | None) -> Tensor:
        """Token ids (B, T) -> logits (B, T, num_labels)."""
        hidden_states = self.bert(input_ids, **masks).last_hidden_state
        return self.classifier(self.dropout(hidden_states))


class BertForQuestionAnswering(nn.Module):
    """One linear layer at every position: how likely an answer starts or ends there.

    Source: slide 33; Devlin et al. 2019, section 4.2; run_squad.py.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> model = BertForQuestionAnswering(config)
    >>> start_logits, end_logits = model(torch.tensor([[1, 2]]))
    >>> start_logits.shape
    torch.Size([1, 2])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.bert = BertModel(config)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        initialize(self.qa_outputs, std=config.initializer_range)

    def forward(
        self, input_ids: Tensor, **masks: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Token ids (B, T) -> start logits (B, T) and end logits (B, T)."""
        logits = self.qa_outputs(self.bert(input_ids, **masks).last_hidden_state)
        start_logits, end_logits = logits.unbind(dim=-1)
        return start_logits, end_logits
