"""Models of Hugging Face's transformers, saved and loaded as real folders: what they say of themselves, by our door."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor, nn

from tests.kit.foreign.hugging_face import KINDS, SMALL, WORDS, given, made
from tests.kit.foreign.modules import at_once, left_as_it_was
from transformer import capture
from transformer.attention import masked_softmax
from transformer.capturing import hugging_face
from transformer.capturing.record import Captured, Notes

LACKS = {"Gemma2ForCausalLM": ("sdpa",)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for kind in KINDS:
        made(kind).save_pretrained(root / kind)
    return root


def opened(folders: Path, kind: str, kernel: str) -> transformers.PreTrainedModel:
    model = getattr(transformers, kind).from_pretrained(folders / kind, attn_implementation=kernel)
    assert isinstance(model, transformers.PreTrainedModel)
    return model


def told(kind: str, answer: transformers.utils.ModelOutput) -> list[Tensor]:
    """What the model itself reports, in the order of the calls."""
    if kind != "T5Model":
        return list(answer.attentions)
    crossed = zip(answer.decoder_attentions, answer.cross_attentions, strict=True)
    return [*answer.encoder_attentions, *(each for pair in crossed for each in pair)]


def patterns(seen: Captured) -> list[Tensor]:
    return [seen[f"{name}.pattern"] for name in seen.attentions()]


@pytest.mark.parametrize(
    ("kind", "kernel"),
    [(kind, kernel) for kind in KINDS for kernel in ("eager", "sdpa") if kernel not in LACKS.get(kind, ())],
)
def test_the_patterns_are_those_that_the_eager_model_reports(folders: Path, kind: str, kernel: str) -> None:
    model, eager = opened(folders, kind, kernel), opened(folders, kind, "eager")
    with torch.no_grad():
        expected = eager(**given(kind), output_attentions=True)
        plain = model(**given(kind))
    seen = capture(model, **given(kind))
    for pattern, reported in zip(patterns(seen), told(kind, expected), strict=True):
        torch.testing.assert_close(pattern, reported, atol=1e-5, rtol=0)
    assert not seen.unseen
    assert torch.equal(seen.output[0], expected[0])
    torch.testing.assert_close(seen.output[0], plain[0], atol=1e-5, rtol=1e-5)
    if kernel == "eager":
        assert torch.equal(seen.output[0], plain[0])
    for name in seen.attentions():
        torch.testing.assert_close(seen[f"{name}.pattern"] @ seen[f"{name}.value"], seen[f"{name}.z"])
        if kind == "Gemma2ForCausalLM":
            assert f"{name}.scores" not in seen.sites  # they are capped before softmax
        else:
            again = masked_softmax(seen[f"{name}.scores"], seen.sites.get(f"{name}.mask"))
            torch.testing.assert_close(again, seen[f"{name}.pattern"], atol=1e-5, rtol=1e-5)


BY_HAND = {
    "BloomForCausalLM": ("BloomConfig", {"hidden_size": 32, "n_head": 4, "n_layer": 2}),
    "CodeGenForCausalLM": ("CodeGenConfig", {"n_embd": 32, "n_head": 4, "n_layer": 2, "rotary_dim": 4}),
    "DebertaModel": ("DebertaConfig", SMALL),
    "GPTJForCausalLM": ("GPTJConfig", {"n_embd": 32, "n_head": 4, "n_layer": 2, "rotary_dim": 4}),
    "IBertModel": ("IBertConfig", SMALL),
    "MegatronBertModel": ("MegatronBertConfig", SMALL),
    "MptForCausalLM": ("MptConfig", {"d_model": 32, "n_heads": 4, "n_layers": 2}),
    "XGLMForCausalLM": ("XGLMConfig", {"d_model": 32, "ffn_dim": 64, "num_layers": 2, "attention_heads": 4}),
    "XLMModel": ("XLMConfig", {"emb_dim": 32, "n_heads": 4, "n_layers": 2, "n_words": 50}),
}
"""Families that write their attention out: with heads in the batch (Bloom, XGLM), or in an axis of their own."""


@pytest.mark.parametrize("kind", BY_HAND)
def test_families_that_write_attention_out_are_followed_to_what_they_report(kind: str) -> None:
    config, settings = BY_HAND[kind]
    torch.manual_seed(0)
    model = getattr(transformers, kind)(getattr(transformers, config)(**WORDS | settings)).eval()
    model.set_attn_implementation("eager")
    tokens = given("GPT2LMHeadModel")["input_ids"]
    with torch.no_grad():
        reported = model(tokens, output_attentions=True).attentions
    seen = capture(model, tokens)
    assert (seen.unseen, seen.remarks) == ((), ())
    for pattern, expected in zip(patterns(seen), reported, strict=True):
        torch.testing.assert_close(pattern, expected, atol=1e-5, rtol=0)
    for name in seen.attentions():
        torch.testing.assert_close(seen[f"{name}.pattern"] @ seen[f"{name}.value"], seen[f"{name}.z"])


def test_a_window_and_padding_are_masks(folders: Path) -> None:
    kind = "MistralForCausalLM"
    seen = capture(opened(folders, kind, "sdpa"), **given(kind))
    rows, columns = torch.arange(12)[:, None], torch.arange(12)
    window = (columns <= rows) & (columns > rows - 5)
    for name in seen.attentions():
        mask = seen[f"{name}.mask"]
        assert torch.equal(mask[0], window.expand(4, 12, 12))
        assert torch.equal(mask[1, :, :9], (window & (columns < 9))[:9].expand(4, 9, 12))


@pytest.mark.parametrize("kernel", ["eager", "sdpa"])
def test_the_model_is_afterwards_what_it_was(folders: Path, kernel: str) -> None:
    kind = "T5Model"
    model = opened(folders, kind, kernel).train()
    settings = json.dumps(model.config.to_dict(), default=str)

    with left_as_it_was(model):
        capture(model, **given(kind))
        with pytest.raises(Exception, match="input_ids"):
            capture(model, decoder_input_ids=given(kind)["decoder_input_ids"])
    assert {each.config._attn_implementation for each in model.modules() if hasattr(each, "config")} == {kernel}
    assert json.dumps(model.config.to_dict(), default=str) == settings


def test_a_model_within_a_model_of_ones_own_is_seen(folders: Path) -> None:
    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = opened(folders, "BertModel", "sdpa")
            self.attention = nn.MultiheadAttention(32, 2, batch_first=True)

        def forward(self, **named: Tensor) -> Tensor:
            x = self.body(**named)[0]
            return self.attention(x, x, x)[0]

    seen = capture(Classifier(), **given("BertModel"))
    assert seen.attentions() == (*(f"body.encoder.layer.{i}.attention.self" for i in (0, 1)), "attention")


def test_two_models_in_two_parts_keep_their_own_kernels() -> None:
    torch.manual_seed(0)
    words = transformers.CLIPTextConfig(**SMALL | WORDS)
    image = transformers.CLIPVisionConfig(**SMALL, image_size=32, patch_size=8)
    config = transformers.CLIPConfig(text_config=words.to_dict(), vision_config=image.to_dict(), projection_dim=8)
    model = transformers.CLIPModel(config).eval()
    model.set_attn_implementation({"": "sdpa", "text_config": "eager", "vision_config": "sdpa"})

    def chosen() -> tuple[str, str, str]:
        parts = (model.config, model.text_model.config, model.vision_model.config)
        return tuple(each._attn_implementation for each in parts)  # type: ignore[return-value]

    before = chosen()
    seen = capture(model, **given("ViTModel"), **given("BertModel"))
    assert chosen() == before
    assert len(set(before)) == 2
    assert sorted(name.split(".")[0] for name in seen.attentions()) == ["text_model"] * 2 + ["vision_model"] * 2


def test_a_model_that_writes_its_attention_out_is_seen_and_keeps_a_part_that_chose_nothing() -> None:
    torch.manual_seed(0)
    model = transformers.MptForCausalLM(transformers.MptConfig(d_model=32, n_layers=2, n_heads=4, vocab_size=50)).eval()
    tokens = given("GPT2LMHeadModel")["input_ids"]
    with torch.no_grad():
        expected = model(tokens, output_attentions=True)
    chosen = (model.config._attn_implementation, model.config.attn_config._attn_implementation)
    seen = capture(model, tokens)
    assert (model.config._attn_implementation, model.config.attn_config._attn_implementation) == chosen
    assert chosen[1] is None
    assert torch.equal(seen.output.logits, expected.logits)
    for pattern, reported in zip(patterns(seen), expected.attentions, strict=True):
        torch.testing.assert_close(pattern, reported)
    assert torch.equal(seen["transformer.blocks.1.attn.mask"][0, 0], torch.ones(12, 12, dtype=torch.bool).tril())


@pytest.mark.parametrize("kind", ["GPT2LMHeadModel", "LlamaForCausalLM", "BertModel", "T5Model"])
@pytest.mark.parametrize("padded", [True, False])
def test_a_plain_pass_is_right_if_a_capture_begins_or_ends_in_its_middle(
    folders: Path, kind: str, padded: bool
) -> None:
    """Its masks are then made for one attention function, and its later layers call another."""
    question = {name: value for name, value in given(kind).items() if padded or name != "attention_mask"}
    model = opened(folders, kind, "sdpa").eval()
    with hugging_face.door(model, Notes(model)):
        pass  # transformers knows our name from now on
    layers = {"GPT2LMHeadModel": "h.1", "LlamaForCausalLM": "layers.1", "BertModel": "layer.1", "T5Model": "block.1"}
    with torch.no_grad():
        expected = model(**question)[0]
        for before, then in (("sdpa", hugging_face.NAME), (hugging_face.NAME, "sdpa")):
            model.set_attn_implementation(before)
            (layer, *_) = [each for name, each in model.named_modules() if name.endswith(layers[kind])]
            hook = layer.register_forward_pre_hook(lambda *_, then=then: model.set_attn_implementation(then))
            torch.testing.assert_close(model(**question)[0], expected)
            assert model.config._attn_implementation == then
            hook.remove()


def test_others_may_use_the_same_model_meanwhile(folders: Path) -> None:
    """Two captures of one model, plain calls of it and a capture of another, at once: each sees all of its own."""
    kind = "LlamaForCausalLM"
    model, other = opened(folders, kind, "sdpa"), opened(folders, "GPT2LMHeadModel", "sdpa")
    here, there = given(kind), given("GPT2LMHeadModel")
    short = {name: value[:, :7] for name, value in here.items()}
    asked = [(model, here), (model, short), (other, there)]
    expected = [capture(one, **question) for one, question in asked]

    def plainly() -> None:
        with torch.no_grad():
            torch.testing.assert_close(model(**here).logits, expected[0].output.logits)

    jobs = [lambda one=one, question=question: capture(one, **question) for one, question in asked]
    for all_of_it, one in zip(at_once([*jobs, plainly]), expected, strict=False):
        for seen in all_of_it:
            for pattern, known in zip(patterns(seen), patterns(one), strict=True):
                torch.testing.assert_close(pattern, known)
    assert model.config._attn_implementation == other.config._attn_implementation == "sdpa"
    assert hugging_face.LOOKING.get() is None
