"""The router: one page a file, the sidebar and the training panel around all of them."""

import streamlit as st

from dashboard import controls, live, session

st.set_page_config(page_title="Attention Lab", page_icon=":material/grid_on:", layout="wide")

page = st.navigation(
    [
        st.Page("pages/overview.py", title="Overview", icon=":material/visibility:", default=True),
        st.Page("pages/heads.py", title="Attention heads", icon=":material/grid_view:", url_path="heads"),
        st.Page("pages/masks.py", title="Mask effects", icon=":material/filter_alt:", url_path="masks"),
        st.Page("pages/positions.py", title="Positional encoding", icon=":material/waves:", url_path="positions"),
        st.Page("pages/accuracy.py", title="Accuracy by position", icon=":material/bar_chart:", url_path="accuracy"),
    ],
    position="top",
)
session.begin(page.title)
controls.sidebar()
live.panel()
notices = st.container()
page.run()
for sentence in session.notices():
    notices.warning(sentence, icon=":material/link_off:")
session.end()
