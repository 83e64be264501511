"""A model that somebody's own code builds, named on the command line; whatever that code does wrong is a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from transformer import capture
from transformer.attention import masked_softmax
from transformer.capturing.foreign import ForeignError
from transformer.capturing.modules import built

NANO = '''
"""In the shape of nanoGPT's model.py: a config, a class GPT, attention by the fused function."""
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class GPTConfig:
    block_size: int = 16
    vocab_size: int = 6
    n_layer: int = 2
    n_head: int = 2
    n_embd: int = 16


class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.n_head = config.n_head

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (each.view(B, T, self.n_head, -1).transpose(1, 2) for each in self.c_attn(x).split(C, dim=2))
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0, is_causal=True).transpose(1, 2).reshape(B, T, C)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(config.n_embd), CausalSelfAttention(config)

    def forward(self, x):
        return x + self.attn(self.ln_1(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        wte, wpe = nn.Embedding(config.vocab_size, config.n_embd), nn.Embedding(config.block_size, config.n_embd)
        h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.transformer = nn.ModuleDict(dict(wte=wte, wpe=wpe, h=h))
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

    def forward(self, idx, targets=None):
        x = self.transformer.wte(idx) + self.transformer.wpe(torch.arange(idx.size(1)))
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(x[:, [-1], :]), None
'''
BUILD = """
import torch
from {nano} import GPT, GPTConfig

letters = "\\n abcd"


class Letters:
    encode = staticmethod(lambda text: [letters.index(letter) for letter in text])
    decode = staticmethod(lambda tokens: "".join(letters[token] for token in tokens))


def build():
    torch.manual_seed(0)
    return GPT(GPTConfig()).train()


def with_letters():
    return build(), Letters()
"""
Written = Callable[[str, str], str]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Writes modules where one stands, under names that no other test has; they are gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def write(name: str, code: str) -> str:
        (tmp_path / f"{name}.py").write_text(code)
        return name

    yield write  # type: ignore[misc]
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_a_model_in_nanogpts_shape_is_opened_as_it_is(written: Written) -> None:
    written("nano_model", NANO)
    written("my_nano", BUILD.format(nano="nano_model"))
    one = built("my_nano:build")
    assert (one.name, one.kind, one.says, one.longest) == ("my_nano:build", "GPT", "tokens", 16)
    assert not one.model.training
    given = one.given("2 3 4 2 3")
    assert given.names == ("2", "3", "4", "2", "3")
    seen = capture(one.model, *given.args, **given.named)
    sites = tuple(f"transformer.h.{layer}.attn" for layer in (0, 1))
    assert seen.attentions() == sites
    assert seen.output[0].shape == (1, 1, 6)
    first = one.model.transformer.h[0]
    x = one.model.transformer.wte(given.args[0]) + one.model.transformer.wpe.weight[:5]
    query, key = first.attn.c_attn(first.ln_1(x)).view(1, 5, 3, 2, 8).permute(2, 0, 3, 1, 4)[:2]
    by_hand = masked_softmax(query @ key.transpose(-2, -1) / 8**0.5, torch.ones(5, 5).tril().bool())
    torch.testing.assert_close(seen[f"{sites[0]}.pattern"], by_hand.detach())
    with pytest.raises(ForeignError, match=r"^The model knows the tokens 0 to 5, and 6 is none of them"):
        one.given("6")
    with pytest.raises(ForeignError, match=r"^There are 17 tokens, and at most 16 fit"):
        one.given("1 " * 17)


def test_a_tokenizer_in_its_way_comes_with_it(written: Written) -> None:
    written("nano_model", NANO)
    written("my_nano", BUILD.format(nano="nano_model"))
    one = built("my_nano:with_letters")
    given = one.given("ab\ncd")
    assert (one.says, given.tokens, given.names) == ("text", (2, 3, 0, 4, 5), ("a", "b", "↵", "c", "d"))
    assert one.decode(given.tokens) == "ab\ncd"


def test_a_model_of_transformers_with_its_tokenizer_is_read_as_one_from_a_folder(written: Written) -> None:
    code = """
import transformers
from tests.kit.foreign.folders import SPECIAL, byte_level, made

def build():
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level(), **SPECIAL[byte_level])
    return made("GPT2LMHeadModel"), words
"""
    written("my_gpt2", code)
    one = built("my_gpt2:build")
    assert one.says == "text"
    assert one.given("The king").separators == {0}


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("my_model", "Name a module and a function in it, as in my_model:build, not “my_model”"),
        ("my_model.build()", "Name a module and a function"),
        ("../my_model:build", "Name a module and a function"),
        ("no_such_module_here:build", "There is no module no_such_module_here in this folder or on Python's path"),
        ("no_such.module_here:build", "There is no module no_such in this folder"),
        ("json.no_such:build", "There is no module json.no_such in this folder"),
        ("json:build", "The module json has no function build"),
    ],
)
def test_a_name_that_leads_nowhere_says_so(named: str, sentence: str) -> None:
    with pytest.raises(ForeignError, match=sentence):
        built(named)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("build = (", "^The module wrong_model cannot be imported: it raises SyntaxError: "),
        ("import no_such_thing", "cannot be imported: it raises ModuleNotFoundError: No module named 'no_such_thing'"),
        ("raise SystemExit(3)", "cannot be imported: it raises SystemExit: 3"),
        ("def build(): return {}['weights']", "does not build a model: it raises KeyError: it has no weights"),
        (
            "def build(): return {}",
            "^wrong_model:build returns a value of the type dict. It should return a torch.nn.Mo",
        ),
        ("import torch\ndef build(): return torch.nn.ReLU(), 7", "returns a tokenizer of the type int. It should"),
        ("import torch\ndef build(): return torch.nn.Linear(3, 3)", "^It cannot be called with token numbers alone"),
    ],
)
def test_code_that_is_wrong_is_a_sentence(written: Written, code: str, sentence: str) -> None:
    written("wrong_model", code)
    with pytest.raises(ForeignError, match=sentence) as found:
        built("wrong_model:build")
    assert "\n" not in str(found.value)
