"""The parts of a block, one at a time, each with the real numbers of one token and a sentence made of them."""

import streamlit as st

from dashboard.app_pages.look_inside.block import sections
from dashboard.parts.prose import plain, show_code
from dashboard.parts.widgets import stepped
from dashboard.view import session

PARTS = {part.name: part for part in sections.PARTS}

title = st.container()
with st.container(key="compact-part"):
    part = PARTS[stepped("part", {part.name: part.title for part in sections.PARTS}, label="Part")]
st.markdown(f"**{part.question}**")
title.title(plain(part.answer(session.chosen())), anchor=False)
show_code(*part.code)
