"""Each mistake of the gallery, given as a file, is called by its name, and the right code beside it is right."""

import importlib
import inspect

import pytest

from tests.kit.waiting import PATIENCE
from transformer.checking.check import check_source
from transformer.checking.isolation.limits import Limits
from transformer.mistakes import MISTAKES

PATIENT = Limits(seconds=PATIENCE)
AROUND = {
    "module": """
class MultiHeadAttention(torch.nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads, self.d_head = n_heads, d_model // n_heads
        self.query, self.key, self.value, self.out = (torch.nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x, mask):
        return multi_head_attention(self, x, mask)
""",
    "decoder": """
class Norm(torch.nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.gain, self.offset = torch.nn.Parameter(torch.ones(d_model)), torch.nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return layer_norm(x, self.gain, self.offset, 1e-5)


class Decoder(torch.nn.Module):
    def __init__(self, d_vocab, d_model, n_heads, n_ctx):
        super().__init__()
        self.embedding, self.places = torch.nn.Embedding(d_vocab, d_model), torch.nn.Embedding(n_ctx, d_model)
        self.query, self.key, self.value, self.out = (torch.nn.Linear(d_model, d_model) for _ in range(4))
        self.up, self.down = torch.nn.Linear(d_model, 4 * d_model), torch.nn.Linear(4 * d_model, d_model)
        self.first, self.second = Norm(d_model), Norm(d_model)
        self.head, self.n_heads = torch.nn.Linear(d_model, d_vocab), n_heads

    def attend(self, x):
        x = self.first(x)
        query, key, value = (
            layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).masked_fill(hidden, -1e9)
        return self.out((scores.softmax(-1) @ value).transpose(1, 2).flatten(2))

    def feed(self, x):
        return self.down(self.up(self.second(x)).relu())

    def forward(self, tokens):
        x = self.embedding(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.head(after(after(x, self.attend), self.feed))
""",
}
RIGHT_PIECES = """
def after(resid, sublayer):
    return resid + sublayer(resid)

def layer_norm(x, gain, offset, eps):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], gain, offset, eps)
"""
PIECES_OF_A_WHOLE = {"multi_head_attention", "after", "layer_norm"}
NAMES = {"module": "MultiHeadAttention", "decoder": "Decoder"}


NOT_CHECKED = {
    "def-for-class": "what it gives is no tensor",
    "moved-and-dropped": "its difference is a device, and there may be one only",
    "weights-averaged": "what it is given is a module",
}
"""Mistakes in pieces of code that the check cannot be given."""
CHECKED = [name for name in MISTAKES.names() if name not in NOT_CHECKED]


def file_of(mistake, code: str) -> tuple[bytes, str]:
    """A file as a student could have written it, and the name in it."""
    source = inspect.getsource(importlib.import_module(mistake.__module__))
    imports = source[: source.index("\nclass ")]
    pieces = RIGHT_PIECES if mistake.kind == "decoder" else ""
    around = AROUND.get(mistake.kind, "") if mistake.function in PIECES_OF_A_WHOLE else ""
    name = NAMES[mistake.kind] if around else mistake.function
    return f"{imports}\nimport torch\n{pieces}\n{code}\n{around}".encode(), name


def test_all_but_three_are_checked():
    assert len(CHECKED) + len(NOT_CHECKED) == len(MISTAKES.names())


@pytest.mark.daily(3)
@pytest.mark.parametrize("name", CHECKED)
def test_a_mistake_is_called_by_its_name_and_the_right_code_beside_it_is_right(name, warm):
    mistake = MISTAKES[name]
    wrong, right = (
        check_source(source, "submission.py", what, limits=PATIENT, warm=warm)
        for source, what in (file_of(mistake, code) for code in mistake.code())
    )
    assert (wrong.not_run, wrong.code, wrong.mistake) == ("", 1, name)
    assert wrong.wrong[0] == f"{mistake.title}. {mistake.mend}"
    assert len(wrong.wrong) > 1  # and what gave it away
    if wrong.first is not None and mistake.stage is not None:
        assert wrong.first == mistake.stage
    assert (right.not_run, right.code, right.mistake, right.wrong) == ("", 0, "", ())
