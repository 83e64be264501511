"""What a text costs its reader, under edits and by itself: against numpy's own softmax, and on the pages."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.training.accuracy import text as accuracy_text
from dashboard.app_pages.training.accuracy.text import token_table
from dashboard.app_pages.training.film.text import kept_habits, worse_than_even
from dashboard.components.payload import unpack
from dashboard.parts.text import counted_tokens, passage_sentence
from tests.kit import claims
from tests.kit.claims.laws.text import Confused, Guessed, Told
from tests.kit.pages import array, figures, link, open_page, trace
from tests.kit.texts import config, trained, untrained
from transformer import checkpoints, observe
from transformer.analysis.accuracy.breakdown import Answers
from transformer.analysis.accuracy.reading import cost_of_each_head, reading
from transformer.analysis.accuracy.windows import ByPlace, drawn_together, named, stretches
from transformer.analysis.film.film import Film
from transformer.analysis.health.examine import examine
from transformer.analysis.interventions.effects import one_token_changed
from transformer.analysis.interventions.patching import patching
from transformer.edits import EditError, parse_edit
from transformer.edits.heads.patch_input import PatchInput
from transformer.edits.heads.zero import AblateHead
from transformer.foundation.claims import Claim
from transformer.training.recording import develop
from transformer.training.runs import Run

PAGES = ("film", "edits", "positions", "order", "accuracy", "lengths", "bottleneck", "corners", "context", "questions")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader after sixty steps, and one of another make as it was drawn."""
    root = tmp_path_factory.mktemp("runs")
    assert develop(trained(root / "reader", config()))
    untrained(root / "raw", config(norm="none", d_ff=0, positions="learned", tied=False))
    return root


@pytest.fixture(autouse=True)
def root(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dashboard.models.menu.ROOT", made)
    monkeypatch.setattr("dashboard.models.menu.FIRST", "reader")
    return made


def loaded(root: Path, run: str = "reader") -> tuple[torch.nn.Module, object]:
    network, found = checkpoints.load(Run(root / run).snapshot())
    return network.eval(), found.build_task()


def costs_by_hand(model: torch.nn.Module, windows: np.ndarray, separator: int, gone: int | None = None) -> np.ndarray:
    """Nats of each token, float [window, place]: the windows laid out here, the softmax in float64 here.

    `gone`: the columns of W_O of layer 0 that are set to zero, head by head of four: what silencing one amounts to.
    """
    tokens = np.concatenate([np.full((len(windows), 1), separator), windows[:, :-1]], axis=1)
    weight = model.decoder[0].self_attention.out.weight if gone is not None else None  # type: ignore[union-attr,index]
    kept = None if weight is None else weight.detach().clone()
    with torch.no_grad():
        if weight is not None:
            weight[:, 8 * gone : 8 * gone + 8] = 0  # type: ignore[operator]
        logits = model(torch.tensor(tokens)).double().numpy()
        if weight is not None:
            weight.copy_(kept)  # type: ignore[arg-type]
    top = logits.max(axis=-1, keepdims=True)
    everything = np.log(np.exp(logits - top).sum(axis=-1)) + top[..., 0]
    return everything - np.take_along_axis(logits, windows[..., None], axis=-1)[..., 0]


# --- by place in the window


@pytest.mark.parametrize("length", [1, 2, 4, 5, 7, 40, 512])
def test_stretches_part_a_window_into_neighbours_each_place_once(length: int) -> None:
    places = [place for each in stretches(length) for place in range(each.start, each.stop)]
    assert places == list(range(length))
    sizes = [each.stop - each.start for each in stretches(length)]
    assert sizes[:-1] == sorted(sizes[:-1])
    assert all(size <= max(1, each.start / 2) for size, each in zip(sizes, stretches(length), strict=True))


def test_stretches_are_named_as_people_count() -> None:
    assert named(10) == ("1", "2", "3", "4", "5–6", "7–8", "9–10")
    assert len(named(512)) == 18
    assert named(512)[-1] == "385–512"


def test_what_is_drawn_together_is_the_mean_of_its_places() -> None:
    rng = np.random.default_rng(0)
    nats, right = rng.random((5, 10)), rng.random((5, 10)) < 0.4
    found = ByPlace.of(nats, right)
    for i, (first, end) in enumerate([(0, 1), (1, 2), (2, 3), (3, 4), (4, 6), (6, 8), (8, 10)]):
        cells = [nats[w, p] for w in range(5) for p in range(first, end)]
        windows = [sum(nats[w, first:end]) / (end - first) for w in range(5)]
        spread = math.sqrt(sum((w - sum(windows) / 5) ** 2 for w in windows) / 4)
        assert found.nats[i] == pytest.approx(sum(cells) / len(cells))
        assert found.half[i] == pytest.approx(1.959964 * spread / math.sqrt(5))
        assert found.right[i] == pytest.approx(right[:, first:end].mean())
        assert found.low[i] <= found.right[i] <= found.high[i]
    np.testing.assert_allclose(drawn_together(nats).mean(axis=0), found.nats)
    assert np.isnan(ByPlace.of(nats[:1], right[:1]).half).all()


# --- reading, and heads


def test_reading_costs_what_a_softmax_in_double_precision_says(made: Path) -> None:
    model, task = loaded(made)
    batch = task.fresh(np.random.default_rng(0), 6, 16)
    read = reading(model, batch)
    np.testing.assert_allclose(read.nats, costs_by_hand(model, batch.targets, task.separator), atol=1e-4)
    assert read.perplexity == pytest.approx(math.exp(float(read.nats.mean())))


def test_silencing_a_head_costs_what_zeroing_its_way_out_costs(made: Path) -> None:
    model, task = loaded(made)
    batch = task.fresh(np.random.default_rng(0), 6, 16)
    before = costs_by_hand(model, batch.targets, task.separator).mean()
    costs = cost_of_each_head(model, batch)
    for head in range(4):
        after = costs_by_hand(model, batch.targets, task.separator, gone=head).mean()
        assert costs[head] == pytest.approx(after - before, abs=1e-4)
    under = cost_of_each_head(model, batch, [AblateHead("decoder.0.self_attention.z", 1)])
    assert under[1] == pytest.approx(0, abs=1e-6)  # it is gone already


# --- two passages


def test_the_second_passage_differs_in_one_word_and_is_cut_alike(made: Path) -> None:
    model, task = loaded(made)
    passage = task.parse("The crow, that calls")
    other = one_token_changed(model, task, passage)
    assert (other != passage).sum() == 1
    np.testing.assert_array_equal(task.parse(task.typed(other)), other)


def test_patching_a_text_restores_what_the_model_itself_would_say(made: Path) -> None:
    model, task = loaded(made)
    passage = task.example[:12]
    other = one_token_changed(model, task, passage)
    seen = patching(model, task, passage, other)
    logits = []
    for each in (passage, other):
        tokens = torch.tensor([[task.separator, *each[:-1].tolist()]])
        with torch.no_grad():
            logits.append(model(tokens)[0].double().numpy())
    wanted, unwanted = (each.argmax(axis=-1) for each in logits)
    places = [i for i in range(12) if wanted[i] != unwanted[i]]
    for value, each in ((seen.clean, logits[0]), (seen.corrupted, logits[1])):
        assert value == pytest.approx(np.mean([each[i, wanted[i]] - each[i, unwanted[i]] for i in places]), abs=1e-4)
    assert seen.compared == len(places)
    with pytest.raises(EditError, match="have the same likeliest tokens"):
        patching(model, task, passage, passage)


@pytest.mark.parametrize("passage", ["To see,\n  to touch", "a_b~c:d;e=f", "100 % “of” words", "é ↵"])
def test_a_passage_that_is_patched_from_fits_into_a_link_and_comes_back(passage: str) -> None:
    edit = PatchInput("decoder.0.self_attention.z", 1, passage)
    text = edit.write()
    assert parse_edit(text) == edit
    assert not re.search(r"[~\s;,]|:.*:.*:", text)


def test_a_link_of_symbols_reads_as_before() -> None:
    edit = parse_edit("patch-input:decoder.0.self_attention.1:3_1_4")
    assert edit == PatchInput("decoder.0.self_attention.z", 1, "3 1 4")
    assert edit.write() == "patch-input:decoder.0.self_attention.1:3_1_4"
    with pytest.raises(EditError, match="a passage as in"):
        parse_edit("patch-input:decoder.0.self_attention.1:%zz")


# --- counting tokens


def answers() -> Answers:
    targets = np.array([[0, 1, 0, 2], [0, 1, 1, 0]])
    said = np.array([[0, 0, 1, 2], [0, 1, 0, 3]])
    return Answers(targets, targets, said, np.log(np.full(targets.shape, 0.25)))


def test_the_commonest_tokens_are_counted_by_hand() -> None:
    frame = token_table(answers(), ("a", "b", "c", "d"), 2)
    assert list(frame["token"]) == ["a", "b"]
    assert list(frame["times"]) == [4, 3]
    assert list(frame["guessed"]) == [0.5, pytest.approx(1 / 3)]
    assert list(frame["said instead"]) == ["b", "a"]
    assert list(frame["share"]) == [0.25, pytest.approx(2 / 3)]
    np.testing.assert_allclose(frame["nats a token"], math.log(4))


# --- the film, and health


def test_the_habits_of_the_film_are_those_of_the_weights(made: Path) -> None:
    run = Run(made / "reader")
    film, (model, task) = Film.load(run.folder / "film.npz"), loaded(made)
    tokens = torch.tensor([[task.separator, *task.example[:-1].tolist()]])
    pattern = observe(model, tokens)["decoder.1.self_attention.pattern"][0].detach().numpy()
    found = kept_habits(film)
    for head, share in found["previous"].items():
        if head.site == "decoder.1.self_attention":
            by_hand = np.mean([pattern[head.index, q, q - 1] for q in range(1, len(task.example))])
            assert share[-1] == pytest.approx(by_hand, abs=1 / 255)
            assert len(share) == len(film.pictured)


def test_a_healthy_reader_raises_no_alarm_and_speaks_as_it_reads(made: Path) -> None:
    for run in ("reader", "raw"):
        model, task = loaded(made, run)
        checkup = examine(model, task, task.example)
        assert not checkup.broken
        assert next(finding for check, finding in checkup.findings if check.name == "free").holds


# --- the pages


def words(app: AppTest) -> str:
    return "\n".join(str(each.value) for each in (*app.title, *app.markdown, *app.caption, *app.info, *app.metric))


def unknown(app: AppTest) -> list[str]:
    """Whatever on the page, or in what it sends, is not a number."""
    sent = [unpack(element.proto.bytes) for element in app.get("bidi_component")]
    texts = [json.dumps(header) for header, _ in sent] + [body.decode("utf-8", "ignore") for _, body in sent]
    return [found for text in (*texts, words(app)) for found in re.findall(r".{0,60}\b(?:nan|NaN|Infinity)\b", text)]


@pytest.mark.daily(4)
@pytest.mark.parametrize("run", ["reader", "raw"])
@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_and_says_no_number_that_nobody_knows(
    page: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page in ("lengths", "questions", "context"):  # what takes long on them is not about this model
        monkeypatch.setattr("dashboard.view.session.BEHIND", 0.5)
    app = open_page(page, run=run)
    assert len(app.title) == 1
    assert not app.error
    assert not app.warning
    assert link(app)["run"] == run
    if page != "lengths":
        assert not unknown(app)
    assert not re.search(r"ceiling|floor:", words(app))


@pytest.mark.parametrize("depth", ["head", "symbol", "confusion", "hardest"])
def test_every_closer_look_of_a_reader_opens(depth: str) -> None:
    app = open_page("accuracy", run="reader", depth=depth)
    assert not app.error
    assert not unknown(app)


def test_the_page_of_accuracy_says_what_was_counted(made: Path) -> None:
    app = open_page("accuracy", run="reader")
    model, task = loaded(made)
    windows = task.fresh(np.random.default_rng([1, 1]), 256, 32).targets
    nats = costs_by_hand(model, windows, task.separator)
    perplexity = math.exp(nats.mean())
    assert f"of {windows.size:,} tokens right. Its perplexity is {perplexity:.1f}: " in app.title[0].value
    assert app.metric[0].label == f"Perplexity in {len(windows)} windows of 32 held-out tokens"
    assert app.metric[0].value == f"{perplexity:.1f}"
    bars = array(trace(app, "accuracy", "measured")["y"])
    np.testing.assert_allclose(bars[[0, 3]], nats[:, [0, 3]].mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(bars[-1], nats[:, 24:].mean(), atol=1e-3)


def test_an_edit_is_told_in_perplexity_and_token_by_token(made: Path) -> None:
    app = open_page("edits", run="reader", edits="zero:decoder.0.self_attention.2")
    model, task = loaded(made)
    windows = task.fresh(np.random.default_rng([1, 1]), 64, 32).targets
    was, now = (math.exp(costs_by_hand(model, windows, task.separator, gone=gone).mean()) for gone in (None, 2))
    went = f"perplexity {'rises' if now > was else 'falls'} from {was:.1f} to {now:.1f}"
    assert app.title[0].value.endswith(f"{went} in {len(windows)} windows of 32 held-out tokens.")
    passage = task.example[None]
    first, last = (costs_by_hand(model, passage, task.separator, gone=gone).mean() for gone in (None, 2))
    assert f"A token costs {first:.2f} nats before and {last:.2f} after" in words(app)
    assert {"edits-accuracy", "edits-removal", "edits-patching"} <= set(figures(app))


def test_a_passage_is_patched_from_another_of_as_many_tokens(made: Path) -> None:
    model, task = loaded(made)
    other = task.typed(one_token_changed(model, task, task.example))
    text = PatchInput("decoder.1.self_attention.z", 0, other).write()
    app = open_page("edits", run="reader", edits=text)
    assert not app.error
    assert "With head 1.0 as in input" in app.title[0].value
    shorter = PatchInput("decoder.1.self_attention.z", 0, "To see").write()
    assert "has 3 tokens, and this one has 32" in open_page("edits", run="reader", edits=shorter).error[0].value


def test_moved_positions_are_told_in_nats(made: Path) -> None:
    app = open_page("order", run="reader", order="places-shift:3")
    assert "All distances are unchanged, and nothing is lost." in words(app)  # rotary: distances alone count
    assert array(trace(app, "order-summary", "after")["y"]).max() > 0


# --- words


def test_words_are_counted_apart_from_what_stands_between_them() -> None:
    tokens = ("To", "␣", "be", ",␣", "or", "↵")
    hit = np.array([True, True, False, True, True, False])
    assert counted_tokens(hit, tokens) == "2 of 3 words, and 2 of 3 blanks, line ends and marks"
    assert counted_tokens(hit[:1], tokens[:1]) == "1 of 1 word"
    assert counted_tokens(hit[1:2], tokens[1:2]) == "1 of 1 blank, line end or mark"
    assert counted_tokens(np.array([True, False]), ("a", "b")) == "1 of 2 letters"


TOKENS = ("To", "␣", "be", ",␣", "or")


@pytest.mark.parametrize(
    ("nats", "said"),
    [
        ([1.0, 2.0, 3.0, 1.0, 1.0], " ‘be’ at 3 surprises most, with 3.0 nats."),
        ([1.0, 2.96, 3.0, 1.0, 1.0], " ‘␣’ at 2 and ‘be’ at 3 surprise most, with 3.0 nats each."),
        ([3.0, 3.0, 3.0, 3.0, 1.0], " 4 tokens surprise most, with 3.0 nats each."),
        ([3.0, 3.0, 3.0, 3.0, 3.0], ""),
        ([3.0], ""),
    ],
)
def test_of_tokens_that_cost_as_much_all_surprise_most(nats: list[float], said: str, heard: list[Claim]) -> None:
    tokens = TOKENS[: len(nats)]
    first = Told(tokens, ("To",) * len(tokens), np.array(nats))
    assert passage_sentence(as_said(first), None).endswith(f" at {np.mean(nats):.2f} nats a token.{said}")
    claims.judge(cast("Any", (first, None)), heard[0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ([0.1, -2.0, 0.0, 0.0, 0.0], " ‘␣’ at 2 changes most, by −2.0 nats."),
        ([0.1, 2.0, 0.0, 0.0, 0.0], " ‘␣’ at 2 changes most, by +2.0 nats."),
        ([2.0, -2.0, 0.0, 0.0, 0.0], " ‘To’ at 1 and ‘␣’ at 2 change most, by 2.0 nats each."),
        ([0.04, -0.04, 0.0, 0.0, 0.0], " The cost of no token changes by as much as 0.05 nats."),
        ([0.5, 0.5], ""),
    ],
)
def test_of_tokens_that_change_as_much_all_change_most(change: list[float], said: str, heard: list[Claim]) -> None:
    tokens = TOKENS[: len(change)]
    first = Told(tokens, ("To",) * len(tokens), np.full(len(tokens), 4.0))
    last = Told(tokens, ("be",) * len(tokens), first.nats + np.array(change))
    assert passage_sentence(as_said(first), as_said(last)).endswith(f" and {last.nats.mean():.2f} after.{said}")
    claims.judge(cast("Any", (first, last)), heard[0])


def as_said(told: Told) -> Any:
    right = np.array(told.tokens) == np.array(told.guesses)
    return SimpleNamespace(targets=told.tokens, tokens=told.guesses, nats=told.nats, right=right)


# --- the page of accuracy, of made-up counts


def of_windows(nats: np.ndarray, share: float = 0.5) -> ByPlace:
    return ByPlace.of(nats, np.random.default_rng(0).random(nats.shape) < share)


def test_what_context_is_worth_is_said_where_the_windows_show_it() -> None:
    noise = np.random.default_rng(0).normal(0, 0.3, (16, 8))
    falling = noise + np.array([6.0, 5, 4, 3, 3, 3, 3, 3])
    found, level = of_windows(falling), of_windows(noise + 5)
    worth = falling[:, 0].mean() - falling[:, 6:].mean()
    assert accuracy_text.worth(found).endswith(f" The tokens before it save {worth:.2f} nats.")
    assert accuracy_text.worth(of_windows(falling[:, ::-1])).count(" The tokens before it add ") == 1
    assert accuracy_text.worth(level).endswith("These windows show no difference.")
    assert accuracy_text.worth(of_windows(falling[:1])).endswith(f", at 7–8 {falling[0, 6:].mean():.2f}.")
    assert accuracy_text.worth(of_windows(falling[:, :1])) == f"{falling[:, 0].mean():.2f} nats a token."


@pytest.mark.parametrize(
    ("times", "right", "said"),
    [
        ([9, 8, 2], [3, 4, 2], "Among 2 tokens that occur 8 times or more, ‘b’ is guessed most often (0.50) and ‘a’ "
                               "least often (0.33)."),
        ([8, 8, 8, 1], [4, 4, 2, 0], "Among 3 tokens that occur 8 times or more, ‘a’ and ‘b’ are guessed most often "
                                     "(0.50) and ‘c’ least often (0.25)."),
        ([8] * 5 + [1], [4, 4, 4, 4, 0, 1], "Among 5 tokens that occur 8 times or more, 4 of them are guessed most "
                                            "often (0.50) and ‘e’ least often (0.00)."),
        ([8, 8], [0, 0], "Among 2 tokens that occur 8 times or more, each is guessed as often (0.00)."),
        ([1, 1], [1, 0], "Among 2 tokens that occur 1 time or more, ‘a’ is guessed most often (1.00) and ‘b’ least "
                         "often (0.00)."),
        ([8], [4], "‘a’ is guessed 0.50 of the time."),
    ],
)  # fmt: skip
def test_tokens_that_are_guessed_as_often_are_named_together(
    times: list[int], right: list[int], said: str, heard: list[Claim]
) -> None:
    names = "abcdef"[: len(times)]
    shares = [one / other for one, other in zip(right, times, strict=True)]
    assert accuracy_text.token_sentence([*names], times, shares) == said
    made_up = Guessed(dict(zip(names, times, strict=True)), dict(zip(names, right, strict=True)))
    claims.judge(cast("Any", made_up), heard[0])


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([[5, 2, 1], [3, 4, 0]], "2 commonest tokens it most often says ‘a’ where ‘b’ is right (3 of 7 times)."),
        ([[5, 3, 0], [3, 4, 0]], "2 commonest tokens it most often says ‘b’ where ‘a’ is right (3 of 8 times) and ‘a’ "
                                 "where ‘b’ is right (3 of 7 times)."),
        ([[0, 1, 1], [1, 0, 1], [1, 1, 0]], "3 commonest tokens 6 confusions are the most frequent, 1 time each."),
        ([[5, 0, 3], [0, 4, 2]], "It never says one of the 2 commonest tokens where another of them is right."),
        ([[5, 3]], "One token alone is asked for, ‘a’."),
    ],
)  # fmt: skip
def test_confusions_that_are_as_frequent_are_named_together(
    counts: list[list[int]], said: str, heard: list[Claim]
) -> None:
    names, table = "abc"[: len(counts)], np.array(counts)
    assert accuracy_text.confusion_sentence(table, [*names]).removeprefix("Among the ") == said
    pairs = {(true, other): table[i, j] for i, true in enumerate(names) for j, other in enumerate(names) if i != j}
    claims.judge(cast("Any", Confused(pairs, dict(zip(names, table.sum(axis=1), strict=True)))), heard[0])


@pytest.mark.parametrize(
    ("nats", "said"),
    [
        ([2.0, 2.004], "Each of 2 windows of 8 tokens costs 2.00 nats a token."),
        ([2.0], "The one window of 8 tokens costs 2.00 nats a token."),
    ],
)
def test_windows_that_cost_as_much_are_put_in_no_order(nats: list[float], said: str, heard: list[Claim]) -> None:
    assert accuracy_text.hardest_sentence(np.array(nats), 8) == said
    claims.judge(cast("Any", np.array(nats)), heard[0])


def test_a_perplexity_above_the_number_of_tokens_is_explained() -> None:
    read = [{"step": step, "held_out_loss": math.log(value)} for step, value in ((1, 120.0), (9, 20.0))]
    assert worse_than_even(read, 100) == (
        "At step 1 the model is worse than an even guess among the 100 tokens between which it chooses: "
        "that would have perplexity 100."
    )
    assert worse_than_even(read, 130) == worse_than_even(read[:1], 100) == ""
