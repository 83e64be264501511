"""The router: one page a file, the sidebar and the training panel around all of them."""

import streamlit as st
from PIL import Image

from dashboard import controls, health, live, recipe, session, theme

st.set_page_config(page_title="Attention Lab", page_icon=Image.fromarray(theme.icon()), layout="wide")

menus = {
    "": [st.Page("app_pages/overview.py", title="Overview", icon=":material/visibility:", default=True)],
    "Look inside": [
        st.Page("app_pages/heads.py", title="Attention heads", icon=":material/grid_view:", url_path="heads"),
        st.Page("app_pages/inside.py", title="Inside a head", icon=":material/biotech:", url_path="inside"),
        st.Page("app_pages/layers.py", title="Through the layers", icon=":material/layers:", url_path="layers"),
        st.Page("app_pages/positions.py", title="Positional encoding", icon=":material/waves:", url_path="positions"),
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
}
page = st.navigation(menus, position="top")
st.html(theme.STYLE + theme.marked(next(place for place, pages in enumerate(menus.values(), 1) if page in pages)))
session.begin(page.title)
notices = st.container()
try:
    controls.sidebar()
    with st.sidebar:
        recipe.panel()
    if page.url_path != "runs":  # that page shows several trainings at once
        live.panel()
    page.run()
    session.end()
    st.html(session.origin())
    health.strip(session.chosen(), notices)
    session.finish()
except ValueError as error:
    if not type(error).__module__.startswith("transformer"):
        raise
    # CheckpointError, RunError, ConfigError …: one sentence each, made to be read.
    st.error(controls.sentence(str(error)), icon=":material/error:")
for text in session.notices():
    notices.warning(text, icon=":material/link_off:")
