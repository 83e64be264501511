"""A GPT-2 of Hugging Face's that means something, opened as a folder of a stranger: its habits."""

from __future__ import annotations

import pytest
import torch

from tests.kit.foreign import small_gpt2
from transformer import capture
from transformer.capturing.folders import load, look
from transformer.capturing.foreign import Foreign
from transformer.capturing.lens import lens

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Foreign:
    return load(look(small_gpt2.saved(tmp_path_factory.mktemp("models") / "small-gpt2", steps=500)))


def passages(one: Foreign) -> list[str]:
    """Stretches of what it has not learned from, each short enough to be read."""
    _, held_out = small_gpt2.texts()
    tokens = one.reader.tokenizer.encode(held_out)  # type: ignore[attr-defined]
    step = small_gpt2.WINDOW - 8
    return [one.decode(tokens[start : start + step]) for start in range(0, 10 * step, step)]


def test_it_has_learned_more_than_how_common_each_token_is(opened: Foreign) -> None:
    learned, held_out = small_gpt2.texts()
    encode = opened.reader.tokenizer.encode  # type: ignore[attr-defined]
    counts = torch.bincount(torch.tensor(encode(learned)), minlength=small_gpt2.TOKENS) + 1.0
    tokens = torch.tensor(encode(held_out))
    windows = tokens[: len(tokens) // small_gpt2.WINDOW * small_gpt2.WINDOW].view(-1, small_gpt2.WINDOW)
    unigram = -(counts / counts.sum()).log()[windows[:, 1:]].mean()
    with torch.no_grad():
        assert small_gpt2.loss(opened.model, windows) < unigram - 1.2  # type: ignore[arg-type]


def test_one_of_its_heads_reads_the_token_before(opened: Foreign) -> None:
    """A head that looks at all it may see alike would give it 0.07."""
    shares, even = [], []
    for passage in passages(opened):
        given = opened.given(passage)
        seen = capture(opened.model, *given.args)
        patterns = torch.stack([seen[f"{site}.pattern"][0] for site in seen.attentions()])
        shares.append(patterns.diagonal(-1, 2, 3).mean(-1))
        even.append((1 / torch.arange(2, len(given.tokens) + 1)).mean())
    before, alike = torch.stack(shares).mean(0), torch.stack(even).mean()
    assert before.max() > 0.3
    assert before.max() > 4 * alike
    assert before.median() < 2 * before.max() / 3  # and it is a habit of some


def test_its_layers_come_to_agree(opened: Foreign) -> None:
    """The lens on text: the token that is said in the end rises through the layers."""
    ranks = []
    for passage in passages(opened):
        seen = lens(opened, opened.given(passage))
        assert seen is not None
        ranks.append(seen.ranks.mean(axis=1))
        assert seen.words[-1] == tuple(map(opened.word, seen.tokens[-1].tolist()))
    means = sum(ranks) / len(ranks)
    assert means[-1] == 1
    assert (means[:-1] > means[1:]).all()
