"""The page "It reads": its numbers against a plain softmax and counts made here, its links, its words."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.text.reading import words
from dashboard.app_pages.text.reading.figures import Curve, likeliest_bars, repetition_lines
from dashboard.app_pages.text.reading.words import probability, titled
from dashboard.components.payload import unpack
from tests.kit import claims
from tests.kit.claims.laws.text import Costs
from tests.kit.pages import array, figures, link, open_page, press, trace
from transformer.analysis.accuracy.surprise import growth, surprise, unread_nats
from transformer.foundation.claims import Claim
from transformer.model import Transformer
from transformer.text.task import Text
from transformer.training.runs import Run

NAME = "plays"


@pytest.fixture(autouse=True)
def _its_folder(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.models.menu.ROOT", run.folder.parent)


def told(model: Transformer, tokens: np.ndarray, separator: int) -> np.ndarray:
    """What it gives each token of a passage in each place, float [token, vocabulary]: a plain softmax."""
    read = torch.tensor([[separator, *tokens[:-1].tolist()]])
    with torch.no_grad():
        logits = model(read)[0].double().numpy()
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def drawn(app: AppTest) -> tuple[dict, np.ndarray]:
    """The header of the passage, and the numbers on its words."""
    messages = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
    header, body = next(message for message in messages if "tokens" in message[0] and "ground" in message[0])
    return header, np.frombuffer(body, "<f4", len(header["tokens"]), header["ground"]["values"])


def words_of(task: Text, tokens: np.ndarray) -> list[str]:
    return [(*task.known.vocabulary.tokens, "⟨unk⟩")[token] for token in tokens]


@pytest.mark.daily(1)
@pytest.mark.parametrize("place", [1, 300])
def test_each_word_stands_on_what_it_cost(model: Transformer, task: Text, place: int) -> None:
    stretch = task.known.held_out[0][place - 1 :][:32]
    p = told(model, stretch, task.separator)[16:]
    nats = -np.log(p[np.arange(16), stretch[16:]])
    app = open_page("reading", run=NAME, **({} if place == 1 else {"read_place": str(place)}))
    header, values = drawn(app)
    np.testing.assert_allclose(values, nats, atol=1e-4)
    assert header["tokens"] == words_of(task, stretch[16:])
    right = sum(row.argmax() == token for row, token in zip(p, stretch[16:], strict=True))
    known = np.where(np.array(header["tokens"]) == "⟨unk⟩", -1, nats)
    assert header["chosen"] == known.argmax()
    assert app.title[0].value.endswith(f"surprised it most: {known.max():.2f} nats.")
    assert app.title[0].value.startswith("Of known words") == bool(nats.max() > known.max())
    (said,) = [caption.value for caption in app.caption if "nats on average here" in caption.value]
    assert said.startswith(
        f"A token costs {nats.mean():.2f} nats on average here (perplexity {math.exp(nats.mean()):.1f}), and"
    )
    were = "was" if right == 1 else "were"
    assert f" {right} of the 16 tokens {were} its first guess. It had read 16 tokens" in said


def test_the_word_that_is_chosen_says_what_was_likelier(model: Transformer, task: Text) -> None:
    stretch = task.known.held_out[0][:32]
    p, token = told(model, stretch, task.separator)[16 + 4], stretch[16 + 4]
    app = open_page("reading", run=NAME, read_word="5")
    assert drawn(app)[0]["chosen"] == 4
    bars = trace(app, "reading-likeliest", "probability")
    np.testing.assert_allclose(array(bars["x"])[:5], np.sort(p)[::-1][:5], atol=1e-6)
    place = 1 + sum(p > p[token])
    (said,) = [each.value for each in app.markdown if "gave it probability" in each.value]
    words = len(task.known.vocabulary.tokens)
    assert len(p) == words + 3
    assert f"rank {place:,} among the {words:,} words it knows, ⟨unk⟩, SEP and padding." in said
    assert f"cost {-math.log(p[token]):.2f} nats" in said
    ticks = figures(app)["reading-likeliest"]["layout"]["yaxis"]["ticktext"]
    best = (*task.known.vocabulary.shown, "SEP", "PAD")[p.argmax()]
    assert ticks[0].removesuffix(" ✓") == best
    assert any(tick.endswith("✓") for tick in ticks)


def test_what_is_typed_is_read_from_its_beginning(model: Transformer, task: Text) -> None:
    typed = "The rain that falls"
    tokens = np.array([task.known.vocabulary.tokens.index(word) for word in re.split(r"(\W)", typed)])
    p = told(model, tokens, task.separator)
    app = open_page("reading", run=NAME, read_what="input", input=typed)
    assert [area.label for area in app.text_area] == ["Input"]
    _, values = drawn(app)
    np.testing.assert_allclose(values, -np.log(p[np.arange(len(p)), tokens]), atol=1e-4)
    assert any("It had read nothing before" in caption.value for caption in app.caption)


def test_counts_alone_cost_their_shares(task: Text) -> None:
    counts = np.array(task.known.vocabulary.counts)
    shares = np.maximum(counts, 1) / np.maximum(counts, 1).sum()
    np.testing.assert_allclose(np.exp(-unread_nats(task.known)), shares)


def test_an_unlikely_token_ranks_behind_all_that_are_likelier(model: Transformer, task: Text) -> None:
    passage = task.known.held_out[0][40:52]
    p = told(model, passage, task.separator)
    found = surprise(model, task, passage, before=3)
    assert found.rank.tolist() == [1 + int((row > row[token]).sum()) for row, token in zip(p, passage, strict=True)][3:]
    np.testing.assert_allclose(found.probability[:, 0], p.max(axis=1)[3:], rtol=1e-5)


# Growth with context


def test_the_loss_by_place_is_that_of_the_windows(model: Transformer, task: Text) -> None:
    found = growth(model, task, seed=3)
    windows = task.known.windows(32)
    nats = np.stack([-np.log(told(model, w, task.separator)[np.arange(32), w]) for w in windows])
    assert (found.found.windows, found.length) == (len(windows), 32)  # fewer than could be read
    assert found.found.names == ("1", "2", "3", "4", "5–6", "7–8", "9–12", "13–16", "17–24", "25–32")
    for i, name in enumerate(found.found.names):
        first, _, last = name.partition("–")
        each = nats[:, int(first) - 1 : int(last or first)].mean(axis=1)
        assert found.found.nats[i] == pytest.approx(each.mean(), abs=1e-4)
        half = 1.959964 * each.std(ddof=1) / math.sqrt(len(each))
        assert found.found.half[i] == pytest.approx(half, abs=1e-4)
    counts = np.maximum(np.array(task.known.vocabulary.counts), 1)
    assert found.unread == pytest.approx(-np.log(counts / counts.sum())[windows].mean())


# Repetition and distance, on the page


def test_the_scatter_and_the_lines_are_those_of_the_model(model: Transformer, task: Text) -> None:
    app = open_page("reading", run=NAME, repeated="passages", head="decoder.1.self_attention.2")
    rng = np.random.default_rng([0, 5])
    blocks = task.draw(rng, 32, 16)
    nats = []
    for block in blocks:
        both = np.concatenate([block, block])
        nats.append(-np.log(told(model, both, task.separator)[np.arange(32), both]))
    lines = figures(app)["reading-twice"]["data"]
    first, again = (
        array(next(each for each in lines if each["name"] == name)["y"]) for name in ("first block", "repeated")
    )
    np.testing.assert_allclose([*first, *again], np.mean(nats, axis=0), atol=1e-3)
    (said,) = [caption.value for caption in app.caption if caption.value.startswith("Head 1.2 puts")]
    assert "A head gets a name if" in said
    assert any(caption.value.startswith("Head 1.2 looks") for caption in app.caption)


def test_a_link_names_the_head_of_both_sections() -> None:
    app = open_page("reading", run=NAME, head="decoder.0.self_attention.3")
    assert figures(app)["reading-distance"]["data"][0]["name"] == "head 0.3"
    assert any(caption.value.startswith("Head 0.3 puts") for caption in app.caption)


def test_the_map_has_a_row_of_shares_for_each_head() -> None:
    cells = array(trace(open_page("reading", run=NAME), "reading-map", "attention")["z"])
    assert cells.shape == (8, 6)
    np.testing.assert_allclose(cells.sum(axis=1), 1, atol=1e-5)


# Links and words


def test_what_a_link_names_in_vain_falls_back_with_a_notice_each() -> None:
    nonsense = {"read_work": "7", "read_word": "99", "repeated": "twice", "head": "decoder.9.self_attention.0"}
    for query in (nonsense, {"read_place": "60000"}, {"read_what": "nothing"}):
        app = open_page("reading", run=NAME, **query)
        assert len(app.warning) == len(query)
        assert link(app) == {"run": NAME}


def test_another_place_is_another_link() -> None:
    app = open_page("reading", run=NAME)
    press(app, "Another place")
    assert "read_word" not in link(app)
    before = drawn(app)[0]["tokens"]
    assert before == drawn(open_page("reading", **link(app)))[0]["tokens"]


def test_a_model_with_a_law_is_offered_one_that_reads_text() -> None:
    app = open_page("reading", run="compiled")
    assert not app.error
    assert [button.label for button in app.button if button.label.startswith("Look at")] == [f"Look at {NAME}"]
    assert re.fullmatch(r"Head 0\.0 looks .* tokens away on average\.", app.title[0].value)


@pytest.mark.parametrize(
    ("away", "said"),
    [
        ([1.02], "Head 0.0 looks 1.0 tokens away on average."),
        ([1.02, 0.98], "All 2 heads look 1.0 tokens away on average."),
        ([1.02, 0.98, 3.0], "Heads 0.0 and 0.1 look nearest, head 0.2 farthest: 1.0 and 3.0 tokens."),
        ([0.0, 3.04, 3.0], "Head 0.0 looks nearest, heads 0.1 and 0.2 farthest: 0.0 and 3.0 tokens."),
        ([2.0] * 5 + [7.0], "5 heads look nearest, head 0.5 farthest: 2.0 and 7.0 tokens."),
    ],
)
def test_heads_that_look_as_far_are_put_in_no_order(away: list[float], said: str, heard: list[Claim]) -> None:
    labels = [f"0.{index}" for index in range(len(away))]
    heads = SimpleNamespace(mean=SimpleNamespace(mean=np.array(away)))
    assert words.distance_title(cast("Any", heads), labels) == said
    claims.judge(cast("Any", dict(zip(labels, away, strict=True))), heard[0])


@pytest.mark.parametrize(
    ("tokens", "nats", "said"),
    [
        (["a"], [2.0], "“a” surprised it by 2.00 nats."),
        (["⟨unk⟩"], [2.0], "“⟨unk⟩” surprised it by 2.00 nats."),
        (["a", "b"], [2.0, 2.01], "“b” surprised it most: 2.01 nats."),
        (["a", "b", "c"], [2.004, 2.0, 1.0], "“a” and “b” surprised it most: 2.00 nats each."),
        (["a", "b", "a"], [2.0, 1.0, 2.0], "2 tokens surprised it most: 2.00 nats each."),
        ([*"abcde"], [2.0, 2.0, 2.0, 2.0, 1.0], "4 tokens surprised it most: 2.00 nats each."),
        (["a", "b"], [2.0, 2.001], "Each of the 2 tokens surprised it as much: 2.00 nats."),
        (["a", "⟨unk⟩", "c"], [2.0, 9.0, 2.0], "Of known words, “a” and “c” surprised it most: 2.00 nats each."),
        (["a", "⟨unk⟩", "c"], [2.0, 1.0, 1.5], "“a” surprised it most: 2.00 nats."),
        (["⟨unk⟩", "⟨unk⟩"], [2.0, 3.0], "“⟨unk⟩” surprised it most: 3.00 nats."),
    ],
)
def test_of_tokens_that_cost_as_much_none_surprises_most(
    tokens: list[str], nats: list[float], said: str, heard: list[Claim]
) -> None:
    assert words.headline(cast("Any", SimpleNamespace(nats=np.array(nats))), tokens) == said
    claims.judge(cast("Any", Costs(tuple(tokens), np.array(nats))), heard[0])


def test_a_token_that_costs_what_its_frequency_says_costs_as_much() -> None:
    found = SimpleNamespace(nats=np.array([2.0, 2.0]), unread=np.array([2.004, 2.5]), rank=np.array([1, 2]))
    said = [words.word_sentence(cast("Any", found), ["a", "b"], at, "all") for at in (0, 1)]
    assert "cost 2.00 nats, as much as by its frequency alone." in said[0]
    assert "cost 2.00 nats, 0.50 less than by its frequency alone." in said[1]


def test_a_small_probability_is_one_in_many() -> None:
    said = {0.5: "0.500", 0.001: "0.001", 4.2e-5: "1 in 24,000", 0.0: "1 in 1,000,000,000,000,000"}
    assert {p: probability(p) for p in said} == said


def test_a_title_in_capitals_is_written_as_a_title() -> None:
    assert titled("THE SECOND PART OF KING HENRY IV") == "The Second Part of King Henry IV"
    assert titled("Macbeth") == "Macbeth"
    assert titled("") == "the text"


def test_places_together_stand_in_their_middle() -> None:
    values = np.array([1.0, 2.0])
    lines = repetition_lines([Curve("first", values, values, values)], together=4).data
    assert list(lines[1].x) == [2.5, 6.5]


def test_the_token_that_stood_there_is_always_among_the_bars() -> None:
    p = np.array([0.5, 0.2, 0.1])
    ticks = likeliest_bars(["a", "b", "c"], p, "d", 0.01).layout.yaxis.ticktext
    assert list(ticks) == ["a", "b", "c", "d ✓"]
    assert list(likeliest_bars(["a", "b", "c"], p, "b", 0.2).layout.yaxis.ticktext) == ["a", "b ✓", "c"]
