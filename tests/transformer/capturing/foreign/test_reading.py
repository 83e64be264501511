"""What is typed becomes what the model reads; what cannot is refused in one sentence that says what can."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn

from tests.kit.foreign import unusual
from tests.kit.foreign.folders import KINDS, made, saved
from transformer import capture
from transformer.capturing import folders
from transformer.capturing.foreign import Foreign, ForeignError, foreign
from transformer.capturing.foreign.fitting import remarks
from transformer.capturing.foreign.model import stopped
from transformer.capturing.foreign.tokenizers import PlainTokenizer
from transformer.capturing.heads import attentions
from transformer.capturing.record import CaptureError


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Foreign]:
    root = tmp_path_factory.mktemp("models")
    return {kind: folders.load(folders.look(saved(kind, root / kind))) for kind in KINDS}


def reads(kind: str) -> str:
    config, _, tokenizer = KINDS[kind]
    if config in ("ViTConfig", "DeiTConfig", "Dinov2WithRegistersConfig"):
        return "picture"
    if config in ("T5Config", "BartConfig"):
        return "token pair" if tokenizer is None else "pair"
    return "tokens" if tokenizer is None else "text"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_opened_with_what_it_reads(kind: str, opened: dict[str, Foreign]) -> None:
    one = opened[kind]
    assert (one.name, one.kind, one.says) == (kind, kind, reads(kind))
    assert not one.model.training
    typed = "3 1 4 1" if KINDS[kind][2] is None else "The king is dead"
    given = one.given(typed, "")
    seen = capture(one.model, *given.args, **given.named)
    assert seen.attentions()
    assert len(given.names) == len(given.tokens)
    last = seen[f"{seen.attentions()[-1]}.pattern"]
    assert last.shape[2] == len(given.names)
    assert last.shape[3] == len(given.sources or given.names)


def test_a_model_is_called_as_its_makers_call_it(opened: dict[str, Foreign]) -> None:
    one = opened["BertModel"]
    given = one.given("The king standing")
    assert given.tokens == (2, 5, 6, 9, 10, 3)
    assert given.names == ("[CLS]", "the", "king", "stand", "##ing", "[SEP]")
    assert given.separators == {0, 1, 2, 3, 4}
    with torch.no_grad():
        expected = made("BertModel")(input_ids=torch.tensor([[2, 5, 6, 9, 10, 3]])).last_hidden_state
    torch.testing.assert_close(
        capture(one.model, *given.args, **given.named).output.last_hidden_state, expected, atol=1e-5, rtol=1e-5
    )
    assert one.decode(given.tokens[1:3]) == "the king"


def test_an_encoder_decoder_reads_two_texts(opened: dict[str, Foreign]) -> None:
    one = opened["T5ForConditionalGeneration"]
    alone = one.given("The king is dead")
    assert alone.tokens == (0,)
    assert alone.names == ("<pad>",)
    assert alone.sources[-1] == "</s>"
    both = one.given("The king is dead", "Who is there?")
    assert both.tokens[0] == 0
    assert 1 not in both.tokens  # the end is not put behind what the decoder has written so far
    assert "".join(both.names[1:]).replace("␣", " ") == " Who is there?"
    with torch.no_grad():
        expected = made("T5ForConditionalGeneration")(**both.named).logits
    torch.testing.assert_close(capture(one.model, **both.named).output.logits, expected, atol=1e-5, rtol=1e-5)


def refused(one: Foreign, sentence: str, *typed: str) -> None:
    with pytest.raises(ForeignError, match=sentence):
        one.given(*typed)


def test_what_cannot_be_read_says_why(opened: dict[str, Foreign]) -> None:
    gpt2, bert, t5, numbers = (
        opened[kind] for kind in ("GPT2LMHeadModel", "BertModel", "T5Model", "BartForConditionalGeneration")
    )
    refused(gpt2, "^There is nothing to read: the text is empty.$", " \n")
    refused(t5, "^There is nothing to read: the text is empty.$", "", "The king")
    refused(gpt2, "^There are 70 tokens, and at most 64 fit.$", "é" * 35)
    refused(bert, "^There are 65 tokens, and at most 64 fit.$", "king " * 63)
    refused(t5, "^There are 601 tokens, and at most 512 fit.$", "The king", "<unk>" * 600)
    refused(gpt2, "^The text has 60,000 characters, and at most 64 tokens fit.$", "a" * 60_000)
    refused(t5, "^The text has 60,000 characters, and at most 512 tokens fit.$", "a", "a" * 60_000)
    refused(numbers, "^The model knows the tokens 0 to 49, and 50 is none of them.$", "3 50 4")
    refused(numbers, "^The model knows the tokens 0 to 49, and 77 is none of them.$", "3", "77")
    refused(numbers, "“four” is no token number", "3 four")
    assert numbers.given("3 49", "1").tokens == (2, 1)


def test_as_many_positions_as_a_model_has(opened: dict[str, Foreign]) -> None:
    assert opened["GPT2LMHeadModel"].longest == 64
    assert opened["T5Model"].longest == 512  # its positions are relative
    assert opened["ViTModel"].longest == 17
    roberta = opened["RobertaModel"]
    assert roberta.longest == 62  # its first two are never used
    most = roberta.given(" ".join(["7"] * 62))
    with torch.no_grad():
        roberta.model(*most.args)
        with pytest.raises(RuntimeError, match="out of bounds"):
            roberta.model(torch.full((1, 63), 7))


def test_an_input_is_bounded_whatever_a_model_could_read() -> None:
    one = foreign("long", made("LlamaForCausalLM", max_position_embeddings=4096))
    assert one.longest == 512
    refused(one, "^There are 513 tokens, and at most 512 fit.$", "1 " * 513)


def test_a_tokenizer_of_another_model_is_noticed() -> None:
    class Far:
        def encode(self, text: str) -> list[int]:
            return [7, 1000] if text == "far" else []

        def decode(self, tokens: list[int]) -> str:
            return "?"

    size = KINDS["LlamaForCausalLM"][2]().get_vocab_size()  # type: ignore[misc]
    one = foreign("one", made("LlamaForCausalLM"), PlainTokenizer(Far()))
    refused(one, f"^The model knows the tokens 0 to {size - 1}, and 1000 is none of them.$", "far")
    refused(one, "^Its tokenizer makes no token of this text.$", "near")


def test_what_cannot_be_called_with_that_alone_is_refused_when_it_is_opened() -> None:
    class Needy(nn.Module):
        def forward(self, tokens: torch.Tensor, more: torch.Tensor) -> torch.Tensor:
            return tokens + more

    class Speech(nn.Linear):
        main_input_name = "input_values"

    wants = r"^It cannot be called with token numbers alone: .* It also reads more\. .* It raises TypeError: "
    with pytest.raises(ForeignError, match=wants):
        foreign("needy", Needy())
    with pytest.raises(ForeignError, match=r"^It reads input_values \(sound\)\. What can be given here is a text"):
        foreign("speech", Speech(2, 2))


def test_a_model_that_wants_more_than_one_token_is_opened() -> None:
    """Or no more than one: inputs of several lengths are tried."""

    class Counts(nn.Module):
        def __init__(self, least: int, most: int) -> None:
            super().__init__()
            self.table, self.least, self.most = nn.Embedding(20, 4), least, most

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            if not self.least <= tokens.shape[1] <= self.most:
                raise IndexError("out of bounds")
            found: torch.Tensor = self.table(tokens)
            return found

    assert foreign("long", Counts(4, 99)).says == foreign("short", Counts(1, 1)).says == "tokens"


def test_a_decoder_must_know_how_it_begins() -> None:
    model = made("BartForConditionalGeneration")
    for name in ("decoder_start_token_id", "bos_token_id", "pad_token_id"):
        setattr(model.config, name, None)
    with pytest.raises(ForeignError, match=r"does not say with which token its decoder begins"):
        foreign("bart", model)


def test_a_model_of_anybodys_says_its_sizes_in_one_of_several_ways() -> None:
    class Plain(nn.Module):
        def __init__(self, **says: int) -> None:
            super().__init__()
            self.table = nn.Embedding(20, 4)
            for name, value in says.items():
                setattr(self, name, value)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.table(tokens)
            return found

    refused(foreign("one table", Plain()), "0 to 19", "20")
    named = foreign("named", Plain(num_tokens=10, max_seq_len=3))
    refused(named, "0 to 9", "10")
    refused(named, "There are 4 tokens, and at most 3 fit", "1 2 3 4")


# --- models that want something else, or attend in a way of their own

SAID = {
    "CLIPModel": r"also reads pixel_values\. .* text_model \(CLIPTextModel\) and vision_model \(CLIPVisionModel\)\.",
    "SiglipModel": r"also reads pixel_values\. .* text_model \(SiglipTextModel\) and vision_model",
    "Siglip2Model": r"also reads pixel_values\. .* text_model \(Siglip2TextModel\)\.",
    "Siglip2VisionModel": "does not say how it cuts a picture into patches",
    "CLIPSegForImageSegmentation": r"also reads pixel_values\. .* clip\.text_model \(.*\) and clip\.vision_model \(",
    "BlipForConditionalGeneration": r"how it cuts .* vision_model \(BlipVisionModel\) and text_decoder \(",
    "Blip2ForConditionalGeneration": r"how it cuts .* vision_model \(.*\) and language_model \(OPTForCausalLM\)\.",
    "VisionEncoderDecoderModel": r"how it cuts .* encoder \(ViTModel\) and decoder \(GPT2LMHeadModel\)\.",
    "WhisperForConditionalGeneration": r"^It reads input_features \(sound\)\. What can be given here is",
    "Wav2Vec2Model": r"^It reads input_values \(sound\)\.",
    "ViltModel": "also reads pixel_values and image_embeds",
    "LxmertModel": "also reads visual_feats",
    "VideoMAEModel": "cannot be called with a picture alone: .* It can also be given bool_masked_pos.",
    "TimesFmModelForPrediction": r"^It reads past_values \(numbers in time\)",
    "PatchTSTModel": r"^It reads past_values \(numbers in time\)",
    "PerceiverModel": "^It reads inputs. What can be given here is",
    "SegformerModel": "does not say how it cuts a picture into patches",
}
UNSEEN = ("LongformerModel", "MambaForCausalLM", "RwkvForCausalLM", "FNetModel", "ReformerModel")
REMARKS = {
    "SwinModel": "attention within 4 blocks, windows or frames .* among 16 positions, where the input has 64",
    "ViTMAEModel": "attention among 5 positions, where the input has 17; its positions are numbered",
    "CanineModel": "attention within 4 blocks, windows.* attention among 3 positions, where the input has 13",
    "LEDForConditionalGeneration": "attention within blocks or windows, each a matrix of its own",
}
PYTHONS = re.compile(r"NoneType|object has no|unpack|argument|Error\b|invalid|out of bounds")


@pytest.mark.daily(13)
@pytest.mark.parametrize("kind", unusual.KINDS)
def test_a_model_shows_its_patterns_or_says_what_it_reads_and_which_of_its_parts_can_be_opened(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = unusual.saved(kind, tmp_path / "whole")
    if kind not in SAID:
        shown(kind, tmp_path / "whole")
        return
    with pytest.raises(ForeignError, match=SAID[kind]) as refused:
        folders.load(folders.look(tmp_path / "whole"))
    assert not PYTHONS.search(str(refused.value))
    exec(refused.value.code, {"model": model})  # what it says to type
    named = re.findall(r"\((\w+Model|\w+ForCausalLM)\)", str(refused.value).partition("saved on its own:")[2])
    parts = [folders.look(each) for each in tmp_path.iterdir() if each.name != "whole"]
    assert sorted(part.kind for part in parts) == sorted(named)
    for part in parts:
        shown(part.kind, part.path)


def shown(kind: str, folder: Path) -> None:
    """What a folder's model attends to: every pattern has the heads that its config says, and shares of one."""
    one = folders.load(folders.look(folder))
    given = one.given("" if one.says == "picture" else "3 1 4 1 5 9 2 6 5 3 5 8 9")
    seen = capture(one.model, *given.args, **given.named)
    if kind in UNSEEN:
        with pytest.raises(CaptureError, match=r"^No attention was seen in this model"):
            attentions(seen, given.names)
        return
    found = attentions(seen, given.names, given.sources)
    for each in found.values():
        np.testing.assert_allclose(each.pattern.sum(-1), 1, atol=1e-5)
    met = (each for each in seen.unseen if "no attention was seen in it" not in each)
    said = " ".join((*met, *seen.remarks, *remarks(seen, given)))
    assert re.search(REMARKS.get(kind, "^$"), said)
    assert {len(each.pattern) for each in found.values()} <= heads_of(one.model.config.to_dict())


def heads_of(told: Any, name: str = "") -> set[int]:
    """How many heads a config says that attention has, in whichever of its layers and parts."""
    if isinstance(told, dict):
        return {count for key, value in told.items() for count in heads_of(value, str(key))}
    if isinstance(told, list | tuple):
        return {count for value in told for count in heads_of(value, name)}
    return {told} if isinstance(told, int) and re.search(r"heads?$", name) else set()


def test_what_a_model_lacks_that_stops_on_an_input_is_told_without_its_librarys_words() -> None:
    """It reads texts side by side [1, text, position], and one token of one text is as good."""
    one = foreign("choice", transformers.BertForMultipleChoice(unusual.STOPS["BertForMultipleChoice"]()))
    given = one.given("3 1 4 1 5")
    with pytest.raises(RuntimeError) as stops:
        capture(one.model, *given.args)
    said = stopped(one, given, stops.value)
    assert said == "It can also be given attention_mask, token_type_ids, position_ids and inputs_embeds."


def test_positions_that_are_no_patch_are_named_where_they_stand() -> None:
    """YOLOS reads its detection tokens behind the patches."""
    torch.manual_seed(0)
    one = foreign("yolos", transformers.YolosModel(unusual.KINDS["YolosModel"]()))
    names = one.given().names
    assert (names[0], names[1], names[16:]) == ("CLS", "1.1", ("4.4", "DET 1", "DET 2", "DET 3"))
    given = one.given()
    assert not remarks(capture(one.model, **given.named), given)
