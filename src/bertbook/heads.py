"""What stands on top of the encoder: the two pretraining heads and three task heads.

Called with labels, a model returns the loss too: the mean cross-entropy over what has a
label. IGNORE_INDEX is no label. Where there is none at all, the loss and its gradients
are 0. Other keywords (attention_mask, ...) are BertModel's. The masked-LM models decode
only the labelled positions then, because the decoder is as long as the vocabulary.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.config import BertConfig, count_labels
from bertbook.losses import classifier_loss, position_loss
from bertbook.masking import IGNORE_INDEX, masked_lm_loss
from bertbook.model import BertModel, initialize
from bertbook.outputs import LogitsOutput, PretrainingOutput, SpanOutput
from bertbook.pairs import next_sentence_loss
from bertbook.pretrained import BertPreTrainedModel


class BertWithHead(BertPreTrainedModel):
    """What all models on an encoder have in common.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_attention_heads=2)
    >>> BertForMaskedLM(config).config == config
    True
    """

    bert: BertModel

    @property
    def config(self) -> BertConfig:
        """The encoder's; a classifier's also names its classes."""
        config, classifier = self.bert.config, getattr(self, "classifier", None)
        if classifier is None:
            return replace(config, id2label=None)
        if len(config.id2label or ()) == classifier.out_features:
            return config
        names = {i: f"LABEL_{i}" for i in range(classifier.out_features)}
        return replace(config, id2label=names)

    def resize_token_embeddings(self, vocab_size: int) -> None:
        """As BertModel's; the decoder and its bias, if there is one, follow."""
        self.bert.resize_token_embeddings(vocab_size)
        if hasattr(self, "cls"):
            self.cls["predictions"].tie(self.bert.embeddings.word_embeddings)


class MaskedLMHead(nn.Module):
    """Dense, GELU, LayerNorm, then the token table again as decoder, plus a bias.

    The bias has two names, as in the public code (bias and decoder.bias): one tensor,
    added once.

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
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.tie(token_table)
        self.register_load_state_dict_pre_hook(name_bias_twice)

    def tie(self, token_table: nn.Embedding) -> None:
        """Decode with this table: one tensor, two uses. New rows get a bias of 0."""
        added = token_table.num_embeddings - len(self.bias)
        if added:
            longer = F.pad(self.bias.detach(), (0, added))  # shorter, if negative
            self.bias = nn.Parameter(longer, requires_grad=self.bias.requires_grad)
        self.decoder.weight = token_table.weight
        self.decoder.bias = self.bias
        self.decoder.out_features = token_table.num_embeddings

    def forward(self, hidden_states: Tensor) -> Tensor:
        """(..., D) -> logits (..., V)."""
        transformed = F.gelu(self.transform["dense"](hidden_states))
        return self.decoder(self.transform["LayerNorm"](transformed))

    def predict(
        self, hidden_states: Tensor, labels: Tensor | None, return_logits: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """States (B, T, D), labels (B, T) -> logits (B, T, V) or None, loss or None."""
        if labels is None:
            return self(hidden_states), None
        if labels.shape != hidden_states.shape[:-1]:
            raise ValueError(
                f"labels must have shape {tuple(hidden_states.shape[:-1])}, as "
                f"input_ids, got {tuple(labels.shape)}"
            )
        if return_logits:
            logits = self(hidden_states)
            return logits, masked_lm_loss(logits, labels)
        selected = labels != IGNORE_INDEX
        logits = self(hidden_states[selected])  # (selected, V): all that is decoded
        return None, masked_lm_loss(logits, labels[selected])


def name_bias_twice(head: MaskedLMHead, state: dict, prefix: str, *_) -> None:
    """Let a checkpoint load that has the bias under its first name only, as released.

    >>> state = {"bias": 1}
    >>> name_bias_twice(None, state, "")
    >>> state
    {'bias': 1, 'decoder.bias': 1}
    """
    if f"{prefix}bias" in state:
        state.setdefault(f"{prefix}decoder.bias", state[f"{prefix}bias"])


class BertForPreTraining(BertWithHead):
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
        labels: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        return_logits: bool = False,
        **inputs,
    ) -> PretrainingOutput:
        """Token ids (B, T) -> logits for every token and for every pair.

        With labels (B, T), and with next_sentence_label (B,): the losses, and their
        sum. With labels, prediction_logits only if return_logits.
        """
        output = self.bert(input_ids, **inputs)
        prediction_logits, masked_lm = self.cls["predictions"].predict(
            output.last_hidden_state, labels, return_logits
        )
        pair_logits = self.cls["seq_relationship"](output.pooler_output)
        next_sentence = None
        if next_sentence_label is not None:
            next_sentence = next_sentence_loss(pair_logits, next_sentence_label)
        given = [loss for loss in (masked_lm, next_sentence) if loss is not None]
        return PretrainingOutput(
            prediction_logits,
            pair_logits,
            loss=sum(given) if given else None,
            masked_lm_loss=masked_lm,
            next_sentence_loss=next_sentence,
            attentions=output.attentions,
        )


class BertForMaskedLM(BertWithHead):
    """The encoder, without pooler, and the masked-LM head.

    Source: slide 24; Devlin et al. 2019, section 3.1.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> BertForMaskedLM(config)(torch.tensor([[1, 2]])).logits.shape
    torch.Size([1, 2, 9])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        table = self.bert.embeddings.word_embeddings
        self.cls = nn.ModuleDict(
            {"predictions": MaskedLMHead(config, token_table=table)}
        )

    def forward(
        self,
        input_ids: Tensor,
        *,
        labels: Tensor | None = None,
        return_logits: bool = False,
        **inputs,
    ) -> LogitsOutput:
        """Token ids (B, T) -> logits (B, T, V).

        With labels (B, T): the loss, and logits only if return_logits.
        """
        output = self.bert(input_ids, **inputs)
        logits, loss = self.cls["predictions"].predict(
            output.last_hidden_state, labels, return_logits
        )
        return LogitsOutput(logits, loss, output.attentions)


class BertForSequenceClassification(BertWithHead):
    """Dropout and a linear layer on the pooled [CLS] state: one label a sequence.

    Source: slide 33; google-research/bert, run_classifier.py.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> model = BertForSequenceClassification(config, num_labels=3)
    >>> model(torch.tensor([[1, 2]])).logits.shape
    torch.Size([1, 3])
    """

    def __init__(self, config: BertConfig, *, num_labels: int | None = None):
        super().__init__()
        self.bert = BertModel(config)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(
            config.hidden_size, count_labels(config, num_labels)
        )
        initialize(self.classifier, std=config.initializer_range)

    def forward(
        self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs
    ) -> LogitsOutput:
        """Token ids (B, T) -> logits (B, num_labels). Labels (B,): the loss too."""
        output = self.bert(input_ids, **inputs)
        logits = self.classifier(self.dropout(output.pooler_output))
        loss = None if labels is None else classifier_loss(logits, labels)
        return LogitsOutput(logits, loss, output.attentions)


class BertForTokenClassification(BertWithHead):
    """Dropout and one linear layer, the same at every position: one label a token.

    Source: slide 33; Devlin et al. 2019, section 5.3.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> model = BertForTokenClassification(config, num_labels=5)
    >>> model(torch.tensor([[1, 2]])).logits.shape
    torch.Size([1, 2, 5])
    """

    def __init__(self, config: BertConfig, *, num_labels: int | None = None):
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(
            config.hidden_size, count_labels(config, num_labels)
        )
        initialize(self.classifier, std=config.initializer_range)

    def forward(
        self, input_ids: Tensor, *, labels: Tensor | None = None, **inputs
    ) -> LogitsOutput:
        """Token ids (B, T) -> logits (B, T, num_labels). Labels (B, T): the loss."""
        output = self.bert(input_ids, **inputs)
        logits = self.classifier(self.dropout(output.last_hidden_state))
        loss = None if labels is None else classifier_loss(logits, labels)
        return LogitsOutput(logits, loss, output.attentions)


class BertForQuestionAnswering(BertWithHead):
    """One linear layer at every position: how likely an answer starts or ends there.

    Source: slide 33; Devlin et al. 2019, section 4.2; run_squad.py.

    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> model = BertForQuestionAnswering(config)
    >>> model(torch.tensor([[1, 2]])).start_logits.shape
    torch.Size([1, 2])
    """

    def __init__(self, config: BertConfig):
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        initialize(self.qa_outputs, std=config.initializer_range)

    def forward(
        self,
        input_ids: Tensor,
        *,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        **inputs,
    ) -> SpanOutput:
        """Token ids (B, T) -> start logits and end logits, (B, T) each.

        With both positions (B,): the mean of the two losses.
        """
        if (start_positions is None) != (end_positions is None):
            raise ValueError("start_positions and end_positions: give both, or neither")
        output = self.bert(input_ids, **inputs)
        starts, ends = self.qa_outputs(output.last_hidden_state).unbind(dim=-1)
        loss = None
        if start_positions is not None:
            start = position_loss(starts, start_positions, name="start_positions")
            end = position_loss(ends, end_positions, name="end_positions")
            loss = (start + end) / 2
        return SpanOutput(starts, ends, loss, output.attentions)
