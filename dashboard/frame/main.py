"""The router: the page of the address, the sidebar and the training panel around it."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import streamlit as st

from dashboard import theme
from dashboard.components import appearance
from dashboard.frame import glossary, health, live, other_models, sharing, sidebar, tabs, training_panel
from dashboard.frame.guided import exercise, lecture, prediction, preparing, reaching
from dashboard.frame.style import style
from dashboard.parts import prose, waiting
from dashboard.server import background
from dashboard.server.streamlit_private import is_visited, run_again
from dashboard.view import clicks, permission, session, training
from dashboard.view.pages import OVERVIEW, PAGES, Page
from transformer.foundation.checks import UserError

st.set_page_config(
    page_title="Attention Lab",
    page_icon=theme.icon(),
    layout="wide",
    initial_sidebar_state="collapsed" if st.query_params.get("sidebar") == "0" else "auto",
)

background.begun.set()
menus: dict[str, list] = {}
bar: dict[str, list[Page]] = {}  # each place in it, those without a menu first: that is how Streamlit draws them
for each in sorted(PAGES.values(), key=lambda each: not each.stands_in_bar):
    entry = st.Page(
        each.script,
        title=each.entry or each.title,
        icon=f":material/{each.icon}:",
        url_path=each.address,
        default=each is OVERVIEW,
        visibility="visible" if each is each.tabs[0] else "hidden",
    )
    menus.setdefault("" if each.stands_in_bar else each.menu, []).append(entry)
    bar.setdefault(each.menu or each.title, []).append(each)
page = st.navigation(menus, position="top", expanded=True)
shown = PAGES.get(page.url_path, OVERVIEW)
st.html(style(next(place for place, pages in enumerate(bar.values(), 1) if shown in pages)))
session.begin(shown.title, imported=shown.imported)
appearance.follow(clicks.touch)
notices = st.container()


@contextmanager
def told() -> Iterator[None]:
    """Say what went wrong where that is one sentence, made to be read."""
    try:
        with background.drawing() if is_visited() else nullcontext():
            yield
    except UserError as error:
        st.error(prose.sentence(prose.plain(str(error))), icon=":material/error:")


def body() -> None:
    """The page itself. As a fragment a click in it draws nothing else anew, unless that shows what was changed."""
    reaching.reach(shown)
    task, said = st.container(), st.container(key="notices")
    session.listen()
    if session.is_shown_around_otherwise():
        clicks.again()
    with told():
        if shown.transformer and session.chosen().config.model.recurrent:
            other_models.transformer_wanted(shown.title, session.chosen())
        else:
            run_again(page)
        with task:
            exercise.strip(shown)
        session.end()
        st.html(session.origin())
    for text in session.notices():
        said.warning(prose.plain(text), icon=":material/link_off:")


with told():
    reaching.reach(shown)
    other_models.give_back(shown)
    sharing.way_back()
    lecture.strip(shown)
    training.offer()
    sidebar.sidebar(shown)
    if shown.address != "runs":  # that page shows several trainings at once
        live.panel(shown)
    tabs.strip(shown)
    glossary.draw()
    prediction.draw(shown)
    (st.fragment(body) if run_again.is_there() else body)()
    with st.sidebar:
        training_panel.panel()
        if said := permission.standing():
            st.caption(f":material/badge: {said}")
        prediction.switch()
        if not session.settings().lecture:
            sharing.button()
    if shown.follows and not shown.imported:
        health.strip(session.chosen(), notices)
    session.finish()
    background.drawn.set()
    if is_visited():
        preparing.ahead(shown)
    waiting.after_first_look()
for text in session.notices():
    notices.warning(prose.plain(text), icon=":material/link_off:")
