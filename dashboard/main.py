"""The router: one page a file, the sidebar and the training panel around all of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

import streamlit as st
from PIL import Image

from dashboard import controls, elsewhere, health, live, recipe, session, theme

st.set_page_config(page_title="Attention Lab", page_icon=Image.fromarray(theme.icon()), layout="wide")

menus = {
    "": [st.Page("app_pages/overview.py", title="Overview", icon=":material/visibility:", default=True)],
    "Look inside": [
        st.Page("app_pages/heads.py", title="Attention heads", icon=":material/grid_view:", url_path="heads"),
        st.Page("app_pages/inside.py", title="Inside a head", icon=":material/biotech:", url_path="inside"),
        st.Page("app_pages/layers.py", title="Through the layers", icon=":material/layers:", url_path="layers"),
        st.Page("app_pages/positions.py", title="Positional encoding", icon=":material/waves:", url_path="positions"),
        st.Page("app_pages/order.py", title="Positions at work", icon=":material/swap_vert:", url_path="order"),
    ],
    "Change it": [
        st.Page("app_pages/masks.py", title="Mask effects", icon=":material/filter_alt:", url_path="masks"),
        st.Page(
            "app_pages/information.py",
            title="Follow the information",
            icon=":material/conversion_path:",
            url_path="information",
        ),
        st.Page("app_pages/edits.py", title="Edits", icon=":material/edit:", url_path="edits"),
    ],
    "Train it": [
        st.Page("app_pages/film.py", title="Training film", icon=":material/movie:", url_path="film"),
        st.Page(
            "app_pages/accuracy.py", title="Accuracy by position", icon=":material/bar_chart:", url_path="accuracy"
        ),
        st.Page("app_pages/runs.py", title="Runs and races", icon=":material/flag:", url_path="runs"),
        st.Page("app_pages/lengths.py", title="What positions buy", icon=":material/straighten:", url_path="lengths"),
    ],
    "Text": [
        st.Page("app_pages/writing.py", title="It writes", icon=":material/edit_note:", url_path="writing"),
        st.Page("app_pages/reading.py", title="It reads", icon=":material/menu_book:", url_path="reading"),
    ],
    "How it began": [
        st.Page("app_pages/bottleneck.py", title="The bottleneck", icon=":material/compress:", url_path="bottleneck"),
        st.Page("app_pages/corners.py", title="Square corners", icon=":material/crop_square:", url_path="corners"),
        st.Page("app_pages/context.py", title="Attention by hand", icon=":material/calculate:", url_path="context"),
        st.Page("app_pages/questions.py", title="Five questions", icon=":material/help:", url_path="questions"),
    ],
}
page = st.navigation(menus, position="top")
st.html(theme.STYLE + theme.marked(next(place for place, pages in enumerate(menus.values(), 1) if page in pages)))
session.begin(page.title)
notices = st.container()


@contextmanager
def told() -> Iterator[None]:
    """Say what went wrong where it is one sentence, made to be read: CheckpointError, RunError, ConfigError …"""
    try:
        yield
    except ValueError as error:
        if not type(error).__module__.startswith("transformer"):
            raise
        st.error(controls.sentence(str(error)), icon=":material/error:")


@st.fragment
def body() -> None:
    """The page itself: a click in it draws nothing else anew, unless that shows what was changed."""
    said = st.container()
    session.listen()
    if session.is_shown_around_otherwise():
        st.rerun()
    with told():
        if page.url_path in elsewhere.OPENS_A_TRANSFORMER and session.chosen().config.model.recurrent:
            elsewhere.transformer_wanted(page.title, session.chosen())
        else:
            copy(page).run()  # a page runs once; its copies, whenever they are asked for
        session.end()
        st.html(session.origin())
    for text in session.notices():
        said.warning(text, icon=":material/link_off:")


with told():
    controls.sidebar(asks=page.url_path not in elsewhere.ASKS_BY_ITSELF)
    if page.url_path != "runs":  # that page shows several trainings at once
        live.panel()
    body()
    with st.sidebar:
        recipe.panel()
    health.strip(session.chosen(), notices)
    session.finish()
for text in session.notices():
    notices.warning(text, icon=":material/link_off:")
