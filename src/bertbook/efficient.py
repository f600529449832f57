"""Training few numbers: LoRA, adapters and prompt tuning on a frozen BERT.

Vectors are columns in the formulas and rows in the tensors, as everywhere in torch: a
linear layer stores W with shape (out, in) and computes x Wᵀ.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from bertbook.attention import padding_mask
from bertbook.freezing import model_parts, set_trainable
from bertbook.heads import BertForSequenceClassification
from bertbook.model import BertSublayerOutput
from bertbook.tiny import count_parameters


class LoRALinear(nn.Module):
    """A frozen linear layer plus a trainable change of low rank: W x + (alpha/r) B A x.

    B starts at zero, so that the layer starts as the one it replaces.

    Args:
        base: the layer to adapt; its parameters are frozen.
        rank: r, from 1 to the smaller side of W.
        alpha: the change is scaled by alpha / r.
        generator: draws A.

    Raises:
        TypeError: if base is not an nn.Linear, or rank not an int.
        ValueError: if rank or alpha is out of range.

    Source: the fine-tuning text, efficient methods; Hu et al. 2021, section 4.1.

    >>> base = nn.Linear(6, 4)
    >>> lora = LoRALinear(base, rank=2, alpha=4.0)
    >>> x = torch.ones(3, 6)
    >>> torch.equal(lora(x), base(x)), count_parameters(lora)
    (True, 20)
    """

    def __init__(
        self,
        base: nn.Linear,
        *,
        rank: int,
        alpha: float,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_lora(base, rank, alpha)
        out_features, in_features = base.weight.shape
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        like = {"device": base.weight.device, "dtype": base.weight.dtype}
        self.A = nn.Parameter(torch.empty(rank, in_features, **like))
        self.B = nn.Parameter(torch.zeros(out_features, rank, **like))
        nn.init.normal_(self.A, std=in_features**-0.5, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """(..., in) -> (..., out). The product B A is never formed."""
        return self.base(x) + self.scale * (x @ self.A.T @ self.B.T)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """One linear layer with the weight W + (alpha/r) B A: no cost at inference.

        It is frozen, as the base is.
        """
        out_features, in_features = self.base.weight.shape
        has_bias = self.base.bias is not None
        linear = nn.utils.skip_init(  # draws nothing: the weights come from the base
            nn.Linear,
            in_features,
            out_features,
            bias=has_bias,
            device=self.base.weight.device,
            dtype=self.base.weight.dtype,
        )
        linear.weight.copy_(self.base.weight + self.scale * self.B @ self.A)
        if has_bias:
            linear.bias.copy_(self.base.bias)
        for new, old in zip(linear.parameters(), self.base.parameters(), strict=True):
            new.requires_grad_(old.requires_grad)
        return linear


def check_lora(base: nn.Linear, rank: int, alpha: float) -> None:
    """Raise a clear error for arguments that LoRALinear cannot use.

    >>> check_lora(nn.Linear(6, 4), 5, 1.0)
    Traceback (most recent call last):
    ValueError: rank must be from 1 to 4, got 5
    """
    if not isinstance(base, nn.Linear):
        raise TypeError(f"base must be an nn.Linear, got {type(base).__name__}")
    if not isinstance(rank, int) or isinstance(rank, bool):
        raise TypeError(f"rank must be an int, got {rank!r}")
    if not 1 <= rank <= min(base.weight.shape):
        raise ValueError(f"rank must be from 1 to {min(base.weight.shape)}, got {rank}")
    if not 0 < alpha < math.inf:
        raise ValueError(
            f"alpha must be greater than 0, got {alpha}: give a finite number"
        )


def check_size(name: str, size: int) -> None:
    """Raise a clear error for a size that is not a positive int.

    >>> check_size("bottleneck", 0)
    Traceback (most recent call last):
    ValueError: bottleneck must be at least 1, got 0
    """
    if not isinstance(size, int) or isinstance(size, bool):
        raise TypeError(f"{name} must be an int, got {size!r}")
    if size < 1:
        raise ValueError(f"{name} must be at least 1, got {size}")


def freeze_all_but_head(model: nn.Module) -> None:
    """What the three methods begin with: only the task head still trains.

    >>> from bertbook.tiny import TinyBertForClassification
    >>> model = TinyBertForClassification()
    >>> freeze_all_but_head(model)
    >>> count_parameters(model)
    66
    """
    below = [part for part in model_parts(model) if part != "head"]
    set_trainable(model, below, False)


def add_lora(
    model: nn.Module,
    *,
    rank: int = 8,
    alpha: float = 16.0,
    targets: tuple[str, ...] = ("query", "value"),
    generator: torch.Generator | None = None,
) -> int:
    """Freeze all but the head, and give every target layer a LoRA change, in place.

    Args:
        model: a model on a BertModel.
        rank: r.
        alpha: the scale's numerator.
        targets: the last part of the names of linear layers.
        generator: draws each A, in the order of the layers.

    Returns:
        how many trainable numbers were added.

    Raises:
        TypeError: if targets is a single string.
        ValueError: if a target names no linear layer; or as for LoRALinear. The model
            is unchanged then.

    Source: Hu et al. 2021, section 4.2.

    >>> from bertbook.config import BertConfig
    >>> with torch.device("meta"):
    ...     model = BertForSequenceClassification(BertConfig.base(), num_labels=2)
    >>> f"{add_lora(model, rank=8):,}"
    '294,912'
    """
    if isinstance(targets, str):
        raise TypeError(f"targets must be a tuple of names, got the text {targets!r}")
    found = [
        (parent, name, layer)
        for parent in model.modules()
        for name, layer in parent.named_children()
        if name in targets and isinstance(layer, nn.Linear)
    ]
    missing = set(targets) - {name for _, name, _ in found}
    if missing or not found:
        raise ValueError(
            f"targets must name linear layers of the model, got {targets}: "
            f"it has none called {sorted(missing)}"
        )
    for _, _, layer in found:  # all is checked before anything changes
        check_lora(layer, rank, alpha)
    freeze_all_but_head(model)
    before = count_parameters(model)
    for parent, name, layer in found:
        lora = LoRALinear(layer, rank=rank, alpha=alpha, generator=generator)
        parent.add_module(name, lora)
    return count_parameters(model) - before


def merge_lora(model: nn.Module) -> nn.Module:
    """Replace every LoRALinear by one linear layer with the merged weight, in place.

    A merged layer is frozen, as its base was. A model that *is* a LoRALinear cannot be
    replaced in place: the merged layer is what is returned.

    >>> model = nn.Sequential(LoRALinear(nn.Linear(6, 4), rank=2, alpha=4.0))
    >>> merge_lora(model)
    Sequential(
      (0): Linear(in_features=6, out_features=4, bias=True)
    )
    """
    if isinstance(model, LoRALinear):
        return model.merged()
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if isinstance(layer, LoRALinear):
                parent.add_module(name, layer.merged())
    return model


class Adapter(nn.Module):
    """A small bottleneck with its own skip: x + up(gelu(down(x))).

    `up` starts at zero, so that the adapter starts as the identity.

    Args:
        hidden_size: D.
        bottleneck: m, the width in between.
        generator: draws the weights of `down`.
        dtype, device: as for nn.Linear.

    Raises:
        ValueError: if a size is not positive.

    Source: the fine-tuning text, efficient methods; Houlsby et al. 2019, section 2.1.

    >>> x = torch.ones(1, 3, 8)
    >>> torch.equal(Adapter(8, bottleneck=2)(x), x)
    True
    """

    def __init__(
        self,
        hidden_size: int,
        *,
        bottleneck: int,
        generator: torch.Generator | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | None = None,
    ):
        super().__init__()
        for name, size in {
            "hidden_size": hidden_size,
            "bottleneck": bottleneck,
        }.items():
            check_size(name, size)
        like = {"dtype": dtype, "device": device or torch.get_default_device()}
        # skip_init: nn.Linear alone would draw from the global generator.
        self.down = nn.utils.skip_init(nn.Linear, hidden_size, bottleneck, **like)
        self.up = nn.utils.skip_init(nn.Linear, bottleneck, hidden_size, **like)
        nn.init.normal_(self.down.weight, std=hidden_size**-0.5, generator=generator)
        for zero in (self.down.bias, self.up.weight, self.up.bias):
            nn.init.zeros_(zero)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        return x + self.up(F.gelu(self.down(x)))


def add_adapters(
    model: nn.Module, *, bottleneck: int, generator: torch.Generator | None = None
) -> int:
    """Freeze all but the head; put two adapters *inside* each layer, in place.

    One follows the dense layer of each sublayer (attention and feed-forward), before
    the sublayer's input is added. The LayerNorms behind them train too.

    Args:
        model: a model on a BertModel.
        bottleneck: m.
        generator: draws the adapters' weights.

    Returns:
        how many trainable numbers there are now besides the head.

    Raises:
        ValueError: if the model has no BERT layer, or has adapters already, or
            bottleneck is not positive. The model is unchanged then.

    Source: Houlsby et al. 2019, figure 2.

    >>> from bertbook.config import BertConfig
    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> model = BertForSequenceClassification(config, num_labels=2)
    >>> add_adapters(model, bottleneck=2)  # two of 2 * 16 + 10, and two LayerNorms
    116
    """
    sublayers = [
        part for part in model.modules() if isinstance(part, BertSublayerOutput)
    ]
    if not sublayers:
        raise ValueError(f"model has no BERT layer, got a {type(model).__name__}")
    if not all(isinstance(part.dense, nn.Linear) for part in sublayers):
        raise ValueError("model has adapters (or LoRA) already: start from a new model")
    check_size("bottleneck", bottleneck)
    freeze_all_but_head(model)
    before = count_parameters(model)
    for sublayer in sublayers:
        weight = sublayer.dense.weight
        adapter = Adapter(
            len(weight),
            bottleneck=bottleneck,
            generator=generator,
            dtype=weight.dtype,
            device=weight.device,
        )
        sublayer.dense = nn.Sequential(sublayer.dense, adapter)
        sublayer.LayerNorm.requires_grad_(True)
    return count_parameters(model) - before


class PromptTuning(nn.Module):
    """Trainable vectors in front of the embedded input of a frozen classifier.

    The classifier's head trains as well. It reads the first *real* token, [CLS], which
    the prompt has pushed to the right.

    Args:
        classifier: its parameters are frozen, except the head's.
        prompt_length: P, at least 1.
        generator: draws the prompt, with the spread of BERT's embeddings.

    Raises:
        ValueError: if prompt_length is not positive.

    Source: the fine-tuning text, efficient methods; Lester et al. 2021, section 2.

    >>> from bertbook.config import BertConfig
    >>> config = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1,
    ...                     num_attention_heads=2, intermediate_size=16)
    >>> classifier = BertForSequenceClassification(config, num_labels=2)
    >>> model = PromptTuning(classifier, prompt_length=3)
    >>> model(torch.tensor([[1, 2]])).shape, model.prompt.numel()
    (torch.Size([1, 2]), 24)
    """

    def __init__(
        self,
        classifier: BertForSequenceClassification,
        *,
        prompt_length: int,
        generator: torch.Generator | None = None,
    ):
        super().__init__()
        check_size("prompt_length", prompt_length)
        freeze_all_but_head(classifier)
        self.classifier = classifier
        table = classifier.bert.embeddings.word_embeddings.weight
        self.prompt = nn.Parameter(table.new_empty(prompt_length, table.shape[1]))
        nn.init.normal_(self.prompt, generator=generator)

    def forward(
        self, input_ids: Tensor, *, attention_mask: Tensor | None = None
    ) -> Tensor:
        """Token ids (B, T) -> logits (B, num_labels). The prompt is never masked."""
        bert = self.classifier.bert
        tokens = bert.embeddings(input_ids)  # (B, T, D)
        prompt = self.prompt.expand(len(tokens), -1, -1)  # (B, P, D)
        mask = None
        if attention_mask is not None:
            real = attention_mask.new_ones(prompt.shape[:2])
            mask = padding_mask(torch.cat([real, attention_mask], dim=1))
            mask = mask.to(tokens.dtype)
        states = torch.cat([prompt, tokens], dim=1)
        for layer in bert.encoder["layer"]:
            states = layer(states, mask=mask)
        pooled = bert.pooler(states[:, len(self.prompt) :])
        return self.classifier.classifier(self.classifier.dropout(pooled))
