"""The page on which a model writes: its numbers from plain logits and numpy, its links, and what may go wrong."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.text.writing import draft, words
from dashboard.app_pages.text.writing.draft import Writing
from dashboard.app_pages.text.writing.figures import alternatives_bars
from dashboard.app_pages.text.writing.glances import Glances
from dashboard.components.passage import Ground, Passage, Words
from dashboard.components.payload import unpack
from dashboard.models import menu, passages
from dashboard.theme import LIGHT
from dashboard.view.link import from_query
from tests.kit import claims
from tests.kit.claims.laws.text import Looks
from tests.kit.pages import ROOT, array, falls_back, figures, link, open_page, shown
from tests.kit.waiting import PATIENCE, wait_for
from transformer import observe
from transformer.__main__ import main
from transformer.analysis.heads.one_token import glance
from transformer.foundation.claims import Claim
from transformer.model import Transformer
from transformer.text.task import Text
from transformer.training.runs import Run

LINK = {"run": "plays", "written": "20", "temperature": "0.7"}
SCALE = np.zeros((256, 3), dtype=np.uint8)


@pytest.fixture
def shelf(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The page's only run; it waits until a text is whole."""
    monkeypatch.setattr(menu, "ROOT", run.folder.parent)
    monkeypatch.setattr(draft, "AT_ONCE", PATIENCE)
    return run


def component(app: AppTest, key: str) -> tuple[dict[str, Any], bytes]:
    """What a component has been told."""
    messages = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
    return next(message for message in messages if message[0].get("key") == key)


def floats(body: bytes, offset: int, count: int) -> np.ndarray:
    return np.frombuffer(body, "<f4", count, offset)


def ids(task: Text, pieces: list[str]) -> list[int]:
    """The tokens of a passage, found again by what they look like."""
    assert pieces[0] == "SEP "
    known = task.known.vocabulary
    return [task.separator, *(known.tokens.index(p) if p in known.tokens else known.unknown for p in pieces[1:])]


def best(likely: np.ndarray, own: int) -> list[int]:
    """The tokens of the bars: the ten likeliest, and the one that stood there."""
    order = np.argsort(-likely[:-1], kind="stable")[:10].tolist()
    return order if own in order else [*order, own]


def softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


@torch.no_grad()
def logits_after(model: Transformer, text: list[int]) -> np.ndarray:
    return model(torch.tensor([text]))[0, -1].double().numpy()


# --- numbers


def test_every_probability_is_the_softmax_of_the_logits_and_what_it_was_drawn_with_follows(
    shelf: Run, model: Transformer, task: Text
) -> None:
    place = 15
    app = open_page("writing", **LINK, top_k="6", prompt="The crow ", word=str(place + 1))
    header, _ = component(app, "writing-passage")
    text = ids(task, header["tokens"])
    logits = logits_after(model, text[:place])
    likely = softmax(logits)
    words = np.arange(len(logits)) < len(logits) - 3  # unknown, SEP and PAD stand last, and in no text
    cut = softmax(np.where(words, logits, -np.inf) / 0.7)
    cut[np.argsort(-cut, kind="stable")[6:]] = 0
    cut /= cut.sum()
    bars = {trace["name"]: array(trace["x"]) for trace in figures(app)["writing-alternatives"]["data"][:2]}
    shown = best(likely, text[place])
    assert bars["the model’s probability"] == pytest.approx(likely[shown], abs=1e-5)
    assert bars["drawn with"] == pytest.approx(cut[shown], abs=1e-5)
    names = figures(app)["writing-alternatives"]["layout"]["yaxis"]["ticktext"]
    marked = [i for i, name in enumerate(names) if "▸" in name]
    assert [shown[i] for i in marked] == [text[place]]
    assert f"the model gave it {likely[text[place]]:.3f}" in header["says"][place]


def test_the_title_says_what_was_its_first_guess_and_a_caption_the_surprise(
    shelf: Run, model: Transformer, task: Text
) -> None:
    app = open_page("writing", **LINK)
    header, _ = component(app, "writing-passage")
    text, given = ids(task, header["tokens"]), header["given"]
    assert len(text) - given == 20
    nats = [-np.log(softmax(logits_after(model, text[:place]))[text[place]]) for place in range(given, len(text))]
    said = f"To the model itself this text has perplexity {np.exp(np.mean(nats)):.1f}."
    assert any(caption.value.startswith(said) for caption in app.caption)
    tops = [logits_after(model, text[:place])[:-1].argmax() == text[place] for place in range(given, len(text))]
    assert app.title[0].value == f"{sum(tops)} of the 20 tokens that it wrote were its first guess."


def test_a_text_that_is_not_there_yet_has_no_number_but_how_much_is_written(task: Text) -> None:
    none = draft.Draft(task, "The crow", ())
    assert words.headline(none, 1, live=True) == "It writes 1 token, one by one."
    assert words.headline(none, 20, live=False) == "It writes 20 tokens, one by one."
    assert not words.own_surprise(none, live=False)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([0.5, 0.3, 0.15, 0.05], "looked most at ‘t0’ at 1 (0.50), ‘t1’ at 2 (0.30), ‘t2’ at 3 (0.15)"),
        ([0.1, 0.5, 0.2, 0.2], "looked most at ‘t1’ at 2 (0.50), ‘t2’ at 3 (0.20), ‘t3’ at 4 (0.20)"),
        ([0.4, 0.2, 0.2, 0.2], "looked most at ‘t0’ at 1 (0.40)"),
        ([0.3, 0.3, 0.2, 0.2], "looked most at ‘t0’ at 1 (0.30), ‘t1’ at 2 (0.30)"),
        ([0.25, 0.25, 0.25, 0.25], "looked most at 4 tokens (0.25 each)"),
        ([0.999, 0.001, 0.0], "looked most at ‘t0’ at 1 (1.00)"),
        ([1.0], "looked most at ‘t0’ at 1 (1.00)"),
        ([0.004] * 250, "gave none of 250 tokens as much as 0.005"),
        ([np.nan, 0.0], "saw no token"),
    ],
)
def test_of_tokens_that_got_as_much_all_are_named_or_none_is(row: list[float], said: str, heard: list[Claim]) -> None:
    names = [f"t{key}" for key in range(len(row))]
    made_up = SimpleNamespace(names=[*names, f"t{len(row)}"])
    found = words.looked(cast("Any", made_up), len(row), "head 0.0", np.array([*row, np.nan]))
    assert found.endswith(f"There head 0.0 {said}.")
    claims.judge(cast("Any", Looks((*row, np.nan))), heard[0])


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [
        ([0.3, 0.3, 0.2], ["its first guess", "its first guess", "its guess number 3"]),
        ([0.05] * 11, ["its first guess"] * 11),
        ([*np.arange(20, 0, -1) / 210][:11], ["its first guess", "its guess number 2"]),
    ],
)
def test_a_guess_ranks_behind_those_alone_that_are_likelier(probabilities: list[float], said: list[str]) -> None:
    made_up = cast("Any", SimpleNamespace(names=["SEP", "a"]))
    for came, rank in enumerate(said):
        ranking = draft.Ranking(tuple(range(len(probabilities))), np.array(probabilities), None, came)
        assert words.came(made_up, 1, ranking).endswith(f", {rank}.")
    last = draft.Ranking(tuple(range(11)), np.arange(11, 0, -1) / 66, None, 10)
    assert words.came(made_up, 1, last).endswith(", not among its first ten guesses.")


@pytest.mark.daily(1)
@pytest.mark.parametrize("head", [None, "decoder.1.self_attention.2"])
def test_a_word_shows_the_row_of_the_query_that_said_it(
    shelf: Run, model: Transformer, task: Text, head: str | None
) -> None:
    place = 11
    app = open_page("writing", **LINK, word=str(place + 1), **({"head": head} if head else {}))
    header, body = component(app, "writing-passage")
    text = ids(task, header["tokens"])
    seen = observe(model, torch.tensor([text]))
    rows = torch.stack([seen[f"decoder.{layer}.self_attention.pattern"][0, :, place - 1] for layer in range(2)])
    expected = rows.flatten(0, 1).numpy()  # [head, key]; the mask leaves 0 behind the query
    small, weights = component(app, "writing-heads")
    shown = floats(weights, small["weights"], expected.size).reshape(expected.shape)
    assert small["query"] == place - 1
    assert np.isnan(shown[:, place:]).all()
    assert shown[:, :place] == pytest.approx(expected[:, :place], abs=1e-5)
    assert shown[:, :place].sum(axis=1) == pytest.approx(np.ones(8), abs=1e-5)
    one = expected.mean(axis=0) if head is None else expected[4 + 2]
    ground = floats(body, header["ground"]["values"], len(text))
    assert header["chosen"] == place
    assert ground[:place] == pytest.approx(one[:place], abs=1e-5)
    assert np.isnan(ground[place:]).all()
    assert header["ground"]["high"] == pytest.approx(one.max(), abs=1e-5)
    assert floats(body, header["arcs"], len(text)) == pytest.approx(
        np.where(np.arange(len(text)) < place, one, 0), abs=1e-5
    )
    assert f"query {place}" in " ".join(caption.value for caption in app.caption)


def test_a_word_of_the_prompt_was_not_drawn(shelf: Run, model: Transformer, task: Text) -> None:
    app = open_page("writing", **LINK, prompt="The crow that calls", word="4")
    header, _ = component(app, "writing-passage")
    text = ids(task, header["tokens"])
    likely = softmax(logits_after(model, text[:3]))
    traces = figures(app)["writing-alternatives"]["data"]
    assert "drawn with" not in [trace.get("name") for trace in traces]
    assert array(traces[0]["x"]) == pytest.approx(likely[best(likely, text[3])], abs=1e-5)
    assert f"The model gave it {likely[text[3]]:.3f}" in " ".join(each.value for each in app.caption)


def test_a_text_beyond_the_context_is_seen_through_its_window(shelf: Run, model: Transformer, task: Text) -> None:
    assert model.n_ctx == 32
    app = open_page("writing", run="plays", written="60", word="51")
    header, _ = component(app, "writing-passage")
    text = ids(task, header["tokens"])
    small, weights = component(app, "writing-heads")
    shown = floats(weights, small["weights"], 8 * len(text)).reshape(8, len(text))
    start = 32  # two halves of the context have fallen out, so that what is left fits
    assert np.isnan(shown[:, :start]).all()
    seen = observe(model, torch.tensor([text[start:50]]))
    assert shown[:4, start:50] == pytest.approx(seen["decoder.0.self_attention.pattern"][0, :, -1].numpy(), abs=1e-5)
    said = next(caption.value for caption in app.caption if "reads 32 tokens at most" in caption.value)
    assert re.search(r"For .* at 51, the first 32 were no longer read", said)


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("word", "told"),
    [
        # 68 stand before the last: to leave 32 or fewer, in halves of 16, 48 must go.
        ("20", "At the end of this text it no longer reads the first 48 of 69."),
        ("33", "At the end of this text it no longer reads the first 48 of 69."),  # 32 stand before the 33rd: all read
        ("34", "at 34, the first 16 were no longer read"),  # the older half falls out at once
    ],
)
def test_what_is_out_of_sight_is_said_where_the_reader_looks(shelf: Run, word: str, told: str) -> None:
    app = open_page("writing", run="plays", written="60", word=word)
    (said,) = [caption.value for caption in app.caption if "tokens at most" in caption.value]
    assert told in said
    assert len(component(app, "writing-passage")[0]["tokens"]) == 69


def test_a_text_that_fits_loses_nothing(shelf: Run) -> None:
    assert not any(
        "tokens at most" in caption.value for caption in open_page("writing", run="plays", written="12").caption
    )


def test_a_glance_does_not_depend_on_what_comes_later(shelf: Run, model: Transformer, task: Text) -> None:
    text = task.begun("The crow that calls is answered")
    here, there = glance(model, text, 5), glance(model, [*text[:5], 3, 3, 3], 5)
    assert here.probabilities == pytest.approx(softmax(logits_after(model, text[:5])), abs=1e-6)
    for site, rows in here.rows.items():
        assert np.array_equal(rows, there.rows[site])
    with pytest.raises(ValueError, match="nothing said"):
        glance(model, text, 0)


# --- the same link, the same text


def passage(**query: str) -> list[str]:
    """The tokens that the page has written, SEP and the prompt before them."""
    draft._begun.clear()  # type: ignore[attr-defined]
    tokens: list[str] = component(open_page("writing", **query), "writing-passage")[0]["tokens"]
    return tokens


def test_the_same_link_gives_the_same_text_and_another_seed_another(shelf: Run) -> None:
    few = LINK | {"written": "8"}
    first = passage(**few)
    assert passage(**few) == first
    assert passage(**few, writing_seed="1") != first
    assert passage(**few, top_k="1", writing_seed="1") == passage(**few, top_k="1", writing_seed="2")


def test_a_shorter_text_is_the_beginning_of_a_longer_one(shelf: Run) -> None:
    shorter, longer = (passage(run="plays", written=n) for n in ("7", "19"))
    assert longer[: len(shorter)] == shorter
    assert len(longer) - len(shorter) == 12


def test_the_command_line_writes_the_same(shelf: Run, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = passage(**LINK, prompt="The crow")
    assert main(["generate", str(shelf.folder), "--prompt", "The crow", "--tokens", "20", "--temperature", "0.7"]) == 0
    assert capsys.readouterr().out == "".join(tokens[1:]) + "\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--top-p", "0"], "top_p must be above 0"),
        (["--temperature=-1"], "temperature must be"),
        (["--tokens=-1"], "tokens must be 0 or more, not -1"),
        (["--step", "9"], "has no step 9"),
    ],
)
def test_the_command_line_says_in_one_line_what_cannot_be(
    run: Run, capsys: pytest.CaptureFixture[str], wrong: list[str], said: str
) -> None:
    assert main(["generate", str(run.folder), *wrong]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_run_with_a_law_cannot_write(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", str(ROOT / "checkpoints" / "reverse")]) == 2
    assert "was trained on reverse: only a model that was trained on a text" in capsys.readouterr().err


# --- links and clicks


def test_nonsense_in_a_link_falls_back_with_a_notice_each(shelf: Run) -> None:
    nonsense = {
        "word": ("9999", "no token 9999"),
        "head": ("decoder.9.self_attention.0", "no such head"),
        "temperature": ("nan", "temperature=“nan” cannot be used"),
        "top_k": ("-3", "top_k=“-3” cannot be used"),
        "top_p": ("0", "top_p=“0” cannot be used"),
        "written": ("100000", "written=“100000” cannot be used"),
    }
    falls_back("writing", nonsense, run="plays")
    (warning,) = open_page("writing", **LINK, word="1").warning  # the separator was said by nobody
    assert "no token 1 " in shown(warning.value)


def test_a_prompt_of_unknown_words_is_read_as_unknown_and_said(shelf: Run) -> None:
    app = open_page("writing", **LINK, prompt="zyzzyva <b>*x*</b>")
    assert not app.error
    assert any("does not know" in caption.value for caption in app.caption)
    assert component(app, "writing-passage")[0]["tokens"][1] == "⟨unk⟩"


def test_what_is_typed_goes_into_the_link_and_comes_back(shelf: Run) -> None:
    """The sidebar's input, and how many tokens of it are read, mean nothing where a prompt is typed."""
    app = open_page("writing", **LINK)
    assert [area.label for area in app.text_area] == ["Prompt"]
    assert "Tokens" not in [slider.label for slider in app.select_slider]
    labels = [field.label for field in app.number_input]
    assert len(labels) == len(set(labels))
    own = app.text_area[0].value
    app.text_area[0].set_value("The crow\n  that").run()
    assert link(app)["prompt"] == "The crow↵  that"
    assert app.text_area[0].value == "The crow\n  that"
    assert component(app, "writing-passage")[0]["tokens"][1:4] == ["The", " ", "crow"]
    app.text_area[0].set_value(own).run()
    assert "prompt" not in link(app)


def test_the_buttons_change_the_view(shelf: Run, task: Text) -> None:
    app = open_page("writing", **LINK, word="9")
    app.button(key="writing-again").click().run()
    assert link(app)["writing_seed"] == "1"
    assert "word" not in link(app)
    app.button(key="writing-on").click().run()
    assert link(app)["written"] == "100"
    app.button(key="writing-prompt").click().run()
    drawn = passages.as_typed(link(app)["prompt"])
    held_out = [task.typed(part) for part in task.known.held_out]
    assert any(drawn in text for text in held_out)
    assert not app.exception


def test_a_model_without_a_text_is_told_and_the_way_shown(shelf: Run) -> None:
    app = open_page("writing", run="compiled")
    assert "needs a model that reads text" in app.title[0].value
    app.button(key="elsewhere").click().run()
    assert link(app)["run"] == "plays"
    assert "that it wrote" in app.title[0].value


@pytest.mark.daily(1)
@pytest.mark.parametrize("page", ["writing", "reading"])
def test_who_has_chosen_no_model_gets_one_that_reads_text_and_is_told(shelf: Run, root: Path, page: str) -> None:
    (root / "plays").symlink_to(shelf.folder)
    (root / menu.FIRST).symlink_to(Path("checkpoints/reverse").resolve())
    assert not open_page(page, run=menu.FIRST).warning
    app = open_page(page)
    assert any("so plays is open here" in caption.value for caption in app.sidebar.caption)
    assert link(app)["run"] == "plays"


def test_the_prompts_on_offer_are_the_beginnings_of_speeches_without_an_unknown_word() -> None:
    task = Run(Path("checkpoints/shakespeare")).config.build_task()
    assert isinstance(task, Text)
    offered = draft.openings(task)
    assert len(offered) == len(task.known.held_out)
    for prompt, stretch in zip(offered, task.known.held_out, strict=True):
        assert prompt in task.typed(stretch)
        assert re.fullmatch(r"[A-Z ]+  \w\S*( \S+){2}", prompt)
        assert task.known.vocabulary.unknown not in task.begun(prompt)
    assert draft.opening(task) == offered[0]


def test_where_no_model_has_read_a_text_the_page_says_how_to_train_one(root: Path) -> None:
    app = open_page("writing", run="compiled")
    assert "train --task text" in app.info[0].value
    assert not [each for each in app.button if each.key == "elsewhere"]


# --- a text that grows


def slowly() -> Iterator[Any]:
    number = 0
    while True:
        time.sleep(0.005)
        yield number
        number += 1


def test_a_text_grows_as_far_as_it_is_wanted_and_goes_on_where_it_was_stopped() -> None:
    text = Writing(slowly())
    text.want(3, patience=PATIENCE)
    assert text.said == [0, 1, 2]
    text.want(10_000)
    text.enough()
    reached = len(text.said)
    wait_for("nothing more is written", lambda: text._future, lambda future: future is None)
    assert len(text.said) <= reached + 1  # the one that was under way
    wanted = len(text.said) + 4
    text.want(wanted, patience=PATIENCE)
    assert text.said == list(range(wanted))


def test_a_text_that_breaks_off_says_why_and_keeps_what_it_has() -> None:
    def broken() -> Iterator[Any]:
        yield 1
        raise ValueError("out of ink")

    text = Writing(broken())
    text.want(5, patience=PATIENCE)
    assert (text.said, text.failure) == ([1], "out of ink")
    text.want(5, patience=PATIENCE)
    assert text.said == [1]


@pytest.mark.parametrize("prompt", ["ROMEO  ", "a\nb\n\n  c", "tab\tbed", "a hard\N{NO-BREAK SPACE}blank"])
def test_a_prompt_survives_its_link(prompt: str) -> None:
    view, notices = from_query({"prompt": passages.in_a_line(prompt)})
    assert passages.as_typed(view.prompt) == prompt
    assert not notices


def test_of_a_prompt_no_link_holds_what_cannot_be_seen() -> None:
    assert passages.in_a_line("be\x07ll") == "bell"
    assert from_query({"prompt": "be\x07ll"})[1]


# --- what the browser is told


def test_a_passage_is_told_as_it_is() -> None:
    values = np.array([0.1, np.nan, 0.3], dtype=np.float32)
    ground = Ground(values, 0.0, 0.5, SCALE, "surprise")
    words = Words(("a", "\n", "b"), given=1)
    message = Passage(words, key="k", alt="Words.", ground=ground, chosen=2, arcs=values).pack(LIGHT)
    header, body = unpack(message)
    assert header["tokens"] == ["a", "\n", "b"]
    assert (header["chosen"], header["given"], header["ground"]["high"]) == (2, 1, 0.5)
    assert np.array_equal(floats(body, header["ground"]["values"], 3), values, equal_nan=True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"alt": " "}, "needs alt"),
        ({"chosen": 3}, "one of 0 to 2, not 3"),
        ({"arcs": np.zeros(2)}, r"\[2\] for 3 words"),
        ({"ground": Ground(np.zeros(4), 0.0, 1.0, SCALE, "surprise")}, r"\[4\] for 3 words"),
        ({"ground": Ground(np.zeros(3), 1.0, 1.0, SCALE, "surprise")}, "must rise"),
        ({"words": Words(("a", " ", "b"), says=("one",))}, "1 sentences for 3 words"),
    ],
)
def test_a_passage_that_does_not_fit_together_is_refused(changes: dict[str, Any], said: str) -> None:
    told = {"words": Words(("a", " ", "b")), "key": "k", "alt": "Words."} | changes
    with pytest.raises(ValueError, match=said):
        Passage(**told).pack(LIGHT)


def test_glances_that_do_not_fit_together_are_refused() -> None:
    looks: dict[str, Any] = {"key": "k", "alt": "Heads.", "query": 1}
    header, body = unpack(Glances("ab", [(0, 0)], np.eye(2)[:1], **looks).pack(LIGHT))
    assert floats(body, header["weights"], 2).tolist() == [1.0, 0.0]
    for weights, more, said in (
        (np.zeros((1, 3)), {}, "1 heads and 2 tokens"),
        (np.zeros((1, 2)), {"chosen": 1}, "one of 0 to 0"),
        (np.zeros((1, 2)), {"alt": ""}, "need alt"),
    ):
        with pytest.raises(ValueError, match=said):
            Glances("ab", [(0, 0)], weights, **(looks | more)).pack(LIGHT)


def test_the_bars_say_their_numbers_mark_the_one_that_came_and_have_one_axis() -> None:
    figure = alternatives_bars(["the", "<i>a", "of"], np.array([0.5, 0.2, 0.1]), np.array([0.7, 0.3, 0.0]), 1)
    assert [trace.name for trace in figure.data[:2]] == ["the model’s probability", "drawn with"]
    assert [text.strip() for text in figure.data[2].text] == ["0.500 → 0.700", "0.200 → 0.300", "0.100 → 0.000"]
    assert figure.data[2].x.tolist() == pytest.approx([0.7, 0.3, 0.1])
    assert ["▸" in name for name in figure.layout.yaxis.ticktext] == [False, True, False]
    assert "<i>" not in figure.layout.yaxis.ticktext[1]
    rare = alternatives_bars(["of", "a"], np.array([0.02, 0.01]), np.array([0.6, 0.4]), 0)
    assert rare.layout.xaxis == figure.layout.xaxis
    assert figure.layout.xaxis.range[0] == 0 < 1 <= figure.layout.xaxis.range[1]
