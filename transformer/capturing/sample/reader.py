"""The sample's model and its tokenizer, as somebody else would write them: of PyTorch's own layers, words as tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from jaxtyping import Float, Int
from safetensors.torch import load
from torch import Tensor, nn

from transformer.capturing.sample import WEIGHTS, WORDS
from transformer.foundation.regular_files import open_file

WINDOW, WIDTH, LAYERS, HEADS, TOKENS = 64, 64, 4, 4, 1500
UNKNOWN = "⟨unk⟩"
_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


class Words:
    """Words and signs of punctuation, in small letters: the commonest of a text; all others are one token."""

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens = [UNKNOWN, *tokens]
        self._index = {token: index for index, token in enumerate(self.tokens)}

    @staticmethod
    def cut(text: str) -> list[str]:
        """The words and signs of a text."""
        return _TOKEN.findall(text.lower())

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's tokens."""
        return [self._index.get(token, 0) for token in self.cut(text)]

    def decode(self, tokens: Iterable[int]) -> str:
        """The words of these numbers, with blanks between them."""
        return " ".join(self.tokens[int(token)] for token in tokens)


class Reader(nn.Module):
    """A causal language model from `nn.TransformerEncoderLayer`: pre-norm, learned positions, tied embeddings."""

    block_size, vocab_size = WINDOW, TOKENS
    mask: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(TOKENS, WIDTH), nn.Embedding(WINDOW, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.stack = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, TOKENS, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(WINDOW), persistent=False)

    def forward(self, tokens: Int[Tensor, "batch position"]) -> Float[Tensor, "batch position token"]:
        """The logits of the token that follows each. Raises ValueError for more than WINDOW tokens."""
        n = tokens.shape[1]
        if n > WINDOW:
            raise ValueError(f"it reads at most {WINDOW} tokens, not {n}")
        x = self.words(tokens) + self.places.weight[:n]
        return self.head(self.norm(self.stack(x, mask=self.mask[:n, :n])))


def build() -> tuple[Reader, Words]:
    """The trained model and its tokenizer."""
    with open_file(WEIGHTS) as file:
        weights = {name: each.float() for name, each in load(file.read()).items()}
    with open_file(WORDS) as file:
        words = Words(json.loads(file.read()))
    model = Reader()
    model.load_state_dict({**weights, "head.weight": weights["words.weight"]})
    return model.eval(), words
