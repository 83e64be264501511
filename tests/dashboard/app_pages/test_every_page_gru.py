"""GRUs on every page: what they have is shown, and what they lack is said, with a way to a model that has it."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.training.runs.races import races
from dashboard.parts.heads import alignment_sentence
from tests.kit.pages import PAGES, array, figures, large_head, link, open_page, staged, trace
from tests.kit.recurrent_by_hand import SEP, configured, logits_by_hand, numbers, said_by_hand, states_by_hand
from transformer import checkpoints
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.presets import PRESETS
from transformer.training.recording import develop, record
from transformer.training.runs import Run

QUESTION = [3, 1, 4, 1]
MADE = {
    "none": configured("none", length=4, max_steps=6, seed=2),
    "additive": configured("additive", length=4, max_steps=6, min_length=2, n_layers=2),
    "plain": RunConfig(
        task=TaskConfig(task="reverse-translate", length=4),
        model=ModelConfig(n_layers=1, n_heads=2, d_model=8, d_ff=0),
        training=TrainingConfig(max_steps=3, device="cpu"),
    ),
}
GRUS = pytest.mark.parametrize("run", ["none", "additive"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GRU without attention, one with, and a transformer, after a few steps."""
    root = tmp_path_factory.mktemp("runs")
    for name, config in MADE.items():
        run = Run.create(root / name, config)
        for _ in record(run):
            pass
        assert develop(run)
    return root


@pytest.fixture(autouse=True)
def root(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("dashboard.models.menu.ROOT", made)
    monkeypatch.setattr("dashboard.models.menu.FIRST", "plain")
    return made


def button(app: AppTest, label: str) -> AppTest:
    app = next(each for each in app.button if each.label == label).click().run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    return "\n".join(each.value for each in (*app.title, *app.markdown, *app.caption, *app.info))


@pytest.mark.daily(2)
@GRUS
@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_and_at_any_step_where_that_matters(
    page: str, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page == "lengths":  # what takes long on it is not about this model
        monkeypatch.setattr("dashboard.view.session.BEHIND", 0.5)
    for step in ("0", "3", "") if page in ("overview", "heads", "film", "accuracy") else ("",):
        app = open_page(page, run=run, **({"step": step} if step else {}))
        assert len(app.title) == 1
        assert not app.error
        assert not app.warning
        assert link(app)["run"] == run
        assert ("needs a transformer" in app.title[0].value) == PAGES[page].transformer


@pytest.mark.daily(1)
@pytest.mark.parametrize("page", [page.address for page in PAGES.values() if page.transformer])
def test_where_a_transformer_is_needed_there_is_one_to_go_to(page: str) -> None:
    app = button(open_page(page, run="none", head="x", step="0"), "Look at plain")
    assert link(app) == {"run": "plain"}
    assert "needs a transformer" not in app.title[0].value


@pytest.mark.daily(2)
@pytest.mark.parametrize("page", ["overview", "heads", "film"])
def test_where_there_is_no_attention_there_is_one_to_go_to(page: str) -> None:
    app = open_page(page, run="none")
    assert "one vector of 6 numbers, however long the sequence is" in said(app)
    assert "has no attention: its decoder gets only one vector of 6 numbers" in said(app) or page != "heads"
    assert link(button(app, "Look at additive")) == {"run": "additive"}


@pytest.mark.parametrize(("page", "key"), [("overview", "overview-states"), ("heads", "heads-states")])
def test_what_is_handed_over_is_drawn(page: str, key: str, made: Path) -> None:
    model, _ = checkpoints.load(Run(made / "none").snapshot())
    inputs = [numbers(model.embedding.weight)[token] for token in QUESTION]
    (states,) = states_by_hand(model.core.encoder, inputs, [np.zeros(6)])
    figure = figures(open_page(page, run="none"))[key]
    (drawn,) = (each for each in figure["data"] if each.get("name") == "values")
    np.testing.assert_allclose(array(drawn["z"]), np.array(states), atol=1e-5)
    frames = [shape for shape in figure["layout"]["shapes"] if shape["y1"] - shape["y0"] == 1]
    assert [(shape["y0"], shape["y1"]) for shape in frames] == [(3.5, 4.5)]  # positions from 1: the last


@GRUS
def test_the_overview_counts_what_it_says_by_itself(run: str, made: Path) -> None:
    model, _ = checkpoints.load(Run(made / run).snapshot())
    own = said_by_hand(model, QUESTION)
    right = sum(one == other for one, other in zip(own, QUESTION[::-1], strict=True))
    assert f"Of this answer {right} of 4 tokens are right." in said(open_page(run=run))


@pytest.mark.daily(1)
@GRUS
def test_its_accuracy_is_of_what_it_says_by_itself(run: str, made: Path) -> None:
    model, config = checkpoints.load(Run(made / run).snapshot())
    x = np.random.default_rng([config.training.seed + 1, 1]).integers(0, 10, (256, 4))
    own = np.array([said_by_hand(model, row) for row in x.tolist()])
    app = open_page("accuracy", run=run, sequences="256")
    assert app.dataframe[0].value["right"].tolist() == (own == x[:, ::-1]).sum(axis=0).tolist()
    assert "It answers by itself" in said(app)
    confused = open_page("accuracy", run=run, sequences="256", depth="confusion")
    assert f"{(own == x[:, ::-1]).sum():,} of 1,024 symbols are right" in said(confused)
    assert "where the model reads its own words" in said(confused)
    looks = next(each for each in app.get("button_group") if each.label == "Look closer").options
    assert ("by head" in looks) == (run != "none")


@pytest.mark.daily(3)
@GRUS
@pytest.mark.parametrize("depth", ["training", "head", "symbol", "length", "confusion", "hardest"])
def test_its_accuracy_can_be_taken_apart(run: str, depth: str) -> None:
    app = open_page("accuracy", run=run, sequences="256", depth=depth)
    assert len(app.warning) == (run == "none" and depth == "head")
    assert "teacher forcing" not in said(app)


def test_without_its_head_it_still_speaks_for_itself(made: Path) -> None:
    """What is left without the context vector, against its part of the unembedding being zero."""
    model, config = checkpoints.load(Run(made / "additive").snapshot())
    model.unembedding.weight.data[:, : config.model.d_model] = 0
    x = np.random.default_rng([config.training.seed + 1, 1]).integers(0, 10, (256, 4))
    right = np.array([said_by_hand(model, row) for row in x.tolist()]) == x[:, ::-1]
    drawn = trace(open_page("accuracy", run="additive", sequences="256", depth="head"), "depth-head", "values")
    np.testing.assert_allclose(array(drawn["z"])[-1], right.mean(axis=0), atol=1e-6)


def test_its_pattern_is_its_alignment(made: Path) -> None:
    model, _ = checkpoints.load(Run(made / "additive").snapshot())
    own = said_by_hand(model, QUESTION)
    _, alpha = logits_by_hand(model, QUESTION, [SEP, *own[:-1]])
    app = open_page("heads", run="additive")
    np.testing.assert_allclose(large_head(app)[1]["pattern"], alpha, atol=1e-5)
    assert "context vector" in said(app)
    x = np.random.default_rng([0, 2]).integers(0, 10, (256, 4)).tolist()
    mean = np.mean([logits_by_hand(model, row, [SEP, *row[:0:-1]])[1] for row in x], axis=0)
    diagonals = {
        later: sum(mean[i, j] for i in range(4) for j in range(4) if i + j - 3 == later) for later in range(-3, 4)
    }
    best = max(diagonals, key=diagonals.__getitem__)
    shares = re.findall(r"\d\.\d\d", app.title[0].value)
    expected = [diagonals[best], diagonals[0]] if best else [diagonals[0]]
    np.testing.assert_allclose([float(share) for share in shares], np.array(expected) / 4, atol=0.0051)
    if best:
        assert f"{abs(best)} token{'s' * (abs(best) > 1)} {'after' if best > 0 else 'before'}" in app.title[0].value
    assert "residual stream" not in said(app)


@pytest.mark.parametrize(
    ("later", "words"),
    [(0, "at the token it should output: 0.60"), (1, "1 token after the one"), (-2, "2 tokens before the one")],
)
def test_where_the_decoder_looks_is_said_from_the_mean_pattern(later: int, words: str) -> None:
    """By hand: 0.6 of four queries, as far as there is a state there, on one diagonal and the rest nowhere near."""
    mean = np.zeros((4, 4))
    for query in range(4):
        if 0 <= 3 - query + later < 4:
            mean[query, 3 - query + later] = 0.6
    said = alignment_sentence(mean, np.eye(4, dtype=bool)[::-1])
    assert words in said
    assert f"{0.6 * (4 - abs(later)) / 4:.2f} of its attention is there" in said


@pytest.mark.daily(1)
@GRUS
def test_the_information_can_be_followed(run: str) -> None:
    """The source reaches every output; of its own words none an earlier one, and all moved cells are those."""
    app = open_page("information", run=run, poked="1")
    assert "moves 4 of 4 outputs" in app.title[0].value
    ahead = np.hstack([np.zeros((4, 4), bool), np.triu(np.ones((4, 4), bool), 1)])
    for key in ("moves", "slopes"):
        drawn = array(trace(app, key, "values")["z"])
        np.testing.assert_array_equal(np.isfinite(drawn), ~ahead)
    assert ("beside" in figures(app)) == (run != "none")


def test_a_film_without_heads_shows_the_rest(made: Path) -> None:
    app = open_page("film", run="none")
    reel = staged(app)
    assert reel["panels"] == []
    assert reel["accuracySteps"] == list(Run(made / "none").snapshots())
    assert re.match(
        r"This model has no heads: \d of 4 places are right nine times in ten at step "
        r"6\.",
        app.title[0].value,
    )
    app = open_page("film", run="additive")
    assert len(staged(app)["panels"]) == 1
    assert re.match(r"At step 6 the decoder looks .*: 0\.\d\d of its attention is there", app.title[0].value)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("none", "reverse-translate, length 4, 10 symbols · GRU, no attention, d_model 6 · 6 steps"),
        (
            "additive",
            "reverse-translate, length 2 to 4, 10 symbols · GRU, 2 layers, additive attention, d_model 6 · 6 steps",
        ),
    ],
)
def test_it_is_called_what_it_is(run: str, words: str) -> None:
    assert open_page(run=run).sidebar.caption[0].value == words


def test_a_question_shorter_than_those_it_was_trained_on() -> None:
    for page in ("overview", "heads", "accuracy"):
        assert not open_page(page, run="additive", input="7").error
        assert not open_page(page, run="none", input="7").error


# --- the training panel

HIDDEN = ("positions", "heads", "train_mask", "feed_forward", "gain")
SHOWN = ("attention", "affine", "teacher_forcing")


def keys(app: AppTest) -> set[str]:
    return {name for name in (*HIDDEN, *SHOWN) if f"control-{name}" in app.session_state}


def test_the_panel_asks_what_means_something_and_trains_it(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[Run] = []
    shutil.copytree(made / "plain", tmp_path / "plain")
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    monkeypatch.setattr("dashboard.server.background.pool.submit", lambda run, who: handed.append(run))
    monkeypatch.setattr("dashboard.view.training.FIRST_STEP", 0.0)
    app = open_page("heads", run="plain", task="reverse-translate", positions="rotary", heads="3")
    assert keys(app) == set(HIDDEN)
    assert app.sidebar.error  # 64 is not divisible by 3
    app.selectbox(key="control-architecture").set_value("gru").run()
    assert keys(app) == set(SHOWN)
    assert not app.sidebar.error  # which means nothing to a GRU
    app.selectbox(key="control-attention").set_value("additive").run()
    app.checkbox(key="control-affine").set_value(False).run()
    app.slider(key="control-teacher_forcing").set_value(0.5).run()
    assert not app.exception
    expected = {"architecture": "gru", "attention": "additive", "affine": "0", "teacher_forcing": "0.5"}
    assert expected.items() <= link(app).items()
    button(app, "Train")
    (run,) = handed
    model = ModelConfig(architecture="gru", attention="additive", affine=False, n_layers=2, d_model=64)
    task = TaskConfig(task="reverse-translate")
    assert run.config == RunConfig(task=task, model=model, training=TrainingConfig(teacher_forcing=0.5))
    app.session_state.watched = None
    app.selectbox(key="control-attention").set_value("none").run()
    assert keys(app) == {"attention", "teacher_forcing"}
    app.selectbox(key="control-architecture").set_value("encoder-decoder").run()
    assert keys(app) == set(HIDDEN)
    assert app.number_input(key="control-heads").value == 3  # as it was left


@pytest.mark.daily(2)
@pytest.mark.parametrize("query", [{"attention": "loud"}, {"teacher_forcing": "1.5"}, {"affine": "maybe"}])
def test_a_link_that_asks_for_what_there_is_not_falls_back(query: dict[str, str]) -> None:
    app = open_page(run="plain", task="reverse-translate", architecture="gru", **query)
    assert len(app.warning) == 1
    assert not app.sidebar.error
    app = open_page(run="plain", architecture="gru")  # which this task has not
    assert not app.sidebar.error


def test_a_preset_leaves_what_means_nothing_to_it(made: Path) -> None:
    app = open_page(run="plain", task="reverse-translate", heads="2")
    app.selectbox(key="control-preset").set_value("GRU, one vector").run()
    assert not app.exception
    assert keys(app) == {"attention", "teacher_forcing"}
    app.selectbox(key="control-preset").set_value("reverse as translation").run()
    assert app.selectbox(key="control-preset").value == "reverse as translation"
    assert app.number_input(key="control-heads").value == 4


def test_a_gru_races_against_what_differs_from_it() -> None:
    preset = next(preset for preset in PRESETS if preset.name == "GRU, one vector")
    attention, forcing, seeds = races(preset.config)
    assert [config.model.attention for config in attention.configs] == ["scaled-dot", "none"]
    assert [config.training.teacher_forcing for config in forcing.configs] == [1.0, 0.5, 0.0]
    assert len({config.training.seed for config in seeds.configs}) == 3
    app = open_page("runs", run="none", compare="none,additive", task="reverse-translate", architecture="gru")
    assert any(each.label == "scaled-dot attention or none" for each in app.button)
    assert not app.error


def test_where_no_run_suits_the_compiled_model_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(MADE["none"], training=replace(MADE["none"].training, max_steps=1))
    for _ in record(Run.create(tmp_path / "alone", config)):
        pass
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    assert link(button(open_page("heads", run="alone"), "Look at compiled")) == {"run": "compiled"}


def test_what_is_stored_is_what_it_says(made: Path) -> None:
    """The example beside the weights is shown without PyTorch."""
    for name, heads in (("none", set()), ("additive", {"decoder.0.cross_attention.0"})):
        run = Run(made / name)
        model, _ = checkpoints.load(run.snapshot())
        with np.load(run.folder / "example.npz", allow_pickle=False) as stored:
            assert stored["said"].tolist() == said_by_hand(model, QUESTION)
            assert json.loads(str(stored["text"]))["shares"].keys() == heads
