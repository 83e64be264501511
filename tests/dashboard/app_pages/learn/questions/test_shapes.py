"""The second question: attention of any shape against its formula, and the page with its sliders."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dashboard import theme
from dashboard.app_pages.learn.questions import shapes
from dashboard.app_pages.learn.questions.figures.shapes import falk, shapes_to_scale
from dashboard.app_pages.learn.questions.settings import QuestionsSettings
from tests.kit.pages import link, open_page


def softmax(scores: np.ndarray) -> np.ndarray:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("sizes", [(3, 5, 4, 6), (1, 1, 1, 1), (7, 2, 12, 1), (2, 12, 3, 9)])
def test_attention_of_any_shape_is_the_formula(sizes):
    queries, keys, d_k, d_v = sizes
    view = QuestionsSettings(
        n_queries=queries, n_keys=keys, n_values=keys, d_query=d_k, d_key=d_k, d_value=d_v, d_stream=7
    )
    tried = shapes.attend(view)
    assert (tried.query.shape, tried.key.shape, tried.value.shape) == ((queries, d_k), (keys, d_k), (keys, d_v))
    pattern = softmax(tried.query.astype(np.float64) @ tried.key.T / np.sqrt(d_k))
    np.testing.assert_allclose(tried.pattern, pattern, atol=1e-5)
    np.testing.assert_allclose(tried.output, pattern @ tried.value, atol=1e-4)
    assert tried.weights == 2 * (7 * d_k + d_k) + (7 * d_v + d_v) + (d_v * 7 + 7)
    assert not tried.broken


@pytest.mark.parametrize(
    ("changes", "wrong", "words"),
    [
        ({"d_query": 5}, ("d_q", "d_k"), "width 5 do not fit keys of width 4: Q and K must have the same width"),
        ({"n_values": 7}, ("n_k", "n_v"), "5 keys do not fit 7 values: there must be as many values as keys"),
        ({"n_values": 2, "d_key": 9}, ("d_q", "d_k"), "width 4 do not fit keys of width 9"),
    ],
)
def test_what_does_not_fit_breaks_with_a_sentence(changes, wrong, words):
    view = QuestionsSettings(**changes)
    tried, sides, said = shapes.attend(view), shapes.misfits(view), shapes.misfit_sentence(view)
    assert sides == wrong
    assert said is not None
    assert words in said
    assert tried.output is None
    assert (tried.pattern is None) == (wrong == ("d_q", "d_k"))
    assert "shapes cannot be multiplied" in tried.broken


@pytest.mark.parametrize("palette", [theme.LIGHT, theme.DARK])
def test_matrices_are_drawn_to_scale_and_do_not_meet(palette):
    for view in (
        QuestionsSettings(),
        QuestionsSettings(n_values=7),
        QuestionsSettings(d_query=1),
        QuestionsSettings(n_keys=12, n_values=12, d_value=12),
    ):
        tried = shapes.attend(view)
        placed = falk(tried.query, tried.key, tried.value, tried.pattern, tried.output)
        for one, other in itertools.combinations(placed, 2):
            beside = one.right < other.left or other.right < one.left
            assert beside or one.top < other.low or other.top < one.low
        figure = shapes_to_scale(placed, shapes.misfits(view), palette=palette)
        assert figure.layout.yaxis.scaleanchor == "x"
        drawn = {trace.name: np.array(trace.z) for trace in figure.data}
        np.testing.assert_allclose(drawn["Kᵀ"], tried.key.T, atol=1e-6)
        assert ("output" in drawn) == (tried.output is not None)


def test_a_slider_that_breaks_attention_says_how_and_one_that_mends_it_is_believed():
    app = open_page("questions", run="reverse", asked="2")
    assert app.title[0].value == "3 queries meet 5 keys: a pattern of 3 × 5, an output of 3 × 6."
    assert any(caption.value.endswith("in each of 4 heads.") for caption in app.caption)
    named = [slider.label for slider in app.slider if slider.key in {f"control-{each[1]}" for each in shapes.SLIDERS}]
    assert len(named) == 6
    assert max(map(len, named)) <= len("Queries")  # no name takes two lines
    app.slider(key="control-d_query").set_value(9).run()
    assert app.title[0].value == "Queries of width 9 do not fit keys of width 4: Q and K must have the same width."
    assert "PyTorch says: “mat1 and mat2 shapes cannot be multiplied" in app.error[0].value
    app.slider(key="control-d_key").set_value(9).run()
    assert not app.error
    assert link(app) == {"run": "reverse", "asked": "2", "d_query": "9", "d_key": "9"}


def test_one_head_is_counted_in_words():
    app = open_page("questions", run="compiled", asked="2")
    assert any(caption.value.endswith("in its one head.") for caption in app.caption)
