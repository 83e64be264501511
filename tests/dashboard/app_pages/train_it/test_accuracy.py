"""Accuracy taken apart, against counts made here, one sequence and one token after the other."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import streamlit
import torch

from dashboard.app_pages.train_it.accuracy import counts as accuracy_counts
from dashboard.app_pages.train_it.accuracy import figures as accuracy_figures
from dashboard.app_pages.train_it.accuracy import words as accuracy_words
from dashboard.models import menu as model_menu
from dashboard.models import model as models_model
from dashboard.parts import waiting
from dashboard.view import session
from tests.kit.pages import State, answer, array, figures, laid_out, link, network, open_page, trace
from transformer import observe
from transformer.analysis.accuracy import breakdown
from transformer.analysis.accuracy.breakdown import Answers
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.accuracy.without_heads import ask, without_each_head
from transformer.analysis.intervals import wilson
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.edits import EditError
from transformer.edits.heads.zero import AblateHead
from transformer.model import Transformer
from transformer.training.recording import record
from transformer.training.runs import Run

EARLY = [("reverse", 20), ("reverse-translate", 0), ("reverse-aligned", 0), ("reverse-aligned-causal", 0)]
"""Models that are still often wrong."""
MANY = 256
TOKENS = [*"0123456789", "SEP", "PAD"]


def asked(model: Transformer, config: RunConfig, length: int = 8, sequences: int = MANY):
    """Questions, targets and logits of the sequences that the page measures on, laid out by hand."""
    x = np.random.default_rng([config.training.seed + 1, 1]).integers(0, 10, (sequences, length))
    tokens, source, targets = laid_out(config, x)
    with torch.no_grad():
        return x, targets, model(tokens, source).double()


def answers_from(config: RunConfig) -> slice:
    """Where the answer that can be known stands, by hand."""
    if config.task.task == "reverse":
        return slice(8, 16)
    return slice(4, 8) if config.model.mask == "causal" and config.task.task == "reverse-aligned" else slice(0, 8)


def bold(app) -> list[str]:
    return [element.value[2:-2] for element in app.markdown if re.fullmatch(r"\*\*.*\*\*", element.value)]


def cells(app, key: str) -> np.ndarray:
    return array(trace(app, key, "values")["z"])


# --- the library


@pytest.mark.parametrize(("run", "step"), EARLY)
def test_what_is_said_and_how_probable_the_right_token_was(run: str, step: int):
    model, config = network(run, step)
    x, targets, logits = asked(model, config)
    found = ask(model, config.build_task(), sequences=MANY, seed=config.training.seed + 1)
    np.testing.assert_array_equal(found.questions, x)
    np.testing.assert_array_equal(found.targets, targets)
    np.testing.assert_array_equal(found.predicted, logits.argmax(-1).numpy())
    nats = torch.nn.functional.cross_entropy(logits.transpose(1, 2), torch.tensor(targets), reduction="none")
    np.testing.assert_allclose(found.log_probability, -nats.numpy(), atol=1e-4)


def made(targets: list[list[int]], predicted: list[list[int]], log_p: list[list[float]] | None = None) -> Answers:
    probable = np.zeros((len(targets), len(targets[0]))) if log_p is None else np.array(log_p)
    return Answers(np.array(targets)[:, ::-1], np.array(targets), np.array(predicted), probable)


def test_symbols_and_confusions_are_counts():
    rng = np.random.default_rng(0)
    targets, predicted = rng.integers(0, 4, (50, 3)), rng.integers(0, 5, (50, 3))
    answers = made(targets.tolist(), predicted.tolist())
    correct, seen = breakdown.by_symbol(answers, 5)
    counts = breakdown.confusion(answers, np.array([True, False, True]), 5)
    for token in range(5):
        for place in range(3):
            here = [said for true, said in zip(targets[:, place], predicted[:, place], strict=True) if true == token]
            assert seen[token, place] == len(here)
            assert correct[token, place] == here.count(token)
    pairs = Counter(
        (int(true), int(said))
        for true, said in [
            *zip(targets[:, 0], predicted[:, 0], strict=True),
            *zip(targets[:, 2], predicted[:, 2], strict=True),
        ]
    )
    assert {(i, j): int(counts[i, j]) for i, j in np.argwhere(counts).tolist()} == pairs
    np.testing.assert_array_equal(counts.sum(axis=1), seen[:, [0, 2]].sum(axis=1))
    assert np.trace(counts) == correct[:, [0, 2]].sum()


def test_the_worst_confusion_is_off_the_diagonal_or_none():
    assert breakdown.worst_confusion(np.array([[90, 1, 3], [2, 5, 0], [0, 2, 9]])) == (0, 2)
    assert breakdown.worst_confusion(np.diag([3, 0, 1])) is None


def test_the_hardest_have_most_wrong_then_the_least_probable_answer_and_stand_there_once():
    targets = [[1, 1], [2, 2], [3, 3], [4, 4], [2, 2], [5, 5]]
    predicted = [[1, 1], [2, 0], [0, 0], [4, 0], [2, 0], [5, 0]]
    log_p = [[-0.1, -9.0], [-0.5, -2.0], [-1.0, -1.0], [-0.5, -3.0], [-0.5, -2.0], [-0.1, -0.1]]
    answers = made(targets, predicted, log_p)
    assert breakdown.hardest(answers, np.array([True, True]), 9).tolist() == [2, 3, 1, 5, 0]
    assert breakdown.hardest(answers, np.array([True, True]), 2).tolist() == [2, 3]
    assert breakdown.hardest(answers, np.array([True, False]), 3).tolist() == [
        2,
        1,
        3,
    ]  # the second target is not counted


def test_intervals_of_several_counts_are_those_of_each():
    correct, total = np.array([[3, 0], [7, 1]]), np.array([[9, 4], [7, 1]])
    low, high = wilson(correct, total)
    for place in np.ndindex(2, 2):
        one, other = wilson(int(correct[place]), int(total[place]))
        assert (low[place], high[place]) == pytest.approx((float(one), float(other)))


@pytest.mark.parametrize("run", ["reverse", "reverse-translate"])
def test_without_a_head_its_z_is_zero(run: str):
    """Removing a head is zeroing the columns of the output projection that read it."""
    model, config = network(run)
    found = without_each_head(model, config.build_task(), sequences=32, seed=config.training.seed + 1)
    assert len(found) == {"reverse": 8, "reverse-translate": 24}[run]
    for head in (next(iter(found)), list(found)[-1]):
        maimed, _ = network(run)
        stack, layer, attention = head.site.split(".")
        weight = dict(maimed.named_modules())[f"{stack}.{layer}.{attention}"].out.weight
        width = weight.shape[1] // config.model.n_heads
        with torch.no_grad():
            weight[:, head.index * width : (head.index + 1) * width] = 0
        _, targets, logits = asked(maimed, config, sequences=32)
        np.testing.assert_array_equal(found[head].correct, (logits.argmax(-1).numpy() == targets).sum(axis=0))


def test_a_head_that_is_not_there_cannot_be_removed():
    model, config = network("reverse")
    for site, head in (("decoder.2.self_attention.z", 0), ("decoder.1.self_attention.z", 4)):
        with pytest.raises(EditError):
            accuracy_by_position(model, config.build_task(), sequences=8, edits=[AblateHead(site, head)])


# --- the page


@pytest.mark.daily(2)
@pytest.mark.parametrize(("run", "step"), EARLY)
def test_the_map_of_symbols_is_counted_and_its_columns_weigh_up_to_the_bars(run: str, step: int):
    model, config = network(run, step)
    _, targets, logits = asked(model, config)
    right = logits.argmax(-1).numpy() == targets
    app = open_page("accuracy", run=run, step=str(step), sequences=str(MANY), depth="symbol")
    shown, tokens = cells(app, "depth-symbol"), figures(app)["depth-symbol"]["layout"]["meta"]["tokens"]["y"]
    assert tokens == (TOKENS[:11] if config.task.task == "reverse" else TOKENS[:10])
    for row, token in enumerate(tokens):
        for place in range(targets.shape[1]):
            here = targets[:, place] == TOKENS.index(token)
            expected = right[here, place].mean() if here.any() else np.nan
            np.testing.assert_allclose(shown[row, place], expected, atol=1e-6)
    counts = np.stack([(targets == TOKENS.index(token)).sum(axis=0) for token in tokens])
    bars = array(trace(app, "accuracy", "measured")["y"])
    np.testing.assert_allclose((np.nan_to_num(shown) * counts).sum(axis=0) / MANY, bars, atol=1e-6)
    if config.task.task == "reverse":
        grey = array(trace(app, "depth-symbol", "missing")["z"])
        np.testing.assert_array_equal(np.isfinite(grey), counts == 0)
    known = answers_from(config)
    share = {token: right[:, known][targets[:, known] == token].mean() for token in range(10)}
    least = min(share, key=share.__getitem__)
    assert f"'{least}' is right least often" in bold(app)[-1]
    assert f"({share[least]:.3f})" in bold(app)[-1]


@pytest.mark.daily(1)
@pytest.mark.parametrize(("run", "step"), EARLY)
def test_confusions_are_counted_and_their_rows_sum_to_one(run: str, step: int):
    model, config = network(run, step)
    _, targets, logits = asked(model, config)
    said = logits.argmax(-1).numpy()
    app = open_page("accuracy", run=run, step=str(step), sequences=str(MANY), depth="confusion")
    labels = figures(app)["depth-confusion"]["layout"]["meta"]["tokens"]
    known = answers_from(config)
    pairs = Counter(zip(targets[:, known].ravel().tolist(), said[:, known].ravel().tolist(), strict=True))
    shown = cells(app, "depth-confusion")
    np.testing.assert_allclose(shown.sum(axis=1), 1, atol=1e-6)
    asked_for = Counter(targets[:, known].ravel().tolist())
    for row, one in enumerate(labels["y"]):
        for column, other in enumerate(labels["x"]):
            true, token = TOKENS.index(one), TOKENS.index(other)
            assert shown[row, column] == pytest.approx(pairs[true, token] / asked_for[true], abs=1e-6)
    most = max(times for (true, token), times in pairs.items() if true != token)
    named = re.search(r"it says '(\w+)' where '(\w+)' is right, ([\d,]+) of ([\d,]+) times", bold(app)[-1])
    assert named
    true, token = TOKENS.index(named[2]), TOKENS.index(named[1])
    assert true != token
    assert pairs[true, token] == most == int(named[3].replace(",", ""))
    assert int(named[4].replace(",", "")) == asked_for[true]


def test_a_single_position_has_confusions_of_its_own():
    model, config = network("reverse", 20)
    _, targets, logits = asked(model, config)
    app = open_page("accuracy", run="reverse", step="20", sequences=str(MANY), depth="confusion", confused="8")
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
    app = open_page("accuracy", run="compiled", sequences=str(MANY), depth="confusion")
    assert bold(app)[-1] == "The model never says a wrong symbol: 2,048 of 2,048 are right."
    np.testing.assert_array_equal(cells(app, "depth-confusion"), np.eye(10))


@pytest.mark.daily(1)
@pytest.mark.parametrize(("run", "step"), [("reverse", 20), ("reverse-aligned-causal", 40)])
def test_the_map_of_heads_is_what_is_left_without_each(run: str, step: int):
    model, config = network(run, step)
    x, targets, _ = asked(model, config)
    tokens, source, _ = laid_out(config, x)
    stack = config.model.architecture
    edits = [(), *((AblateHead(f"{stack}.{n}.self_attention.z", h),) for n in range(2) for h in range(4))]
    left = [
        (observe(model, tokens, edit, source=source).logits.argmax(-1).numpy() == targets).mean(axis=0)
        for edit in edits
    ]
    app = open_page("accuracy", run=run, step=str(step), sequences=str(MANY), depth="head")
    np.testing.assert_allclose(cells(app, "depth-head"), left, atol=1e-6)
    known = answers_from(config)
    worst = min(range(8), key=lambda i: left[i + 1][known].mean())
    before, after = left[0][known].mean(), left[worst + 1][known].mean()
    assert bold(app)[-1].startswith(
        f"Removing head {worst // 4}.{worst % 4} costs most: accuracy on the answer falls from {before:.2f} to "
        f"{after:.2f}. "
    )
    bars = array(trace(app, "accuracy", "measured")["y"])
    np.testing.assert_allclose(cells(app, "depth-head")[0], bars, atol=1e-6)


@pytest.mark.daily(2)
@pytest.mark.parametrize(("run", "step"), EARLY)
def test_the_map_of_lengths_is_counted_at_each(run: str, step: int):
    model, config = network(run, step)
    app = open_page("accuracy", run=run, step=str(step), sequences=str(MANY), depth="length")
    shown = cells(app, "depth-length")
    whole = array(trace(app, "depth-length", "whole answers")["z"])[:, 0]
    names = figures(app)["depth-length"]["layout"]["meta"]["tokens"]["x"]
    for length in range(1, 9):
        _, targets, logits = asked(model, config, length)
        right = logits.argmax(-1).numpy() == targets
        answer_names = [f"y{i + 1}" for i in range(length)]
        own = answer_names
        if config.task.task == "reverse":
            own = [*(f"x{i}" for i in range(2, length + 1)), "SEP", *answer_names]
        row = dict(zip(own, right.mean(axis=0), strict=True))
        np.testing.assert_allclose(shown[length - 1], [row.get(name, np.nan) for name in names], atol=1e-6)
        assert whole[length - 1] == pytest.approx(right[:, -length:].all(axis=1).mean(), abs=1e-6)
    np.testing.assert_allclose(shown[-1], array(trace(app, "accuracy", "measured")["y"]), atol=1e-6)
    rows = figures(app)["depth-length"]["layout"]["yaxis"]["ticktext"]
    assert rows == [*(f"{n}, new" for n in range(1, 8)), "8"]


@pytest.mark.daily(1)
@pytest.mark.parametrize(("run", "step"), EARLY)
def test_the_hardest_are_real_and_in_order(run: str, step: int):
    model, config = network(run, step)
    x, targets, logits = asked(model, config)
    known = answers_from(config)
    nats = torch.nn.functional.cross_entropy(logits.transpose(1, 2), torch.tensor(targets), reduction="none").numpy()
    wrong = {}
    for i, question in enumerate(x.tolist()):
        off = int((logits[i].argmax(-1).numpy() != targets[i])[known].sum())
        wrong[" ".join(map(str, question))] = (off, float(nats[i, known].sum()))
    expected = sorted(wrong, key=lambda each: (-wrong[each][0], -wrong[each][1]))[:20]
    app = open_page("accuracy", run=run, step=str(step), sequences=str(MANY), depth="hardest")
    table = app.dataframe[-1].value
    assert table["input"].tolist() == expected
    assert table["wrong"].tolist() == [wrong[each][0] for each in expected]
    np.testing.assert_allclose(table["log p"] * (known.stop - known.start), [-wrong[e][1] for e in expected], atol=1e-3)
    np.testing.assert_allclose(table["p"], [np.exp(-wrong[e][1]) for e in expected], rtol=1e-3, atol=1e-12)
    for row in table.to_dict("records")[:5]:
        question = [int(symbol) for symbol in row["input"].split()]
        assert row["right"].split() == row["input"].split()[::-1]
        by_itself = [TOKENS[token] for token in answer(model, config, question)]
        said = [token.strip("[]") for token in row.get("alone", row["says"]).split()]
        assert all(token in ("·", own) for token, own in zip(said, by_itself, strict=True))
        assert said.count("·") == (4 if run == "reverse-aligned-causal" else 0)
        assert ("alone" in row) == (config.task.task != "reverse-aligned")
        assert row["says"].count("[") == row["wrong"]
        for said_there, right in zip(row["says"].split(), row["right"].split(), strict=True):
            assert said_there == "·" or (said_there == right) == ("[" not in said_there)
    count = sum(off > 0 for off, _ in wrong.values())
    verb, end = ("are wrong. The hardest input is ", ": ") if count > 1 else ("is wrong: that to ", ", in ")
    assert bold(app)[-1].startswith(f"{count} of {MANY} answers {verb}{expected[0]}{end}")


@pytest.mark.daily(3)
@pytest.mark.parametrize("run", ["compiled", "reverse-translate"])
@pytest.mark.parametrize("depth", ["training", "head", "symbol", "length", "confusion", "hardest"])
def test_every_look_opens_and_stays_in_the_link(run: str, depth: str):
    app = open_page("accuracy", run=run, depth=depth, sequences="64")
    assert not app.warning
    assert not app.error
    if (run, depth) == ("compiled", "training"):
        assert "This model was not trained" in app.info[0].value
    else:
        assert depth == "hardest" or f"depth-{depth}" in figures(app)
        assert bold(app)[-1].endswith(".")
    default = "head" if run == "compiled" else "training"
    assert link(app) == {"run": run, "sequences": "64", "depth": depth} or depth == default


def test_a_look_is_chosen_and_is_in_the_link():
    app = open_page("accuracy", run="reverse", sequences="64")
    control = app.segmented_control(key="control-depth")
    assert control.value == "training"
    control.set_value("confusion").run()
    assert link(app)["depth"] == "confusion"
    assert "depth-confusion" in figures(app)
    assert "depth-training" not in figures(app)


@pytest.mark.daily(1)
@pytest.mark.parametrize("step", [0, 20])
def test_the_film_s_columns_are_what_its_steps_get_right(step: int):
    model, config = network("reverse", step)
    app = open_page("accuracy", run="reverse", sequences="64")
    steps = figures(app)["depth-training"]["layout"]["meta"]["places"]["x"]
    x = np.random.default_rng([0, 1]).integers(0, 10, (256, 8))
    tokens, source, targets = laid_out(config, x)
    with torch.no_grad():
        right = model(tokens, source).argmax(-1).numpy() == targets
    column = array(trace(app, "depth-training", "accuracy")["z"])[:, steps.index(step)]
    np.testing.assert_allclose(column, right.mean(axis=0), atol=1e-6)


def test_a_head_is_removed_on_the_page_of_edits():
    app = open_page("accuracy", run="reverse", sequences="64", depth="head", head="decoder.1.self_attention.2")
    next(button for button in app.button if button.label == "Go on without head 1.2").click().run()
    assert not app.exception
    assert app.session_state["settings"].edits == "zero:decoder.1.self_attention.2"


KINDS = {
    "sort": (TaskConfig(task="sort", length=5, min_length=2, symbols=4), {"positions": "alibi", "d_ff": 0}),
    "leaks": (TaskConfig(length=4, symbols=3), {"architecture": "encoder", "positions": "rotary", "norm": "post"}),
    "blind": (TaskConfig(task="reverse-aligned", length=4), {"mask": "sliding-window:0", "positions": "none"}),
    "long": (TaskConfig(task="reverse-translate", length=24, symbols=36), {"norm": "none"}),
    "one": (TaskConfig(length=1, symbols=2), {}),
}


@pytest.mark.daily(1)
@pytest.mark.parametrize("kind", KINDS)
def test_every_look_opens_on_every_kind_of_model(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of each the whole model's row, where heads are removed, is the bars; and the rows of confusions sum to one."""
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    task, model = KINDS[kind]
    small = {"n_layers": 1, "n_heads": 2, "d_model": 8, "d_ff": 16, "mask": "auto", "architecture": "auto"}
    config = RunConfig(task=task, model=ModelConfig(**{**small, **model}), training=TrainingConfig(max_steps=3, seed=1))
    for _ in record(Run.create(tmp_path / kind, config)):
        pass
    for depth in ("training", "head", "symbol", "length", "confusion", "hardest"):
        app = open_page("accuracy", run=kind, depth=depth, sequences="64")
        assert not app.warning
        assert not app.error
        if depth == "head":
            bars = array(trace(app, "accuracy", "measured")["y"])
            np.testing.assert_allclose(cells(app, "depth-head")[0], bars, atol=1e-6)
        if depth == "confusion":
            np.testing.assert_allclose(np.nansum(cells(app, "depth-confusion"), axis=1), 1, atol=1e-6)
        if depth == "length":
            bars = array(trace(app, "accuracy", "measured")["y"])
            np.testing.assert_allclose(cells(app, "depth-length")[-1], bars, atol=1e-6)
            assert len(cells(app, "depth-length")) == min(task.length, 16)


# --- words and figures


def test_sentences_say_what_the_counts_say():
    assert accuracy_words.symbol_sentence(np.array([3, 9]), np.array([4, 10]), ("a", "b")) == (
        "'a' is right least often: 3 of 4 (0.750); 'b' most often: 9 of 10 (0.900)."
    )
    assert accuracy_words.length_sentence(np.array([0.5, 1.0, 1.0]), [1, 2, 3], [False, True, True]) == (
        "Whole answers are right most often at length 3: 1.000. They are right least often at length 1 (not trained "
        "on): 0.500."
    )
    assert accuracy_words.length_sentence(np.array([1.0, 1.0]), [1, 2], [True, True]) == (
        "The share of whole answers that are right is the same at every length: 1.000."
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0"), (1.0, "1"), (0.004, "<.01"), (0.05, ".05"), (0.5, ".50"), (0.997, ".997"), (0.99999, ">.999")],
)
def test_a_number_says_0_and_1_only_where_it_is(share: float, text: str):
    figure = accuracy_figures.accuracy_by_head_heatmap(np.array([[share]]), [], ["y1"], ["second half"])
    assert figure.data[-1].text == (text,)


def test_many_heads_share_the_passes():
    app = open_page("accuracy", run="reverse-translate", sequences="4096", depth="symbol")
    assert not app.exception

    menu = model_menu.menu()
    few = [
        accuracy_counts.removal_sequences(models_model.Model.of(menu[n], menu[n].snapshots[-1]), 4096, 8)
        for n in ("reverse", "reverse-translate")
    ]
    assert few == [1024, 8192 // 24]


def test_a_second_look_at_a_page_takes_no_click_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for with the URL of before a click, it may run after it: it must not read that URL."""
    app = open_page("accuracy", run="reverse", sequences="256")
    state = State(said=[])
    monkeypatch.setattr(streamlit, "session_state", state)
    monkeypatch.setattr(streamlit, "rerun", lambda: None)
    monkeypatch.setattr(streamlit, "fragment", lambda look, run_every: lambda *told: (look(*told), look(*told)))
    monkeypatch.setattr(waiting, "torch", lambda: torch)
    monkeypatch.setattr(session, "BEHIND", 0.5)
    monkeypatch.setattr(session, "chosen", lambda: models_model.Model.of(model_menu.menu()["reverse"], 40))
    waiting.after_first_look()
    monkeypatch.undo()
    app.session_state["settings"] = app.session_state["settings"].with_(step=20)
    app.session_state["touched"] = state.touched
    app.query_params["sequences"] = "512"  # not what was written last
    app.run()
    assert link(app) == {"run": "reverse", "step": "20", "sequences": "256"}
