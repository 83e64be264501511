"""The model of another page comes along, or a page opens its own: and which one is back on the next."""

from __future__ import annotations

from dashboard.view.pages import PAGES
from tests.kit.pages import link, open_page

READER = "shakespeare"


def test_who_comes_from_a_page_about_another_model_sees_a_text_at_once_and_finds_that_model_again() -> None:
    app = open_page("heads", run="reverse-sinusoidal", head="decoder.0.self_attention.1")
    app.switch_page(PAGES["writing"].script).run()
    assert link(app)["run"] == READER
    assert "needs a model" not in app.title[0].value
    app.switch_page(PAGES["reading"].script).run()
    assert link(app)["run"] == READER
    app.switch_page(PAGES["heads"].script).run()
    assert link(app) == {"run": "reverse-sinusoidal", "head": "decoder.0.self_attention.1"}
    assert not app.warning


def test_a_model_that_is_chosen_on_a_page_about_texts_stays() -> None:
    app = open_page("heads", run="reverse-sinusoidal")
    app.switch_page(PAGES["tokens"].script).run()
    app.selectbox(key="control-run").set_value("reverse").run()
    assert app.title[0].value.startswith("“Tokens and windows” needs a model that reads text.")
    app.switch_page(PAGES["heads"].script).run()
    assert link(app)["run"] == "reverse"


def test_an_address_is_taken_by_its_word() -> None:
    app = open_page("writing", run="reverse")
    assert app.title[0].value.startswith("“It writes” needs a model that reads text.")
