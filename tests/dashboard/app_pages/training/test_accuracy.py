"""Accuracy taken apart, against counts made here, one sequence and one token after the other."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import streamlit
import torch

from dashboard.app_pages.training.accuracy import counts, words
from dashboard.app_pages.training.accuracy.figures import accuracy_by_head_heatmap
from dashboard.models.menu import menu
from dashboard.models.model import Model
from dashboard.parts import redrawing, waiting
from dashboard.view import session
from tests.kit.models import untrained
from tests.kit.pages import State, answer, array, figures, laid_out, link, network, open_page, press, trace
from transformer import observe
from transformer.analysis.accuracy import breakdown
from transformer.analysis.accuracy.breakdown import Answers
from transformer.analysis.accuracy.without_heads import ask, without_each_head
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.edits.heads.zero import AblateHead
from transformer.model import Transformer
from transformer.training.recording import record
from transformer.training.runs import Run

REVERSE, TRANSLATE = ("reverse", 20), ("reverse-translate", 0)
ALIGNED, CAUSAL = ("reverse-aligned", 0), ("reverse-aligned-causal", 0)
"""Models that are still often wrong."""
MANY = 256
TOKENS = [*"0123456789", "SEP", "PAD"]


def asked(model: Transformer, config: RunConfig, length: int = 8, sequences: int = MANY):
    """Questions, targets and logits of the sequences that the page measures on, laid out by hand."""
    x = np.random.default_rng([config.training.seed + 1, 1]).integers(0, 10, (sequences, length))
    tokens, source, targets = laid_out(config, x)
    with torch.no_grad():
        return x, targets, model(tokens, source).double()


def nats_of(logits: torch.Tensor, targets: np.ndarray) -> np.ndarray:
    """What each target costs, float [sequence, target]."""
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), torch.tensor(targets), reduction="none").numpy()


def answers_from(config: RunConfig) -> slice:
    """Where the answer that can be known stands, by hand."""
    if config.task.task == "reverse":
        return slice(8, 16)
    return slice(4, 8) if config.model.mask == "causal" and config.task.task == "reverse-aligned" else slice(0, 8)


def bold(app) -> list[str]:
    return [element.value[2:-2] for element in app.markdown if re.fullmatch(r"\*\*.*\*\*", element.value)]


def cells(app, key: str) -> np.ndarray:
    return array(trace(app, key, "values")["z"])


def bars(app) -> np.ndarray:
    return array(trace(app, "accuracy", "measured")["y"])


def look(depth: str, run: str, step: int | None = None, sequences: int = MANY, **query: str):
    """The page with one of its looks."""
    query |= {} if step is None else {"step": str(step)}
    return open_page("accuracy", run=run, sequences=str(sequences), depth=depth, **query)


# --- the library


@pytest.mark.parametrize(("run", "step"), [REVERSE, TRANSLATE, ALIGNED, CAUSAL])
def test_what_is_said_and_how_probable_the_right_token_was(run: str, step: int):
    model, config = network(run, step)
    x, targets, logits = asked(model, config)
    found = ask(model, config.build_task(), sequences=MANY, seed=config.training.seed + 1)
    np.testing.assert_array_equal(found.questions, x)
    np.testing.assert_array_equal(found.targets, targets)
    np.testing.assert_array_equal(found.predicted, logits.argmax(-1).numpy())
    np.testing.assert_allclose(found.log_probability, -nats_of(logits, targets), atol=1e-4)


def test_the_worst_confusion_is_off_the_diagonal_or_none():
    assert breakdown.worst_confusion(np.array([[90, 1, 3], [2, 5, 0], [0, 2, 9]])) == (0, 2)
    assert breakdown.worst_confusion(np.diag([3, 0, 1])) is None


def test_the_hardest_have_most_wrong_then_the_least_probable_answer_and_stand_there_once():
    targets = [[1, 1], [2, 2], [3, 3], [4, 4], [2, 2], [5, 5]]
    predicted = [[1, 1], [2, 0], [0, 0], [4, 0], [2, 0], [5, 0]]
    log_p = [[-0.1, -9.0], [-0.5, -2.0], [-1.0, -1.0], [-0.5, -3.0], [-0.5, -2.0], [-0.1, -0.1]]
    answers = Answers(np.array(targets), *map(np.array, (targets, predicted, log_p)))
    assert breakdown.hardest(answers, np.array([True, True]), 9).tolist() == [2, 3, 1, 5, 0]
    assert breakdown.hardest(answers, np.array([True, True]), 2).tolist() == [2, 3]
    only_the_first = np.array([True, False])
    assert breakdown.hardest(answers, only_the_first, 3).tolist() == [2, 1, 3]


@pytest.mark.parametrize(("run", "heads"), [("reverse", 8), ("reverse-translate", 24)])
def test_without_a_head_its_z_is_zero(run: str, heads: int):
    """Removing a head is zeroing the columns of the output projection that read it."""
    model, config = network(run)
    found = without_each_head(model, config.build_task(), sequences=32, seed=config.training.seed + 1)
    assert len(found) == heads
    for head in (next(iter(found)), list(found)[-1]):
        maimed, _ = network(run)
        weight = maimed.get_submodule(head.site.removesuffix(".z")).out.weight
        width = weight.shape[1] // config.model.n_heads
        with torch.no_grad():
            weight[:, head.index * width : (head.index + 1) * width] = 0
        _, targets, logits = asked(maimed, config, sequences=32)
        np.testing.assert_array_equal(found[head].correct, (logits.argmax(-1).numpy() == targets).sum(axis=0))


# --- the page


@pytest.mark.parametrize(("run", "step"), [REVERSE, CAUSAL])
def test_the_map_of_symbols_is_counted_and_its_columns_weigh_up_to_the_bars(run: str, step: int):
    model, config = network(run, step)
    _, targets, logits = asked(model, config)
    right = logits.argmax(-1).numpy() == targets
    app = look("symbol", run, step)
    shown, tokens = cells(app, "depth-symbol"), figures(app)["depth-symbol"]["layout"]["meta"]["tokens"]["y"]
    assert tokens == (TOKENS[:11] if run == "reverse" else TOKENS[:10])
    for row, token in enumerate(tokens):
        for place in range(targets.shape[1]):
            here = targets[:, place] == TOKENS.index(token)
            expected = right[here, place].mean() if here.any() else np.nan
            np.testing.assert_allclose(shown[row, place], expected, atol=1e-6)
    seen = np.stack([(targets == TOKENS.index(token)).sum(axis=0) for token in tokens])
    np.testing.assert_allclose((np.nan_to_num(shown) * seen).sum(axis=0) / MANY, bars(app), atol=1e-6)
    if run == "reverse":
        grey = array(trace(app, "depth-symbol", "missing")["z"])
        np.testing.assert_array_equal(np.isfinite(grey), seen == 0)
    known = answers_from(config)
    share = {token: right[:, known][targets[:, known] == token].mean() for token in range(10)}
    least = min(share.values())
    named = re.search(r"answer (.+) (?:is|are) right least often: (.+);", bold(app)[-1])
    assert named
    assert re.findall(r"'(\d)'", named[1]) == [str(token) for token in share if share[token] == least]
    assert f"{least:.3f}" in named[2]


@pytest.mark.parametrize(
    ("wrong", "whole", "said"),
    [
        (
            0,
            100,
            "None of 100 answers is wrong. The model is least sure of 3 1: it gives the right tokens probability 0.3.",
        ),
        (1, 99, "1 of 100 answers is wrong: that to 3 1, in 1 token."),
        (2, 98, "2 of 100 answers are wrong. The hardest input is 3 1: 2 tokens wrong."),
    ],
)
def test_the_hardest_input_is_named_with_what_is_wrong_of_it(wrong: int, whole: int, said: str):
    frame = pd.DataFrame({"input": ["3 1", "2 2"], "wrong": [wrong, 0], "p": [0.3, 0.9]})
    assert words.hardest_sentence(frame, whole, 100, "the answer") == said
    partly = re.sub("(wrong)([:.])", r"\1 in what can be known of the answer\2", said, count=1)
    assert words.hardest_sentence(frame, whole, 100, "what can be known of the answer") == partly


@pytest.mark.daily(1)
@pytest.mark.parametrize(("run", "step"), [TRANSLATE, CAUSAL])
def test_confusions_are_counted_and_their_rows_sum_to_one(run: str, step: int):
    model, config = network(run, step)
    _, targets, logits = asked(model, config)
    said, known = logits.argmax(-1).numpy(), answers_from(config)
    app = look("confusion", run, step)
    labels, shown = figures(app)["depth-confusion"]["layout"]["meta"]["tokens"], cells(app, "depth-confusion")
    pairs = Counter(zip(targets[:, known].ravel().tolist(), said[:, known].ravel().tolist(), strict=True))
    asked_for = Counter(targets[:, known].ravel().tolist())
    np.testing.assert_allclose(shown.sum(axis=1), 1, atol=1e-6)
    for row, one in enumerate(labels["y"]):
        for column, other in enumerate(labels["x"]):
            true, token = TOKENS.index(one), TOKENS.index(other)
            assert shown[row, column] == pytest.approx(pairs[true, token] / asked_for[true], abs=1e-6)
    named = re.search(r"it says '(\w+)' where '(\w+)' is right, ([\d,]+) of ([\d,]+) times", bold(app)[-1])
    assert named
    true, token = TOKENS.index(named[2]), TOKENS.index(named[1])
    assert true != token
    most = max(times for (true, token), times in pairs.items() if true != token)
    assert pairs[true, token] == most == int(named[3].replace(",", ""))
    assert int(named[4].replace(",", "")) == asked_for[true]


def test_a_single_position_has_confusions_of_its_own():
    model, config = network("reverse", 20)
    _, targets, logits = asked(model, config)
    app = look("confusion", "reverse", 20, confused="8")
    assert app.selectbox(key="control-confused").value == 8
    shown = np.nan_to_num(cells(app, "depth-confusion"))
    labels = figures(app)["depth-confusion"]["layout"]["meta"]["tokens"]
    assert (targets[:, 7] == TOKENS.index("SEP")).all()  # position 8 is SEP
    said = logits[:, 7].argmax(-1).numpy()
    row = [float((said == TOKENS.index(token)).mean()) for token in labels["x"]]
    np.testing.assert_allclose(shown[labels["y"].index("SEP")], row, atol=1e-6)
    assert shown.sum() == pytest.approx(1)
    app.selectbox(key="control-confused").set_value(0).run()
    assert "confused" not in link(app)


def test_it_says_when_nothing_is_confused():
    app = look("confusion", "compiled")
    assert bold(app)[-1] == "No symbol of the answer is said wrongly: 2,048 of 2,048 are right."
    np.testing.assert_array_equal(cells(app, "depth-confusion"), np.eye(10))


@pytest.mark.daily(1)
@pytest.mark.parametrize(("run", "step"), [("reverse", 20), ("reverse-aligned-causal", 40)])
def test_the_map_of_heads_is_what_is_left_without_each(run: str, step: int):
    model, config = network(run, step)
    x, _, _ = asked(model, config, sequences=64)
    tokens, source, targets = laid_out(config, x)
    stack = config.model.architecture
    edits = [(), *((AblateHead(f"{stack}.{n}.self_attention.z", h),) for n in range(2) for h in range(4))]
    said = [observe(model, tokens, edit, source=source).logits.argmax(-1).numpy() for edit in edits]
    left = [(each == targets).mean(axis=0) for each in said]
    app = look("head", run, step, sequences=64)
    np.testing.assert_allclose(cells(app, "depth-head"), left, atol=1e-6)
    np.testing.assert_allclose(cells(app, "depth-head")[0], bars(app), atol=1e-6)
    known = answers_from(config)
    worst = min(range(8), key=lambda i: left[i + 1][known].mean())
    before, after = left[0][known].mean(), left[worst + 1][known].mean()
    costs = f"head {worst // 4}.{worst % 4}.* costs (about as much|most)"
    of = "the answer" if len(left[0][known]) == len(x[0]) else "what can be known of the answer"
    assert re.match(f"Removing {costs}: accuracy on {of} falls from {before:.2f} to {after:.2f}", bold(app)[-1])


@pytest.mark.daily(1)
@pytest.mark.parametrize(("run", "step"), [REVERSE, TRANSLATE])
def test_the_map_of_lengths_is_counted_at_each(run: str, step: int):
    model, config = network(run, step)
    app = look("length", run, step)
    shown, drawn = cells(app, "depth-length"), figures(app)["depth-length"]["layout"]
    whole = array(trace(app, "depth-length", "whole answers")["z"])[:, 0]
    for length in range(1, 9):
        _, targets, logits = asked(model, config, length)
        right = logits.argmax(-1).numpy() == targets
        own = [f"y{i + 1}" for i in range(length)]
        if run == "reverse":
            own = [*(f"x{i}" for i in range(2, length + 1)), "SEP", *own]
        row = dict(zip(own, right.mean(axis=0), strict=True))
        expected = [row.get(name, np.nan) for name in drawn["meta"]["tokens"]["x"]]
        np.testing.assert_allclose(shown[length - 1], expected, atol=1e-6)
        assert whole[length - 1] == pytest.approx(right[:, -length:].all(axis=1).mean(), abs=1e-6)
    np.testing.assert_allclose(shown[-1], bars(app), atol=1e-6)
    assert drawn["yaxis"]["ticktext"] == [*(f"{n}, new" for n in range(1, 8)), "8"]


@pytest.mark.daily(1)
@pytest.mark.parametrize(("run", "step"), [REVERSE, CAUSAL])
def test_the_hardest_are_real_and_in_order(run: str, step: int):
    model, config = network(run, step)
    x, targets, logits = asked(model, config)
    known = answers_from(config)
    off = (logits.argmax(-1).numpy() != targets)[:, known].sum(axis=1).tolist()
    cost = nats_of(logits, targets)[:, known].sum(axis=1).tolist()
    named = [" ".join(map(str, question)) for question in x.tolist()]
    wrong = dict(zip(named, zip(off, cost, strict=True), strict=True))
    expected = sorted(wrong, key=lambda each: (-wrong[each][0], -wrong[each][1]))[:20]
    app = look("hardest", run, step)
    table, nats = app.dataframe[-1].value, np.array([wrong[each][1] for each in expected])
    assert table["input"].tolist() == expected
    assert table["wrong"].tolist() == [wrong[each][0] for each in expected]
    np.testing.assert_allclose(table["log p"] * (known.stop - known.start), -nats, atol=1e-3)
    np.testing.assert_allclose(table["p"], np.exp(-nats), rtol=1e-3, atol=1e-12)
    for row in table.to_dict("records")[:5]:
        assert row["right"].split() == row["input"].split()[::-1]
        by_itself = [TOKENS[token] for token in answer(model, config, [int(symbol) for symbol in row["input"].split()])]
        said = [token.strip("[]") for token in row.get("alone", row["says"]).split()]
        assert all(token in ("·", own) for token, own in zip(said, by_itself, strict=True))
        assert said.count("·") == (4 if run == "reverse-aligned-causal" else 0)
        assert ("alone" in row) == (config.task.task != "reverse-aligned")
        assert row["says"].count("[") == row["wrong"]
        for said_there, right in zip(row["says"].split(), row["right"].split(), strict=True):
            assert said_there == "·" or (said_there == right) == ("[" not in said_there)
    count = sum(each > 0 for each, _ in wrong.values())
    part = " in what can be known of the answer" if run == "reverse-aligned-causal" else ""
    verb, end = (
        (f"are wrong{part}. The hardest input is ", ": ") if count > 1 else (f"is wrong{part}: that to ", ", in ")
    )
    assert bold(app)[-1].startswith(f"{count} of {MANY} answers {verb}{expected[0]}{end}")


def test_a_look_is_chosen_and_is_in_the_link():
    app, plain = open_page("accuracy", run="reverse", sequences="64"), {"run": "reverse", "sequences": "64"}
    for depth, chosen in (("training", {}), ("confusion", {"depth": "confusion"}), ("training", {})):
        control = app.segmented_control(key="control-depth")
        app = app if control.value == depth else control.set_value(depth).run()
        assert link(app) == plain | chosen
        assert {key for key in figures(app) if key.startswith("depth-")} == {f"depth-{depth}"}


def test_a_model_that_was_not_trained_opens_on_its_heads():
    assert "depth-head" in figures(open_page("accuracy", run="compiled", sequences="64"))
    assert "This model was not trained" in look("training", "compiled", sequences=64).info[0].value


def test_the_film_s_columns_are_what_its_steps_get_right():
    app = open_page("accuracy", run="reverse", sequences="64")
    steps = figures(app)["depth-training"]["layout"]["meta"]["places"]["x"]
    for step in (0, 20):
        model, config = network("reverse", step)
        tokens, source, targets = laid_out(config, np.random.default_rng([0, 1]).integers(0, 10, (256, 8)))
        with torch.no_grad():
            right = model(tokens, source).argmax(-1).numpy() == targets
        column = array(trace(app, "depth-training", "accuracy")["z"])[:, steps.index(step)]
        np.testing.assert_allclose(column, right.mean(axis=0), atol=1e-6)


def test_a_head_is_removed_on_the_page_of_edits(root: Path):
    untrained(root / "small", TaskConfig(length=3), n_layers=1)
    app = press(look("head", "small", sequences=64, head="decoder.0.self_attention.1"), "Go on without head 0.1")
    assert app.session_state["settings"].edits == "zero:decoder.0.self_attention.1"


KINDS = {
    "sort": (TaskConfig(task="sort", length=5, min_length=2, symbols=4), {"positions": "alibi", "d_ff": 0}),
    "leaks": (TaskConfig(length=4, symbols=3), {"architecture": "encoder", "positions": "rotary", "norm": "post"}),
    "blind": (TaskConfig(task="reverse-aligned", length=4), {"mask": "sliding-window:0", "positions": "none"}),
    "long": (TaskConfig(task="reverse-translate", length=24, symbols=36), {"norm": "none"}),
    "one": (TaskConfig(length=1, symbols=2), {}),
}


@pytest.mark.daily(1)
@pytest.mark.parametrize("kind", KINDS)
def test_every_look_opens_on_every_kind_of_model(kind: str, root: Path):
    """Of each the whole model's row, where heads are removed, is the bars; and the rows of confusions sum to one."""
    task, model = KINDS[kind]
    small = {"n_layers": 1, "n_heads": 2, "d_model": 8, "d_ff": 16, "mask": "auto", "architecture": "auto"}
    config = RunConfig(task=task, model=ModelConfig(**{**small, **model}), training=TrainingConfig(max_steps=3, seed=1))
    for _ in record(Run.create(root / kind, config)):
        pass
    for depth in ("training", "head", "symbol", "length", "confusion", "hardest"):
        app = look(depth, kind, sequences=64)
        assert not app.warning
        assert not app.error
        if depth == "head":
            np.testing.assert_allclose(cells(app, "depth-head")[0], bars(app), atol=1e-6)
        if depth == "confusion":
            np.testing.assert_allclose(np.nansum(cells(app, "depth-confusion"), axis=1), 1, atol=1e-6)
        if depth == "length":
            np.testing.assert_allclose(cells(app, "depth-length")[-1], bars(app), atol=1e-6)
            assert len(cells(app, "depth-length")) == min(task.length, 16)


# --- words and figures


def test_sentences_say_what_the_counts_say():
    assert words.symbol_sentence(np.array([3, 9]), np.array([4, 10]), ("a", "b"), "the answer") == (
        "Of the answer 'a' is right least often: 3 of 4 (0.750); 'b' most often: 9 of 10 (0.900)."
    )
    assert words.symbol_sentence(np.array([0, 4, 0]), np.array([4, 4, 5]), ("a", "b", "c"), "the answer") == (
        "Of the answer 'a' and 'c' are right least often: 0.000 of the time each; 'b' most often: 4 of 4 (1.000)."
    )
    assert words.symbol_sentence(np.array([1, 2]), np.array([2, 4]), ("a", "b"), "the answer") == (
        "Every symbol of the answer is right equally often: 0.500 of the time."
    )
    assert words.length_sentence(np.array([0.5, 1.0, 1.0]), [1, 2, 3], [False, False, True]) == (
        "Whole answers are right most often at lengths 2 (not trained on) and 3: 1.000. They are right least often at "
        "length 1 (not trained on): 0.500."
    )
    assert words.length_sentence(np.array([1.0, 1.0]), [1, 2], [True, True]) == (
        "The share of whole answers that are right is the same at every length: 1.000."
    )


def test_a_number_says_0_and_1_only_where_it_is():
    share = {0.0: "0", 1.0: "1", 0.004: "<.01", 0.05: ".05", 0.5: ".50", 0.997: ".997", 0.99999: ">.999"}
    figure = accuracy_by_head_heatmap(np.array([list(share)]), [], [f"y{n}" for n in share], ["second half"] * 7)
    assert figure.data[-1].text == tuple(share.values())


@pytest.mark.parametrize(("run", "sequences"), [("reverse", 1024), ("reverse-translate", 8192 // 24)])
def test_many_heads_share_the_passes(run: str, sequences: int):
    assert counts.removal_sequences(Model.of(menu()[run], menu()[run].snapshots[-1]), 4096, 8) == sequences


def test_a_second_look_at_a_page_takes_no_click_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for with the URL of before a click, it may run after it: it must not read that URL."""
    app = open_page("accuracy", run="reverse", sequences="256")
    state = State(said=[])
    monkeypatch.setattr(streamlit, "session_state", state)
    monkeypatch.setattr(streamlit, "rerun", lambda: None)
    monkeypatch.setattr(streamlit, "fragment", lambda draw: lambda *told: (draw(*told), draw(*told)))
    monkeypatch.setattr(redrawing, "ask_for_news", lambda *told: None)
    monkeypatch.setattr(waiting, "torch", lambda: torch)
    monkeypatch.setattr(session, "BEHIND", 0.5)
    monkeypatch.setattr(session, "chosen", lambda: Model.of(menu()["reverse"], 40))
    waiting.after_first_look()
    monkeypatch.undo()
    app.session_state["settings"] = app.session_state["settings"].with_(step=20)
    app.session_state["touched"] = state.touched
    app.query_params["sequences"] = "512"  # not what was written last
    app.run()
    assert link(app) == {"run": "reverse", "step": "20", "sequences": "256"}


@pytest.mark.parametrize("length", [1, 4, 8])
def test_no_bar_stands_above_its_ceiling_where_the_length_is_not_told(length: int) -> None:
    """At one length the most anybody has of a random digit is one in ten, and SEP and the answer can be known."""
    app = open_page("accuracy", run="reverse-any", measured_length=length)
    ceiling = array(trace(app, "accuracy", "ceiling")["y"])
    np.testing.assert_allclose(ceiling, [0.1] * (length - 1) + [1.0] * (length + 1), atol=1e-6)
    table = app.dataframe[0].value
    assert (table["low"] <= table["ceiling"]).all()
    np.testing.assert_allclose(table["ceiling"], ceiling, atol=1e-6)
    said = [each.value for each in app.markdown if each.value.startswith("The model is not told the length.")]
    assert len(said) == (length > 1)
    if length == 8:
        assert app.title[0].value == (
            "Second half 1.00, first half 0.01 (random symbols, which can only be guessed): the mask holds."
        )
        assert said[0].endswith(
            "in sequences of length 8: 0.10 at x2 to x8. There the best guess of a model that does not know the length "
            "is right 0.00 of the time. At x2 to x8 it guesses that SEP comes: SEP is likelier than any one symbol."
        )
