"""What the models return: named tensors, under the names of the public code.

A field is None where nothing was asked for: the loss without labels, the attentions
without output_attentions=True, the logits of a masked-LM model that was given labels.
"""

from dataclasses import dataclass

from torch import Tensor

Attentions = tuple[Tensor, ...] | None  # one (B, H, T, T) a layer


@dataclass
class BertModelOutput:
    """What BertModel returns.

    >>> import torch
    >>> BertModelOutput(torch.zeros(1, 3, 8), torch.zeros(1, 8)).pooler_output.shape
    torch.Size([1, 8])
    """

    last_hidden_state: Tensor  # (B, T, D)
    pooler_output: Tensor | None = None  # (B, D)
    attentions: Attentions = None


@dataclass
class PretrainingOutput:
    """The logits of both pretraining tasks, and the losses of those that have labels.

    >>> import torch
    >>> output = PretrainingOutput(torch.zeros(1, 3, 9), torch.zeros(1, 2))
    >>> output.prediction_logits.shape
    torch.Size([1, 3, 9])
    """

    prediction_logits: Tensor | None  # (B, T, V)
    seq_relationship_logits: Tensor  # (B, 2)
    loss: Tensor | None = None  # the sum of the next two
    masked_lm_loss: Tensor | None = None
    next_sentence_loss: Tensor | None = None
    attentions: Attentions = None


@dataclass
class LogitsOutput:
    """What a head for one task returns.

    >>> import torch
    >>> LogitsOutput(torch.zeros(1, 3)).loss is None
    True
    """

    logits: Tensor | None  # (B, T, V), (B, num_labels) or (B, T, num_labels)
    loss: Tensor | None = None
    attentions: Attentions = None


@dataclass
class SpanOutput:
    """What the head for questions returns.

    >>> import torch
    >>> SpanOutput(torch.zeros(1, 3), torch.zeros(1, 3)).end_logits.shape
    torch.Size([1, 3])
    """

    start_logits: Tensor  # (B, T)
    end_logits: Tensor  # (B, T)
    loss: Tensor | None = None
    attentions: Attentions = None


def logits_of(output: Tensor | LogitsOutput) -> Tensor:
    """The logits of a model that returns them bare, as the toy does, or as BERT does.

    >>> import torch
    >>> bare = torch.zeros(1, 3)
    >>> logits_of(bare) is bare and logits_of(LogitsOutput(bare)) is bare
    True
    """
    return output if isinstance(output, Tensor) else output.logits
