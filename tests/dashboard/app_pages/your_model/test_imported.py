"""Bring in a model: what is said of it before it is opened, and its heads beside what the library itself says."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from streamlit.testing.v1 import AppTest

from dashboard.server.roles import Visitor
from dashboard.view import imported as view
from dashboard.view.pages import PAGES
from tests.kit.foreign import unusual
from tests.kit.pages import figures, large_head, link, open_page, shown, words

NAMES = ("small-bert", "small-gpt2", "small-llama", "small-t5", "small-vit")
TEXT = "The king is dead, long live the king, the king!"


def said(app: AppTest) -> str:
    """All words of a page."""
    parts = [*app.title, *app.error, *app.warning, *app.info]
    return words(app) + shown("\n".join(str(each.value) for each in parts))


@torch.no_grad()
def attended(folder: Path, text: str) -> tuple[transformers.GPT2LMHeadModel, list[int], np.ndarray]:
    """The model, the tokens of a text, and all patterns [layer, head, query, key] as the library itself says them."""
    words = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokens = words(text, return_tensors="pt")["input_ids"]
    found = model(tokens, output_attentions=True).attentions
    return model, tokens[0].tolist(), torch.stack(found)[:, 0].numpy()


@torch.no_grad()
def test_heads_contribution_and_table_are_those_of_the_library_itself(models: Path) -> None:
    model, tokens, patterns = attended(models / "small-gpt2", TEXT)
    app = open_page("imported", imported="small-gpt2", imported_input=TEXT, head="decoder.1.self_attention.2")
    layout, values = large_head(app)
    np.testing.assert_allclose(np.nan_to_num(values["pattern"]), patterns[1, 2], atol=1e-5)
    assert layout["tokens"]["y"][:2] == ["The", " king"]
    assert len(layout["tokens"]["y"]) == len(tokens)
    assert not app.error
    assert not app.warning

    stream = model(torch.tensor([tokens]), output_hidden_states=True).hidden_states[1][0]
    block = model.transformer.h[1]
    value = block.attn.c_attn(block.ln_1(stream)).chunk(3, dim=-1)[2].unflatten(-1, (4, 8))[:, 2].norm(dim=-1).numpy()
    np.testing.assert_allclose(np.nan_to_num(values["contribution"]), patterns[1, 2] * value, atol=1e-5)

    n = len(tokens)
    heads = patterns.reshape(-1, n, n).astype(float)
    earlier = [[j for j in range(i) if tokens[j] == tokens[i]] for i in range(n)]
    twice = model(torch.tensor([tokens + tokens]), output_attentions=True).attentions
    expected = {
        "previous": [head.diagonal(-1).mean() for head in heads],
        "first": [head[2:, 0].mean() for head in heads],
        "same token": [np.mean([head[i, keys].sum() for i, keys in enumerate(earlier) if keys]) for head in heads],
        "induction": [float(layer[0, head, n:, 1 : n + 1].diagonal().mean()) for layer in twice for head in range(4)],
    }
    table = app.dataframe[0].value
    for column, shares in expected.items():
        np.testing.assert_allclose(table[column], shares, atol=1e-5, err_msg=column)


@pytest.mark.daily(2)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("page", ["imported", "stream", "ablation"])
def test_every_page_opens_on_every_kind(page: str, name: str) -> None:
    app = open_page(page, imported=name)
    assert len(app.title) == 1
    assert not app.error
    assert not app.warning
    assert figures(app)


def test_what_another_head_does_differently_is_their_difference(models: Path) -> None:
    _, _, patterns = attended(models / "small-gpt2", TEXT)
    head, other = "decoder.1.self_attention.2", "decoder.0.self_attention.3"
    app = open_page("imported", imported="small-gpt2", imported_input=TEXT, head=head, against=f"head:{other}")
    _, values = large_head(app)
    np.testing.assert_allclose(np.nan_to_num(values["difference"]), patterns[1, 2] - patterns[0, 3], atol=1e-5)


# --- bringing one in


def test_a_folder_is_described_before_it_is_opened(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTENTION_LAB_MODELS")
    app = open_page("imported")
    assert [each.options for each in app.selectbox if each.key == "control-imported"] == [["small-shakespeare"]]
    assert "It is a sample" in said(app)
    app.text_input(key="control-import").set_value(str(models / "small-gpt2")).run()
    model = transformers.GPT2LMHeadModel.from_pretrained(models / "small-gpt2")
    count = sum(each.numel() for each in model.parameters())
    assert f"GPT2LMHeadModel with {count:,} parameters." in said(app).replace("**", "")
    next(button for button in app.button if button.label == "Open it").click().run()
    assert not app.exception
    assert re.match(r".*[Hh]ead \d\.\d ", app.title[0].value)
    assert str(models) not in said(app)
    assert str(models) not in json.dumps(link(app))
    again = open_page("imported")  # the list outlives the session
    assert [each.options for each in again.selectbox if each.key == "control-imported"] == [
        ["small-gpt2", "small-shakespeare"]
    ]
    next(button for button in again.button if button.label.startswith("Take “")).click().run()
    assert "It is a sample" in said(again)
    next(button for button in again.button if button.label.startswith("Put “")).click().run()
    assert "It is a sample" not in said(again)
    assert again.title[0].value.startswith("Head ")


def test_what_cannot_be_opened_is_one_sentence() -> None:
    app = open_page("imported")
    for typed, sentence in (
        ("/no/such/folder", "There is no folder “folder”."),
        ("nobody/nothing", "There is neither a folder “nobody/nothing” nor such a model"),
        ("[click](http://evil.test)", "There is no folder"),
    ):
        app.text_input(key="control-import").set_value(typed).run()
        assert not app.exception
        (error,) = app.error
        assert sentence in shown(error.value)


def test_what_is_said_of_a_folder_comes_with_the_code_to_type(tmp_path: Path) -> None:
    told = {"peft_type": "LORA", "base_model_name_or_path": "<b>*base*</b>", "task_type": "CAUSAL_LM"}
    (tmp_path / "adapter_config.json").write_text(json.dumps(told))
    app = open_page("imported")
    app.text_input(key="control-import").set_value(str(tmp_path)).run()
    (error,) = app.error
    assert "is an adapter (LORA) of “<b>*base*</b>”, without that model’s own weights." in shown(error.value)
    assert "<b>" not in error.value.replace(r"\<b\>", "")
    assert any("merge_and_unload()" in each.value for each in app.code)


@pytest.mark.parametrize(("name", "decoder"), [("small-gpt2", False), ("small-t5", True)])
def test_without_a_tokenizer_it_opens_on_token_numbers_and_says_how_to_type_a_text(
    name: str, decoder: bool, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(models / name, tmp_path / name, ignore=shutil.ignore_patterns("tokenizer*"))
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    app = open_page("imported", imported=name)
    assert not app.error
    assert app.text_area(key="control-imported_input").value == view.NUMBERS
    fields = [each.label for each in app.text_area]
    assert fields == ["Token numbers", "The decoder reads"][: 1 + decoder]
    hint = "It has no tokenizer, so it is given token numbers, as in 3 1 4. To type a text, save its tokenizer into"
    assert any(hint in shown(each.value) for each in app.sidebar.caption)
    app.text_area(key="control-imported_input").set_value("the king").run()
    (error,) = app.error
    assert shown(error.value).startswith("“the” is no token number. It has no tokenizer, so")
    assert app.text_area(key="control-imported_input").value == "the king"


def test_a_model_of_two_towers_says_which_of_its_parts_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unusual.saved("CLIPModel", tmp_path / "clip")
    unusual.saved("SwinModel", tmp_path / "swin")
    unusual.saved("BertForMultipleChoice", tmp_path / "choice")
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(tmp_path))
    app = open_page("imported", imported="clip")
    (error,) = app.error
    assert "It also reads pixel_values." in shown(error.value)
    assert 'model.vision_model.save_pretrained("vision_model")' in app.code[0].value
    app = open_page("imported", imported="swin")
    assert not app.error
    assert "attention within 4 blocks, windows or frames of the input" in said(app)
    app = open_page("imported", imported="choice")
    (error,) = app.error
    assert shown(error.value).startswith("The model stopped with an error on this input. It can also be given")


@pytest.mark.parametrize(
    ("query", "notices"),
    [
        (
            {"imported": "elsewhere", "head": "decoder.7.self_attention.0"},
            (r"There is no model “elsewhere” on the list; this is ", "This model has no head of that name; another"),
        ),
        ({"imported_input": "word " * 400}, (r"The input cannot be read: There are \d+ tokens, and at most 64 fit",)),
        (
            {"imported_input": TEXT, "against": "input:The king"},
            ("Nothing to compare with: other input has a ",),
        ),
    ],
)
def test_what_a_link_names_in_vain_is_replaced_with_a_notice(query: dict[str, str], notices: tuple[str, ...]) -> None:
    app = open_page("imported", **{"imported": "small-gpt2"} | query)
    assert all(re.search(notice, said(app)) for notice in notices)
    assert app.title[0].value.startswith("Head ")


def test_what_is_typed_and_cannot_be_read_stays_in_the_field() -> None:
    app = open_page("imported", imported="small-gpt2")
    app.text_area(key="control-imported_input").set_value("word " * 400).run()
    assert app.text_area(key="control-imported_input").value == "word " * 400
    assert any("tokens, and at most 64 fit" in each.value for each in app.error)
    app.text_area(key="control-imported_input").set_value(TEXT).run()
    assert not app.error
    assert link(app)["imported_input"] == TEXT


def test_a_guest_looks_and_brings_nothing_in() -> None:
    app = open_page("imported", {"visitor": Visitor("guest", "abcdef")}, imported="small-gpt2")
    assert app.title[0].value.startswith("Head ")
    assert app.text_input(key="control-import").disabled


def test_a_damaged_list_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "imported.json").write_text("[1, 2")
    app = open_page("imported")
    assert "Imported.json cannot be read as a list of models; it was left as it is." in said(app)
    assert (tmp_path / "imported.json").read_text() == "[1, 2"


def test_what_was_chosen_in_a_run_means_nothing_in_an_imported_model() -> None:
    app = open_page("inside", run="reverse", head="decoder.1.self_attention.3", query="12")
    app.switch_page(PAGES["imported"].script)
    app.session_state["settings"] = app.session_state["settings"].with_(imported="small-gpt2")
    app.run()
    assert not app.exception
    assert not app.warning
    now = app.session_state["settings"]
    assert (now.run, now.head, now.query) == ("reverse", "", None)


THEIRS = """
import torch
from torch import nn
from tests.kit.foreign.modules import Causal

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(12, 8), Causal())
"""


def test_a_module_is_opened_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_model.py").write_text(THEIRS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("ATTENTION_LAB_MODULE", "their_model:build")
    app = open_page("imported")
    assert app.title[0].value.startswith("Head ")
    assert app.text_area(key="control-imported_input").value == view.NUMBERS
    import their_model

    embedding, attention = their_model.build()
    read = embedding(torch.tensor([3, 1, 4, 1, 5]))
    query, key, _ = attention.qkv(read).unflatten(-1, (3, 2, 4)).permute(1, 2, 0, 3)
    scores = (query @ key.transpose(-1, -2) / 2).masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf)
    _, values = large_head(open_page("imported", imported_input="3 1 4 1 5", head="decoder.0.self_attention.1"))
    np.testing.assert_allclose(np.nan_to_num(values["pattern"]), scores.softmax(-1)[1].detach().numpy(), atol=1e-6)
