"""Checkpoints: what is written is read again, public names of every age are read, and nothing goes missing unsaid."""

import json
import pickle
import re

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from bertbook.checkpoints import TIED, LoadingReport, load_tensors, read_checkpoint
from bertbook.config import BertConfig
from bertbook.heads import (
    BertForMaskedLM,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
)
from bertbook.model import BertModel

CONFIG = BertConfig(
    vocab_size=11,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=7,
    initializer_range=0.5,
    layer_norm_eps=1e-6,
)
MODELS = [
    (BertModel, {}),
    (BertForPreTraining, {}),
    (BertForMaskedLM, {}),
    (BertForSequenceClassification, {"num_labels": 3}),
    (BertForTokenClassification, {"num_labels": 5}),
    (BertForQuestionAnswering, {}),
]
every_model = pytest.mark.parametrize(("model_class", "arguments"), MODELS, ids=[m.__name__ for m, _ in MODELS])


def built(model_class, *, seed: int = 0, **arguments) -> nn.Module:
    torch.manual_seed(seed)
    model = model_class(CONFIG, **arguments).eval()
    with torch.no_grad():
        for p in model.parameters():
            p += 0.1 * torch.randn(p.shape)
    return model


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def rewrite(folder, change) -> None:
    """Change the tensors of a saved model."""
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path)


def refusal(call) -> str:
    with pytest.raises(ValueError, match="does not fit") as caught:
        call()
    return str(caught.value)


@every_model
def test_what_is_written_is_read_again(model_class, arguments, tmp_path):
    model = built(model_class, **arguments).train()
    folder = tmp_path / "deep" / "folder"
    model.save_pretrained(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    again, report = model_class.from_pretrained(folder, output_loading_info=True)
    assert report == LoadingReport((), ())
    assert same_weights(again, model)
    assert again.config == model.config
    assert not again.training
    assert json.loads((folder / "config.json").read_text("utf-8"))["architectures"] == [model_class.__name__]


def test_names_of_classes_survive(tmp_path):
    names = {0: "fresh", 1: "rotten"}
    BertForSequenceClassification(BertConfig(**vars(CONFIG) | {"id2label": names})).save_pretrained(tmp_path)
    assert BertForSequenceClassification.from_pretrained(tmp_path).config.id2label == names


def test_tied_tensors_are_written_once_and_are_tied_again(tmp_path):
    built(BertForPreTraining).save_pretrained(tmp_path)
    assert not TIED.keys() & load_file(tmp_path / "model.safetensors").keys()
    model = BertForPreTraining.from_pretrained(tmp_path)
    head = model.cls["predictions"]
    assert head.decoder.weight is model.bert.embeddings.word_embeddings.weight
    assert head.decoder.bias is head.bias


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_no_precision_is_lost(stored, read, tmp_path):
    model = built(BertForMaskedLM).to(stored)
    model.save_pretrained(tmp_path)
    again = BertForMaskedLM.from_pretrained(tmp_path)
    assert {p.dtype for p in again.parameters()} == {read}
    assert same_weights(again.to(stored), model)


def test_loading_into_a_state_dict_without_the_second_names():
    """The released checkpoint has the bias once; load_state_dict takes it as it is."""
    model, fresh = built(BertForPreTraining), built(BertForPreTraining, seed=1)
    released = {name: tensor for name, tensor in model.state_dict().items() if name != "cls.predictions.decoder.bias"}
    before = dict(released)
    fresh.load_state_dict(released)
    assert same_weights(fresh, model)
    assert released.keys() == before.keys()  # the caller's dictionary is left alone


def test_gamma_beta_and_position_ids_of_old_checkpoints_are_read(tmp_path):
    model = built(BertForPreTraining)
    model.save_pretrained(tmp_path)

    def age(tensors):
        old = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
            for name, tensor in tensors.items()
        }
        assert len(old.keys() & tensors.keys()) < len(old)
        return old | {"bert.embeddings.position_ids": torch.arange(7)[None]}

    rewrite(tmp_path, age)
    assert same_weights(BertForPreTraining.from_pretrained(tmp_path), model)


# From one task to another


def test_an_encoder_goes_under_a_head_and_says_what_is_fresh(tmp_path):
    encoder = built(BertModel)
    encoder.save_pretrained(tmp_path)
    torch.manual_seed(3)
    model, report = BertForSequenceClassification.from_pretrained(tmp_path, num_labels=4, output_loading_info=True)
    assert report == LoadingReport(missing=("classifier.weight", "classifier.bias"), unexpected=())
    assert same_weights(model.bert, encoder)
    assert model.classifier.weight.any()
    message = refusal(lambda: BertForSequenceClassification.from_pretrained(tmp_path, num_labels=4))
    assert "missing: classifier.weight, classifier.bias" in message
    assert "output_loading_info=True lets them be fresh" in message


def test_a_pretrained_model_goes_under_another_head(tmp_path):
    pretrained = built(BertForPreTraining)
    pretrained.save_pretrained(tmp_path)
    model, report = BertForTokenClassification.from_pretrained(tmp_path, num_labels=4, output_loading_info=True)
    assert report.missing == ("classifier.weight", "classifier.bias")
    left = {name.split(".")[0] for name in report.unexpected}
    assert left == {"bert", "cls"}
    assert {name for name in report.unexpected if name.startswith("bert.")} == {
        "bert.pooler.dense.weight",  # this head reads every position
        "bert.pooler.dense.bias",
    }
    for part in ("embeddings", "encoder"):
        assert same_weights(getattr(model.bert, part), getattr(pretrained.bert, part))


def test_an_encoder_is_taken_out_from_under_its_head(tmp_path):
    pretrained = built(BertForPreTraining)
    pretrained.save_pretrained(tmp_path)
    encoder, report = BertModel.from_pretrained(tmp_path, output_loading_info=True)
    assert report.missing == ()
    assert all(name.startswith("cls.") for name in report.unexpected)
    assert same_weights(encoder, pretrained.bert)
    built(BertForMaskedLM).save_pretrained(tmp_path)
    _, report = BertModel.from_pretrained(tmp_path, output_loading_info=True)
    assert report.missing == ("pooler.dense.weight", "pooler.dense.bias")
    _, report = BertModel.from_pretrained(tmp_path, add_pooling_layer=False, output_loading_info=True)
    assert report.missing == ()


@pytest.mark.parametrize("gaps", [False, True])
def test_all_that_is_wrong_is_named_at_once_and_nothing_is_changed(gaps, tmp_path):
    model = built(BertForPreTraining)
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items() if name not in TIED}
    del tensors["bert.embeddings.LayerNorm.bias"], tensors["bert.encoder.layer.1.output.dense.weight"]
    tensors["bert.encoder.layer.2.output.dense.weight"] = torch.zeros(2)
    tensors["bert.embeddings.position_embeddings.weight"] = torch.zeros(6, 8)
    tensors["cls.seq_relationship.bias"] = torch.zeros(3)
    tensors["cls.predictions.decoder.bias"] = torch.ones(11)
    fresh = built(BertForPreTraining, seed=1)
    before = {name: tensor.clone() for name, tensor in fresh.state_dict().items()}
    message = refusal(lambda: load_tensors(fresh, tensors, gaps=gaps))
    assert message.splitlines() == [
        "the checkpoint does not fit a BertForPreTraining:",
        "  missing: bert.embeddings.LayerNorm.bias, bert.encoder.layer.1.output.dense.weight",
        "  left over: bert.encoder.layer.2.output.dense.weight",
        "  another shape: bert.embeddings.position_embeddings.weight is (6, 8) in the file, (7, 8) in the model, "
        "cls.seq_relationship.bias is (3,) in the file, (2,) in the model",
        "  not tied: cls.predictions.decoder.bias differs from cls.predictions.bias",
    ]
    assert all(torch.equal(tensor, before[name]) for name, tensor in fresh.state_dict().items())


def test_an_untied_decoder_is_refused():
    model = built(BertForMaskedLM)
    tensors = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    load_tensors(model, tensors)  # as it is, it fits
    tensors["cls.predictions.decoder.weight"][3, 0] += 1
    assert "decoder.weight differs from bert.embeddings" in refusal(lambda: load_tensors(model, tensors))


# Files


def test_a_missing_folder_or_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        BertModel.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"has no config.json; it holds \[\]"):
        BertModel.from_pretrained(tmp_path)
    built(BertModel).save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no model.safetensors; it holds \['config.json'\]"):
        BertModel.from_pretrained(tmp_path)


class Alarm:
    def __reduce__(self):
        return pytest.fail, ("a pickle was executed",)


def test_a_pickle_is_never_opened(tmp_path):
    built(BertModel).save_pretrained(tmp_path)
    evil = pickle.dumps(Alarm())
    (tmp_path / "pytorch_model.bin").write_bytes(evil)
    BertModel.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"a pickle .* could run code"):
        BertModel.from_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(evil)  # under a false name
    with pytest.raises(ValueError, match="is not a whole safetensors file"):
        BertModel.from_pretrained(tmp_path)


def test_half_a_file_is_refused(tmp_path):
    built(BertModel).save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is not a whole safetensors file"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config.json is not JSON"),
        ("[]", r"config.json must hold one JSON object, got \[\]"),
        ('{"hidden_act": "relu"}', "hidden_act must be 'gelu'"),
        ('{"model_type": "roberta"}', "model_type must be 'bert', got 'roberta'"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused(text, message, tmp_path):
    built(BertModel).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=re.compile(message)):
        BertModel.from_pretrained(tmp_path)
