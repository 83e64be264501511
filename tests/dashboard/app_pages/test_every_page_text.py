"""A text on the pages that look inside and change: words on the axes, no law, and no number that nobody knows.

Numbers are compared with what is worked out here from the weights' own logits, by other means than the pages'.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.overview.figures import guesses_strip
from dashboard.app_pages.overview.guesses import best_guess
from dashboard.figures.kit.numbers import share_text
from dashboard.figures.kit.token_axis import elided, token_axis
from dashboard.models import passages
from dashboard.models.long_inputs import from_afar
from dashboard.parts.heads import habit_sentence, habits
from tests.kit import texts
from tests.kit.claims import judge
from tests.kit.claims.world import World
from tests.kit.pages import array, figures, large_head, link, open_page, trace
from transformer import checkpoints, observe
from transformer.analysis.findings import Attention, Head
from transformer.analysis.heads.circuits import circuits
from transformer.analysis.heads.kinds import KINDS
from transformer.analysis.heads.measure import measure_kinds
from transformer.analysis.stream.lens import LISTED, alternatives, lens
from transformer.foundation.claims import Claim
from transformer.masks.painted import Painted
from transformer.model import Transformer
from transformer.training.runs import Run

PAGES = ("overview", "heads", "inside", "layers", "masks", "information")
PASSAGE = "The rain that falls is answered by the birds;\n  To see"
NAN = re.compile(r"(?<![a-z])nan(?![a-z])", re.IGNORECASE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader of the small text, after a second of training; and one with a vocabulary as large as a book's."""
    root = tmp_path_factory.mktemp("runs")
    texts.trained(root / "reader", texts.config())
    return root


@pytest.fixture(autouse=True)
def root(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dashboard.models.menu.ROOT", made)
    monkeypatch.setattr("dashboard.models.menu.FIRST", "reader")
    return made


@pytest.fixture(scope="module")
def reader(made: Path) -> Transformer:
    return checkpoints.load(Run(made / "reader").snapshot())[0]


def tokens_of(text: str) -> list[int]:
    """The text's tokens, looked up here."""
    known = texts.config().build_task().vocabulary
    shown = [part.replace(" ", "␣").replace("\n", "↵") for part in re.split(r"\b", text) if part]
    return [known.index(token) if token in known else known.index("⟨unk⟩") for token in shown]


def logits_of(model: Transformer, passage: list[int]) -> np.ndarray:
    """What it says after SEP and after each token but the last."""
    separator = texts.config().build_task().separator
    with torch.no_grad():
        return model(torch.tensor([[separator, *passage[:-1]]]))[0].double().numpy()


def test_of_readers_alone_only_the_loss_is_compared() -> None:
    app = open_page("runs", run="reader", measure="accuracy")
    (menu,) = (group for group in app.get("button_group") if group.key == "control-measure")
    assert menu.options == ["loss"]
    assert any("There is no measure “accuracy” here; this is loss." in warning.value for warning in app.warning)
    assert len(array(trace(app, "compare", "reader")["y"]))
    assert "No other run here reads this text, split" in said(app)


def said(app: AppTest) -> str:
    return "\n".join(each.value for each in (*app.title, *app.header, *app.markdown, *app.caption, *app.info))


def drawn(app: AppTest) -> str:
    """All texts of the figures: numbers left out, for a forbidden cell's is nan."""
    parts = []
    for figure in figures(app).values():
        parts += [{**each, "x": 0, "y": 0, "z": 0} for each in figure["data"]] + [figure["layout"]]
    return json.dumps(parts)


QUERIES: tuple[dict[str, str], ...] = ({}, {"input": "To see"}, {"input": "To"}, {"input": PASSAGE, "step": "0"})


@pytest.mark.daily(4)
@pytest.mark.parametrize(
    ("page", "query"), [(page, QUERIES[(i + turn) % 4]) for i, page in enumerate(PAGES) for turn in (0, 1)]
)
def test_every_page_opens_and_says_no_number_that_nobody_knows(page: str, query: dict[str, str]) -> None:
    app = open_page(page, run="reader", **query)
    assert len(app.title) == 1
    assert not app.error
    assert not app.warning
    assert not NAN.search(said(app))
    assert not NAN.search(drawn(app))
    assert "ceiling" not in app.title[0].value
    assert link(app) == {"run": "reader", **query}


# --- the input


def test_a_passage_is_kept_as_it_is_typed() -> None:
    app = open_page("overview", run="reader")
    field = app.text_area(key="control-input")
    field.set_value(PASSAGE).run()
    assert app.text_area(key="control-input").value == PASSAGE
    assert link(app)["input"] == PASSAGE.replace("\n", "↵")
    again = open_page("overview", **link(app))
    assert again.text_area(key="control-input").value == PASSAGE
    field.set_value("words,↵␣␣The").run()
    assert app.text_area(key="control-input").value == "words,\n  The"


def test_what_cannot_be_read_is_said_and_stays_in_the_field() -> None:
    app = open_page("overview", run="reader")
    long = "the rain " * 30
    app.text_area(key="control-input").set_value(long).run()
    assert app.sidebar.error[0].value == "Type 1 to 32 tokens, not 120."
    assert app.text_area(key="control-input").value == long
    assert "input" not in link(app)


def test_another_passage_is_drawn_from_what_was_held_out_and_as_long() -> None:
    app = open_page("overview", run="reader", input="To see, to")
    next(button for button in app.sidebar.button if button.label == "Draw another").click().run()
    found = texts.config().build_task()
    passage = found.parse(app.text_area(key="control-input").value)
    assert len(passage) == 5
    held = found.known.held_out
    assert any((part[i : i + 5] == passage).all() for part in held for i in range(len(part) - 4))


def test_a_passage_goes_on_where_it_stands() -> None:
    app = open_page("overview", run="reader")
    task = texts.config().build_task()
    before = task.parse(app.text_area(key="control-input").value)
    app.select_slider(key="control-tokens").set_value(8).run()
    assert task.parse(app.text_area(key="control-input").value).tolist() == before[:8].tolist()
    app.select_slider(key="control-tokens").set_value(32).run()
    assert not app.exception
    longer = task.parse(app.text_area(key="control-input").value)
    assert len(longer) == 32
    assert any((longer[i : i + 8] == before[:8]).all() for i in range(25))


def test_a_passage_is_found_and_made_longer() -> None:
    parts = [np.arange(10), np.array([7, 7, 8, 9, 7, 8])]
    assert passages.around(parts, np.array([7, 8, 9]), 2).tolist() == [7, 8]
    assert passages.around(parts, np.array([3, 4]), 5).tolist() == [3, 4, 5, 6, 7]
    assert passages.around(parts, np.array([8, 9]), 4).tolist() == [6, 7, 8, 9]  # there is no more after it
    assert passages.around(parts, np.array([9, 7]), 4).tolist() == [8, 9, 7, 8]
    assert passages.around(parts, np.array([9, 9]), 4) is None
    assert passages.around(parts, np.array([7]), 11) is None
    assert passages.lengths(32, 7) == [2, 4, 7, 8, 16, 24, 32]
    line = "To see,\n\tto know"
    assert passages.as_typed(passages.in_a_line(line)) == line
    assert passages.in_a_line(line).isprintable()


# --- what is said of it


def test_the_title_counts_what_is_guessed_and_the_bars_are_the_softmax(reader: Transformer) -> None:
    passage = tokens_of(PASSAGE)
    logits = logits_of(reader, passage)
    right = logits.argmax(axis=1) == passage
    word = np.array([name.isalnum() for name in (texts.config().build_task().vocabulary[token] for token in passage)])
    app = open_page("overview", run="reader", input=PASSAGE, query="3")
    assert app.title[0].value == (
        f"It guesses {right[word].sum()} of {word.sum()} words, "
        f"and {right[~word].sum()} of {(~word).sum()} blanks, line ends and marks."
    )
    shares = np.exp(logits[2] - logits[2].max())
    shares /= shares.sum()
    bars = trace(app, "overview-guesses", "tokens")
    best = np.sort(shares)[::-1][: len(array(bars["x"]))]
    np.testing.assert_allclose(array(bars["x"])[:5], best[:5], atol=1e-5)
    assert f"{shares[passage[2]]:.3f}" in said(app) or "× 10" in said(app)


def test_its_best_guess_and_how_many_are_right_are_those_of_the_weights(made: Path, heard: list[Claim]) -> None:
    for query in ("2", "9"):
        open_page("overview", run="reader", query=query)
    own = {each for each in heard if each.name.startswith("app_pages/overview/guesses.")}
    assert len(own) == 3
    for each in own:
        judge(World.of(Run(made / "reader"), "overview"), each)


def test_guesses_that_no_digit_tells_apart_are_named_together_and_many_are_counted() -> None:
    sample: Any = SimpleNamespace(read=("SEP", "a"), targets=("a", "e"))
    said = [
        best_guess(sample, 1, dict(zip("abcdefg", weights, strict=False)), listed)
        for weights, listed in (((0.4, 0.3, 0.1, 0.1, 0.1), 0), ((0.3001, 0.3, 0.2, 0.1, 0.1), 0), ((0.01,) * 7, 7))
    ]
    ends = ("'e', which has 0.100.", "'e', which has 0.100.", "'e', which has 0.010.")
    bests = (
        "guess is 'a', with probability 0.400",
        "guesses are 'a' and 'b', with probability 0.300 each",
        "guesses are 7 tokens or more, with probability 0.010 each",
    )
    assert said == [
        f"After 'a' at 2 its best {best}. The text goes on with {end}" for best, end in zip(bests, ends, strict=True)
    ]


def test_a_text_is_read_as_it_stands_and_not_as_it_was_guessed(reader: Transformer) -> None:
    """The pattern that is drawn is that of the passage itself, not of the model's own words."""
    passage = tokens_of(PASSAGE)
    separator = texts.config().build_task().separator
    seen = observe(reader, torch.tensor([[separator, *passage[:-1]]]))
    large, values = large_head(open_page("heads", run="reader", input=PASSAGE, head="decoder.1.self_attention.2"))
    pattern = seen["decoder.1.self_attention.pattern"][0, 2].numpy()
    np.testing.assert_allclose(np.nan_to_num(values["pattern"]), pattern, atol=1e-5)
    assert large["tokens"]["y"][1] == "The"


def test_heads_are_told_by_what_they_look_at_on_held_out_passages(reader: Transformer) -> None:
    """Where a head prefers a kind of token by its share on it, which tests/transformer/analysis/heads counts again."""
    task = texts.config().build_task()
    batch = task.encode(list(task.known.windows(32)))  # all there is, which a survey of so small a text reads
    seen = observe(reader, torch.from_numpy(batch.tokens))
    before = {}
    for layer in range(2):
        pattern = seen[f"decoder.{layer}.self_attention.pattern"].numpy()
        for index in range(4):
            shares = [pattern[:, index, query, query - 1] for query in range(1, 32)]
            before[Head(f"decoder.{layer}.self_attention", index)] = float(np.mean(shares))
    head = max(before, key=before.__getitem__)
    title = open_page("heads", run="reader").title[0].value
    assert f"ead {head.short} " in title
    kinds = measure_kinds(reader, task)
    kind = kinds.leaning(head)
    if kind is None:
        assert f"{before[head]:.2f}" in title
    else:
        share = share_text(float(kinds.share[kind].mean[kinds.heads.index(head)]))
        assert title == f"Where a word asks, head {head.short} has {share} of its attention on {KINDS[kind]}."


def test_habits_are_shares_of_a_mean_pattern() -> None:
    mean = np.array([[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.25, 0.5, 0.25, 0], [0.5, 0.125, 0.25, 0.125]])
    found = habits(mean)
    assert found["previous"] == pytest.approx((0.75 + 0.5 + 0.25) / 3)
    assert found["self"] == pytest.approx((0.25 + 0.25 + 0.125) / 3)
    assert found["first"] == pytest.approx((0.25 + 0.5) / 2)
    assert np.isnan(list(habits(np.ones((1, 1))).values())).all()


def test_a_head_without_one_place_is_told_by_all_of_them() -> None:
    head = Head("decoder.0.self_attention", 0)
    told = lambda mean: habit_sentence(head, SimpleNamespace(patterns={head.site: np.array([mean])}))  # noqa: E731
    mixed = [[1, 0, 0, 0], [0.25, 0.75, 0, 0], [0.25, 0.25, 0.5, 0], [0.25, 0.25, 0.25, 0.25]]
    share = (0.75 + 0.5 + 0.25) / 3
    assert told(mixed) == f"Head 0.0 looks at itself: {share:.2f} of its attention is there."
    far = [[1, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0], [0.4, 0.3, 0.3, 0, 0], [0.1, 0.7, 0.1, 0.1, 0], [0, 0.5, 0.5, 0, 0]]
    places = f"{(0.5 + 0.3 + 0.1 + 0) / 4:.2f} on the token before, {(0.5 + 0.3 + 0.1 + 0) / 4:.2f} on itself"
    first = f"{(0.4 + 0.1 + 0) / 3:.2f} on the first token"
    assert (
        told(far) == f"No single place has half of head 0.0’s attention: {places}, {first}, the rest on other tokens."
    )
    assert "never has more than one key" in told([[1]])


def test_the_table_of_heads_leaves_out_what_means_nothing() -> None:
    app = open_page("heads", run="reader")
    for _ in range(20):
        if app.dataframe:
            break
        app.run()
    columns = list(app.dataframe[0].value.columns)
    assert "expected key" not in columns
    assert "previous" in columns
    assert "token it should output" not in said(app)


# --- the lens and the circuits


def test_what_is_kept_of_the_lens_is_the_top_of_every_stage(reader: Transformer) -> None:
    task, passage = texts.config().build_task(), tokens_of(PASSAGE)
    found = lens(reader, task, np.array(passage))
    logits = logits_of(reader, passage)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert found.tokens.shape[-1] == LISTED < shares.shape[1]
    np.testing.assert_allclose(found.shares[-1], -np.sort(-shares, axis=1)[:, :LISTED], atol=1e-5)
    own = shares[np.arange(len(passage)), passage]
    np.testing.assert_allclose(found.of_target[-1], own, atol=1e-6)
    assert found.rank[-1].tolist() == [int((row > p - 1e-7).sum()) for row, p in zip(shares, own, strict=True)]
    tokens, weights = alternatives(reader, task, np.array(passage))
    np.testing.assert_allclose(weights, found.shares[-1], atol=1e-6)
    assert tokens[:, 0].tolist() == logits.argmax(axis=1).tolist()


def test_circuits_over_some_tokens_are_part_of_those_over_all(reader: Transformer) -> None:
    head, some = Head("decoder.1.self_attention", 2), [5, 0, 17]
    whole, part = circuits(reader, head), circuits(reader, head, some)
    np.testing.assert_allclose(part.qk_tokens, whole.qk_tokens[np.ix_(some, some)], atol=1e-5)
    assert part.ov_tokens is not None
    assert whole.ov_tokens is not None
    np.testing.assert_allclose(part.ov_tokens, whole.ov_tokens[some], atol=1e-5)
    app = open_page("inside", run="reader", head=str(head), input=PASSAGE)
    assert array(trace(app, "circuit-tokens", "values")["z"]).shape == (24, 24)
    assert "24 of" in said(app)
    assert f"at {len(tokens_of(PASSAGE))} reads" in app.title[0].value  # the last


# --- other tokens, other masks


def test_a_token_is_replaced_by_the_commonest_in_turn(reader: Transformer) -> None:
    """|Δlogit| of each output when the rain becomes another of six words: by passes made here."""
    passage, separator = tokens_of(PASSAGE), texts.config().build_task().separator
    read = [separator, *passage[:-1]]
    with torch.no_grad():
        before = reader(torch.tensor([read]))[0]
        moves = []
        for token in range(6):
            changed = [*read[:3], token, *read[4:]]
            moves.append((reader(torch.tensor([changed]))[0] - before).abs().amax(dim=-1).numpy())
    app = open_page("information", run="reader", input=PASSAGE, poked="4")
    drawn = array(trace(app, "moves", "values")["z"])
    np.testing.assert_allclose(drawn[3:, 3], np.max(moves, axis=0)[3:], atol=1e-4)
    assert np.isnan(drawn[:3, 3]).all()
    assert "The mask holds" in said(app) or "the mask holds" in said(app)
    one = open_page("information", run="reader", input=PASSAGE, poked="4", replacement="birds")
    assert "by 'birds'" in one.title[0].value
    wrong = open_page("information", run="reader", input=PASSAGE, replacement="xyzzy")
    assert "There is no replacement “xyzzy” here" in wrong.warning[0].value


def test_a_mask_on_a_text_is_measured_and_no_ceiling_is_claimed(reader: Transformer, made: Path) -> None:
    """What is read costs what it costs when the scores of older keys are taken off by hand."""
    app = open_page("masks", run="reader", input=PASSAGE, mask="recent:1")
    pattern = array(trace(app, "after-pattern", "values")["z"])
    n = len(tokens_of(PASSAGE))
    back = np.subtract.outer(np.arange(n), np.arange(n))
    np.testing.assert_array_equal(np.isfinite(pattern), (back == 0) | (back == 1))
    assert "perplexity" in app.title[0].value or "costs" in app.title[0].value
    words = said(app)
    assert "No ceiling is drawn" in words
    assert f"The output at position {n} can depend on 3 of the {n} tokens before it, in 2 layers" in words
    leaking = said(open_page("masks", run="reader", input=PASSAGE, mask="full", target="2"))
    assert f"It can also depend on {n - 2} later tokens, its own among them: this mask leaks" in leaking


def test_a_mask_is_painted_for_the_passage_at_hand() -> None:
    """A model that reads 32 tokens at a time, and a mask of as many positions as the passage has."""
    rows = np.tril(np.ones((3, 3), dtype=bool))
    rows[2, 0] = False
    app = open_page("masks", run="reader", input="To see", mask=str(Painted.of(rows)))
    assert not app.warning
    np.testing.assert_array_equal(np.isfinite(array(trace(app, "after-pattern", "values")["z"])), rows)
    longer = open_page("masks", run="reader", input=PASSAGE, mask=str(Painted.of(rows)))
    assert f"this passage has {len(tokens_of(PASSAGE))}" in longer.warning[0].value


# --- figures


def test_long_tokens_lose_their_middle_and_are_said_in_full_elsewhere() -> None:
    assert elided("misbecoming") == "misbecoming"
    assert elided("misbecomingly") == "misbec…ingly"
    assert [len(elided("a" * 40, most)) for most in (1, 2, 3, 9, 12)] == [1, 2, 3, 9, 12]
    strip = guesses_strip(["misbecomingly-said", ",↵␣␣"], ["x", ",↵␣␣"], np.array([0.25, 0.5]))
    assert "misbeco…y-said" in strip
    assert "1: misbecomingly-said, the guess was x, with 0.25" in strip
    assert "2: ,↵␣␣, guessed right, with 0.50" in strip


def test_of_many_labels_those_with_letters_are_written() -> None:
    words = [("␣" if place % 2 == 0 else f"w{place}") for place in range(60)]
    axis = token_axis("key", words, upright=False)
    assert axis["tickvals"] == list(range(1, 60, 2))
    digits = token_axis("key", ["3"] * 60)
    assert digits["tickvals"] == list(range(0, 60, 2))


def test_a_long_attention_is_shown_in_blocks_each_its_strongest_cell() -> None:
    n, side = 100, 50  # more than 96 cells: blocks of two
    rng = np.random.default_rng(0)
    scores, pattern = rng.normal(size=(2, 3, n, n)).astype(np.float32)
    mask, names = np.tril(np.ones((n, n), dtype=bool)), tuple(map(str, range(n)))
    seen = from_afar(Attention("decoder.0.self_attention", scores, mask, pattern, names, names))
    assert (seen.factor, seen.whole, seen.queries[:2]) == (2, (n, n), ("1–2", "3–4"))
    for row, column in ((0, 0), (7, 3), (49, 49), (3, 7)):
        block = slice(2 * row, 2 * row + 2), slice(2 * column, 2 * column + 2)
        assert seen.mask[row, column] == mask[block].any()
        assert seen.pattern[1][row, column] == pattern[1][block].max()
        allowed = scores[1][block][mask[block]]
        assert seen.scores[1][row, column] == (allowed.max() if len(allowed) else -np.inf)
    assert seen.pattern.shape == (3, side, side)
