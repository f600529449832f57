"""Checkpoints: a folder with config.json and model.safetensors, as in public code.

The safetensors format holds tensors and their names. Reading it never runs code, which
reading a pickle (pytorch_model.bin) can. What does not fit is an error that names every
tensor at once.
"""

import json
import re
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertbook.config import BertConfig

# Second names of tied tensors: a file holds the tensor once.
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
# What stands on the layers: a task may bring its own, or have none.
ON_TOP = re.compile(r"(bert\.)?pooler\.|cls\.|classifier\.|qa_outputs\.")


@dataclass(frozen=True)
class LoadingReport:
    """What a checkpoint and a model did not have in common, besides the encoder.

    >>> LoadingReport(missing=("classifier.bias",), unexpected=()).missing
    ('classifier.bias',)
    """

    missing: tuple[str, ...]  # not in the file: the model keeps its fresh numbers
    unexpected: tuple[str, ...]  # not in the model: left in the file


def write_checkpoint(model: nn.Module, folder: str | Path) -> None:
    """Write config.json and model.safetensors into the folder, made if missing.

    Args:
        model: any of this book's BERTs. Tied tensors are written once.

    >>> from bertbook.model import BertModel
    >>> folder = getfixture("tmp_path")
    >>> write_checkpoint(BertModel(BertConfig.mini()), folder)
    >>> sorted(path.name for path in folder.iterdir())
    ['config.json', 'model.safetensors']
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    published = {"architectures": [type(model).__name__], **model.config.to_dict()}
    text = json.dumps(published, indent=2, sort_keys=True) + "\n"
    (folder / "config.json").write_text(text, "utf-8")
    tensors = {
        name: tensor.contiguous()
        for name, tensor in model.state_dict().items()
        if name not in TIED
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def read_checkpoint(folder: str | Path) -> tuple[BertConfig, dict[str, Tensor]]:
    """The configuration, and every tensor by its name, of a folder.

    Raises:
        FileNotFoundError, ValueError: see BertPreTrainedModel.from_pretrained.

    >>> read_checkpoint("nowhere")
    Traceback (most recent call last):
    FileNotFoundError: there is no folder nowhere
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            found = sorted(path.name for path in folder.iterdir())
            raise FileNotFoundError(
                f"{folder} has no {name}; it holds {found}. "
                "Only safetensors are read: a pickle (.bin, .pt) could run code"
            )
    config = BertConfig.from_json_file(folder / "config.json")
    try:
        return config, load_file(folder / "model.safetensors")
    except SafetensorError as error:
        raise ValueError(
            f"{folder / 'model.safetensors'} is not a whole safetensors file: {error}"
        ) from error


def as_named_in(model: nn.Module, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under the names that this model has for them.

    The first releases said gamma and beta for LayerNorm's weight and bias. An encoder's
    names begin with "bert." inside a model with a head. Position ids are no weights:
    they are 0, 1, 2, ...

    >>> as_named_in(nn.Module(), {"bert.embeddings.LayerNorm.gamma": torch.ones(2)})
    {'embeddings.LayerNorm.weight': tensor([1., 1.])}
    """
    encoder_alone = not any(name.startswith("bert.") for name in tensors)
    inside = hasattr(model, "bert")
    named = {}
    for name, tensor in tensors.items():
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
        if name.endswith("embeddings.position_ids"):
            continue
        if inside and encoder_alone:
            name = f"bert.{name}"
        named[name if inside else name.removeprefix("bert.")] = tensor
    return named


def load_tensors(
    model: nn.Module, tensors: dict[str, Tensor], *, gaps: bool = False
) -> LoadingReport:
    """Copy the tensors into the model, or raise one error that names all that is wrong.

    The model gets their precision, but no less than float32.

    Args:
        model: any of this book's BERTs. It is unchanged if an error is raised.
        tensors: by their public names.
        gaps: pooler and heads may be missing or left over.

    Raises:
        ValueError: see BertPreTrainedModel.from_pretrained.

    >>> load_tensors(nn.Linear(2, 1), {"weight": torch.ones(1, 3)})
    Traceback (most recent call last):
    ValueError: the checkpoint does not fit a Linear:
      missing: bias
      another shape: weight is (1, 3) in the file, (1, 2) in the model
    """
    named, wanted = as_named_in(model, tensors), model.state_dict()
    untied = [
        f"{second} differs from {first}"
        for second, first in TIED.items()
        if second in named
        and first in named
        and not torch.equal(named[second], named[first])
    ]
    for second, first in TIED.items():
        if first in named and second in wanted:
            named[second] = named[first]
    missing = [name for name in wanted if name not in named]
    unexpected = [name for name in named if name not in wanted]
    misshapen = [
        f"{name} is {tuple(named[name].shape)} in the file, "
        f"{tuple(tensor.shape)} in the model"
        for name, tensor in wanted.items()
        if name in named and named[name].shape != tensor.shape
    ]
    refused = {
        "missing": [n for n in missing if not (gaps and ON_TOP.match(n))],
        "left over": [n for n in unexpected if not (gaps and ON_TOP.match(n))],
        "another shape": misshapen,
        "not tied": untied,
    }
    if any(refused.values()):
        lines = [f"  {what}: {', '.join(n)}" for what, n in refused.items() if n]
        if not gaps and all(map(ON_TOP.match, missing + unexpected)) and not misshapen:
            lines.append(
                "  Only pooler and heads: output_loading_info=True lets them be fresh "
                "or left over, and says which"
            )
        raise ValueError(
            "\n".join(
                [f"the checkpoint does not fit a {type(model).__name__}:", *lines]
            )
        )
    dtypes = (tensor.dtype for tensor in named.values())
    model.to(reduce(torch.promote_types, dtypes, torch.float32))
    model.load_state_dict(named, strict=False)
    return LoadingReport(tuple(missing), tuple(unexpected))
